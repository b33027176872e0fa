# SPDX-License-Identifier: Apache-2.0
"""TF and description: a viewer that comes late finds every link, where the simulation has it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pinocchio as pin
import pytest
from nav_msgs.msg import Odometry
from node_graph import Graph, NodeProcess
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from supple.kinematics.model import KinematicModel
from supple.nodes.conversion import joint_state, nanoseconds, odometry, pose_of
from supple.nodes.qos import LATCHED, TRANSFORMS
from supple.robots import PerfectBody, g1

ROBOT = g1()


@pytest.fixture(scope="module")
def node(start) -> NodeProcess:
    return start("robot_state")


class Feed:
    """Joint states and odometry from this process, and the frames that come of them."""

    def __init__(self, graph: Graph) -> None:
        profile = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
        self.graph = graph
        self.joints = graph.publisher(JointState, "joint_states", profile)
        self.odom = graph.publisher(Odometry, "odom", profile)
        self.fixed = graph.listen(TFMessage, "/tf_static", LATCHED)
        self.moving = graph.listen(TFMessage, "/tf", TRANSFORMS)
        self.description = graph.listen(String, "robot_description", LATCHED)
        # One is the client's own.
        graph.until(lambda: self.joints.get_subscription_count() > 1 and self.odom.get_subscription_count() > 1, "it")
        graph.until(lambda: self.fixed and self.description, "what is latched")

    def send(self, stamp: int, q: np.ndarray, base: pin.SE3) -> None:
        state = PerfectBody(ROBOT.joints).read()
        state.q[:] = q
        state.base_position[:] = base.translation
        state.base_quaternion[:] = pin.Quaternion(base.rotation).coeffs()
        self.odom.publish(odometry(state, stamp))
        self.joints.publish(joint_state(ROBOT.joints, state, stamp))

    def frames_at(self, stamp: int) -> dict[str, tuple[str, pin.SE3]]:
        found: dict[str, tuple[str, pin.SE3]] = {}

        def complete() -> bool:
            for message in (*self.fixed, *self.moving):
                for row in message.transforms:
                    if message in self.fixed or nanoseconds(row.header.stamp) == stamp:
                        found[row.child_frame_id] = (row.header.frame_id, _se3(row.transform))
            return {"base_link", "left_knee_link"} <= set(found)

        self.graph.until(complete, f"frames at {stamp}")
        return found


def _se3(transform) -> pin.SE3:
    t, r = transform.translation, transform.rotation
    return pin.SE3(pin.Quaternion(r.w, r.x, r.y, r.z).toRotationMatrix(), np.array([t.x, t.y, t.z]))


@pytest.fixture(scope="module")
def feed(node, graph) -> Feed:
    return Feed(graph)


def in_odom(frames: dict[str, tuple[str, pin.SE3]], name: str) -> pin.SE3:
    pose = pin.SE3.Identity()
    while name != "odom":
        assert name in frames, f"{name} hangs in the air"
        name, step = frames[name]
        pose = step * pose
    return pose


def test_every_link_is_where_kinematics_has_it(feed):
    rng = np.random.default_rng(3)
    joints = ROBOT.joints
    q = joints.lower + rng.random(len(joints)) * (joints.upper - joints.lower)
    base = pin.SE3(pin.rpy.rpyToMatrix(0.1, -0.2, 0.7), np.array([1.0, -2.0, 0.7]))
    stamp = 40_000_000
    feed.send(stamp, q, base)
    frames = feed.frames_at(stamp)
    links = [link.get("name") for link in ET.fromstring(feed.description[-1].data).iter("link")]
    kinematics = KinematicModel(ROBOT)
    names = [name for name in (*links, *ROBOT.frames) if kinematics.model.existFrame(name)]
    wanted = kinematics.frame_poses(kinematics.configuration(base, q), *names)
    assert len(names) > 60
    for name, pose in zip(names, wanted, strict=True):
        np.testing.assert_allclose(in_odom(frames, name).homogeneous, pose.homogeneous, atol=1e-9, err_msg=name)
    for name in links:
        in_odom(frames, name)
    footprint = in_odom(frames, "base_footprint")
    np.testing.assert_allclose(footprint.translation, [1.0, -2.0, 0.0], atol=1e-9)
    optical = in_odom(frames, "camera_link").actInv(in_odom(frames, "camera_color_optical_frame"))
    np.testing.assert_allclose(optical.rotation @ [0, 0, 1], [1, 0, 0], atol=1e-9)


def test_meshes_of_the_description_are_files(feed):
    meshes = [mesh.get("filename") for mesh in ET.fromstring(feed.description[-1].data).iter("mesh")]
    assert len(meshes) > 40
    for name in meshes:
        parts = urlsplit(name)
        assert parts.scheme == "file"
        assert Path(unquote(parts.path)).is_file(), name


def test_after_a_jump_back_it_goes_on_at_once(feed, node):
    home, base = ROBOT.joints.home, pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.8]))
    feed.send(60_000_000_000, home, base)
    feed.frames_at(60_000_000_000)
    feed.send(1_000_000_000, home, base)
    feed.frames_at(1_000_000_000)
    assert "stamps jumped back by 59.00 s" in node.output()


def test_what_cannot_be_shown_is_refused_and_said(feed, node):
    home, base = ROBOT.joints.home.copy(), pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.8]))
    home[3] = np.nan
    feed.send(2_000_000_000, home, base)
    feed.graph.until(lambda: "not finite for left_knee_joint" in node.output(), "the refusal")
    broken = odometry(PerfectBody(ROBOT.joints).read(), 3_000_000_000)
    broken.pose.pose.orientation.w = 0.0
    feed.odom.publish(broken)
    feed.graph.until(lambda: "holds no rotation" in node.output(), "the refusal")
    with pytest.raises(ValueError, match="holds no rotation"):
        pose_of(broken.pose.pose, "odom")
