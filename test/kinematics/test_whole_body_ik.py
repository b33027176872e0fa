# SPDX-License-Identifier: Apache-2.0
"""Whole-body inverse kinematics: what it reaches, what it keeps, and what it refuses."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from supple.errors import StateError, UnknownNameError
from supple.geometry import pose_error, pose_from_xyyaw, xyyaw_of
from supple.kinematics.whole_body_ik import WholeBodyIK
from supple.robots import g1
from supple.robots.g1 import ARM_GROUPS, HAND_GROUPS, LEG_GROUPS, STANDING_WAIST_RANGE

ROBOT = g1()
JOINTS = ROBOT.joints
HOME = JOINTS.home
STANDING = pose_from_xyyaw(0.0, 0.0, 0.0, ROBOT.standing_height)
TARGETS = 150


@pytest.fixture(scope="module")
def ik():
    return WholeBodyIK(ROBOT)


def hands(ik, base, q):
    frames = {name: effector.frame for name, effector in ROBOT.effectors.items()}
    poses = ik.kinematics.frame_poses(ik.kinematics.configuration(base, q), *frames.values())
    return dict(zip(frames, poses, strict=True))


def random_posture(rng, spread=0.45, groups=("waist", *ARM_GROUPS)):
    """Draw a posture around home that keeps 5 % away from every limit."""
    q = HOME.copy()
    lower, upper = JOINTS.lower.copy(), JOINTS.upper.copy()
    for name, interval in STANDING_WAIST_RANGE.items():
        lower[JOINTS.index(name)], upper[JOINTS.index(name)] = interval
    room = 0.05 * (upper - lower)
    for i in JOINTS.group(*groups):
        q[i] = np.clip(
            HOME[i] + spread * rng.uniform(-1.0, 1.0) * (upper[i] - lower[i]) / 2.0,
            lower[i] + room[i],
            upper[i] - room[i],
        )
    return q


def test_reachable_targets_are_reached(ik):
    rng = np.random.default_rng(1)
    failures = []
    for k in range(TARGETS):
        base = pose_from_xyyaw(*rng.uniform(-2.0, 2.0, 2), rng.uniform(-np.pi, np.pi), ROBOT.standing_height)
        targets = hands(ik, base, random_posture(rng))
        solution = ik.solve(base, HOME, targets)
        reached = hands(ik, solution.T_world_base, solution.q)
        errors = np.array([pose_error(reached[name], target) for name, target in targets.items()])
        # What is reported must be what forward kinematics of the whole robot finds.
        assert solution.position_error == pytest.approx(errors[:, 0].max(), abs=1e-6)
        assert solution.orientation_error == pytest.approx(errors[:, 1].max(), abs=1e-6)
        assert solution.converged == bool(errors[:, 0].max() <= 2e-3 and errors[:, 1].max() <= 0.02)
        if not solution.converged:
            failures.append((k, solution.position_error, solution.orientation_error))
    assert len(failures) <= 0.05 * TARGETS, failures


def test_solutions_respect_every_limit_and_leave_legs_and_fingers_alone(ik):
    rng = np.random.default_rng(2)
    still = JOINTS.group(*LEG_GROUPS, *HAND_GROUPS)
    for _ in range(30):
        targets = hands(ik, STANDING, random_posture(rng, spread=0.9))
        start = HOME.copy()
        start[still] = rng.uniform(JOINTS.lower[still], JOINTS.upper[still])
        q = ik.solve(STANDING, start, targets, iterations=30).q
        assert (q >= JOINTS.lower - 1e-9)[JOINTS.group("waist", *ARM_GROUPS)].all()
        assert (q <= JOINTS.upper + 1e-9)[JOINTS.group("waist", *ARM_GROUPS)].all()
        for name, (lower, upper) in STANDING_WAIST_RANGE.items():
            assert lower - 1e-9 <= q[JOINTS.index(name)] <= upper + 1e-9
        np.testing.assert_array_equal(q[still], start[still])


@pytest.mark.parametrize("free", [ARM_GROUPS, ("left_arm",), ("right_arm", "waist"), ("left_arm", "base")])
def test_locked_groups_keep_their_very_numbers(ik, free):
    rng = np.random.default_rng(3)
    locked = JOINTS.group(*(group for group in JOINTS.groups if group not in free))
    for _ in range(5):
        start = random_posture(rng)
        targets = {"left_hand": hands(ik, STANDING, random_posture(rng))["left_hand"]}
        solution = ik.solve(STANDING, start, targets, free)
        np.testing.assert_array_equal(solution.q[locked], start[locked])
        assert set(solution.freed) == set(free)
        if "base" not in free:
            np.testing.assert_array_equal(solution.T_world_base.homogeneous, STANDING.homogeneous)


def test_a_locked_waist_beyond_the_standing_range_is_reckoned_with(ik):
    """Where the waist really is decides where the hand ends; bending it back on paper would miss by centimetres."""
    start = HOME.copy()
    start[JOINTS.index("waist_pitch_joint")] = 0.5
    target = hands(ik, STANDING, start)["left_hand"] * pin.SE3(np.eye(3), np.array([-0.04, 0.0, 0.0]))
    solution = ik.solve(STANDING, start, {"left_hand": target}, ("left_arm",))
    assert solution.converged
    assert solution.q[JOINTS.index("waist_pitch_joint")] == 0.5
    assert pose_error(hands(ik, STANDING, solution.q)["left_hand"], target)[0] < 2e-3


def test_a_freed_base_finds_a_place_to_stand(ik):
    rng = np.random.default_rng(4)
    for _ in range(10):
        there = pose_from_xyyaw(*rng.uniform(-1.0, 1.0, 2), rng.uniform(-1.0, 1.0), ROBOT.standing_height)
        targets = hands(ik, there, random_posture(rng, spread=0.3))
        solution = ik.solve(STANDING, HOME, targets, ("base", "waist", *ARM_GROUPS))
        assert solution.converged
        # It slides over the floor: upright and as high as before.
        assert solution.T_world_base.translation[2] == ROBOT.standing_height
        assert solution.T_world_base.rotation[2, 2] == pytest.approx(1.0)
        reached = hands(ik, solution.T_world_base, solution.q)
        assert max(pose_error(reached[name], target)[0] for name, target in targets.items()) < 2e-3


def test_a_target_out_of_reach_is_said_to_be_so(ik):
    far = {"left_hand": pin.SE3(np.eye(3), np.array([3.0, 0.0, 1.0]))}
    solution = ik.solve(STANDING, HOME, far)
    assert not solution.converged
    assert solution.position_error > 1.5
    freed = ik.solve(STANDING, HOME, far, ("base", "waist", *ARM_GROUPS))
    assert freed.converged
    assert np.hypot(*(xyyaw_of(freed.T_world_base)[:2] - [3.0, 0.0])) < 1.0


def test_hands_without_a_target_are_left_alone(ik):
    targets = {"left_hand": hands(ik, STANDING, random_posture(np.random.default_rng(5)))["left_hand"]}
    solution = ik.solve(STANDING, HOME, targets, ARM_GROUPS)
    np.testing.assert_allclose(solution.q[JOINTS.group("right_arm")], HOME[JOINTS.group("right_arm")], atol=1e-3)


def test_the_same_question_has_the_same_answer_to_the_last_bit(ik):
    rng = np.random.default_rng(6)
    targets = hands(ik, STANDING, random_posture(rng))
    first = ik.solve(STANDING, HOME, targets)
    ik.solve(STANDING, random_posture(rng), hands(ik, STANDING, random_posture(rng)), ("base", *ARM_GROUPS))
    for other in (ik, WholeBodyIK(ROBOT)):
        again = other.solve(STANDING, HOME, targets)
        np.testing.assert_array_equal(first.q, again.q)
        assert first.support_margin == again.support_margin


def test_tracking_follows_a_moving_target(ik):
    """A hand path at 0.2 m/s and 50 Hz is followed within a few millimetres after a second."""
    start = hands(ik, STANDING, HOME)
    q = HOME.copy()
    for i in range(1, 51):
        offset = np.array([0.1, 0.0, 0.15]) * i / 50.0
        targets = {name: pin.SE3(pose.rotation, pose.translation + offset) for name, pose in start.items()}
        q = ik.track(STANDING, q, targets)
    reached = hands(ik, STANDING, q)
    for name, target in targets.items():
        distance, angle = pose_error(reached[name], target)
        assert distance < 5e-3
        assert angle < 0.03


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused_instead_of_counting_as_reached(ik, value):
    good = hands(ik, STANDING, HOME)["left_hand"]
    bad = pin.SE3(good.rotation, np.array([0.3, value, 0.9]))
    for solve in (ik.solve, ik.track):
        with pytest.raises(StateError, match="left_hand"):
            solve(STANDING, HOME, {"left_hand": bad})
        q = HOME.copy()
        q[JOINTS.index("left_elbow_joint")] = value
        with pytest.raises(StateError, match="left_elbow_joint"):
            solve(STANDING, q, {"left_hand": good})


def test_unknown_groups_and_effectors_are_named(ik):
    good = hands(ik, STANDING, HOME)["left_hand"]
    with pytest.raises(UnknownNameError, match=r"available: .*left_hand"):
        ik.solve(STANDING, HOME, {"tail": good})
    with pytest.raises(UnknownNameError, match="base"):
        ik.solve(STANDING, HOME, {"left_hand": good}, ("bas",))


def test_no_joint_is_tracked_faster_than_the_arms_may_move(ik):
    """A target that jumps across the body is followed, but at most 0.08 rad per tick."""
    base = pose_from_xyyaw(0.0, 0.0, 0.0, ik.robot.standing_height)
    q = ik.robot.joints.home.copy()
    goal = {"left_hand": pin.SE3(pin.rpy.rpyToMatrix(1.0, -0.5, 0.5), np.array([0.25, 0.25, 1.1]))}
    largest = 0.0
    for _ in range(60):
        following = ik.track(base, q, goal)
        largest = max(largest, float(np.abs(following - q).max()))
        q = following
    assert 0.07 < largest <= 0.08 + 1e-9
