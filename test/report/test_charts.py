# SPDX-License-Identifier: Apache-2.0
"""Charts are well-formed, place their marks where they belong, and stand extreme data."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.report.charts import (
    Curve,
    Event,
    Line,
    Point,
    Span,
    curves,
    histogram,
    interval_chart,
    rows_chart,
    scatter,
    ticks,
    timeline,
)
from supple.report.statistics import quantile_bins

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


def marks(svg: str, tag: str) -> list[ET.Element]:
    return list(ET.fromstring(svg).iter(tag))


def test_ticks_are_round_and_inside():
    assert ticks(0.0, 1.0) == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert ticks(-3.0, 7.0) == [-2.0, 0.0, 2.0, 4.0, 6.0]
    assert ticks(2.0, 2.0) == [2.0]


@given(st.tuples(NUMBERS, NUMBERS).filter(lambda p: p[1] - p[0] > 1e-3))
def test_ticks_stay_inside_and_grow(limits):
    found = ticks(*limits)
    assert 2 <= len(found) <= 8
    room = 1e-6 * (abs(limits[0]) + abs(limits[1]))
    assert limits[0] - room <= found[0] < found[-1] <= limits[1] + room


def test_scatter_keeps_directions():
    points = [Point(0.0, 0.0, "ok", "origin"), Point(1.0, 2.0, "bad", "a < b & c", 0.0)]
    svg = scatter(points, "t", "x", "y", equal=True)
    ok = marks(svg, "circle")[0]
    bad = next(r for r in marks(svg, "rect"))
    dx = float(bad.get("x")) + 3.2 - float(ok.get("cx"))
    dy = float(ok.get("cy")) - float(bad.get("y")) - 3.2
    assert dy == pytest.approx(2 * dx, rel=0.02)
    assert "a < b & c" in [t.text for t in marks(svg, "title")]
    flipped = scatter(points, "t", "x", "y", equal=True, flip_x=True)
    assert float(next(r for r in marks(flipped, "rect")).get("x")) < float(marks(flipped, "circle")[0].get("cx"))


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20))
def test_scatter_stays_inside_its_picture(pairs):
    for circle in marks(scatter([Point(x, y, "ok", "p") for x, y in pairs], "t", "x", "y", equal=True), "circle"):
        assert 46 <= float(circle.get("cx")) <= 328
        assert 10 <= float(circle.get("cy")) <= 260


@given(st.lists(NUMBERS, min_size=1, max_size=40), st.lists(NUMBERS, max_size=40))
def test_histogram_counts_everyone(ok, bad):
    svg = histogram({"ok": np.array(ok), "bad": np.array(bad)}, "t", "x", "attempts")
    counted = {"ok": 0, "bad": 0}
    for bar in marks(svg, "rect"):
        counted[bar.get("class").split()[1]] += int(bar.find("title").text.split()[0])
    assert counted == {"ok": len(ok), "bad": len(bad)}


def test_interval_chart_draws_share_and_interval():
    svg = interval_chart(quantile_bins([1.0, 2.0, 3.0, 4.0], [False, False, True, True], 2), "t", "x")
    bands, texts = marks(svg, "rect"), [t.text for t in marks(svg, "title")]
    assert texts == ["0 of 2 from 1 to 2", "2 of 2 from 3 to 4"]
    assert len(bands) == 2
    assert float(bands[0].get("y")) > float(bands[1].get("y"))
    assert len(marks(interval_chart(quantile_bins([5.0], [True]), "t", "x"), "rect")) == 1


def test_rows_chart_is_in_proportion():
    bars = marks(rows_chart([("plan", 1.0, "1 s"), ("walk & turn", 2.0, "2 s")], "t"), "rect")
    assert float(bars[1].get("width")) == pytest.approx(2 * float(bars[0].get("width")))
    assert marks(rows_chart([], "t"), "rect") == []


def points_of(path: ET.Element) -> np.ndarray:
    numbers = path.get("d").replace("M", " ").replace("L", " ").split()
    return np.array(numbers, dtype=float).reshape(-1, 2)


def test_timeline_puts_lines_bars_and_marks_at_their_times():
    times = np.array([0.0, 1.0, 2.0, 4.0])
    line = Line(times, np.array([0.0, 10.0, 5.0, 0.0]), "s1")
    svg = timeline(
        [line],
        "force",
        "force [N]",
        4.0,
        spans=[Span(1.0, 2.0, 1, "s2", "touch")],
        events=[Event(2.0, "slip", "a < b")],
    )
    now = next(mark for mark in marks(svg, "line") if mark.get("class") == "now")
    left, scale, end = (float(now.get(f"data-{name}")) for name in ("left", "scale", "end"))
    assert end == 4.0
    curve, mark = (path for path in marks(svg, "path"))
    points = points_of(curve)
    assert (points[:, 0] - left) / scale == pytest.approx(times, abs=0.01)
    heights = points[0, 1] - points[:, 1]
    assert heights[1] == pytest.approx(2.0 * heights[2], rel=0.01)
    assert heights[3] == 0.0
    bar = next(rect for rect in marks(svg, "rect") if rect.get("class") == "span s2")
    assert (float(bar.get("x")) - left) / scale == pytest.approx(1.0, abs=0.01)
    assert float(bar.get("width")) / scale == pytest.approx(1.0, abs=0.01)
    # Bars stand below the line that zero is drawn at.
    assert float(bar.get("y")) > points[0, 1]
    assert (float(mark.get("d").split()[0][1:]) - left) / scale == pytest.approx(2.0, abs=0.01)
    assert [title.text for title in marks(svg, "title")] == ["touch", "a < b"]


def test_timeline_loses_no_peak_and_joins_no_gap():
    times = np.arange(100_000) * 1e-3
    values = np.zeros(100_000)
    values[54_321] = 7.0
    values[70_000:80_000] = np.nan
    times[90_000:] += 5.0
    svg = timeline([Line(times, values, gap=1.0)], "t", "y", float(times[-1]))
    (path,) = marks(svg, "path")
    parts = path.get("d").split("M")[1:]
    paths = [np.array(part.replace("L", " ").split(), dtype=float).reshape(-1, 2) for part in parts]
    assert len(paths) == 3
    assert sum(map(len, paths)) < 1000
    top = min(points[:, 1].min() for points in paths)
    peak = timeline([Line(times[54_321:54_322], values[54_321:54_322])], "t", "y", float(times[-1]))
    assert points_of(marks(peak, "path")[0])[0, 1] == pytest.approx(top)


@settings(deadline=None)
@given(
    st.lists(st.floats(0.0, 1e5), min_size=1, max_size=30, unique=True).map(sorted),
    st.floats(1e-3, 1e5),
)
def test_timeline_stays_inside_its_picture(times, end):
    line = Line(np.array(times), np.array(times))
    svg = timeline([line], "t", "y", end, spans=[Span(times[0], times[-1])], events=[Event(times[-1], "slip", "x")])
    for path in marks(svg, "path"):
        if path.get("class").startswith("line"):
            points = points_of(path)
            assert ((points >= [46.0, 10.0]) & (points <= [328.0, 110.0])).all()
    for rect in marks(svg, "rect"):
        assert 46.0 <= float(rect.get("x")) <= 328.0


def test_timeline_of_nothing_known_is_an_empty_chart():
    svg = timeline([Line(np.array([1.0]), np.array([np.nan]))], "t", "y", 0.0)
    assert not marks(svg, "path")
    assert any(text.text == "time [s]" for text in marks(svg, "text"))


def test_curves_mark_every_known_value_and_begin_at_zero():
    x = np.array([0.0, 1.0, 4.0])
    shown = [
        Curve(x, np.array([1.0, np.nan, 3.0]), "s0", "a < b"),
        Curve(x, np.array([2.0, 2.0, 2.0]), "s1", "c", True),
    ]
    svg = curves(shown, "t", "x [m]", "y")
    circles = marks(svg, "circle")
    assert [circle.get("class") for circle in circles] == ["s0", "s0", "s1 faint", "s1 faint", "s1 faint"]
    zero = max(float(line.get("y1")) for line in marks(svg, "line"))
    heights = [zero - float(circle.get("cy")) for circle in circles]
    assert heights[1] == pytest.approx(3.0 * heights[0], abs=0.05)
    assert heights[2] == pytest.approx(2.0 * heights[0], abs=0.05)
    across = [float(circle.get("cx")) for circle in circles]
    assert across[4] - across[2] == pytest.approx(4.0 * (across[3] - across[2]), abs=0.05)
    assert "a < b: 3 at 4" in [title.text for title in marks(svg, "title")]


def test_curves_of_nothing_known_are_an_empty_chart():
    svg = curves([Curve(np.array([0.0, 1.0]), np.full(2, np.nan))], "t", "x", "y")
    assert not marks(svg, "circle")
