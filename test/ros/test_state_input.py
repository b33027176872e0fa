# SPDX-License-Identifier: Apache-2.0
"""States put together from three topics: by name, of one stamp, once per interval; anything else is said."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from nav_msgs.msg import Odometry
from node_graph import Graph
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Imu, JointState

from supple.nodes.conversion import imu_message, joint_state, odometry
from supple.nodes.diagnostics import Diagnostics
from supple.nodes.state_input import StateInput
from supple.robots import PerfectBody, RobotState, g1

JOINTS = g1().joints
STEP, CONTROL = 5_000_000, 20_000_000
BEST_EFFORT = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)


class Bench:
    """A StateInput in this process, fed over topics of its own."""

    def __init__(self, graph: Graph) -> None:
        node = graph.node
        self.graph, self.node = graph, node
        self.states: list[RobotState] = []
        self.resets = 0
        self.diagnostics = graph.on_executor(lambda: Diagnostics(node, "bench"))
        self.input = graph.on_executor(
            lambda: StateInput(node, JOINTS, 0.02, self.states.append, self._reset, self.diagnostics)
        )
        self.publishers = {
            "joints": graph.publisher(JointState, "joint_states", BEST_EFFORT),
            "odom": graph.publisher(Odometry, "odom", BEST_EFFORT),
            "imu": graph.publisher(Imu, "imu/data", BEST_EFFORT),
        }
        graph.until(
            lambda: all(p.get_subscription_count() >= 2 - (k == "imu") for k, p in self.publishers.items()), "matches"
        )

    def _reset(self) -> None:
        self.resets += 1

    def close(self) -> None:
        self.graph.on_executor(self._destroy)

    def _destroy(self) -> None:
        self.input.close()
        for publisher in self.publishers.values():
            self.node.destroy_publisher(publisher)

    def send(self, stamp: int, state: RobotState | None = None, parts=("odom", "imu", "joints"), edit=None) -> None:
        state = state or PerfectBody(JOINTS).read()
        messages = {
            "joints": joint_state(JOINTS, state, stamp),
            "odom": odometry(state, stamp),
            "imu": imu_message(state, stamp),
        }
        if edit is not None:
            edit(messages)
        for part in parts:
            self.publishers[part].publish(messages[part])

    def expect(self, *stamps: int) -> None:
        self.graph.until(lambda: [s.stamp_ns for s in self.states] == list(stamps), f"states at {stamps}", 5.0)


@pytest.fixture
def bench(graph):
    bench = Bench(graph)
    yield bench
    bench.close()


def test_one_state_per_control_interval_in_any_order_of_arrival(bench):
    for k in range(12):
        bench.send(CONTROL + k * STEP, parts=("joints", "odom", "imu") if k % 2 else ("imu", "joints", "odom"))
    bench.expect(CONTROL, 2 * CONTROL, 3 * CONTROL)


def test_a_lost_message_costs_a_step_not_a_tick(bench):
    bench.send(CONTROL)
    bench.send(2 * CONTROL, parts=("joints", "imu"))
    bench.send(2 * CONTROL + STEP)
    bench.send(3 * CONTROL)
    bench.expect(CONTROL, 2 * CONTROL + STEP, 3 * CONTROL)


def test_joints_are_mapped_by_name(bench):
    order = np.random.default_rng(0).permutation(len(JOINTS))
    q = np.linspace(-0.2, 0.2, len(JOINTS))

    def shuffle(messages):
        message = messages["joints"]
        message.name = [JOINTS.names[i] for i in order]
        message.position = q[order].tolist()

    bench.send(CONTROL, edit=shuffle)
    bench.expect(CONTROL)
    np.testing.assert_array_equal(bench.states[0].q, q)


def refusal(bench: Bench) -> str:
    kinds = ("unusable states", "unmatched states")
    return bench.graph.until(
        lambda: next(
            (bench.diagnostics._values[f"last {k}"] for k in kinds if f"last {k}" in bench.diagnostics._values), ""
        ),
        "a refusal",
        5.0,
    )


def _rename(messages):
    messages["joints"].name[3:5] = ["tail", "fin"]


def _nan(messages):
    messages["joints"].velocity[7] = float("nan")


def _no_rotation(messages):
    messages["odom"].pose.pose.orientation.w = 0.0


def _nan_rotation(messages):
    messages["odom"].pose.pose.orientation.x = float("nan")


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (_rename, "missing left_knee_joint, left_ankle_pitch_joint; not in the robot's table: tail, fin"),
        (_nan, "not finite in joint_states.velocity"),
        (_no_rotation, "odom.pose.pose.orientation: a quaternion of norm 0.0e+00 holds no rotation"),
        (_nan_rotation, "odom.pose.pose.orientation: expected four finite numbers"),
    ],
)
def test_an_unusable_state_is_refused_and_said(bench, edit, words):
    bench.send(CONTROL, edit=edit)
    assert words in refusal(bench)
    bench.send(2 * CONTROL)
    bench.expect(2 * CONTROL)


def test_a_quaternion_that_is_nearly_a_unit_is_normalised(bench):
    def stretch(messages):
        messages["odom"].pose.pose.orientation.w = 1.05

    bench.send(CONTROL, edit=stretch)
    bench.expect(CONTROL)
    np.testing.assert_allclose(np.linalg.norm(bench.states[0].base_quaternion), 1.0)


@pytest.mark.parametrize("jump", [-30_000_000_000, 1_000_000_000])
def test_a_jump_of_the_clock_is_said_once_and_resets(bench, jump):
    begin = 60_000_000_000
    stamps = [begin, begin + CONTROL, begin + CONTROL + jump, begin + 2 * CONTROL + jump]
    for i, stamp in enumerate(stamps, 1):
        bench.send(stamp)
        # Three topics keep no order among each other: what was sent before the jump must not arrive after it.
        bench.expect(*stamps[:i])
    assert bench.resets == 1


def test_stamps_that_never_meet_are_reported_with_topic_and_gap(bench):
    # Which half is given up first, and how near the other then is, depends on what arrives first.
    told = re.compile(r"no message on /\S.* with the stamp of \[.+\] \(nearest (7|13)\.0 ms away\)")
    ticks = itertools.count(1)

    def reported() -> bool:
        k = next(ticks)
        bench.send(k * CONTROL, parts=("joints", "odom"))
        bench.send(k * CONTROL + 7_000_000, parts=("imu",))
        return bool(told.search(bench.diagnostics._values.get("last unmatched states", "")))

    bench.graph.until(reported, "a report with topics and gap")
    assert bench.states == []


def test_velocities_survive_the_way_there_and_back(bench):
    turned = np.array([0.1, -0.2, 0.3, 0.9])
    state = replace(
        PerfectBody(JOINTS).read(),
        base_quaternion=turned / np.linalg.norm(turned),
        base_linear_velocity=np.array([0.3, -0.1, 0.05]),
        base_angular_velocity=np.array([0.1, 0.2, 0.3]),
    )
    bench.send(CONTROL, state)
    bench.expect(CONTROL)
    np.testing.assert_allclose(bench.states[0].base_linear_velocity, state.base_linear_velocity, atol=1e-12)
    np.testing.assert_array_equal(bench.states[0].base_quaternion, state.base_quaternion)
