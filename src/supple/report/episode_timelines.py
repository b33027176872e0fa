# SPDX-License-Identifier: Apache-2.0
"""Force and contact over time in stored episodes, drawn so that they stand under the tiles of their video."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from supple.episodes import Episode
from supple.report.charts import Line, Span, timeline

__all__ = ["CONTACT_FORCE", "body_label", "contact_spans", "episode_timelines", "pair_label"]

CONTACT_FORCE = 0.5
"""Normal force in [N] from which on two bodies count as touching in a report."""

_STYLES = 5


def body_label(name: str) -> str:
    """Return a body's name for people, e.g. ``"left hand"`` for ``"left_wrist_yaw_link"``."""
    for pattern, part in ((r"(left|right)_(?:wrist|hand|palm)", "hand"), (r"(left|right)_ankle", "foot")):
        if side := re.match(pattern, name):
            return f"{side.group(1)} {part}"
    # MuJoCo's fixed geometry belongs to a body named world; of it, only the floor is touched.
    return "floor" if name == "world" else name.removesuffix("_link").replace("_", " ")


def pair_label(pair: str) -> str:
    """Return the name of a pair ``"a/b"`` for people."""
    return " and ".join(body_label(name) for name in pair.split("/"))


def contact_spans(
    times: NDArray[np.float64],
    held: NDArray[np.bool_],
    *,
    row: int = 0,
    style: str = "s0",
    text: str = "",
    gap: float = np.inf,
) -> Iterator[Span]:
    """Yield the times during which something held without a break.

    Args:
        times: When it was looked at in [s], in order, shape (n,).
        held: Whether it held from then until the next time, shape (n,).
        row: Row of the bars.
        style: Class of the bars.
        text: What it is; the times are added.
        gap: Where two times are farther apart than this in [s], nobody looked in between.
    """
    for part in np.split(np.arange(len(times)), np.flatnonzero(np.diff(times) > gap) + 1):
        edges = np.flatnonzero(np.diff(np.r_[False, held[part], False].astype(np.int8)))
        for first, after in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            start, end = float(times[part[first]]), float(times[part[min(after, len(part) - 1)]])
            yield Span(start, end, row, style, f"{text} from {start:.2f} to {end:.2f} s".strip())


def episode_timelines(shown: Sequence[tuple[str, bool | None, Episode]]) -> dict[str, Any]:
    """Return one chart per episode, all with the same axes, and what their colours mean.

    Args:
        shown: Title, whether it was retained, and episode of each tile, in the order of the tiles.
    """
    pairs = list(dict.fromkeys(pair for _, _, episode in shown for pair in episode.contacts))[:_STYLES]
    if not pairs:
        return {"lanes": [], "legend": []}
    end = max(episode.duration for _, _, episode in shown)
    top = max(float(e.contacts[p][:, 0].max()) for _, _, e in shown for p in pairs if p in e.contacts)
    lanes = []
    for title, retained, episode in shown:
        times = (episode.stamps_ns - episode.stamps_ns[0]) * 1e-9
        lines, spans = [], []
        for i, pair in enumerate(pairs):
            if pair not in episode.contacts:
                continue
            force = np.asarray(episode.contacts[pair][:, 0], np.float64)
            lines.append(Line(times, force, f"s{i}"))
            touching = contact_spans(times, force > CONTACT_FORCE, row=i, style=f"s{i}", text=pair_label(pair))
            spans += list(touching)
        svg = timeline(lines, f"Contact forces, {title}", "normal force [N]", end, spans=spans, top=top)
        lanes.append({"title": title, "kind": "rejected" if retained is False else "retained", "svg": svg})
    return {"lanes": lanes, "legend": [(f"s{i}", pair_label(pair)) for i, pair in enumerate(pairs)]}
