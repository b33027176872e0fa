# SPDX-License-Identifier: Apache-2.0
"""A self-contained HTML page about a dataset: what was attempted, what came of it, and how it looks."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from supple.episodes import AttemptRecord, Dataset, DatasetCard, Episode, Ledger
from supple.episodes.atomic import write_atomically
from supple.episodes.dataset_writer import CARD, LEDGER
from supple.errors import DatasetError, SuppleError
from supple.report.charts import Point, histogram, interval_chart, rows_chart, scatter
from supple.report.episode_timelines import CONTACT_FORCE, episode_timelines, pair_label
from supple.report.page import render, video_source
from supple.report.reasons import grouped_reasons
from supple.report.soundness import soundness_rows
from supple.report.statistics import quantile_bins, wilson_interval
from supple.report.variables import PlanarPoses, planar_poses, variables
from supple.report.video import Clip, EpisodeRenderer, write_grid_video
from supple.tasks import task_named, task_names

__all__ = ["ReportPaths", "write_report"]

_FORCE_EPISODES = 200
_HOLD = 1.0
_REASONS = 25
_TILES, _REJECTED_TILES = 9, 2
_STRIP, _STRIP_SIZE = 6, (320, 240)


@dataclass(frozen=True)
class ReportPaths:
    """Files of a report.

    Attributes:
        html: The page.
        video: The video beside it; None if there is no episode to show, or it could not be drawn.
        notes: What the report lacks and why, one sentence each.
    """

    html: Path
    video: Path | None
    notes: tuple[str, ...] = ()


@dataclass
class _Material:
    """What there is to report on."""

    folder: Path
    ledger: Ledger
    card: DatasetCard | None = None
    retained: Dataset | None = None
    rejected: Dataset | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def records(self) -> tuple[AttemptRecord, ...]:
        return self.ledger.records


def write_report(dataset: Path | str, out: Path | str, *, pictures: bool = True, video: bool = True) -> ReportPaths:
    """Write a page about a dataset, finished or not, that needs no other file and no network.

    What cannot be shown (no episodes yet, a damaged file, no graphics library) is said on the page instead.

    Args:
        dataset: Folder of the dataset; its ledger alone is enough.
        out: The page, if it ends in ``.html``, else a folder for ``report.html``; the video stands beside it.
        pictures: Whether pictures of episodes are drawn.
        video: Whether a video of episodes is made.

    Raises:
        DatasetError: There is neither a ledger nor a card, either is damaged, or the report cannot be written.
    """
    material = _gather(Path(dataset))
    out = Path(out)
    html = out if out.suffix == ".html" else out / "report.html"
    clips = _clips(material)
    clip_path = _video(material, clips, html.with_suffix(".mp4")) if video else None
    strips = _strips(material) if pictures else []
    page = _page(material, clips, strips, clip_path)
    try:
        html.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(html, page.encode())
    except OSError as error:
        raise DatasetError(f"{html}: cannot be written: {error.strerror or error}") from error
    return ReportPaths(html, clip_path, tuple(material.notes))


def _gather(folder: Path) -> _Material:
    if not folder.is_dir():
        raise DatasetError(f"{folder}: there is no such folder; expected a dataset with {LEDGER} and {CARD}")
    if not (folder / LEDGER).is_file() and not (folder / CARD).is_file():
        raise DatasetError(f"{folder}: no dataset: it has neither {LEDGER} nor {CARD}")
    material = _Material(folder, Ledger(folder / LEDGER))
    if not (folder / CARD).is_file():
        material.notes.append(f"There is no {CARD}, so task, seed and versions are unknown and nothing can be drawn.")
        return material
    material.card = DatasetCard.read(folder / CARD)
    for rejected in (False, True):
        try:
            found = Dataset(folder, rejected=rejected)
        except DatasetError as error:
            if not rejected:
                material.notes.append(f"Episodes are not shown: {_within(folder, str(error))}")
            continue
        if rejected:
            material.rejected = found
        else:
            material.retained = found
            if found.quarantined:
                names = ", ".join(path.name for path in found.quarantined)
                material.notes.append(f"Damaged files were set aside in the dataset's quarantine: {names}.")
    return material


def _within(folder: Path, message: str) -> str:
    """Name files relative to the dataset: a page that is passed on should not tell where someone's home is."""
    return message.replace(f"{folder}/", "")


# -- episodes ------------------------------------------------------------------------------------------------------


def _spread(dataset: Dataset | None, count: int) -> list[str]:
    """Return up to ``count`` names of episodes, evenly spaced over the dataset."""
    if dataset is None or not dataset.names or count < 1:
        return []
    return [dataset.names[i] for i in np.unique(np.linspace(0, len(dataset) - 1, count).round().astype(int))]


def _clips(material: _Material) -> list[Clip]:
    """Return the episodes that the video shows and whose forces stand under it."""
    rejected = _spread(material.rejected, _REJECTED_TILES)
    retained = _spread(material.retained, _TILES - len(rejected))
    clips = []
    try:
        for dataset, names in ((material.retained, retained), (material.rejected, rejected)):
            for episode in (dataset.episode(name) for name in names if dataset is not None):
                good = dataset is material.retained
                title = f"attempt {episode.attempt} · {'retained' if good else 'rejected'}"
                clips.append(Clip(episode, title, good, "" if good else episode.outcome.reason))
    except SuppleError as error:
        material.notes.append(f"There is no video: {_within(material.folder, str(error))}")
        return []
    return clips


def _video(material: _Material, clips: list[Clip], path: Path) -> Path | None:
    try:
        return write_grid_video(path, clips) if clips else None
    except SuppleError as error:
        material.notes.append(f"There is no video: {_within(material.folder, str(error))}")
        return None


def _strips(material: _Material) -> list[dict[str, Any]]:
    chosen = [
        ("retained", material.retained, _spread(material.retained, 1)),
        ("rejected", material.rejected, _spread(material.rejected, 1)),
    ]
    if material.card is None or not any(names for _, _, names in chosen):
        return []
    strips = []
    try:
        with EpisodeRenderer(material.card.task, *_STRIP_SIZE) as renderer:
            for kind, dataset, names in chosen:
                for episode in (dataset.episode(name) for name in names if dataset is not None):
                    pictures = [(time, _embedded(picture)) for time, picture in renderer.filmstrip(episode, _STRIP)]
                    strips.append({"kind": kind, "attempt": episode.attempt, "pictures": pictures} | _words(episode))
    except SuppleError as error:
        material.notes.append(f"There are no pictures: {_within(material.folder, str(error))}")
    return strips


def _words(episode: Episode) -> dict[str, Any]:
    return {"reason": "" if episode.outcome.success else episode.outcome.reason, "duration": episode.duration}


def _embedded(picture: np.ndarray) -> str:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, format="JPEG", quality=88)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()


# -- the page ------------------------------------------------------------------------------------------------------


def _page(material: _Material, clips: list[Clip], strips: list[dict[str, Any]], video: Path | None) -> str:
    forces = _forces(material)
    records = material.records
    success = np.array([record.outcome == "retained" for record in records], dtype=bool)
    order = task_named(material.card.task).objects if material.card and material.card.task in task_names() else ()
    poses = planar_poses(records, order)
    return render(
        "page.html",
        card=material.card,
        title=f"{material.card.task} {material.card.distribution}" if material.card else material.folder.name,
        facts=_facts(material),
        settings=_flat(material.card.settings) if material.card else [],
        figures=_figures(material.ledger),
        parts=_parts(material.ledger),
        speed=_speed(records),
        origins=_origins(records),
        reasons=_reasons(records),
        soundness=soundness_rows(records),
        scatters=_scatters(records, success, poses),
        **_successes(records, success, poses),
        times=_times(records, success),
        forces=forces,
        strips=strips,
        timelines=episode_timelines([(clip.title, clip.retained, clip.episode) for clip in clips]),
        contact_force=CONTACT_FORCE,
        video=video_source(video),
        notes=material.notes,
    )


def _facts(material: _Material) -> list[tuple[str, str]]:
    card = material.card
    if card is None:
        return [("ledger", f"{len(material.ledger)} attempts")]
    facts = [
        ("task", f"{card.task}, {card.distribution}"),
        ("robot", card.robot),
        ("random seed", str(card.seed)),
        ("demonstration", Path(card.source).name),
        ("checksum of it", card.source_sha256[:12]),
        ("created", card.created[:10]),
        ("actions", f"{card.contract.size} numbers every {1e3 * card.contract.control_interval:g} ms"),
        ("Supple", card.supple),
    ]
    names = {"mujoco": "MuJoCo", "numpy": "NumPy", "pinocchio": "Pinocchio", "python": "Python"}
    return facts + [(names.get(name, name), version) for name, version in card.versions.items() if name != "supple"]


def _flat(settings: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    rows = []
    for key, value in settings.items():
        if isinstance(value, Mapping):
            rows += _flat(value, f"{prefix}{key}.")
        else:
            rows.append((f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)))
    return rows


def _percent(share: float) -> str:
    """Return a share in per cent, never rounded to all or nothing where it is neither."""
    text = f"{100.0 * share:.0f}"
    return f"{100.0 * share:.1f}" if (text in ("0", "100") and 0.0 < share < 1.0) else text


def _share(count: int, total: int) -> dict[str, Any]:
    if total == 0:
        return {"count": count, "share": None, "interval": None}
    low, high = wilson_interval(count, total)
    return {"count": count, "share": _percent(count / total), "interval": f"{_percent(low)} to {_percent(high)} %"}


def _figures(ledger: Ledger) -> list[dict[str, Any]]:
    counts = ledger.counts()
    total = counts["attempted"]
    notes = {
        "attempted": "episodes begun",
        "completed": "carried out to the end",
        "rejected": "failed, with a reason",
        "retained": "passed the success test",
    }
    return [
        {"name": name, "note": notes[name]} | (_share(count, total if name != "attempted" else 0))
        for name, count in counts.items()
    ]


def _parts(ledger: Ledger) -> list[dict[str, Any]]:
    """Return the three kinds that every attempt is exactly one of."""
    total = len(ledger)
    kinds = {"retained": 0, "completed, rejected": 0, "not completed": 0}
    for record in ledger.records:
        kinds[
            "retained"
            if record.outcome == "retained"
            else "completed, rejected"
            if record.completed
            else "not completed"
        ] += 1
    marks = ("ok", "bad", "gone")
    return [
        {"name": name, "count": count, "mark": mark, "width": 100.0 * count / total}
        for (name, count), mark in zip(kinds.items(), marks, strict=True)
        if count
    ]


def _speed(records: Sequence[AttemptRecord]) -> str:
    simulated, wall = sum(r.sim_seconds for r in records), sum(r.wall_seconds for r in records)
    if not wall > 0.0:
        return ""
    retained = sum(r.outcome == "retained" for r in records)
    rate = f", {retained / wall * 3600.0:,.0f} retained episodes per hour" if retained else ""
    return (
        f"{_duration(simulated)} simulated in {_duration(wall)} of work: {simulated / wall:.1f} simulated seconds per "
        f"wall second and worker{rate}."
    )


def _duration(seconds: float) -> str:
    if seconds < 100.0:
        return f"{seconds:.1f} s"
    minutes = seconds / 60.0
    return f"{minutes:.1f} min" if minutes < 100.0 else f"{minutes / 60.0:.1f} h"


def _origins(records: Sequence[AttemptRecord]) -> list[dict[str, Any]]:
    found: dict[str, list[AttemptRecord]] = {}
    for record in records:
        if record.origin is not None:
            found.setdefault(record.origin.value, []).append(record)
    rows = []
    for origin, members in sorted(found.items(), key=lambda item: -len(item[1])):
        stages = {stage: sum(r.stage == stage for r in members) for stage in sorted({r.stage for r in members})}
        text = ", ".join(f"{_plain(stage)} {count}" for stage, count in sorted(stages.items(), key=lambda s: -s[1]))
        rows.append({"name": _plain(origin), "stages": text} | _share(len(members), len(records)))
    return rows


def _reasons(records: Sequence[AttemptRecord]) -> dict[str, Any]:
    groups = grouped_reasons(records)
    rows = [
        {
            "count": len(group.attempts),
            "origin": _plain(group.origin),
            "example": group.example,
            "attempts": ", ".join(map(str, group.attempts[:6])) + (" …" if len(group.attempts) > 6 else ""),
        }
        for group in groups[:_REASONS]
    ]
    return {"rows": rows, "left_out": len(groups) - len(rows)}


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _tip(record: AttemptRecord) -> str:
    return f"attempt {record.attempt}: {record.reason or 'retained'}"


def _scatters(
    records: Sequence[AttemptRecord], success: np.ndarray, poses: Sequence[PlanarPoses]
) -> list[dict[str, Any]]:
    charts = []
    for pose in poses:
        known = np.flatnonzero(np.isfinite(pose.values).all(axis=1))
        if not known.size or np.ptp(pose.values[known], axis=0).max() < 1e-6:
            continue
        # Seen from above with the frame's x axis upwards and y to the left, so left is left.
        points = [
            Point(float(y), float(x), "ok" if success[i] else "bad", _tip(records[i]), float(0.5 * np.pi + yaw))
            for i, (x, y, yaw) in zip(known.tolist(), pose.values[known], strict=True)
        ]
        where = "" if pose.frame == "world" else f" in the {pose.frame}'s frame"
        title = f"{_plain(pose.name).capitalize()}{where}"
        across, up = ("to the left [m]", "ahead [m]") if pose.frame == "robot" else ("y [m]", "x [m]")
        svg = scatter(points, title, across, up, equal=True, flip_x=True)
        charts.append({"title": title, "svg": svg})
    if yaws := _yaw_chart(records, success, poses):
        charts.insert(min(2, len(charts)), yaws)
    return charts


def _yaw_chart(
    records: Sequence[AttemptRecord], success: np.ndarray, poses: Sequence[PlanarPoses]
) -> dict[str, Any] | None:
    """Return the yaw of the first object against that of the second, both in the frame that all objects share."""
    frame = poses[0].frame if poses else ""
    shared = [pose for pose in poses if pose.frame == frame and pose.name != "robot"][:2]
    if len(shared) < 2:
        return None
    yaw = np.degrees(np.column_stack([pose.values[:, 2] for pose in shared]))
    known = np.flatnonzero(np.isfinite(yaw).all(axis=1))
    if not known.size or np.ptp(yaw[known], axis=0).max() < 1e-4:
        return None
    points = [
        Point(float(yaw[i, 0]), float(yaw[i, 1]), "ok" if success[i] else "bad", _tip(records[i]))
        for i in known.tolist()
    ]
    first, second = (_plain(pose.name) for pose in shared)
    title = f"Yaw of {first} and {second}"
    return {"title": title, "svg": scatter(points, title, f"{first} yaw [°]", f"{second} yaw [°]")}


def _successes(records: Sequence[AttemptRecord], success: np.ndarray, poses: Sequence[PlanarPoses]) -> dict[str, Any]:
    charts, constant = [], []
    for variable in variables(records, poses):
        known = np.isfinite(variable.values)
        label = _plain(variable.label)
        if not variable.varies:
            if known.any():
                value = f"{float(variable.values[known][0]):.4g} {variable.unit}".strip()
                constant.append(f"{label} {value}")
            continue
        bins = quantile_bins(variable.values[known], success[known], 5 if known.sum() >= 25 else 3)
        unit = f"[{variable.unit}]" if variable.unit else ""
        svg = interval_chart(bins, f"Success by {label}", unit)
        charts.append({"title": label[0].upper() + label[1:], "svg": svg})
    return {"successes": charts, "constant": constant}


def _times(records: Sequence[AttemptRecord], success: np.ndarray) -> list[dict[str, Any]]:
    charts = []
    for title, label, values in (
        ("Length of attempts", "simulated time [s]", np.array([r.sim_seconds for r in records])),
        ("Work per attempt", "wall time [s]", np.array([r.wall_seconds for r in records])),
    ):
        if values.size and values.max() > 0.0:
            series = {"ok": values[success], "bad": values[~success]}
            charts.append({"title": title, "svg": histogram(series, title, label, "attempts"), "legend": True})
    stages = list(dict.fromkeys(stage for record in records for stage in record.timings))
    if stages:
        means = {s: float(np.mean([r.timings[s] for r in records if s in r.timings])) for s in stages}
        rows = [(_plain(stage), mean, f"{1e3 * mean:.0f} ms") for stage, mean in means.items()]
        title = "Mean wall time per stage"
        charts.append({"title": title, "svg": rows_chart(rows, title), "legend": False})
    return charts


def _forces(material: _Material) -> dict[str, Any]:
    """Return the normal forces of retained episodes: their peaks, and what they are while the end state is held."""
    peaks: dict[str, list[float]] = {}
    holds: dict[str, list[float]] = {}
    names = _spread(material.retained, _FORCE_EPISODES)
    for episode in _readable(material, names):
        last = episode.stamps_ns >= episode.stamps_ns[-1] - round(_HOLD * 1e9)
        for pair, force in episode.contacts.items():
            peaks.setdefault(pair, []).append(float(force[:, 0].max()))
            holds.setdefault(pair, []).append(float(np.median(force[last, 0])))
    rows, charts = [], []
    for pair in sorted(peaks):
        label = pair_label(pair)
        cells = []
        for values in (peaks[pair], holds[pair]):
            low, middle, high = np.percentile(values, [5, 50, 95])
            cells.append(f"{middle:.1f} ({low:.1f} to {high:.1f})")
        rows.append({"pair": label, "peak": cells[0], "hold": cells[1]})
        if max(holds[pair]) > 0.0:
            title = f"{label[0].upper()}{label[1:]}, while held"
            charts.append({"title": title, "svg": _force_chart(holds[pair], title)})
    return {"rows": rows, "charts": charts, "episodes": len(next(iter(peaks.values()), []))}


def _force_chart(forces: Sequence[float], title: str) -> str:
    return histogram({"ok": np.array(forces)}, title, "normal force [N]", "episodes", 12)


def _readable(material: _Material, names: Sequence[str]) -> Iterator[Episode]:
    for name in names:
        try:
            if material.retained is not None:
                yield material.retained.episode(name)
        except DatasetError as error:
            material.notes.append(f"One episode was skipped: {_within(material.folder, str(error))}")
