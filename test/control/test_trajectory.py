# SPDX-License-Identifier: Apache-2.0
"""Joint trajectories are checked on entry, smooth in between, and watched by tolerances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.control.trajectory import JointTrajectory, Tolerances
from supple.errors import JointError, StateError
from supple.robots.g1 import UPPER_BODY_GROUPS, g1_joints

JOINTS = g1_joints()
UPPER = [JOINTS.names[i] for i in JOINTS.group(*UPPER_BODY_GROUPS)]
ARM = ["left_elbow_joint", "left_shoulder_pitch_joint"]


def checked(names=ARM, times=(1.0, 2.0), positions=((0.1, 0.2), (0.3, 0.1)), **more):
    return JointTrajectory.checked(JOINTS, UPPER, names, times, positions, **more)


def test_every_joint_that_cannot_be_commanded_is_listed():
    names = ["left_elbow_joint", "left_knee_joint", "tail_joint"]
    with pytest.raises(JointError, match=r"left_knee_joint \(not commanded here\), tail_joint"):
        checked(names, positions=((0.0,) * 3,) * 2)
    with pytest.raises(JointError, match="given twice: left_elbow_joint"):
        checked(["left_elbow_joint", "left_elbow_joint"])
    with pytest.raises(JointError, match="names no joint"):
        checked([], positions=((), ()))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"times": (), "positions": ()}, "no points"),
        ({"times": (1.0, 1.0)}, "must increase"),
        ({"times": (2.0, 1.0)}, "must increase"),
        ({"times": (-1.0, 1.0)}, "must increase from 0"),
        ({"times": (0.5, np.nan)}, "must increase"),
        ({"positions": ((0.1, 0.2), (0.3,))}, "point 1: 1 positions for 2 joints"),
        ({"positions": ((0.1, np.nan), (0.3, 0.1))}, "point 0: positions of left_shoulder_pitch_joint are not finite"),
        ({"positions": ((0.1, 0.2), (0.3, 99.0))}, "point 1: left_shoulder_pitch_joint at 99.000 rad is outside"),
        ({"times": (1.0, 1.001), "positions": ((0.0, 0.0), (1.0, 0.0))}, "left_elbow_joint would move at 1000.0 rad/s"),
        ({"speed_limit": 0.1}, r"its limit is 0\.1 rad/s"),
        (
            {"ranges": {ARM[0]: (-0.1, 0.2)}},
            r"point 1: left_elbow_joint at 0\.300 rad is outside -0\.100 to 0\.200 rad",
        ),
        ({"velocities": ((0.0, 0.0), ())}, "missing for point 1"),
        ({"accelerations": ((0.0, 0.0), (0.0, 0.0))}, "accelerations without velocities"),
    ],
)
def test_a_trajectory_that_cannot_be_executed_is_refused(change, words):
    with pytest.raises(StateError, match=words):
        checked(**change)


row = st.lists(st.floats(-0.9, 0.9), min_size=2, max_size=2)


@settings(max_examples=60, deadline=None)
@given(
    points=st.lists(row, min_size=2, max_size=5), rates=st.lists(row, min_size=5, max_size=5), order=st.integers(1, 3)
)
def test_splines_pass_through_their_points_and_velocities_are_derivatives(points, rates, order):
    times = np.arange(1.0, len(points) + 1.0)
    more = {}
    if order > 1:
        more["velocities"] = rates[: len(points)]
    if order > 2:
        more["accelerations"] = [[0.5 * value for value in rate] for rate in rates[: len(points)]]
    trajectory = checked(times=times, positions=points, **more)
    for time, point in zip(times, points, strict=True):
        np.testing.assert_allclose(trajectory.sample(time)[0], point, atol=1e-9)
        if order > 1 and time < times[-1]:
            np.testing.assert_allclose(trajectory.sample(time)[1], rates[int(time) - 1], atol=1e-9)
    h = 1e-6
    for time in np.linspace(times[0] + 0.07, times[-1] - 0.07, 7):
        if abs(time - round(time)) < 1e-3:
            continue
        slope = (trajectory.sample(time + h)[0] - trajectory.sample(time - h)[0]) / (2.0 * h)
        np.testing.assert_allclose(trajectory.sample(time)[1], slope, atol=1e-5)


def test_a_quintic_meets_accelerations_at_its_points():
    more = {"velocities": ((0.1, 0.0), (0.0, 0.2)), "accelerations": ((0.3, -0.2), (0.0, 0.1))}
    trajectory = checked(**more)
    h = 1e-5
    for time, wanted in ((1.0, more["accelerations"][0]), (2.0, more["accelerations"][1])):
        inner = time + h if time == 1.0 else time - 2 * h
        slope = (trajectory.sample(inner + h)[1] - trajectory.sample(inner)[1]) / h
        np.testing.assert_allclose(slope, wanted, atol=1e-3)


def test_it_starts_from_where_the_robot_is_unless_it_says_where():
    start = np.array([-0.2, 0.4])
    begun = checked().starting_from(start)
    np.testing.assert_array_equal(begun.sample(0.0)[0], start)
    np.testing.assert_allclose(begun.sample(0.5)[0], 0.5 * (start + np.array([0.1, 0.2])))
    own = checked(times=(0.0, 2.0))
    assert own.starting_from(start) is own


def test_after_the_end_it_rests_at_the_last_point():
    q, v = checked().sample(7.0)
    np.testing.assert_array_equal(q, [0.3, 0.1])
    np.testing.assert_array_equal(v, [0.0, 0.0])


def test_tolerances_mean_what_control_msgs_says():
    tolerances = Tolerances.of(ARM, {ARM[0]: 0.01, ARM[1]: -1.0}, {}, default_position=0.05)
    assert tolerances.violations(np.array([0.005, 9.0]), np.zeros(2)) == []
    assert tolerances.violations(np.array([-0.02, 9.0]), np.zeros(2)) == [
        "left_elbow_joint off by 0.0200 rad, tolerance 0.0100 rad"
    ]
    default = Tolerances.of(ARM, {ARM[0]: 0.0}, {ARM[1]: 0.1}, default_position=0.05)
    assert len(default.violations(np.array([0.06, 0.06]), np.array([0.0, 0.2]))) == 3
    with pytest.raises(JointError, match="does not move: left_knee_joint"):
        Tolerances.of(ARM, {"left_knee_joint": 0.1}, {})
    with pytest.raises(StateError, match="not a number for left_elbow_joint"):
        Tolerances.of(ARM, {ARM[0]: np.nan}, {})
