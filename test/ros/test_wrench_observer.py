# SPDX-License-Identifier: Apache-2.0
"""The node that estimates wrenches: states over DDS in, wrenches in the frames of their links out."""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from node_graph import Graph, NodeProcess, seconds
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Imu, JointState

from supple.geometry import pose_from_xyyaw
from supple.nodes.conversion import imu_message, joint_state, odometry
from supple.robots import RobotState, g1
from supple.sim.forces import LinkWrenches
from supple.sim.g1_model import g1_spec
from supple.sim.world import World

ROBOT = g1()
PUSH = np.array([6.0, -8.0, 4.0])
_DEEP = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)


@pytest.fixture(scope="module")
def node(start) -> NodeProcess:
    return start("wrench_observer")


class Feed:
    """A robot that stands on stiff servos and is pushed at the left wrist, published state by state."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.out = [
            graph.publisher(kind, topic, _DEEP)
            for kind, topic in ((JointState, "joint_states"), (Odometry, "odom"), (Imu, "imu/data"))
        ]
        self.wrenches = {name: graph.listen(WrenchStamped, f"wrench/{name}", _DEEP) for name in ROBOT.wrench_frames}
        graph.until(lambda: all(entry.get_subscription_count() for entry in self.out[2:]), "the observer")
        graph.until(lambda: self.out[0].get_subscription_count() > 1 and self.out[1].get_subscription_count() > 1, "it")
        graph.until(
            lambda: all(graph.node.count_publishers(f"wrench/{name}") for name in self.wrenches), "its wrenches"
        )
        # A publisher that is seen may not be matched yet.
        time.sleep(1.0)
        self.world = World(g1_spec(), ROBOT)
        self.truth = LinkWrenches(self.world)

    def send(self, state: RobotState, stamp: int) -> None:
        joints, odom, imu = self.out
        joints.publish(joint_state(ROBOT.joints, state, stamp))
        odom.publish(odometry(state, stamp))
        imu.publish(imu_message(state, stamp))
        # The topics are best effort: slower than they could be read.
        time.sleep(0.003)

    def stand(self, steps: int, first: int) -> int:
        """Stand for some steps from a stamp on, and return the last stamp."""
        self.world.clear()
        self.world.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, ROBOT.standing_height), ROBOT.joints.home)
        self.world.set_state(self.world.get_state())
        self.world.hold()
        stamp = first
        for step in range(steps):
            stamp = first + step * 5_000_000
            self.world.push("left_wrist_yaw_link", PUSH, self.world.link_pose("l_wrist").translation)
            self.world.step(1)
            self.send(self.world.robot_state(), stamp)
        return stamp

    def forces_at(self, stamp: int) -> dict[str, np.ndarray]:
        """Wait for the wrenches with a stamp, or one just before it, and return their forces.

        All topics are best effort: on a busy machine the very last message may be the one that is lost.
        """
        found = {}

        def complete() -> bool:
            for name, messages in self.wrenches.items():
                for message in messages:
                    if stamp - 50_000_000 <= seconds([message])[0] <= stamp:
                        force = message.wrench.force
                        found[name] = np.array([force.x, force.y, force.z])
            return len(found) == len(self.wrenches)

        self.graph.until(complete, f"wrenches at {stamp}")
        return found


@pytest.fixture(scope="module")
def feed(node, graph) -> Feed:
    return Feed(graph)


def test_feet_carry_the_robot_and_the_push_is_at_the_wrist(feed):
    last = feed.stand(101, 1_000_000_000)
    found, known = feed.forces_at(last), feed.truth.read()
    assert known["l_sole"][2] > 100.0
    np.testing.assert_allclose(known["l_wrist"][:3] @ known["l_wrist"][:3], PUSH @ PUSH, rtol=1e-6)
    for name, force in found.items():
        assert np.linalg.norm(force - known[name][:3]) < 3.0, name


def test_each_wrench_is_in_its_own_frame_and_comes_a_hundred_times_a_second(feed):
    for messages in feed.wrenches.values():
        messages.clear()
    feed.forces_at(feed.stand(61, 2_000_000_000))
    for name, messages in feed.wrenches.items():
        assert {message.header.frame_id for message in messages} == {name}
        gaps = [int(b - a) for a, b in pairwise(seconds(messages))]
        assert len(gaps) > 10
        # One that was lost on the way leaves a gap of two.
        assert np.median(gaps) == 10_000_000
        assert all(gap % 10_000_000 == 0 for gap in gaps)


def test_after_a_jump_back_it_begins_anew(feed, node):
    last = feed.stand(61, 500_000_000)
    assert np.linalg.norm(feed.forces_at(last)["l_sole"]) > 100.0
    assert "stamps jumped back" in node.output()


def test_what_cannot_be_used_is_said_and_the_next_good_states_are(feed, node):
    state = feed.world.robot_state()
    state.effort[4] = np.nan
    feed.send(state, 2_000_000_000)
    feed.graph.until(lambda: "not finite in joint_states.effort" in node.output(), "the refusal")
    last = feed.stand(61, 3_000_000_000)
    assert np.all(np.isfinite(feed.forces_at(last)["r_wrist"]))


def test_it_says_how_it_is_doing(feed):
    feed.graph.until(lambda: "unexplained" in feed.graph.diagnostics.get("wrench_observer", ("", "", {}))[2], "figures")
    _, _, values = feed.graph.diagnostics["wrench_observer"]
    assert float(values["unexplained"]) < 1.0
