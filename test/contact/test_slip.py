# SPDX-License-Identifier: Apache-2.0
"""Slip of a rigid object between moving links: what sticks is found to stick, and what slides to slide."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.contact.readings import PadLayout, TactileReading
from supple.contact.slip import SlipEstimator, SlipSettings
from supple.errors import UnknownNameError

PERIOD = 0.01
# Two fingers of either hand on the two faces of a box, y apart.
PLACES = {
    "left_index": ([0.03, 0.115, 0.02], [0.0, -1.0, 0.0]),
    "left_middle": ([0.03, 0.115, -0.02], [0.0, -1.0, 0.0]),
    "right_index": ([0.03, -0.115, 0.02], [0.0, 1.0, 0.0]),
    "right_middle": ([0.03, -0.115, -0.02], [0.0, 1.0, 0.0]),
}
LAYOUTS = [
    PadLayout(name, f"{name}_link", [[-0.004, 0, 0], [0.004, 0, 0]], [normal, normal], [1e-4, 1e-4])
    for name, (_, normal) in PLACES.items()
]


def pressed(stamp_ns, names=tuple(PLACES), force=5.0):
    return {name: TactileReading(stamp_ns, 0, 0, [force / 2e-4] * 2, [0, 0]) for name in names}


def motion(twist, time):
    """Return the pose of a body that moves at a constant twist in the world, (v, w) of its origin."""
    return pin.SE3(pin.exp3(twist[3:] * time), twist[:3] * time)


def run(twist, sliding=None, steps=60, estimator=None, names=tuple(PLACES), track=None, start_ns=0, rng=None):
    """Return the slip speeds over time of links that move with an object, plus what slides on its own in addition.

    With ``rng`` the tracked poses are as inexact as the settings expect.
    """
    estimator = estimator or SlipEstimator(LAYOUTS)
    sliding = sliding or {}
    said = []
    for i in range(steps):
        time, stamp = PERIOD * i, start_ns + round(1e9 * PERIOD * i)
        T_base_object = motion(np.asarray(twist, dtype=float), time)
        if track and i % track == 0:
            seen = T_base_object
            if rng:
                position, rotation = estimator.settings.track_position, estimator.settings.track_rotation
                turn = pin.exp3(rng.normal(0.0, rotation, 3)) @ seen.rotation
                seen = pin.SE3(turn, seen.translation + rng.normal(0.0, position, 3))
            estimator.observe_object(stamp, seen)
        links = {
            f"{name}_link": T_base_object
            * pin.SE3(np.eye(3), np.array(place) + time * np.asarray(sliding.get(name, np.zeros(3)), dtype=float))
            for name, (place, _) in PLACES.items()
        }
        said.append(estimator.step(stamp, links, pressed(stamp, names)))
    return said


@settings(max_examples=25, deadline=None)
@given(st.lists(st.floats(-0.1, 0.1), min_size=3, max_size=3), st.lists(st.floats(-0.3, 0.3), min_size=3, max_size=3))
def test_links_that_move_as_one_do_not_slip(linear, angular):
    last = run([*linear, *angular])[-1]
    assert max(last.values()) < 2e-3


@pytest.mark.parametrize("slipping", list(PLACES))
def test_one_finger_that_slides_is_found_and_the_others_are_not_blamed(slipping):
    last = run([0.0, 0.0, 0.05, 0.0, 0.0, 0.0], {slipping: [0.0, 0.0, 0.03]})[-1]
    assert last[slipping] == pytest.approx(0.03, abs=0.006)
    assert max(speed for name, speed in last.items() if name != slipping) < 0.01


def test_a_box_that_falls_between_still_hands_needs_a_tracker():
    falls = {name: [0.0, 0.0, 0.06] for name in PLACES}
    # The links stand still while the object sinks: to the links alone that looks like nothing at all.
    alone = run([0.0, 0.0, -0.06, 0.0, 0.0, 0.0], falls)[-1]
    seen = run([0.0, 0.0, -0.06, 0.0, 0.0, 0.0], falls, track=7)[-1]
    assert max(alone.values()) < 2e-3
    assert min(seen.values()) > 0.04


def test_fingers_that_slide_slowly_together_are_found_by_an_inexact_tracker():
    """A box that stays on the table: no finger sticks, and a pose is wrong by a third of the way since the last."""
    rng = np.random.default_rng(5)
    slow = run(np.zeros(6), {name: [0.0, 0.0, 0.02] for name in PLACES}, steps=400, track=7, rng=rng)[100:]
    stuck = run(np.zeros(6), steps=400, track=7, rng=rng)[100:]
    assert np.mean([speed >= 0.01 for row in slow for speed in row.values()]) > 0.6
    assert np.mean([speed >= 0.01 for row in stuck for speed in row.values()]) < 0.05


def test_a_finger_that_rubs_over_something_tracked_slips_alone():
    said = run(np.zeros(6), {"left_index": [0.04, 0.0, 0.0]}, names=("left_index",), track=7)
    assert said[-1]["left_index"] == pytest.approx(0.04, abs=0.01)


def test_one_hand_alone_cannot_tell():
    said = run(np.zeros(6), {"left_index": [0.04, 0.0, 0.0]}, names=("left_index", "left_middle"))
    assert all(math.isnan(speed) for row in said for speed in row.values())


def test_what_moves_along_the_normal_is_no_slip():
    last = run(np.zeros(6), {"left_index": [0.0, 0.05, 0.0]}, track=7)[-1]
    assert last["left_index"] < 5e-3


def test_a_tracked_pose_that_is_old_no_longer_counts():
    estimator = SlipEstimator(LAYOUTS, SlipSettings(track_timeout=0.1))
    estimator.observe_object(0, pin.SE3.Identity())
    said = run(np.zeros(6), names=("left_index",), estimator=estimator, steps=30)
    told = [not math.isnan(row["left_index"]) for row in said]
    assert any(told)
    assert max(i for i, known in enumerate(told) if known) == 10


def test_a_jump_back_of_the_clock_begins_anew():
    estimator = SlipEstimator(LAYOUTS)
    run([0.0, 0.0, 0.1, 0.0, 0.0, 0.0], estimator=estimator, start_ns=10**12, track=5)
    again = run(np.zeros(6), estimator=estimator, steps=1)
    assert all(math.isnan(speed) for speed in again[0].values())
    assert max(run(np.zeros(6), estimator=estimator, start_ns=10**9)[-1].values()) < 2e-3


def test_after_a_gap_in_the_readings_nothing_is_told_until_a_whole_window_is_known():
    estimator = SlipEstimator(LAYOUTS)
    run(np.zeros(6), estimator=estimator)
    # The links are elsewhere now, which says nothing about how fast they are.
    after = run([1.0, 0.0, 0.0, 0.0, 0.0, 0.0], estimator=estimator, start_ns=2 * 10**9, steps=1)
    assert all(math.isnan(speed) for speed in after[0].values())


def test_unknown_sensors_and_links_are_named():
    estimator = SlipEstimator(LAYOUTS)
    links = {layout.frame: pin.SE3.Identity() for layout in LAYOUTS}
    with pytest.raises(UnknownNameError, match="'left_indx'; did you mean 'left_index'"):
        estimator.step(0, links, pressed(0, ("left_indx",)))
    del links["left_index_link"]
    with pytest.raises(UnknownNameError, match="left_index_link"):
        estimator.step(10, links, pressed(10))
