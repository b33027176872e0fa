# SPDX-License-Identifier: Apache-2.0
"""Where the links of sensors were: the robot's own kinematics at the stamp of a reading, nothing without states."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from nav_msgs.msg import Odometry
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image, JointState

from supple.errors import SuppleError
from supple.kinematics.model import KinematicModel
from supple.nodes.conversion import header, pose_message
from supple.nodes.touch_input import LinkPoses, stamp_of
from supple.robots import g1

ROBOT = g1()
NAMES = ROBOT.joints.names
STEP = 5_000_000
LINK = next(iter(ROBOT.pads.values())).link


def state(stamp_ns: int, q: np.ndarray, v: np.ndarray) -> JointState:
    return JointState(header=header(stamp_ns), name=list(NAMES), position=q.tolist(), velocity=v.tolist())


def true_pose(q: np.ndarray, link: str = LINK) -> pin.SE3:
    model = KinematicModel(ROBOT)
    return model.frame_poses(model.configuration(pin.SE3.Identity(), q), link)[0]


@pytest.mark.parametrize("offset", [-7_000_000, 0, 3_000_000, 12_000_000])
def test_poses_are_those_of_the_readings_own_time(offset):
    poses = LinkPoses(ROBOT)
    v = np.linspace(-1.0, 1.0, len(NAMES))
    for i in range(100, 140):
        poses.take(state(i * STEP, v * i * STEP * 1e-9, v))
    stamp = 139 * STEP + offset
    found = poses.at(stamp, [LINK, "l_wrist"])
    for link in (LINK, "l_wrist"):
        error = true_pose(v * stamp * 1e-9, link).actInv(found[link])
        assert np.linalg.norm(error.translation) < 1e-9
        assert np.linalg.norm(pin.log3(error.rotation)) < 1e-9


def test_without_a_state_near_it_nothing_is_said():
    poses = LinkPoses(ROBOT)
    assert poses.at(0, [LINK]) is None
    poses.take(state(10 * STEP, np.zeros(len(NAMES)), np.zeros(len(NAMES))))
    assert poses.at(10 * STEP + 30_000_000, [LINK]) is None
    assert poses.at(10 * STEP, [LINK]) is not None


def test_states_from_before_a_jump_of_the_clock_are_forgotten():
    poses = LinkPoses(ROBOT)
    rest = np.zeros(len(NAMES))
    poses.take(state(1000 * STEP, rest, rest))
    poses.take(state(10 * STEP, rest, rest))
    assert poses.at(1000 * STEP, [LINK]) is None


def test_a_pad_is_borne_by_the_wrist_of_its_side():
    poses = LinkPoses(ROBOT)
    assert {name: poses.hand_of(pad.link)[0] for name, pad in ROBOT.pads.items()} == {n: n[0] for n in ROBOT.pads}
    assert {poses.hand_of(pad.link) for pad in ROBOT.pads.values()} == {"l_wrist", "r_wrist"}
    assert poses.hand_of("torso_link") == ""


def test_an_object_is_told_relative_to_the_base_of_its_time():
    poses = LinkPoses(ROBOT)
    base = pin.SE3(pin.utils.rotate("z", 0.7), np.array([1.0, 2.0, 0.7]))
    seen = pin.SE3(pin.utils.rotate("x", 0.3), np.array([1.4, 2.1, 0.9]))
    assert poses.in_base(STEP, seen) is None
    message = Odometry(header=header(STEP, "odom"))
    message.pose.pose = pose_message(base)
    poses.take_base(message)
    assert (base * poses.in_base(STEP, seen)).isApprox(seen, 1e-9)
    assert poses.in_base(STEP + 50_000_000, seen) is None


@pytest.mark.parametrize("field", ["position", "velocity"])
def test_a_state_that_is_no_number_is_refused(field):
    message = state(STEP, np.zeros(len(NAMES)), np.zeros(len(NAMES)))
    getattr(message, field)[3] = float("nan")
    with pytest.raises(SuppleError, match="not finite"):
        LinkPoses(ROBOT).take(message)


@pytest.mark.parametrize("stamp", [1, 999_999_999, 1_000_000_000, 1_796_072_564_736_650_909])
def test_the_stamp_is_read_without_taking_the_message_apart(stamp):
    assert stamp_of(serialize_message(Image(header=header(stamp, "camera"), data=[1, 2, 3]))) == stamp
    assert stamp_of(serialize_message(JointState(header=header(stamp)))) == stamp
