# SPDX-License-Identifier: Apache-2.0
"""Charts as inline SVG whose colours are those of the page, so that they follow light, dark and print."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

from supple.report.statistics import Bin

__all__ = [
    "Curve",
    "Event",
    "Line",
    "Point",
    "Span",
    "curves",
    "histogram",
    "interval_chart",
    "rows_chart",
    "scatter",
    "ticks",
    "timeline",
]

_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 12.0, 10.0, 40.0


@dataclass(frozen=True)
class Point:
    """One mark of a scatter chart.

    Attributes:
        x: Horizontal coordinate.
        y: Vertical coordinate.
        kind: Class of the mark, ``"ok"`` or ``"bad"``.
        text: What appears when the pointer rests on it.
        angle: Direction of its tick in [rad], counter-clockwise from the right; no tick if absent.
    """

    x: float
    y: float
    kind: str
    text: str
    angle: float | None = None


@dataclass(frozen=True, eq=False)
class Line:
    """A quantity over time.

    Attributes:
        times: When it was measured in [s], in order, shape (n,).
        values: The quantity, shape (n,); NaN where it is not known.
        style: Class of the line, e.g. ``"s0"``.
        gap: Two measurements farther apart than this in [s] are not joined: in between nothing was measured.
    """

    times: NDArray[np.float64]
    values: NDArray[np.float64]
    style: str = "s0"
    gap: float = math.inf


@dataclass(frozen=True, eq=False)
class Curve:
    """A quantity measured at a few values of another.

    Attributes:
        x: Values of the other, in order, shape (n,).
        y: The quantity, shape (n,); NaN where it is not known.
        style: Class of the curve, e.g. ``"s0"``.
        text: What it is; appears with its values when the pointer rests on a mark.
        faint: Whether it only accompanies another.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    style: str = "s0"
    text: str = ""
    faint: bool = False


@dataclass(frozen=True)
class Span:
    """A time during which something held.

    Attributes:
        start: When it began in [s].
        end: When it ended in [s].
        row: Which row of bars it belongs to, from 0 (top).
        style: Class of the bar.
        text: What appears when the pointer rests on it.
    """

    start: float
    end: float
    row: int = 0
    style: str = "s0"
    text: str = ""


@dataclass(frozen=True)
class Event:
    """Something that happened at one moment.

    Attributes:
        time: When in [s].
        style: Class of the mark.
        text: What appears when the pointer rests on it.
    """

    time: float
    style: str
    text: str


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers from ``low`` to ``high``, about ``count`` of them."""
    span = high - low
    if not span > 0.0:
        return [low]
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1.0, 2.0, 2.5, 5.0, 10.0) if factor * power >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(i * step, 12) for i in range(first, math.floor(high / step + 1e-9) + 1)]


def _text(number: float) -> str:
    return f"{number:.6g}".replace("-", "\u2212")


@dataclass
class _Frame:
    """Axes of one chart: scales from data to picture, and what was drawn; ``room`` is kept free below the axis."""

    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]
    flip_x: bool = False
    room: float = 0.0
    parts: list[str] = field(default_factory=list)

    def px(self, value: float) -> float:
        share = (value - self.x[0]) / (self.x[1] - self.x[0])
        share = 1.0 - share if self.flip_x else share
        return round(_LEFT + share * (self.width - _LEFT - _RIGHT), 2)

    def py(self, value: float) -> float:
        share = (value - self.y[0]) / (self.y[1] - self.y[0])
        bottom = self.height - _BOTTOM - self.room
        return round(bottom - share * (bottom - _TOP), 2)

    def add(self, part: str) -> None:
        self.parts.append(part)

    def axes(
        self, x_label: str, y_label: str, x_ticks: Sequence[float] | None = None, y_ticks: Sequence[float] | None = None
    ) -> None:
        bottom, right = self.height - _BOTTOM, self.width - _RIGHT
        axis = bottom - self.room
        for value in ticks(*self.y) if y_ticks is None else y_ticks:
            y = self.py(value)
            self.add(f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{y}" y2="{y}"/>')
            self.add(f'<text x="{_LEFT - 6}" y="{y + 3.5}" text-anchor="end">{_text(value)}</text>')
        for value in ticks(*self.x) if x_ticks is None else x_ticks:
            x = self.px(value)
            self.add(f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP}" y2="{bottom}"/>')
            self.add(f'<text x="{x}" y="{bottom + 14}" text-anchor="middle">{_text(value)}</text>')
        self.add(f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{axis}" y2="{axis}"/>')
        middle = (_LEFT + right) / 2
        self.add(
            f'<text class="label" x="{middle}" y="{self.height - 6}" text-anchor="middle">{escape(x_label)}</text>'
        )
        down = (_TOP + axis) / 2
        self.add(
            f'<text class="label" transform="rotate(-90 11 {down})" x="11" y="{down}" text-anchor="middle">'
            f"{escape(y_label)}</text>"
        )

    def svg(self, title: str) -> Markup:
        head = (
            f'<svg class="chart" viewBox="0 0 {self.width:g} {self.height:g}" role="img" aria-label="{escape(title)}">'
        )
        return Markup(head + "".join(self.parts) + "</svg>")


def _widened(values: NDArray[np.float64], margin: float = 0.06) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    room = margin * (high - low) if high > low else max(0.05 * abs(low), 0.05)
    return low - room, high + room


def scatter(
    points: Sequence[Point], title: str, x_label: str, y_label: str, *, equal: bool = False, flip_x: bool = False
) -> Markup:
    """Return a scatter chart.

    Args:
        points: The marks; those of kind ``"bad"`` are drawn on top.
        title: What it shows, for those who cannot see it.
        x_label: Text below.
        y_label: Text at the left.
        equal: Whether one unit is as long in both directions.
        flip_x: Whether the horizontal axis grows to the left.
    """
    width, height = 340.0, 300.0
    x, y = _widened(np.array([p.x for p in points])), _widened(np.array([p.y for p in points]))
    if equal:
        unit = max((x[1] - x[0]) / (width - _LEFT - _RIGHT), (y[1] - y[0]) / (height - _TOP - _BOTTOM))
        x = _spread(x, unit * (width - _LEFT - _RIGHT))
        y = _spread(y, unit * (height - _TOP - _BOTTOM))
    frame = _Frame(width, height, x, y, flip_x)
    frame.axes(x_label, y_label)
    for point in sorted(points, key=lambda p: p.kind == "bad"):
        px, py = frame.px(point.x), frame.py(point.y)
        mark = f'<g class="{point.kind}"><title>{escape(point.text)}</title>'
        if point.angle is not None:
            dx, dy = 9.0 * math.cos(point.angle), -9.0 * math.sin(point.angle)
            mark += f'<line x1="{px}" y1="{py}" x2="{px + dx:.2f}" y2="{py + dy:.2f}"/>'
        shape = (
            f'<circle cx="{px}" cy="{py}" r="3.4"/>'
            if point.kind == "ok"
            else f'<rect x="{px - 3.2:.2f}" y="{py - 3.2:.2f}" width="6.4" height="6.4"/>'
        )
        frame.add(f"{mark}{shape}</g>")
    return frame.svg(title)


def _spread(limits: tuple[float, float], span: float) -> tuple[float, float]:
    middle = 0.5 * (limits[0] + limits[1])
    return middle - 0.5 * span, middle + 0.5 * span


def histogram(
    series: Mapping[str, NDArray[np.float64]], title: str, x_label: str, y_label: str, bins: int = 16
) -> Markup:
    """Return a stacked histogram.

    Args:
        series: Values by class of their bars, e.g. ``"ok"`` and ``"bad"``; at least one value in all.
        title: What it shows, for those who cannot see it.
        x_label: Text below.
        y_label: Text at the left.
        bins: Number of bars.
    """
    everything = np.concatenate(list(series.values()))
    low, high = _widened(everything, 0.0)
    edges = np.linspace(low, high, bins + 1)
    counts = {kind: np.histogram(values, edges)[0] for kind, values in series.items()}
    top = max(1, int(np.sum(list(counts.values()), axis=0).max()))
    frame = _Frame(340.0, 200.0, (low, high), (0.0, 1.05 * top))
    frame.axes(x_label, y_label, x_ticks=ticks(low, high, 4), y_ticks=[t for t in ticks(0, top, 4) if t == int(t)])
    below = np.zeros(bins, dtype=int)
    for kind, count in counts.items():
        for i in np.flatnonzero(count):
            x0, x1 = frame.px(edges[i]) + 0.6, frame.px(edges[i + 1]) - 0.6
            y0, y1 = frame.py(float(below[i])), frame.py(float(below[i] + count[i]))
            text = f"{count[i]} from {_text(edges[i])} to {_text(edges[i + 1])}"
            frame.add(
                f'<rect class="bar {kind}" x="{x0:.2f}" y="{y1}" width="{x1 - x0:.2f}" height="{y0 - y1:.2f}">'
                f"<title>{escape(text)}</title></rect>"
            )
        below += count
    return frame.svg(title)


def interval_chart(bins: Sequence[Bin], title: str, x_label: str) -> Markup:
    """Return the share of successes per bin with its interval.

    Args:
        bins: The bins, at least one.
        title: What it shows, for those who cannot see it.
        x_label: Text below.
    """
    span = (bins[0].low, bins[-1].high) if bins[-1].high > bins[0].low else _widened(np.array([bins[0].low]))
    frame = _Frame(340.0, 200.0, span, (0.0, 100.0))
    frame.axes(x_label, "success [%]", x_ticks=ticks(*span, 4), y_ticks=[0, 25, 50, 75, 100])
    for cell in bins:
        low, high = (100.0 * share for share in cell.interval)
        share = 100.0 * cell.successes / cell.trials
        x0, x1 = frame.px(cell.low), frame.px(cell.high)
        middle = round(0.5 * (x0 + x1), 2)
        half = max(0.5 * (x1 - x0) - 1.5, 3.0)
        text = f"{cell.successes} of {cell.trials} from {_text(cell.low)} to {_text(cell.high)}"
        frame.add(
            f'<g class="share"><title>{escape(text)}</title>'
            f'<rect class="range" x="{middle - half:.2f}" width="{2 * half:.2f}" y="{frame.py(high)}" '
            f'height="{frame.py(low) - frame.py(high):.2f}" rx="2"/>'
            f'<line x1="{middle - half:.2f}" x2="{middle + half:.2f}" y1="{frame.py(share)}" y2="{frame.py(share)}"/>'
            "</g>"
        )
    return frame.svg(title)


def curves(shown: Sequence[Curve], title: str, x_label: str, y_label: str, *, top: float | None = None) -> Markup:
    """Return quantities against another, from zero on, with a mark at each measured value.

    Args:
        shown: The curves, at least one.
        title: What it shows, for those who cannot see it.
        x_label: Text below.
        y_label: Text at the left.
        top: Upper end of the vertical axis; the largest value if absent.
    """
    x = np.concatenate([curve.x for curve in shown])
    y = np.concatenate([curve.y for curve in shown])
    largest = float(np.nanmax(y)) if np.isfinite(y).any() else 0.0
    frame = _Frame(340.0, 200.0, _widened(x, 0.03), (0.0, 1.06 * max(largest if top is None else top, 1e-9)))
    frame.axes(x_label, y_label, x_ticks=sorted(set(x.tolist())) if len(set(x.tolist())) < 7 else None)
    for curve in shown:
        known = np.isfinite(curve.y)
        kind = f"{curve.style} faint" if curve.faint else curve.style
        if known.any():
            frame.add(f'<path class="line {kind}" d="{_path(frame, curve.x[known], curve.y[known])}"/>')
        for px, py in zip(curve.x[known].tolist(), curve.y[known].tolist(), strict=True):
            text = f"{curve.text}: {py:.3g} at {_text(px)}"
            frame.add(
                f'<circle class="{kind}" cx="{frame.px(px)}" cy="{frame.py(py)}" r="2.6">'
                f"<title>{escape(text)}</title></circle>"
            )
    return frame.svg(title)


def rows_chart(rows: Sequence[tuple[str, float, str]], title: str) -> Markup:
    """Return horizontal bars.

    Args:
        rows: Name, length and text of each bar; lengths are not negative.
        title: What it shows, for those who cannot see it.
    """
    height = 24.0
    top = max((length for _, length, _ in rows), default=0.0) or 1.0
    parts = []
    for i, (name, length, text) in enumerate(rows):
        y, width = i * height, 130.0 * length / top
        parts.append(
            f'<text x="118" y="{y + 16}" text-anchor="end">{escape(name)}</text>'
            f'<rect class="bar plain" x="126" y="{y + 5}" width="{max(width, 0.5):.2f}" height="14" rx="2"/>'
            f'<text x="{132 + width:.2f}" y="{y + 16}">{escape(text)}</text>'
        )
    head = (
        f'<svg class="chart" viewBox="0 0 340 {max(len(rows), 1) * height:g}" role="img" aria-label="{escape(title)}">'
    )
    return Markup(head + "".join(parts) + "</svg>")


_BAR, _BAR_GAP, _MARK = 5.0, 2.0, 4.0


def timeline(
    lines: Sequence[Line],
    title: str,
    y_label: str,
    end: float,
    *,
    spans: Sequence[Span] = (),
    events: Sequence[Event] = (),
    size: tuple[float, float] = (340.0, 150.0),
    top: float | None = None,
) -> Markup:
    """Return quantities over time, with bars below them for what held when, and a line that can follow a video.

    Where there are more measurements than the picture can show, the smallest and the largest of each column are drawn:
    no peak is lost. The script of the page moves the line of class ``now``.

    Args:
        lines: The quantities, all in one unit and not negative.
        title: What it shows, for those who cannot see it.
        y_label: Text at the left.
        end: Right end of the time axis in [s]; it begins at 0.
        spans: Bars.
        events: Marks on top.
        size: Width and height of the picture.
        top: Upper end of the other axis; the largest value if absent.
    """
    width, height = size
    rows = 1 + max((span.row for span in spans), default=-1)
    room = rows * (_BAR + _BAR_GAP)
    end = end if end > 0.0 else 1.0
    largest = max((float(np.nanmax(line.values)) for line in lines if np.isfinite(line.values).any()), default=0.0)
    frame = _Frame(width, height, (0.0, end), (0.0, 1.08 * max(top if top is not None else largest, 1e-3)), room=room)
    frame.axes("time [s]", y_label, y_ticks=ticks(*frame.y, 4 if height > 120.0 else 2))
    columns = max(2, int(width - _LEFT - _RIGHT))
    for line in lines:
        path = "".join(_path(frame, *part) for part in _thinned(line, end, columns))
        if path:
            frame.add(f'<path class="line {line.style}" d="{path}"/>')
    base = height - _BOTTOM + 3.0
    for span in spans:
        x0, x1 = (frame.px(min(max(time, 0.0), end)) for time in (span.start, span.end))
        y = base + span.row * (_BAR + _BAR_GAP)
        frame.add(
            f'<rect class="span {span.style}" x="{x0}" y="{y - room:.1f}" width="{max(x1 - x0, 0.8):.2f}" '
            f'height="{_BAR}"><title>{escape(span.text)}</title></rect>'
        )
    for event in events:
        x = frame.px(min(max(event.time, 0.0), end))
        frame.add(
            f'<path class="event {event.style}" d="M{x} {_TOP + _MARK}l-{_MARK} -{_MARK + 3}h{2 * _MARK}z">'
            f"<title>{escape(event.text)}</title></path>"
        )
    scale = (width - _LEFT - _RIGHT) / end
    frame.add(
        f'<line class="now" data-left="{_LEFT}" data-scale="{scale:.6g}" data-end="{end:.6g}" x1="{_LEFT}" '
        f'x2="{_LEFT}" y1="{_TOP}" y2="{height - _BOTTOM}"/>'
    )
    return frame.svg(title)


def _path(frame: _Frame, times: NDArray[np.float64], values: NDArray[np.float64]) -> str:
    points = [f"{frame.px(t):g} {frame.py(v):g}" for t, v in zip(times.tolist(), values.tolist(), strict=True)]
    # A single measurement is drawn as a dot: a line of no length with round ends.
    return f"M{points[0]}L{' '.join(points[1:] or points)}"


def _thinned(line: Line, end: float, columns: int) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Yield the unbroken parts of a line with at most two points for each column of the picture."""
    known = np.isfinite(line.values) & (line.times >= 0.0) & (line.times <= end)
    broken = np.flatnonzero((np.diff(line.times) > line.gap) | (known[1:] != known[:-1])) + 1
    for part in np.split(np.arange(len(line.times)), broken):
        if not part.size or not known[part[0]]:
            continue
        times, values = line.times[part], line.values[part]
        if len(part) > 2 * columns:
            column = np.minimum((times / end * columns).astype(np.int64), columns - 1)
            groups = np.split(np.arange(len(part)), np.flatnonzero(np.diff(column)) + 1)
            kept = sorted({int(i) for g in groups for i in (g[np.argmin(values[g])], g[np.argmax(values[g])])})
            times, values = times[kept], values[kept]
        yield times, values
