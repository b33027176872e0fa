# SPDX-License-Identifier: Apache-2.0
"""Health of a sensor: what is missing by sequence and by stamp, silence, taxels; nothing said of a good one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple.contact.events import EventKind
from supple.contact.health import Condition, SensorHealth

STEP = 10_000_000


def feed(health: SensorHealth, sequences: list[int], start: float = 0.0, missed: int = 0) -> None:
    """Readings of 100 Hz, stamped and arriving by their sequence."""
    for sequence in sequences:
        health.take(sequence * STEP, start + sequence * STEP * 1e-9, sequence, missed)


def test_a_good_sensor_is_ok_and_says_its_rate():
    health = SensorHealth("pad", 100.0)
    health.report(0.0)
    feed(health, list(range(100)))
    report = health.report(1.0)
    assert (report.condition, report.text) == (Condition.OK, "ok")
    assert report.values["rate [Hz]"] == "100.0"
    assert (health.readings, health.lost, health.pauses, health.disorder, health.restarts) == (100, 0, 0, 0, 0)


@given(st.sets(st.integers(1, 198), max_size=80))
def test_every_reading_that_is_left_out_is_counted_once(dropped):
    health = SensorHealth("pad", 100.0)
    feed(health, [i for i in range(200) if i not in dropped])
    assert health.lost == len(dropped)
    assert sum(gap.lost for gap in health.gaps) == len(dropped)
    assert health.readings + health.lost == 200
    assert health.pauses == health.disorder == health.restarts == 0


@given(st.permutations(range(12)))
def test_readings_that_overtake_each_other_are_not_lost(order):
    health = SensorHealth("pad", 100.0)
    feed(health, list(range(10)))
    feed(health, [10 + i for i in order])
    feed(health, [22])
    assert (health.readings, health.lost, health.restarts) == (23, 0, 0)
    assert health.disorder == sum(value < max(order[:i], default=-1) for i, value in enumerate(order))


def test_a_reading_that_comes_twice_is_told():
    health = SensorHealth("pad", 100.0)
    feed(health, [0, 1, 1, 2, 2, 3])
    assert (health.disorder, health.lost) == (2, 0)


def test_what_the_sensor_lost_itself_is_told_from_what_was_lost_on_the_way():
    health = SensorHealth("pad", 100.0)
    feed(health, [0, 1])
    health.take(6 * STEP, 0.06, 6, missed=3)
    assert (health.lost, health.known) == (4, 3)
    (gap,) = health.gaps
    assert (gap.stamp_ns, gap.sequence, gap.lost, gap.known) == (6 * STEP, 6, 4, 3)
    assert gap.duration == pytest.approx(0.05)


@pytest.mark.parametrize("rate", [100.0, 0.0], ids=["rate given", "rate learned"])
def test_a_pause_without_a_missing_reading_is_a_gap_by_stamp(rate):
    health = SensorHealth("pad", rate)
    feed(health, list(range(30)))
    for i in range(30, 60):
        health.take((i + 5) * STEP, i * 0.01, i)
    assert (health.lost, health.pauses) == (0, 1)
    assert health.gaps[0].duration == pytest.approx(0.06)


def test_a_sensor_that_does_not_count_has_gaps_by_stamp_only():
    health = SensorHealth("wrench")
    for i in [*range(50), *range(60, 70)]:
        health.take(i * STEP, i * 0.01)
    assert (health.lost, health.pauses) == (0, 1)


def test_a_sensor_that_starts_anew_or_a_clock_that_jumps_back_is_no_loss():
    health = SensorHealth("pad", 100.0)
    feed(health, list(range(500, 600)))
    # The driver was restarted: it counts from 0, the clock goes on.
    for i in range(100):
        health.take((700 + i) * STEP, 7.0 + i * 0.01, i)
    assert (health.lost, health.restarts, health.disorder) == (0, 1, 0)
    # The clock jumps back 7 s, the count goes on.
    for i in range(100):
        health.take(i * STEP, 8.0 + i * 0.01, 100 + i)
    assert (health.lost, health.restarts, health.disorder) == (0, 2, 0)


def test_silence_is_said_once_and_so_is_its_end():
    health = SensorHealth("pad", 100.0, silent_after=0.25)
    feed(health, list(range(10)))
    assert health.check(0.2) is None
    silent = health.check(0.35)
    assert (silent.kind, silent.sequence, silent.stamp_ns) == (EventKind.SILENT, 9, 9 * STEP)
    assert silent.value == pytest.approx(0.26)
    assert silent.threshold == 0.25
    assert health.check(0.4) is None
    assert health.report(0.5).condition is Condition.SILENT
    resumed = health.take(100 * STEP, 1.0, 100)
    assert (resumed.kind, resumed.sequence) == (EventKind.RESUMED, 100)
    assert resumed.value == pytest.approx(0.91)
    assert health.take(101 * STEP, 1.01, 101) is None
    assert health.silences == 1


@pytest.mark.parametrize("rate", [100.0, 50.0, 20.0, 10.0])
@pytest.mark.parametrize("phase", [0.0, 0.01, 0.03, 0.049])
def test_a_pulled_sensor_is_seen_within_half_a_second_of_its_last_reading(rate, phase):
    health, interval = SensorHealth("pad", rate), 1.0 / rate
    for i in range(40):
        health.take(round(i * interval * 1e9), i * interval, i)
    last, looks = 39 * interval, 0.05
    # The logger looks every 50 ms, at any phase against the readings; the clock is the test's own.
    seen = [at for k in range(60) if health.check(at := last + phase + k * looks)]
    assert len(seen) == 1
    assert 0.25 < seen[0] - last <= 0.5
    assert health.report(seen[0]).condition is Condition.SILENT


def test_a_slow_sensor_is_given_three_intervals():
    health = SensorHealth("wrench", 5.0, silent_after=0.25)
    health.take(0, 0.0)
    assert health.check(0.55) is None
    assert health.check(0.65) is not None


def test_a_sensor_that_never_came_is_missing_but_not_silent():
    health = SensorHealth("pad", 100.0)
    assert health.check(10.0) is None
    assert health.report(10.0).condition is Condition.MISSING


def test_taxels_without_a_value_and_saturated_ones_degrade():
    health = SensorHealth("pad", 100.0)
    health.take(0, 0.0, 0)
    health.taxels(12, dead=2, saturated=1)
    report = health.report(0.1)
    assert report.condition is Condition.DEGRADED
    assert report.text == "2 of 12 taxels give no value; 1 of 12 taxels are saturated"


def test_a_gap_degrades_until_the_next_report_only():
    health = SensorHealth("pad", 100.0)
    feed(health, [0, 1, 2, 5])
    assert health.report(0.06).condition is Condition.DEGRADED
    feed(health, list(range(6, 106)))
    assert health.report(1.06).condition is Condition.OK


def test_a_sensor_at_a_fraction_of_its_rate_is_degraded():
    health = SensorHealth("pad", 100.0)
    health.report(0.0)
    for i, stamp in enumerate(np.arange(10) * 10 * STEP):
        health.take(int(stamp), stamp * 1e-9, i)
    report = health.report(1.0)
    assert report.condition is Condition.DEGRADED
    assert "10.0 Hz of 100.0 Hz" in report.text
