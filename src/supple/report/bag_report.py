# SPDX-License-Identifier: Apache-2.0
"""A self-contained HTML page about a bag: its video, with force, contact and events over time below it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from supple.episodes import BagContents, read_bag
from supple.episodes.atomic import write_atomically
from supple.episodes.bag_images import COMPRESSED, RAW, colours_of
from supple.episodes.bag_reader import stream_bag
from supple.errors import DatasetError, SuppleError
from supple.report.bag_signals import BagSignals, SensorSignals, TouchEvent, read_signals
from supple.report.charts import Event, Line, Span, timeline
from supple.report.episode_timelines import CONTACT_FORCE, body_label, contact_spans
from supple.report.inspect import ReportPaths
from supple.report.page import render, video_source
from supple.report.video import encode_video

__all__ = ["is_bag", "write_bag_report"]

_SIZE = (1060.0, 140.0)
_FPS = 15.0
_WIDEST = 960
_LINES, _LANES, _EVENTS = 5, 30, 200
# Forces below this, in [N], are not stretched over a whole chart.
_LEAST_TOP = 1.0
# Earlier than this a stamp is simulation time, not a date.
_DATES_NS = 10**18
# Two readings this many times as far apart as usual are not joined.
_BREAK = 4.0


def is_bag(path: Path) -> bool:
    """Return whether a folder holds a bag, finished or cut off."""
    return path.is_dir() and ((path / "metadata.yaml").is_file() or any(path.glob("*.mcap")))


def write_bag_report(bag: Path | str, out: Path | str, *, video: bool = True) -> ReportPaths:
    """Write a page about a bag that needs no other file and no network.

    Args:
        bag: Folder of the bag.
        out: The page, if it ends in ``.html``, else a folder for ``report.html``; the video stands beside it.
        video: Whether a video is made of its colour pictures.

    Raises:
        DatasetError: No bag, a damaged one, or the report cannot be written.
    """
    bag, out = Path(bag), Path(out)
    html = out if out.suffix == ".html" else out / "report.html"
    contents = read_bag(bag, ())
    notes: list[str] = []
    clip, pictures = _video(bag, contents, html.with_suffix(".mp4"), notes) if video else (None, "")
    signals = read_signals(bag, contents)
    if signals.empty:
        notes.append("Nothing is charted: the bag has no contacts, tactile readings, wrenches or contact events.")
    elif signals.sensors and not any(map(_touched, signals.sensors.values())):
        notes.append(f"None of the {len(signals.sensors)} tactile sensors was touched.")
    page = render(
        "bag.html",
        title=bag.resolve().name,
        facts=_facts(bag, contents),
        notes=notes,
        video=video_source(clip),
        pictures=pictures,
        groups=_groups(signals, _duration(contents)),
        contact_force=CONTACT_FORCE,
        events=[_event_row(event) for event in signals.events[:_EVENTS]],
        more_events=max(0, len(signals.events) - _EVENTS),
        sensors=[_sensor_row(sensor) for sensor in signals.sensors.values()],
        topics=_topics(contents),
    )
    try:
        html.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(html, page.encode())
    except OSError as error:
        raise DatasetError(f"{html}: cannot be written: {error.strerror or error}") from error
    return ReportPaths(html, clip, tuple(notes))


def _duration(contents: BagContents) -> float:
    return max((contents.end_ns - contents.start_ns) * 1e-9, 1e-3)


def _facts(bag: Path, contents: BagContents) -> list[tuple[str, str]]:
    began = f"{contents.start_ns * 1e-9:.2f} s of simulation time"
    if contents.start_ns > _DATES_NS:
        began = datetime.fromtimestamp(contents.start_ns * 1e-9, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    size = sum(file.stat().st_size for file in bag.glob("*.mcap"))
    return [
        ("begins", began),
        ("duration", f"{_duration(contents):.1f} s"),
        ("messages", f"{sum(contents.counts.values()):,}"),
        ("topics", str(len(contents.types))),
        ("size", f"{size / 1e6:,.1f} MB"),
    ]


def _topics(contents: BagContents) -> list[dict[str, Any]]:
    duration = _duration(contents)
    rows = []
    for topic, kind in sorted(contents.types.items()):
        count = contents.counts[topic]
        rate = f"{(count - 1) / duration:.1f}" if count > 2 else ""
        rows.append({"topic": topic, "kind": kind.replace("/msg/", "/"), "count": count, "rate": rate})
    return rows


# -- video ---------------------------------------------------------------------------------------------------------


def _video(bag: Path, contents: BagContents, path: Path, notes: list[str]) -> tuple[Path | None, str]:
    """Return the video of the colour topic with the most pictures, and its topic."""
    colour = {
        topic: contents.counts[topic]
        for topic, kind in contents.types.items()
        if kind in (RAW, COMPRESSED) and contents.counts[topic] and not _no_colours(topic)
    }
    if not colour:
        notes.append("There is no video: the bag holds no colour pictures.")
        return None, ""
    topic = max(sorted(colour), key=lambda name: colour[name])
    try:
        frames = _frames(bag, topic, contents)
        first = next(frames)
        encode_video(path, (first.shape[1], first.shape[0]), _FPS, _chained(first, frames))
    except SuppleError as error:
        notes.append(f"There is no video: {str(error).replace(f'{bag}/', '')}")
        return None, ""
    return path, topic


def _no_colours(topic: str) -> bool:
    return any(word in topic for word in ("depth", "segmentation", "infra", "disparity"))


def _chained(first: NDArray[np.uint8], rest: Iterator[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
    yield first
    yield from rest


def _frames(bag: Path, topic: str, contents: BagContents) -> Iterator[NDArray[np.uint8]]:
    """Yield the pictures at a constant rate from the bag's start to its end; each stays until the next one comes."""
    shown: NDArray[np.uint8] | None = None
    size: tuple[int, int] | None = None
    written = 0
    for _, log_ns, message in stream_bag(bag, [topic]):
        picture = Image.fromarray(colours_of(message, topic))
        if size is None:
            scale = min(1.0, _WIDEST / picture.width)
            # The encoder wants even sizes.
            size = (max(2, round(picture.width * scale) // 2 * 2), max(2, round(picture.height * scale) // 2 * 2))
            shown = np.zeros((size[1], size[0], 3), np.uint8)
        due = math.ceil((log_ns - contents.start_ns) * 1e-9 * _FPS)
        while written < due and shown is not None:
            yield shown
            written += 1
        shown = np.asarray(picture if picture.size == size else picture.resize(size), np.uint8)
    total = math.ceil(_duration(contents) * _FPS) + 1
    while shown is not None and written < total:
        yield shown
        written += 1


# -- charts --------------------------------------------------------------------------------------------------------


def _groups(signals: BagSignals, end: float) -> list[dict[str, Any]]:
    """Return groups of charts: a heading, what it means, a legend and the charts."""
    groups = []
    for title, note, floor in (
        ("Contacts", "Normal force between bodies, as the simulator knows it; links of a hand count as one.", False),
        ("Contacts with the floor", "", True),
    ):
        pairs = {name: f for name, f in signals.contacts.items() if ("floor" in name.split(" and ")) == floor}
        if pairs:
            groups.append(_contact_group(title, note, signals.contact_times, pairs, end))
    if lanes := _sensor_lanes(signals, end):
        legend = [("s0", "force"), ("s4", "in contact"), ("s3", "held"), ("slip", "slipping")]
        note = (
            "Force on each pad that was touched, with what was detected in it below: in contact, held, slipping. "
            "Triangles are events; an outlined one changed a command. Where a line ends, readings are missing."
        )
        groups.append({"title": "Tactile sensors", "note": note, "legend": legend, "lanes": lanes})
    if signals.wrenches:
        groups.append(_wrench_group(signals, end))
    return groups


def _contact_group(
    title: str, note: str, times: NDArray[np.float64], pairs: dict[str, NDArray[np.float64]], end: float
) -> dict[str, Any]:
    strongest = sorted(pairs, key=lambda name: -float(pairs[name].max()))
    shown, lines = strongest[:_LINES], []
    spans: list[Span] = []
    for i, name in enumerate(shown):
        lines.append(Line(times, pairs[name], f"s{i}", _gap(times)))
        spans += contact_spans(times, pairs[name] > CONTACT_FORCE, row=i, style=f"s{i}", text=name)
    size, top = (_SIZE[0], _SIZE[1] + 7.0 * len(shown)), max(_peak(pairs[strongest[0]]), _LEAST_TOP)
    svg = timeline(lines, title, "force [N]", end, spans=spans, size=size, top=top)
    left = len(strongest) - len(shown)
    if left:
        note = f"{note} {left} weaker pairs are not shown.".strip()
    return {
        "title": title,
        "note": note,
        "legend": [(f"s{i}", name) for i, name in enumerate(shown)],
        "lanes": [{"title": "", "svg": svg}],
    }


def _sensor_lanes(signals: BagSignals, end: float) -> list[dict[str, Any]]:
    lanes = []
    for sensor in signals.sensors.values():
        events = [event for event in signals.events if event.sensor == sensor.name]
        if not (events or _touched(sensor)):
            continue
        spans: list[Span] = []
        for row, (style, detected, text) in enumerate(
            (("s4", sensor.in_contact, "touched"), ("s3", sensor.held, "held"), ("slip", sensor.slipping, "slipping"))
        ):
            gap = _gap(sensor.state_times)
            spans += contact_spans(sensor.state_times, detected, row=row, style=style, text=text, gap=gap)
        svg = timeline(
            [Line(sensor.times, np.maximum(sensor.force, 0.0), "s0", _gap(sensor.times))],
            f"Force on {sensor.name}",
            "force [N]" if sensor.unit == "N" else "raw",
            end,
            spans=spans,
            top=max(_peak(sensor.force), _LEAST_TOP),
            events=[Event(e.time, f"{e.kind}{' changed' if e.command else ''}", _event_text(e)) for e in events],
            size=_SIZE,
        )
        lanes.append({"title": sensor.name.replace("_", " "), "svg": svg})
    return lanes[:_LANES]


def _touched(sensor: SensorSignals) -> bool:
    """Return whether something touched a sensor: what was detected says so, or its force where nothing was."""
    if len(sensor.in_contact):
        return bool(sensor.in_contact.any())
    # A raw sensor rests at any value.
    return sensor.unit == "N" and bool((sensor.force > CONTACT_FORCE).any())


def _wrench_group(signals: BagSignals, end: float) -> dict[str, Any]:
    strongest = sorted(signals.wrenches, key=lambda topic: -_peak(signals.wrenches[topic][1]))
    shown = sorted(strongest[:_LINES])
    lines = [Line(*signals.wrenches[topic], f"s{i}", _gap(signals.wrenches[topic][0])) for i, topic in enumerate(shown)]
    left = len(strongest) - len(shown)
    top = max(_peak(signals.wrenches[strongest[0]][1]), _LEAST_TOP)
    return {
        "title": "Wrenches",
        "note": "Magnitude of the force." + (f" {left} weaker ones are not shown." if left else ""),
        "legend": [(f"s{i}", topic) for i, topic in enumerate(shown)],
        "lanes": [{"title": "", "svg": timeline(lines, "Wrenches", "force [N]", end, size=_SIZE, top=top)}],
    }


def _gap(times: NDArray[np.float64]) -> float:
    return _BREAK * float(np.median(np.diff(times))) + 1e-3 if len(times) > 2 else math.inf


def _peak(values: NDArray[np.float64]) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if known.size else 0.0


# -- tables --------------------------------------------------------------------------------------------------------

_UNITS = {"slip": "m/s", "silent": "s", "resumed": "s"}


def _event_text(event: TouchEvent) -> str:
    unit = _UNITS.get(event.kind, "N")
    changed = f", changed command {event.command}" if event.command else ""
    return (
        f"{event.kind} at {event.time:.3f} s: {event.value:.3g} {unit}, threshold {event.threshold:.3g} {unit}{changed}"
    )


def _event_row(event: TouchEvent) -> dict[str, str]:
    unit = _UNITS.get(event.kind, "N")
    return {
        "time": f"{event.time:.3f}",
        "sensor": body_label(event.sensor) if "_link" in event.sensor else event.sensor.replace("_", " "),
        "kind": event.kind,
        "value": f"{event.value:.3g} {unit}",
        "threshold": f"{event.threshold:.3g} {unit}",
        "command": event.command,
    }


def _sensor_row(sensor: SensorSignals) -> dict[str, str]:
    return {
        "name": sensor.name.replace("_", " "),
        "readings": f"{len(sensor.times):,}",
        "lost": f"{sensor.lost:,}",
        "gap": f"{1e3 * sensor.longest_gap:.0f}",
        "peak": f"{_peak(sensor.force):.3g} {'N' if sensor.unit == 'N' else ''}".strip(),
        "contact": f"{100.0 * float(sensor.in_contact.mean()):.0f} %" if len(sensor.in_contact) else "",
    }
