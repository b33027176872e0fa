# SPDX-License-Identifier: Apache-2.0
"""All sensors together: readings of one stamp are compared, and neither silence nor a fault of one stops the others."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest

from supple.contact.events import EventKind
from supple.contact.monitor import TouchMonitor, TouchNews
from supple.contact.readings import PadLayout, TactileReading
from supple.errors import SensorError, UnknownNameError

STEP = 10_000_000
AREA = 1e-4
# Two fingers of either hand on the two faces of a box, y apart.
PLACES = {
    "left_index": ([0.03, 0.115, 0.02], [0.0, -1.0, 0.0]),
    "left_middle": ([0.03, 0.115, -0.02], [0.0, -1.0, 0.0]),
    "right_index": ([0.03, -0.115, 0.02], [0.0, 1.0, 0.0]),
    "right_middle": ([0.03, -0.115, -0.02], [0.0, 1.0, 0.0]),
}


def layout(name: str) -> PadLayout:
    normal = PLACES[name][1]
    return PadLayout(name, f"{name}_link", [[-0.004, 0, 0], [0.004, 0, 0]], [normal, normal], [AREA, AREA])


def reading(index: int, force: float = 5.0, stamp: int | None = None) -> TactileReading:
    stamp_ns = (index * STEP) if stamp is None else stamp
    return TactileReading(stamp_ns, index, 0, [force / (2 * AREA)] * 2, [0, 0])


class Hands:
    """Poses of the links: at rest, but for those that slide."""

    def __init__(self, **sliding: float) -> None:
        self._sliding = sliding

    def __call__(self, stamp_ns: int) -> dict[str, pin.SE3]:
        poses = {"wrist": pin.SE3(pin.utils.rotate("z", 0.5), np.zeros(3))}
        for name, (place, _) in PLACES.items():
            moved = np.array([0.0, 0.0, self._sliding.get(name, 0.0) * stamp_ns * 1e-9])
            poses[f"{name}_link"] = pin.SE3(np.eye(3), np.array(place) + moved)
        return poses


def monitor(poses=lambda stamp_ns: None, hand: str = "", overload: float = math.inf) -> TouchMonitor:
    found = TouchMonitor(poses)
    for name in PLACES:
        found.add(layout(name), overload, hand if name.startswith("left") else "")
    return found


def feed(found: TouchMonitor, index: int, names=tuple(PLACES), force: float = 5.0) -> list[TouchNews]:
    return [row for name in names for row in found.take(name, reading(index, force))]


def test_every_reading_comes_to_one_estimate():
    found = monitor()
    seen: list[TouchNews] = []
    for i in range(20):
        seen += feed(found, i)
    assert [(row.sensor, row.estimate.sequence) for row in seen] == [(name, i) for i in range(20) for name in PLACES]
    assert all(row.estimate.normal_force == pytest.approx(5.0) for row in seen)
    assert all(math.isnan(row.estimate.slip_speed) and math.isnan(row.estimate.tangential_force) for row in seen)


def test_those_that_speak_wait_once_for_one_that_was_pulled():
    found, rest = monitor(), tuple(PLACES)[:3]
    for i in range(5):
        feed(found, i)
    assert feed(found, 5, rest) == []
    late = feed(found, 6, rest)
    assert [(row.sensor, row.estimate.sequence) for row in late] == [(n, 5) for n in rest] + [(n, 6) for n in rest]
    assert [row.estimate.sequence for row in feed(found, 7, rest)] == [7] * 3


def test_one_that_comes_back_is_waited_for_again():
    found, rest, fourth = monitor(), tuple(PLACES)[:3], tuple(PLACES)[3]
    for i in range(5):
        feed(found, i, rest)
    assert [row.sensor for row in feed(found, 5, (*rest, fourth))] == [*rest, fourth]
    assert feed(found, 6, rest) == []
    assert [row.sensor for row in found.take(fourth, reading(6))] == [*rest, fourth]


def test_what_waits_can_be_had_at_once():
    found = monitor()
    feed(found, 0)
    assert found.waiting_ns is None
    assert feed(found, 1, ("left_index",)) == []
    assert found.waiting_ns == STEP
    assert [row.sensor for row in found.flush()] == ["left_index"]
    assert found.flush() == []


def test_touch_is_made_and_broken_at_each_sensor():
    found = monitor(overload=8.0)
    events = []
    for i, force in enumerate((0.0, 5.0, 9.0, 5.0, 0.0)):
        for row in feed(found, i, force=force):
            events += [(event.sensor, event.kind, event.sequence) for event in row.events]
    kinds = ((1, EventKind.MADE), (2, EventKind.OVERLOAD), (4, EventKind.BROKEN))
    assert events == [(name, kind, i) for i, kind in kinds for name in PLACES]


def test_what_slides_slips_and_what_sticks_does_not():
    found = monitor(Hands(right_middle=0.05))
    slips, speeds = [], {}
    for i in range(60):
        for row in feed(found, i):
            slips += [event for event in row.events if event.kind is EventKind.SLIP]
            speeds[row.sensor] = row.estimate.slip_speed
    assert {event.sensor for event in slips} == {"right_middle"}
    assert slips[0].value >= slips[0].threshold == 0.01
    assert speeds["right_middle"] == pytest.approx(0.05, abs=0.01)
    assert max(speeds[name] for name in PLACES if name != "right_middle") < 0.01


def test_shear_is_what_the_wrist_feels_beside_the_normal_forces():
    poses = Hands()
    found = monitor(poses, hand="wrist")
    # Both left pads press with 5 N along +y (against their normals); the wrist feels 10 N of that, and 4 N upwards.
    turned = poses(0)["wrist"].rotation.T @ np.array([0.0, 10.0, 4.0])
    for i in range(3):
        found.observe_wrench("wrist", i * STEP, turned)
        estimates = {row.sensor: row.estimate for row in feed(found, i)}
    assert estimates["left_index"].tangential_force == pytest.approx(2.0)
    assert estimates["left_middle"].tangential_force == pytest.approx(2.0)
    assert math.isnan(estimates["right_index"].tangential_force)
    # A wrench that is too old, or no number, tells nothing.
    found.observe_wrench("wrist", 100 * STEP, [np.nan, 0.0, 0.0])
    late = {row.sensor: row.estimate for row in feed(found, 100)}
    assert math.isnan(late["left_index"].tangential_force)


def test_a_reading_that_does_not_fit_is_told_and_the_others_are_taken():
    found = monitor()
    rest = tuple(PLACES)[1:]
    news = found.take("left_index", TactileReading(0, 0, 0, [1.0], [0])) + feed(found, 0, rest)
    problems = [row for row in news if row.problem]
    assert [row.sensor for row in problems] == ["left_index"]
    assert problems[0].estimate is None
    assert [row.sensor for row in news if row.estimate is not None] == list(rest)


def test_sensors_that_cannot_be_followed_are_refused():
    found = monitor()
    with pytest.raises(UnknownNameError, match="left_index"):
        found.take("left_indx", reading(0))
    raw = PadLayout("raw", "link", [[0.0, 0, 0]], [[0.0, 0, 1.0]], [AREA], "raw")
    with pytest.raises(SensorError, match="calibrated"):
        found.add(raw)
    with pytest.raises(SensorError, match="overload"):
        found.add(layout("left_index"), overload=0.0)


def test_after_a_reset_touch_begins_anew():
    found = monitor()
    feed(found, 5)
    found.reset()
    news = feed(found, 0)
    assert [event.kind for row in news for event in row.events] == [EventKind.MADE] * 4
