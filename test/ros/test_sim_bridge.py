# SPDX-License-Identifier: Apache-2.0
"""The simulator alone: sensors, clock, resets, pause and steps, refusals, emergency stop."""

from __future__ import annotations

import numpy as np
import pytest
from node_graph import Graph, seconds
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from supple_interfaces.msg import JointCommand
from visualization_msgs.msg import Marker, MarkerArray

from supple.nodes.conversion import header, joint_command, nanoseconds
from supple.nodes.qos import COMMAND
from supple.robots import RobotCommand, g1
from supple.sim.clock import RESET_GAP_NS

JOINTS = g1().joints
STEP, CONTROL = 5_000_000, 20_000_000


@pytest.fixture(scope="module")
def bridge(start, graph) -> Graph:
    start("sim_bridge", camera=False, answer_timeout=0.0)
    graph.latest("joint_states")
    graph.until(lambda: graph.commands.get_subscription_count(), "a subscriber of joint_commands")
    graph.until(lambda: graph.node.count_publishers("command_trace"), "a publisher of command_trace")
    return graph


@pytest.fixture(autouse=True)
def fresh(bridge):
    bridge.pause(False)
    assert bridge.reset().success


def answer(graph: Graph, source: str, *groups: str, q: float | None = None) -> JointCommand:
    """A command that answers the newest state."""
    message = graph.latest("joint_states")
    command = RobotCommand.blank(JOINTS, source, nanoseconds(message.header.stamp))
    at = JOINTS.group(*groups)
    command.q[at] = np.array(message.position)[at] if q is None else q
    command.active[at] = True
    return joint_command(JOINTS, command)


def offer(graph: Graph, message: JointCommand):
    """Send a command and return its trace."""
    start = len(graph.received["command_trace"])
    graph.commands.publish(message)

    def found():
        traces = graph.received["command_trace"][start:]
        return next((trace for trace in traces if trace.source == message.source), None)

    return graph.until(found, f"a trace of {message.source}")


def test_states_are_complete_ordered_and_in_step_with_the_clock(bridge):
    message = bridge.latest("joint_states")
    assert list(message.name) == list(JOINTS.names)
    assert len(message.position) == len(message.velocity) == len(message.effort) == 43
    begin = len(bridge.received["joint_states"])
    bridge.run_for(2.0)
    stamps = seconds(bridge.received["joint_states"][begin:])
    assert set(np.diff(stamps)) == {STEP}
    odometry = seconds(bridge.received["odom"])
    assert np.isin(stamps[:-1], odometry).all(), "joint_states and odom of a state carry the same stamp"
    clock = {nanoseconds(message.clock) for message in bridge.received["/clock"]}
    assert clock.issuperset(stamps[:-1].tolist())


def test_what_a_command_changed_because_of_is_in_its_trace(bridge):
    command = answer(bridge, "tester", "waist")
    assert offer(bridge, command).because == ""
    command = answer(bridge, "tester", "waist")
    command.because, command.because_sequence = "left_palm_0", 2**40
    trace = offer(bridge, command)
    assert (trace.refused, trace.because, trace.because_sequence) == ("", "left_palm_0", 2**40)


def test_the_clock_only_goes_forward_also_over_resets(bridge):
    begin = len(bridge.received["/clock"]) - 1
    for seed in range(3):
        assert bridge.reset(distribution="D1", seed=seed).success
        bridge.run_for(0.1)
    stamps = np.array([nanoseconds(message.clock) for message in bridge.received["/clock"][begin:]])
    assert (np.diff(stamps) > 0).all()
    assert (np.diff(stamps) >= RESET_GAP_NS).sum() == 3


def test_the_same_seed_gives_the_same_state_and_another_another(bridge):
    first, again = bridge.reset(distribution="D1", seed=5), bridge.reset(distribution="D1", seed=5)
    other = bridge.reset(distribution="D1", seed=6)
    assert first.state == again.state
    assert first.state != other.state


def test_a_full_state_comes_back_to_the_last_bit(bridge):
    drawn = bridge.reset(distribution="D1", seed=9)
    box = bridge.next("objects", lambda m: True)
    bridge.reset()
    back = bridge.reset(
        state=list(drawn.state),
        object_name=list(box.name),
        object_pose=list(box.pose),
        material_name=["box.mass"],
        material_value=[0.7],
    )
    assert back.success, back.message
    assert back.state == drawn.state
    table = bridge.object("table")
    index = list(box.name).index("table")
    assert table.translation[0] == box.pose[index].position.x


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"task": "juggling"}, "this scene is task 'box_lift', got 'juggling'"),
        ({"distribution": "D7"}, "unknown distribution of box_lift 'D7'"),
        ({"state": [1.0, 2.0], "material_name": ["box.mass"], "material_value": [0.7]}, "another scene?"),
        ({"state": [1.0]}, "materials missing: box.mass"),
        ({"state": [1.0], "material_name": ["box.mass"]}, "1 names of materials, 0 values"),
        (
            {"state": [1.0], "material_name": ["box.mass"], "material_value": [0.7], "model_hash": "0123"},
            "recorded with model 0123",
        ),
    ],
)
def test_a_reset_that_cannot_be_is_refused_with_what_was_got(bridge, fields, words):
    response = bridge.reset(**fields)
    assert not response.success
    assert words in response.message


def test_paused_time_stands_still_and_single_steps_pass(bridge):
    assert not bridge.step(4).success, "steps of a running simulation are refused"
    assert bridge.pause(True).success
    still = nanoseconds(bridge.latest("joint_states").header.stamp)
    assert bridge.step(4).success
    moved = bridge.until(
        lambda: (stamp := nanoseconds(bridge.received["joint_states"][-1].header.stamp)) > still + 3 * STEP and stamp,
        "four more states",
    )
    assert moved == still + 4 * STEP
    assert not bridge.step(0).success


def test_the_robot_hangs_until_its_legs_are_commanded(bridge):
    height = bridge.base().translation[2]
    bridge.run_for(1.0)
    assert bridge.base().translation[2] == height
    bridge.commands.publish(answer(bridge, "legs", "left_leg", "right_leg"))
    bridge.next("odom", lambda m: m.pose.pose.position.z != height)


def test_a_second_owner_is_refused_by_name(bridge):
    assert offer(bridge, answer(bridge, "first", "left_arm", q=0.1)).refused == ""
    trace = offer(bridge, answer(bridge, "second", "left_arm", "right_arm", q=0.3))
    assert trace.refused == "command from 'second' refused: left_arm owned by 'first'"
    assert len(trace.applied) == 0
    status = bridge.until(
        lambda: (s := bridge.diagnostics.get("sim_bridge")) and "second" in s[2].get("last refused commands", "") and s,
        "the refusal on diagnostics",
    )
    assert int(status[2]["refused commands"]) >= 1


def test_a_trace_tells_what_was_asked_what_was_applied_and_how_old_the_state_was(bridge):
    command = answer(bridge, "tester", "left_hand", q=9.0)
    trace = offer(bridge, command)
    assert list(trace.name) == list(command.name)
    np.testing.assert_array_equal(trace.requested, 9.0)
    np.testing.assert_array_equal(trace.applied, JOINTS.upper[JOINTS.group("left_hand")])
    assert set(trace.limited) == set(command.name)
    assert trace.sequence == 0
    assert offer(bridge, answer(bridge, "tester", "left_hand")).sequence == 1
    assert list(trace.observation) == ["joint_states", "odom", "imu/data"]
    age = (nanoseconds(trace.header.stamp) - nanoseconds(command.header.stamp)) * 1e-9
    np.testing.assert_allclose(trace.observation_age, age, atol=1e-12)
    assert age >= 0.0


@pytest.mark.parametrize("key", ["q", "v", "tau", "kp", "kd"])
def test_what_is_not_finite_is_refused(bridge, key):
    command = answer(bridge, "tester", "waist")
    getattr(command, key)[1] = float("nan")
    assert f"{key} is not finite for waist_roll_joint" in offer(bridge, command).refused


def test_malformed_commands_are_refused(bridge):
    good = answer(bridge, "tester", "waist")
    unknown = JointCommand(header=good.header, source="tester", name=["tail", "fin"], q=[0.0, 0.0])
    assert "not in the robot's table: tail, fin" in offer(bridge, unknown).refused
    short = JointCommand(header=good.header, source="tester", name=list(good.name), q=[0.0])
    assert "1 numbers in q for 3 names" in offer(bridge, short).refused
    twice = JointCommand(header=good.header, source="tester", name=["waist_yaw_joint"] * 2, q=[0.0, 0.0])
    assert "given twice: waist_yaw_joint" in offer(bridge, twice).refused
    nobody = JointCommand(header=good.header, name=["waist_yaw_joint"], q=[0.0])
    assert "names no source" in offer(bridge, nobody).refused
    stale = JointCommand(header=header(1), source="tester", name=["waist_yaw_joint"], q=[0.0])
    assert "before the reset" in offer(bridge, stale).refused


def test_a_silent_owner_is_held_then_damped(bridge):
    """The arm stays where it was told to be for a second, then sinks; the other arm, never commanded, holds."""
    bridge.commands.publish(answer(bridge, "legs", "left_leg", "right_leg"))
    offer(bridge, answer(bridge, "arms", "left_arm"))

    def group(name: str) -> str:
        return bridge.diagnostics["sim_bridge"][2][f"group {name}"]

    bridge.until(lambda: group("left_arm").startswith("damped"), "the silent owner's group to be damped")
    assert group("right_arm") == "free"
    taken = offer(bridge, answer(bridge, "heir", "left_arm"))
    assert taken.refused == ""


def test_after_an_emergency_stop_everything_is_damped_until_a_reset(bridge):
    bridge.commands.publish(answer(bridge, "legs", "left_leg", "right_leg"))
    assert bridge.estop().success
    assert "emergency stop; reset first" in offer(bridge, answer(bridge, "legs", "left_leg")).refused
    bridge.next("odom", lambda m: m.pose.pose.position.z < 0.5)
    assert bridge.reset().success
    assert offer(bridge, answer(bridge, "legs", "left_leg")).refused == ""


def test_contacts_name_bodies_and_carry_the_weight(bridge):
    # Until somebody holds the robot nothing moves; the box starts a millimetre above the table.
    bridge.commands.publish(answer(bridge, "legs", "left_leg", "right_leg"))
    bridge.run_for(0.3)
    message = bridge.next("contacts", lambda m: any({c.body1, c.body2} == {"box", "table"} for c in m.contacts))
    weight = sum(c.normal_force for c in message.contacts if {c.body1, c.body2} == {"box", "table"})
    assert weight == pytest.approx(0.75 * 9.81, rel=0.3)
    assert message.header.frame_id == "odom"


def test_a_viewer_gets_the_scene_as_markers(bridge):
    shown = bridge.listen(MarkerArray, "markers", COMMAND)
    message = bridge.until(lambda: shown and shown[-1], "markers")
    assert message.markers[0].action == Marker.DELETEALL
    assert {m.header.frame_id for m in message.markers} == {"odom"}
    assert any(m.type == Marker.CUBE and m.scale.z == pytest.approx(0.168) for m in message.markers), "the box"


def test_a_subscriber_that_can_never_match_is_reported_by_topic_and_policy(start, bridge):
    """A best-effort publisher never matches a reliable subscriber; without the report nothing would be seen at all."""
    reliable = QoSProfile(depth=5, reliability=ReliabilityPolicy.RELIABLE)
    subscription = bridge.on_executor(
        lambda: bridge.node.create_subscription(JointState, "joint_states", lambda _: None, reliable)
    )
    try:
        said = "/joint_states: a subscription asks for another quality of service (reliability)"
        bridge.until(lambda: said in start.nodes[0].output(), "the report")
    finally:
        bridge.on_executor(lambda: bridge.node.destroy_subscription(subscription))
