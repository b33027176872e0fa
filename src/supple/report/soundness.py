# SPDX-License-Identifier: Apache-2.0
"""How sound a dataset's episodes are: the worst tilt, slide and penetration over all of them, beside their limits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from supple.episodes import AttemptRecord
from supple.sim.soundness import LIMITS

__all__ = ["SoundnessRow", "soundness_line", "soundness_rows", "soundness_table"]

_DEGREES = float(np.degrees(1.0))
# By name: what it is, unit, value of the unit in SI and decimals shown.
_MEASURES: Mapping[str, tuple[str, str, float, int]] = {
    "tilt": ("tilt", "deg", 1.0 / _DEGREES, 0),
    "foot_slide": ("foot slide while standing", "cm", 1e-2, 2),
    "penetration": ("penetration", "mm", 1e-3, 1),
    "intended_penetration": ("intended penetration", "mm", 1e-3, 1),
}


@dataclass(frozen=True)
class SoundnessRow:
    """One measure over a dataset, as texts with their unit.

    Attributes:
        label: What was measured.
        limit: What a retained episode may reach.
        median: Median over retained episodes.
        worst: Largest of them.
        attempt: The attempt that it was in.
        beyond: Number of rejected attempts beyond the limit.
    """

    label: str
    limit: str
    median: str
    worst: str
    attempt: int
    beyond: int


def _told(name: str, value: float) -> str:
    _, unit, size, decimals = _MEASURES[name]
    return f"{value / size:.{decimals}f} {unit}"


def _limit(name: str) -> str:
    if name not in LIMITS:
        return "none"
    _, unit, size, _ = _MEASURES[name]
    return f"{LIMITS[name] / size:.0f} {unit}"


def soundness_rows(records: Iterable[AttemptRecord]) -> list[SoundnessRow]:
    """Return each measure over all retained attempts that it was taken of; none if it never was."""
    measured = [record for record in records if record.soundness]
    rows = []
    for name, (label, *_) in _MEASURES.items():
        kept = [(r.soundness[name], r.attempt) for r in measured if r.outcome == "retained" and name in r.soundness]
        if not kept:
            continue
        limit = LIMITS.get(name, np.inf)
        beyond = sum(r.outcome == "rejected" and r.soundness.get(name, 0.0) > limit for r in measured)
        worst, attempt = max(kept)
        median = float(np.median([value for value, _ in kept]))
        rows.append(SoundnessRow(label, _limit(name), _told(name, median), _told(name, worst), attempt, beyond))
    return rows


def soundness_line(worst: Mapping[str, float]) -> str:
    """Return the worst of a dataset's retained episodes in one line; empty if nothing was measured.

    Args:
        worst: As ``episodes.worst_soundness`` returns it.
    """
    parts = []
    for name, (label, *_) in _MEASURES.items():
        if name in worst:
            limit = f" (limit {_limit(name)})" if name in LIMITS else ""
            parts.append(f"{label} {_told(name, worst[name])}{limit}")
    return f"worst retained: {', '.join(parts)}" if parts else ""


def soundness_table(records: Iterable[AttemptRecord]) -> Table:
    """Return the rows of :func:`soundness_rows` as a table for the terminal."""
    table = Table(title="Soundness of retained episodes", title_justify="left")
    table.add_column("measure")
    for name in ("limit", "median", "largest", "in attempt", "rejected beyond"):
        table.add_column(name, justify="right")
    for row in soundness_rows(records):
        table.add_row(row.label, row.limit, row.median, row.worst, str(row.attempt), str(row.beyond))
    return table
