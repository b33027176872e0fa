# SPDX-License-Identifier: Apache-2.0
"""The whole stack does the task: through topics and actions alone, the G1 walks to the table and lifts the box."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from control_msgs.action import FollowJointTrajectory
from node_graph import Graph, stamped
from supple_interfaces.action import Reach, WalkTo
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from supple.geometry import pose_from_xyyaw, yaw_of
from supple.nodes.conversion import nanoseconds
from supple.robots import g1

BOX_WIDTH = 0.172
STANDING_BEFORE = 0.36
# Hands turned inward touch the side with knuckle and finger tips together; by the knuckle alone the box would slip.
INWARD = 0.6
GRIP_HEIGHT = 0.088
ROBOT = g1()


def walk_to_the_box(graph: Graph, distance: float) -> None:
    box = graph.object("box")
    # The box's frame is turned by a quarter to the left of the heading of a robot in front of it.
    heading = yaw_of(box) - 0.5 * np.pi
    place = box.translation[:2] - distance * np.array([np.cos(heading), np.sin(heading)])
    result = graph.act(WalkTo, "walk_to", WalkTo.Goal(target=stamped(pose_from_xyyaw(*place, heading))), 150.0)
    assert result.error_code == WalkTo.Result.SUCCESS, result.error_string


def flatten_hands(graph: Graph) -> None:
    names, positions = [], []
    for effector in ROBOT.effectors.values():
        names += [ROBOT.joints.names[i] for i in ROBOT.joints.group(effector.fingers)]
        positions += effector.postures["flat"]
    point = JointTrajectoryPoint(positions=positions)
    point.time_from_start.nanosec = 500_000_000
    request = FollowJointTrajectory.Goal(trajectory=JointTrajectory(joint_names=names, points=[point]))
    result = graph.act(FollowJointTrajectory, "follow_joint_trajectory", request)
    assert result.error_code == FollowJointTrajectory.Result.SUCCESSFUL, result.error_string


def open_arms(graph: Graph) -> None:
    """Raise the hands well above the box, so that nothing touches it while the robot walks up to it."""
    targets = []
    for side in (1.0, -1.0):
        turn = pin.rpy.rpyToMatrix(0.0, 0.0, -side * INWARD)
        targets.append(pin.SE3(turn, np.array([0.28, side * 0.24, 0.40])))
    request = Reach.Goal(effector=["left_hand", "right_hand"], target=[stamped(t, "base_link") for t in targets])
    result = graph.act(Reach, "reach", request)
    assert result.error_code == Reach.Result.SUCCESS, result.error_string


def move_hands(graph: Graph, place: pin.SE3, gap: float, lift: float, loose: bool = False) -> None:
    """Bring both hands beside the box, palms towards it; ``loose`` lets the box keep them from their targets."""
    frame = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, yaw_of(place) - 0.5 * np.pi), place.translation)
    targets = []
    for side in (1.0, -1.0):
        offset = np.array([0.01, side * (0.5 * BOX_WIDTH + gap), GRIP_HEIGHT + lift])
        targets.append(frame * pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, -side * INWARD), offset))
    request = Reach.Goal(effector=["left_hand", "right_hand"], target=[stamped(target) for target in targets])
    if loose:
        request.position_tolerance, request.orientation_tolerance = 0.2, 1.0
    result = graph.act(Reach, "reach", request)
    assert result.error_code == Reach.Result.SUCCESS, result.error_string


def test_it_walks_to_the_table_and_lifts_the_box(stack):
    assert stack.reset(distribution="D0", seed=4).success
    stack.run_for(0.5)
    flatten_hands(stack)
    walk_to_the_box(stack, 0.9)
    open_arms(stack)
    walk_to_the_box(stack, STANDING_BEFORE)
    place = stack.object("box")
    move_hands(stack, place, gap=0.12, lift=0.12)
    move_hands(stack, place, gap=0.09, lift=0.0)
    move_hands(stack, place, gap=-0.05, lift=0.0, loose=True)
    stack.run_for(0.3)
    move_hands(stack, place, gap=-0.05, lift=0.26, loose=True)
    stack.next("objects", lambda m: m.pose[list(m.name).index("box")].position.z > 0.9)
    lifted = nanoseconds(stack.latest("objects").header.stamp)
    stack.run_for(1.2)
    held = [m for m in stack.received["objects"] if nanoseconds(m.header.stamp) > lifted]
    heights = [m.pose[list(m.name).index("box")].position.z for m in held]
    assert nanoseconds(held[-1].header.stamp) - lifted > 1_000_000_000
    assert min(heights) > 0.9, f"the box sank to {min(heights):.3f} m"
    touching = [{c.body1, c.body2} for c in stack.latest("contacts").contacts]
    assert {"box", "table"} not in touching
    assert any("box" in pair and any(name.startswith("left_") for name in pair) for pair in touching)
    assert any("box" in pair and any(name.startswith("right_") for name in pair) for pair in touching)
    assert stack.base().rotation[2, 2] > 0.9
