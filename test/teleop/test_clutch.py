# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple.errors import TeleopError
from supple.geometry import pose_error
from supple.teleop.clutch import Clutch

HANDS = ("left_hand", "right_hand")


def pose(x=0.3, y=0.2, z=1.0, yaw=0.1):
    return pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, yaw), np.array([x, y, z]))


def follow(clutch, ticks, of):
    for i in range(ticks):
        clutch.update({name: of(i) for name in HANDS})


@given(st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6))
def test_motion_is_taken_over_relative_to_engagement(numbers):
    clutch = Clutch(tracked=False, interval=0.02)
    clutch.update(dict.fromkeys(HANDS, pose()))
    targets = {"left_hand": pose(1.0, 0.3, 0.9, 0.4), "right_hand": pose(1.0, -0.3, 0.9, -0.4)}
    clutch.engage(targets)
    assert all(max(pose_error(clutch.targets()[name], targets[name])) < 1e-9 for name in HANDS)
    shift, turn = np.array(numbers[:3]), pin.exp3(np.array(numbers[3:]))
    start = pose()
    clutch.update(dict.fromkeys(HANDS, pin.SE3(turn @ start.rotation, start.translation + shift)))
    for name in HANDS:
        moved = clutch.targets()[name]
        assert np.allclose(moved.translation - targets[name].translation, shift)
        assert np.allclose(moved.rotation, turn @ targets[name].rotation)


def test_release_and_a_second_engagement_do_not_jump():
    clutch = Clutch(tracked=False, interval=0.02)
    clutch.update({"left_hand": pose()})
    clutch.engage({"left_hand": pose(1.0)})
    clutch.release()
    assert not clutch.engaged
    clutch.update({"left_hand": pose(-2.0, 5.0)})
    clutch.engage({"left_hand": pose(1.0)})
    assert max(pose_error(clutch.targets()["left_hand"], pose(1.0))) < 1e-9


def test_a_hand_without_a_pose_is_named():
    clutch = Clutch(tracked=False, interval=0.02)
    clutch.update({"left_hand": pose()})
    with pytest.raises(TeleopError, match="right_hand has no device pose"):
        clutch.engage(dict.fromkeys(HANDS, pose()))
    assert not clutch.engaged


def test_a_device_without_any_pose_cannot_engage():
    with pytest.raises(TeleopError, match="no hand pose"):
        Clutch(tracked=False, interval=0.02).engage({})


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_pose_that_is_not_finite_is_refused_by_name(value):
    clutch = Clutch(tracked=True, interval=0.02)
    with pytest.raises(TeleopError, match="device pose of left_hand is not finite"):
        clutch.update({"left_hand": pose(x=value)})


def test_tracking_that_has_just_begun_is_too_short_to_trust():
    clutch = Clutch(tracked=True, interval=0.02)
    follow(clutch, 10, lambda i: pose(0.3 + 0.001 * i))
    with pytest.raises(TeleopError, match="tracked for less than 1 s"):
        clutch.engage(dict.fromkeys(HANDS, pose()))


def test_a_trembling_hand_engages():
    clutch = Clutch(tracked=True, interval=0.02)
    follow(clutch, 60, lambda i: pose(0.3 + 0.0005 * (i % 2)))
    clutch.engage(dict.fromkeys(HANDS, pose()))
    assert clutch.engaged
