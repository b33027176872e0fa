# SPDX-License-Identifier: Apache-2.0
"""Where the links of sensors were: the robot's own kinematics at the stamp of a reading, nothing without states."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from nav_msgs.msg import Odometry
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from supple.errors import SuppleError
from supple.kinematics.model import KinematicModel
from supple.nodes.conversion import header, pose_message
from supple.nodes.link_poses import LinkPoses
from supple.robots import g1

ROBOT = g1()
NAMES = ROBOT.joints.names
STEP = 5_000_000
LINK = next(iter(ROBOT.pads.values())).link


def state(stamp_ns: int, q: np.ndarray, v: np.ndarray, names: tuple[str, ...] = tuple(NAMES), frame: str = "") -> bytes:
    message = JointState(header=header(stamp_ns, frame), name=list(names), position=q.tolist(), velocity=v.tolist())
    return serialize_message(message)


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
    values = {"q": np.zeros(len(NAMES)), "v": np.zeros(len(NAMES))}
    values[field[0] if field == "velocity" else "q"][3] = float("nan")
    with pytest.raises(SuppleError, match="not finite"):
        LinkPoses(ROBOT).take(state(STEP, **values))


@pytest.mark.parametrize("frame", ["", "a", "ab", "abc", "base_link"])
def test_joints_come_in_any_order_and_under_changing_names(frame):
    rng = np.random.default_rng(3)
    v = rng.uniform(-0.3, 0.3, len(NAMES))
    still, poses = np.zeros(len(NAMES)), LinkPoses(ROBOT)
    orders = [rng.permutation(len(NAMES)) for _ in range(3)]
    for i in range(6):
        order = orders[i // 2]
        poses.take(state(i * STEP, v[order], still, tuple(NAMES[k] for k in order), frame))
        found = poses.at(i * STEP, [LINK])[LINK]
        assert found.isApprox(true_pose(v), 1e-9)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"name": ["left_knee_joint"]}, "joint_states.name: missing"),
        ({"position": [0.0]}, "joint_states.position: .* but values of shape"),
        ({"velocity": []}, "joint_states.velocity: .* but values of shape"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_by_field_and_the_next_is_taken(change, said):
    poses, rest = LinkPoses(ROBOT), [0.0] * len(NAMES)
    fields = {"name": list(NAMES), "position": rest, "velocity": rest}
    poses.take(serialize_message(JointState(header=header(STEP), **fields)))
    with pytest.raises(SuppleError, match=said):
        poses.take(serialize_message(JointState(header=header(2 * STEP), **fields | change)))
    poses.take(serialize_message(JointState(header=header(10 * STEP), **fields)))
    assert poses.at(10 * STEP, [LINK]) is not None
