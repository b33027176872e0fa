# SPDX-License-Identifier: Apache-2.0
"""A robot on its feet: coordinates there and back, and Jacobians against finite differences."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from supple.errors import SettingError, StateError
from supple.geometry import pose_from_xyyaw, xyyaw_of
from supple.kinematics.balance import support_margin
from supple.kinematics.model import KinematicModel
from supple.kinematics.stance import BASE, STANCE, Footing, StanceModel
from supple.robots import g1

ROBOT = g1()


@pytest.fixture(scope="module")
def stance():
    return StanceModel(ROBOT)


@pytest.fixture(scope="module")
def kinematics():
    return KinematicModel(ROBOT)


def drawn(seed):
    rng = np.random.default_rng(seed)
    base = pose_from_xyyaw(*rng.uniform(-2.0, 2.0, 2), rng.uniform(-np.pi, np.pi), 0.76)
    base = base * pin.SE3(pin.exp3(rng.uniform(-0.1, 0.1, 3)), np.zeros(3))
    return base, ROBOT.joints.home + rng.uniform(-0.1, 0.1, len(ROBOT.joints)), rng


@pytest.mark.parametrize("seed", range(8))
def test_coordinates_are_the_same_robot(stance, kinematics, seed):
    base, q, _ = drawn(seed)
    standing = stance.standing(base, q)
    again, joints = stance.pose(standing.x)
    np.testing.assert_allclose(again.homogeneous, base.homogeneous, atol=1e-12)
    np.testing.assert_array_equal(joints, q)
    names = [*(effector.frame for effector in ROBOT.effectors.values()), "l_sole", "r_sole"]
    poses = kinematics.frame_poses(kinematics.configuration(base, q), *names)
    stance.update(standing.x)
    for name, pose in zip(names, poses, strict=True):
        found = stance.data.oMf[stance.model.getFrameId(name)]
        np.testing.assert_allclose(found.homogeneous, pose.homogeneous, atol=1e-9)
    # The stance frame is between the soles.
    middle = np.mean([xyyaw_of(pose)[:2] for pose in poses[2:]], axis=0)
    np.testing.assert_allclose(standing.x[:2], middle, atol=1e-9)
    margin = stance.balance(standing.x, standing.edges)[0].min()
    assert margin == pytest.approx(support_margin(kinematics, kinematics.configuration(base, q)), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_jacobians_are_those_of_finite_differences(stance, seed):
    base, q, rng = drawn(seed)
    standing = stance.standing(base, q)
    x = standing.x + rng.uniform(-0.1, 0.1, len(standing.x))
    target = pose_from_xyyaw(*rng.uniform(-1.0, 1.0, 3), 0.9)
    joint = stance.model.getJointId("left_elbow_joint")
    local, direction = np.array([0.05, 0.02, 0.1]), np.array([0.6, 0.0, 0.8])

    def values(at):
        stance.update(at)
        return np.concatenate(
            [
                stance.hand_error("left_hand", target)[0],
                stance.sole_error(1, at, standing.soles[1])[0],
                stance.balance(at, standing.edges)[0],
                [direction @ stance.data.oMi[joint].act(local)],
            ]
        )

    before = values(x)
    point = stance.data.oMi[joint].act(local)
    exact = np.vstack(
        [
            stance.hand_error("left_hand", target)[1],
            stance.sole_error(1, x, standing.soles[1])[1],
            stance.balance(x, standing.edges)[1],
            stance.point_jacobian(joint, point, direction),
        ]
    )
    steps = 1e-6 * np.eye(len(x))
    numeric = np.stack([(values(x + step) - before) / 1e-6 for step in steps], axis=1)
    np.testing.assert_allclose(exact, numeric, atol=2e-5)


def test_sliding_takes_the_feet_along_and_leaves_the_balance_alone(stance):
    base, q, _ = drawn(3)
    standing = stance.standing(base, q)
    x = standing.x.copy()
    x[STANCE] += [0.4, -0.2, 0.7]
    stance.update(x)
    for foot, sole in enumerate(standing.soles):
        np.testing.assert_allclose(stance.sole_error(foot, x, sole)[0], 0.0, atol=1e-9)
    margin = stance.balance(x, standing.edges)[0]
    stance.update(standing.x)
    np.testing.assert_allclose(margin, stance.balance(standing.x, standing.edges)[0], atol=1e-9)


def test_feet_can_be_told_to_stand_elsewhere(stance):
    base, q, _ = drawn(4)
    feet = (pose_from_xyyaw(1.0, 0.1, 0.0), pose_from_xyyaw(1.0, -0.1, 0.0))
    standing = stance.standing(base, q, feet)
    np.testing.assert_allclose(standing.x[STANCE], [1.0, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(standing.soles[0].translation, [0.0, 0.1, 0.0], atol=1e-12)


def test_an_arm_reaches_no_farther_than_it_is_long(stance):
    rng = np.random.default_rng(0)
    base, q, _ = drawn(5)
    standing = stance.standing(base, q)
    for _ in range(50):
        x = standing.x.copy()
        for name, effector in ROBOT.effectors.items():
            arm = ROBOT.joints.group(effector.arm)
            x[stance.columns[arm]] = rng.uniform(ROBOT.joints.lower[arm], ROBOT.joints.upper[arm])
            stance.update(x)
            assert not stance.beyond_arm(name, stance.data.oMf[stance.hand_ids[name]].copy())
    assert stance.beyond_arm("left_hand", pin.SE3(base.rotation, base.translation + np.array([0.8, 0.0, 0.2])))


def test_what_is_not_finite_or_empty_is_refused(stance):
    q = ROBOT.joints.home.copy()
    q[ROBOT.joints.index("left_knee_joint")] = np.nan
    with pytest.raises(StateError, match="left_knee_joint"):
        stance.standing(pose_from_xyyaw(0.0, 0.0, 0.0, 0.76), q)
    with pytest.raises(StateError, match="base pose"):
        stance.standing(pin.SE3(np.eye(3), np.array([np.inf, 0.0, 0.8])), ROBOT.joints.home)
    with pytest.raises(SettingError, match="heights"):
        Footing(heights=(0.7, 0.4))
    assert not Footing().moves
    assert BASE.stop - BASE.start == 6
