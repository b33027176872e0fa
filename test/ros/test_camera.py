# SPDX-License-Identifier: Apache-2.0
"""The simulated RGB-D camera: aligned pictures, calibrated, in metres, without holding physics up."""

from __future__ import annotations

import numpy as np
import pytest
from node_graph import Graph, seconds
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, Image
from supple_interfaces.msg import JointCommand

from supple.kinematics.transforms import TransformTree
from supple.nodes.conversion import joint_command, nanoseconds
from supple.robots import RobotCommand, g1

COLOUR, DEPTH = "camera/color/image_raw", "camera/aligned_depth_to_color/image_raw"
INFO = "camera/color/camera_info"


@pytest.fixture(scope="module")
def bridge(start, graph) -> Graph:
    start("sim_bridge")
    best_effort = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
    for kind, topic in ((Image, COLOUR), (Image, DEPTH), (CameraInfo, INFO)):
        graph.listen(kind, topic, best_effort)
    graph.until(lambda: graph.received[COLOUR], "a picture", 60.0)
    return graph


def test_colour_and_depth_are_of_the_same_instant_and_calibrated(bridge):
    bridge.until(lambda: len(bridge.received[DEPTH]) > 5 and len(bridge.received[COLOUR]) > 5, "some pictures", 60.0)
    colour, depth, info = (bridge.received[topic][-1] for topic in (COLOUR, DEPTH, INFO))
    assert (colour.encoding, depth.encoding) == ("rgb8", "32FC1")
    for message in (colour, depth, info):
        assert (message.width, message.height) == (640, 480)
        assert message.header.frame_id == "camera_color_optical_frame"
    assert set(seconds(bridge.received[DEPTH][:-1])) <= set(seconds(bridge.received[COLOUR]))
    assert (np.diff(seconds(bridge.received[COLOUR])) > 0).all()
    assert info.k[0] == info.k[4] > 0.0
    pixels = np.frombuffer(colour.data, np.uint8).reshape(480, 640, 3)
    assert pixels.std() > 5.0, "an empty picture"


def test_depth_is_the_distance_to_what_is_seen(bridge):
    """The middle of the picture looks down at the floor: where the ray meets it follows from the camera's pose."""
    bridge.reset()
    depth = bridge.next(DEPTH, lambda _: True, 60.0)
    values = np.frombuffer(depth.data, np.float32).reshape(480, 640)
    state = bridge.latest("joint_states")
    robot = g1()
    tree = TransformTree(robot)
    poses = dict(tree.fixed) | tree.moving(robot.joints.ordered(list(state.name), state.position))
    parents = {child: (parent, pose) for (parent, child), pose in poses.items()}
    frame, pose = "camera_color_optical_frame", None
    while frame != "base_link":
        frame, step = parents[frame]
        pose = step if pose is None else step * pose
    camera = bridge.base() * pose
    assert camera.rotation[2, 2] < -0.3, "the head camera looks down"
    wanted = -camera.translation[2] / camera.rotation[2, 2]
    assert float(np.median(values[235:245, 315:325])) == pytest.approx(wanted, rel=0.05)


def test_physics_goes_on_while_pictures_are_drawn(bridge):
    joints = g1().joints

    def command() -> JointCommand:
        blank = RobotCommand.blank(joints, "tester", nanoseconds(bridge.latest("joint_states").header.stamp))
        blank.active[:] = True
        return joint_command(joints, blank)

    bridge.commands.publish(command())
    begin, pictures = len(bridge.received["joint_states"]), len(bridge.received[COLOUR])
    bridge.until(lambda: len(bridge.received[COLOUR]) > pictures + 5, "five more pictures", 60.0)
    stamps = seconds(bridge.received["joint_states"][begin:])
    assert set(np.diff(stamps)) == {5_000_000}, "no state is left out"
