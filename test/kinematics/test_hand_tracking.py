# SPDX-License-Identifier: Apache-2.0
"""A tracking step: pink's answer to the same problem, and nothing but waist and arms moved."""

from __future__ import annotations

import numpy as np
import pink
import pinocchio as pin
import pytest
from pink.limits import ConfigurationLimit, VelocityLimit
from pink.tasks import FrameTask, PostureTask

from supple.errors import StateError, UnknownNameError
from supple.geometry import pose_error, pose_from_xyyaw
from supple.kinematics.hand_tracking import HandTracking
from supple.kinematics.model import KinematicModel
from supple.robots import g1
from supple.robots.g1 import ARM_GROUPS, STANDING_WAIST_RANGE

ROBOT = g1()
HANDS = ("left_hand", "right_hand")
BASE = pin.SE3(pin.rpy.rpyToMatrix(0.02, 0.05, 0.3), np.array([0.3, 0.2, 0.79]))
MOVING = ROBOT.joints.group("waist", *ARM_GROUPS)
KINEMATICS = KinematicModel(ROBOT)


def hands_at(q):
    frames = (ROBOT.effector(name).frame for name in HANDS)
    return dict(zip(HANDS, KINEMATICS.frame_poses(KINEMATICS.configuration(BASE, q), *frames), strict=True))


def pink_step(q, targets, posture):
    """Return what pink answers on a model of its own: waist and arms on a fixed base."""
    full = pin.buildModelFromUrdf(str(ROBOT.urdf))
    moving = [ROBOT.joints.names[i] for i in MOVING]
    locked = [full.getJointId(name) for name in ROBOT.joints.names if name not in moving]
    model = pin.buildReducedModel(full, locked, pin.neutral(full))
    at = np.array([model.joints[model.getJointId(name)].idx_q for name in moving])
    for name, limits in STANDING_WAIST_RANGE.items():
        i = model.joints[model.getJointId(name)].idx_q
        model.lowerPositionLimit[i], model.upperPositionLimit[i] = limits
    model.velocityLimit[:] = 0.25
    costs = np.full(model.nv, 0.03)
    costs[[i for i, name in zip(at, moving, strict=True) if "waist" in name]] = 1.0
    tasks = [PostureTask(costs)]
    start, near = np.empty(model.nq), np.empty(model.nq)
    start[at], near[at] = q[MOVING], posture[MOVING]
    tasks[0].set_target(near)
    for name, target in targets.items():
        frame = ROBOT.frame(ROBOT.effector(name).frame)
        link = model.frames[model.getFrameId(frame.link)]
        place = link.placement * frame.T_link_frame
        model.addFrame(pin.Frame(name, link.parentJoint, 0, place, pin.FrameType.OP_FRAME))
        tasks.append(FrameTask(name, 10.0, 4.0, lm_damping=1e-4))
        tasks[-1].set_target(BASE.actInv(target))
    configuration = pink.Configuration(model, model.createData(), start)
    limits = (ConfigurationLimit(model), VelocityLimit(model))
    move = pink.solve_ik(configuration, tasks, 1.0, solver="daqp", damping=1e-6, limits=limits)
    move *= min(1.0, 0.08 / np.abs(move).max())
    result = q.copy()
    result[MOVING] = (start + move)[at]
    return result


@pytest.mark.parametrize("size", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("names", [HANDS, HANDS[:1]])
def test_a_step_is_the_one_that_pink_would_take(size, names):
    rng = np.random.default_rng(5)
    tracking = HandTracking(ROBOT)
    lower, upper = ROBOT.joints.lower.copy(), ROBOT.joints.upper.copy()
    for name, limits in STANDING_WAIST_RANGE.items():
        lower[ROBOT.joints.index(name)], upper[ROBOT.joints.index(name)] = limits
    for _ in range(10):
        q, posture = (np.clip(ROBOT.joints.home + rng.normal(0.0, 0.3, len(lower)), lower, upper) for _ in range(2))
        poses = hands_at(q)
        targets = {name: poses[name] * pin.exp6(rng.normal(0.0, size, 6)) for name in names}
        np.testing.assert_allclose(
            tracking.step(BASE, q, targets, posture), pink_step(q, targets, posture), rtol=0.0, atol=1e-8
        )


def test_legs_and_fingers_keep_their_very_numbers():
    q = ROBOT.joints.home.copy()
    still = np.setdiff1d(np.arange(len(q)), MOVING)
    q[still] += 0.01
    target = {"left_hand": hands_at(q)["left_hand"] * pin.SE3(np.eye(3), np.array([0.05, 0.0, 0.0]))}
    stepped = HandTracking(ROBOT).step(BASE, q, target, q)
    np.testing.assert_array_equal(stepped[still], q[still])
    assert np.abs(stepped - q).max() > 0.001


def test_a_moving_target_is_followed():
    """A hand path at 0.2 m/s and 50 Hz is followed within a few millimetres after a second."""
    tracking, q = HandTracking(ROBOT), ROBOT.joints.home
    start = hands_at(q)
    for i in range(1, 51):
        offset = np.array([0.1, 0.0, 0.15]) * i / 50.0
        targets = {name: pin.SE3(pose.rotation, pose.translation + offset) for name, pose in start.items()}
        q = tracking.step(BASE, q, targets, q)
    reached = hands_at(q)
    for name, target in targets.items():
        distance, angle = pose_error(reached[name], target)
        assert distance < 5e-3
        assert angle < 0.03


def test_no_joint_moves_faster_than_the_arms_may():
    """A target that jumps across the body is followed, but at most 0.08 rad per tick."""
    tracking, q = HandTracking(ROBOT), ROBOT.joints.home
    upright = pose_from_xyyaw(0.0, 0.0, 0.0, ROBOT.standing_height)
    goal = {"left_hand": pin.SE3(pin.rpy.rpyToMatrix(1.0, -0.5, 0.5), np.array([0.25, 0.25, 1.1]))}
    largest = 0.0
    for _ in range(60):
        following = tracking.step(upright, q, goal, q)
        largest = max(largest, float(np.abs(following - q).max()))
        q = following
    assert 0.07 < largest <= 0.08 + 1e-9


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_or_not_there_is_refused(value):
    tracking, home = HandTracking(ROBOT), ROBOT.joints.home
    good = hands_at(home)["left_hand"]
    with pytest.raises(StateError, match="left_hand"):
        tracking.step(BASE, home, {"left_hand": pin.SE3(good.rotation, np.array([0.3, value, 0.9]))}, home)
    q = home.copy()
    q[ROBOT.joints.index("left_elbow_joint")] = value
    with pytest.raises(StateError, match="left_elbow_joint"):
        tracking.step(BASE, q, {"left_hand": good}, home)
    with pytest.raises(UnknownNameError, match=r"available: .*left_hand"):
        tracking.step(BASE, home, {"tail": good}, home)
