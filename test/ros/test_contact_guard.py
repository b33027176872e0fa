# SPDX-License-Identifier: Apache-2.0
"""A hand that presses too hard stops its arm, and the log tells which reading changed which command."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from geometry_msgs.msg import Vector3, Wrench, WrenchStamped
from node_graph import Graph, stamped
from supple_interfaces.action import Reach
from supple_interfaces.msg import ContactEvent, ContactState, JointCommand, TactileArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from supple.contact.readings import PadLayout, TactileReading
from supple.geometry import pose_from_xyyaw
from supple.nodes.conversion import header
from supple.nodes.qos import COMMAND, EVENT, SENSOR
from supple.nodes.touch_output import blank_array, fill_array

CODES = FollowJointTrajectory.Result
LIMIT = 20.0
AREA, TAXELS = 1e-4, 4
FAKE = PadLayout(
    "fake",
    "left_hand_palm_link",
    np.stack([np.linspace(0.0, 0.03, TAXELS), np.zeros(TAXELS), np.zeros(TAXELS)], axis=1),
    np.tile([0.0, 0.0, 1.0], (TAXELS, 1)),
    np.full(TAXELS, AREA),
)


@pytest.fixture(scope="module")
def simulation(start, graph) -> Graph:
    start("sim_bridge", camera=False, tactile=False, real_time_factor=0.0, answer_timeout=0.5)
    start("locomotion_executor")
    start("manipulation_executor", contact_guard=LIMIT)
    graph.until(lambda: len(graph.owners()) == 7, "an owner of every joint group", 40.0)
    return graph


@pytest.fixture(scope="module")
def senders(simulation) -> tuple[Callable[[ContactEvent], None], Callable[[ContactState], None]]:
    """Publishers of events and of one pad's state, that somebody hears."""
    publishers = (
        simulation.publisher(ContactEvent, "contact_events", EVENT),
        simulation.publisher(ContactState, "contact/left_index_1", SENSOR),
    )
    for publisher in publishers:
        simulation.until(publisher.get_subscription_count, "the guard to listen")
    return tuple(publisher.publish for publisher in publishers)


@pytest.fixture
def stack(simulation) -> Graph:
    assert simulation.reset(distribution="D0", seed=1).success
    simulation.run_for(0.2)
    return simulation


@pytest.fixture
def commands(stack) -> list[JointCommand]:
    return stack.listen(JointCommand, "joint_commands", COMMAND)


def event(frame: str, sequence: int, **fields) -> ContactEvent:
    fields = {"sensor": "skin", "kind": ContactEvent.OVERLOAD, "value": 80.0, "threshold": 60.0} | fields
    return ContactEvent(header=header(0, frame), sequence=sequence, **fields)


def state(force: float, sequence: int) -> ContactState:
    return ContactState(
        header=header(0, "left_hand_index_1_link"), sensor="left_index_1", sequence=sequence, normal_force=force
    )


def move_elbow(graph: Graph, side: str = "left", goal: float = 1.2):
    """Begin a motion of ten seconds and return its result's future once it moves."""
    name = f"{side}_elbow_joint"
    point = JointTrajectoryPoint(positions=[goal], time_from_start=Duration(sec=10))
    request = FollowJointTrajectory.Goal(trajectory=JointTrajectory(joint_names=[name], points=[point]))
    before = graph.joint(name)
    handle = graph.send_goal(FollowJointTrajectory, "follow_joint_trajectory", request)
    graph.until(lambda: abs(graph.joint(name) - before) > 0.03, "the elbow to move", 60.0)
    return handle.get_result_async()


def stopped(graph: Graph, future) -> CODES:
    return graph.result(future, "the motion to be stopped", 30.0).result


def test_an_overload_of_a_moving_hand_stops_the_arm_and_its_command_says_because(stack, senders, commands):
    send_event, _ = senders
    moving = move_elbow(stack)
    send_event(event("left_hand_palm_link", 41))
    result = stopped(stack, moving)
    assert result.error_code == CODES.PATH_TOLERANCE_VIOLATED
    assert result.error_string == ("stopped by the contact guard: skin felt 80.0 N at reading 41, limit 60.0 N")
    command = stack.until(lambda: next((m for m in list(commands) if m.because), None), "a command with a reason")
    assert (command.source, command.because, command.because_sequence) == ("manipulation", "skin", 41)
    trace = stack.until(
        lambda: next((m for m in list(stack.received["command_trace"]) if m.because), None), "its trace"
    )
    assert (trace.because, trace.because_sequence, trace.refused) == ("skin", 41, "")
    held = stack.joint("left_elbow_joint")
    stack.run_for(0.5)
    assert stack.joint("left_elbow_joint") == pytest.approx(held, abs=0.03)
    # The next motion answers to nothing.
    move_elbow(stack)
    assert list(commands)[-1].because == ""


@pytest.mark.parametrize(
    "harmless",
    [
        event("right_hand_palm_link", 1),
        event("l_sole", 2),
        event("left_hand_palm_link", 3, kind=ContactEvent.MADE),
        event("left_hand_palm_link", 4, command_source="somebody"),
        event("nowhere", 5),
    ],
    ids=["other hand", "foot", "no overload", "told before", "unknown place"],
)
def test_what_does_not_concern_the_moving_arm_does_not_stop_it(stack, senders, harmless):
    send_event, _ = senders
    moving = move_elbow(stack)
    send_event(harmless)
    stack.run_for(0.3)
    before = stack.joint("left_elbow_joint")
    stack.run_for(0.5)
    assert not moving.done()
    assert abs(stack.joint("left_elbow_joint") - before) > 0.01


def test_a_force_above_the_limit_stops_it_once_so_that_it_can_be_moved_away(stack, senders):
    _, send_state = senders
    moving = move_elbow(stack)
    send_state(state(LIMIT - 1.0, 6))
    send_state(state(LIMIT + 5.0, 7))
    result = stopped(stack, moving)
    assert "left_index_1 felt 25.0 N at reading 7, limit 20.0 N" in result.error_string
    away = move_elbow(stack, goal=-0.5)
    send_state(state(LIMIT + 6.0, 8))
    stack.run_for(0.3)
    assert not away.done()
    send_state(state(1.0, 9))
    send_state(state(LIMIT + 6.0, 10))
    assert "at reading 10" in stopped(stack, away).error_string
    send_state(state(0.0, 11))


def test_a_reach_is_stopped_as_well(stack, senders):
    send_event, _ = senders
    target = pose_from_xyyaw(0.35, 0.2, 0.0, 0.3)
    request = Reach.Goal(
        effector=["left_hand"], target=[stamped(target, "base_link")], duration=8.0, position_tolerance=0.1,
        orientation_tolerance=3.0,
    )  # fmt: skip
    handle = stack.send_goal(Reach, "reach", request)
    before = stack.joint("left_elbow_joint")
    stack.until(lambda: abs(stack.joint("left_elbow_joint") - before) > 0.03, "the arm to move", 60.0)
    send_event(event("l_wrist", 12))
    result = stack.result(handle.get_result_async(), "the reach to be stopped", 30.0).result
    assert result.error_code == Reach.Result.CONTACT
    assert "skin felt 80.0 N at reading 12" in result.error_string


@pytest.fixture(scope="module")
def logger(start, simulation, tmp_path_factory) -> Callable[[str, str], list[ContactEvent]]:
    """Start the logger; return how to get the events of a sensor."""
    heard = simulation.listen(ContactEvent, "contact_events", EVENT)
    output = tmp_path_factory.mktemp("log") / "touch"
    start("contact_logger", output=output, overload=60.0, cameras="['']", settle=0.2, points=False)
    return lambda sensor, kind: [m for m in list(heard) if (m.sensor, m.kind) == (sensor, kind)]


def reaction(graph: Graph, logger: Callable[[str, str], list[ContactEvent]], sensor: str, moving) -> ContactEvent:
    """Return an overload's event with the command that it changed, after comparing both with each other."""
    assert f"stopped by the contact guard: {sensor} felt" in stopped(graph, moving).error_string
    joined = graph.until(
        lambda: next((m for m in logger(sensor, ContactEvent.OVERLOAD) if m.command_source), None),
        "the event with its command",
    )
    assert joined.command_source == "manipulation"
    traces = [m for m in list(graph.received["command_trace"]) if (m.source, m.because) == ("manipulation", sensor)]
    first = min(traces, key=lambda m: m.sequence)
    assert (first.because_sequence, first.sequence) == (joined.sequence, joined.command_sequence)
    return joined


def test_the_log_finds_the_command_of_an_event_and_the_event_of_a_command(stack, logger):
    """The whole way: a reading of a sensor, the logger's event, the executor's command, its trace, the event again."""
    publisher = stack.publisher(TactileArray, f"tactile/{FAKE.name}", SENSOR)
    message, sequence = blank_array(FAKE), 0

    def press(force: float, kind: str) -> bool:
        nonlocal sequence
        pressure = np.full(TAXELS, force / (TAXELS * AREA))
        reading = TactileReading(time.time_ns(), sequence, 0, pressure, np.zeros(TAXELS, dtype=np.uint8))
        publisher.publish(fill_array(message, reading))
        sequence += 1
        time.sleep(0.01)
        return bool(logger(FAKE.name, kind))

    stack.until(lambda: press(5.0, ContactEvent.MADE), "the logger to feel a touch", 60.0)
    moving = move_elbow(stack)
    stack.until(lambda: press(80.0, ContactEvent.OVERLOAD), "an overload", 30.0)
    assert reaction(stack, logger, FAKE.name, moving).sequence == logger(FAKE.name, ContactEvent.OVERLOAD)[0].sequence


def test_an_overloaded_wrist_names_its_reading_though_a_wrench_has_no_number(stack, logger):
    publisher = stack.publisher(WrenchStamped, "wrench/fake", SENSOR)
    stack.until(publisher.get_subscription_count, "the logger to listen", 60.0)
    sent = []

    def push(force: float) -> bool:
        sent.append(WrenchStamped(header=header(time.time_ns(), "l_wrist"), wrench=Wrench(force=Vector3(x=force))))
        publisher.publish(sent[-1])
        time.sleep(0.01)
        return bool(logger("wrench/fake", ContactEvent.OVERLOAD))

    for _ in range(5):
        push(1.0)
    moving = move_elbow(stack)
    stack.until(lambda: push(80.0), "an overload", 30.0)
    event = reaction(stack, logger, "wrench/fake", moving)
    (shown,) = [i for i, message in enumerate(sent) if message.header.stamp == event.header.stamp]
    # None was lost on the way, or fewer were counted.
    assert 0 < event.sequence <= shown
    assert sent[shown].wrench.force.x == 80.0
