# SPDX-License-Identifier: Apache-2.0
"""Whole tasks on request: the node plans while it holds the robot, walks, lifts; is stopped, refused and judged."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from nav_msgs.msg import Odometry
from node_graph import DISCOVERY, Graph, seconds
from supple_interfaces.action import ExecuteTask
from supple_interfaces.msg import JointCommand

from supple.nodes.conversion import joint_command, nanoseconds
from supple.nodes.qos import COMMAND
from supple.robots import RobotCommand, g1

RESULT = ExecuteTask.Result
SEEDS = Path(__file__).parents[2] / "seeds"
SUPPLE = (sys.executable, "-c", "from supple.cli.main import app; app()")
LIFT = ExecuteTask.Goal(task="box_lift")


@pytest.fixture(scope="module")
def simulation(start, graph) -> Graph:
    """In a fixture of its own, so that a second try does not start another."""
    # Faster than real time, physics must not run away from a node that a busy machine keeps from answering.
    start("sim_bridge", camera=False, tactile=False, real_time_factor=0.0, answer_timeout=0.5)
    start("task_executor", seeds=SEEDS)
    graph.until(lambda: len(graph.owners()) == 7, "an owner of every joint group", 40.0)
    return graph


@pytest.fixture
def doer(simulation) -> Graph:
    assert simulation.reset(distribution="D0", seed=1).success
    simulation.next("command_trace", lambda trace: trace.source == "task_executor" and not trace.refused)
    return simulation


class Doing:
    """A goal that is being pursued."""

    def __init__(self, graph: Graph, goal: ExecuteTask.Goal = LIFT) -> None:
        self._graph = graph
        self.told: list[ExecuteTask.Feedback] = []
        self.handle = graph.send_goal(ExecuteTask, "execute_task", goal, self.told.append)
        self._result = self.handle.get_result_async()

    def reach(self, stage: str) -> None:
        self._graph.until(
            lambda: self._result.done() or any(f.stage == stage for f in self.told), f"the stage {stage}", 60.0
        )
        assert not self._result.done(), self._result.result().result

    def result(self) -> RESULT:
        return self._graph.result(self._result, "the result", 150.0).result


def execute(graph: Graph, **fields) -> RESULT:
    return Doing(graph, ExecuteTask.Goal(**fields)).result()


def stands(graph: Graph) -> None:
    """Wait until the robot has come to rest, upright and still held by the node."""

    def slow(message: Odometry) -> bool:
        twist = message.twist.twist
        return np.hypot(twist.linear.x, twist.linear.y) < 0.05 and abs(twist.angular.z) < 0.1

    # Half a second of it: a walking body is slow twice in every step.
    start, odometry = len(graph.received["odom"]), graph.received["odom"]
    graph.until(lambda: len(odometry) > start + 100 and all(map(slow, odometry[-100:])), "the robot at rest", 60.0)
    assert graph.base().rotation[2, 2] > 0.95
    graph.until(lambda: set(graph.owners().values()) == {"task_executor"}, "the node to own every joint")


def test_it_walks_and_lifts_the_box_and_is_never_silent_meanwhile(doer):
    before = doer.object("box").translation[2]
    commands = doer.listen(JointCommand, "joint_commands", COMMAND)
    lifting = Doing(doer)
    result = lifting.result()
    assert (result.error_string, result.error_code, result.origin) == ("", RESULT.SUCCESS, "")
    assert result.success
    assert doer.object("box").translation[2] > before + 0.1
    touching = [{c.body1, c.body2} for c in doer.latest("contacts").contacts]
    assert {"box", "table"} not in touching
    stages = list(dict.fromkeys(f.stage for f in lifting.told))
    # Short ones may pass between two looks.
    assert [s for s in stages if s in ("walk", "approach", "skill:lift", "hold")] == [
        "walk", "approach", "skill:lift", "hold"
    ]  # fmt: skip
    assert {(f.group, f.groups, tuple(f.skills)) for f in lifting.told} == {(0, 1, ("lift",))}
    assert np.all(np.diff([f.elapsed for f in lifting.told]) >= 0.0)
    assert result.elapsed >= lifting.told[-1].elapsed > 10.0
    # While it planned, too, the robot was commanded: nothing had to be held for a source that fell silent (0.1 s).
    stamps = seconds([m for m in list(commands) if m.source == "task_executor"])
    assert stamps.size > 500
    assert np.median(np.diff(stamps)) == 20_000_000
    assert np.diff(stamps).max() <= 100_000_000


def test_cancelled_on_the_way_it_stands_and_holds(doer):
    walk = Doing(doer)
    walk.reach("walk")
    doer.run_for(2.0)
    doer.result(walk.handle.cancel_goal_async(), "the cancellation")
    result = walk.result()
    assert (result.error_code, result.error_string, result.success) == (RESULT.PREEMPTED, "cancelled", False)
    assert result.stage == "walk"
    stands(doer)
    place = doer.base().translation[:2].copy()
    doer.run_for(1.0)
    assert np.linalg.norm(doer.base().translation[:2] - place) < 0.05


def test_a_newer_goal_replaces_and_a_reset_ends_it(doer):
    first = Doing(doer)
    first.reach("walk")
    second = Doing(doer)
    replaced = first.result()
    assert (replaced.error_code, replaced.error_string) == (RESULT.PREEMPTED, "replaced by a newer goal")
    second.reach("walk")
    assert doer.reset(distribution="D0", seed=1).success
    ended = second.result()
    assert (ended.error_code, ended.error_string) == (RESULT.PREEMPTED, "the simulation was reset")


def test_it_ends_when_states_stop_and_goes_on_holding_when_they_come_back(doer):
    walk = Doing(doer)
    walk.reach("walk")
    doer.pause(True)
    try:
        result = walk.result()
    finally:
        doer.pause(False)
    assert result.error_code == RESULT.STALE_STATE
    assert "no complete state (joint_states, odom, imu/data)" in result.error_string
    stands(doer)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"task": "box_lit"}, "unknown task 'box_lit'; did you mean 'box_lift'?"),
        ({"task": "box_lift", "seed_file": str(SEEDS / "push_button.hdf5")}, "this seed shows 'push_button', expected"),
        ({"task": "box_lift", "seed_file": "/nowhere/at/all"}, "/nowhere/at/all"),
        ({"task": "box_lift", "settings": '{"placments": 3}'}, "settings: placments: unknown field; did you mean"),
        ({"task": "box_lift", "settings": "[1"}, "settings: Invalid JSON"),
        ({"task": "box_lift", "settings": '{"strategy": "mimicgen"}'}, "only 'supple' is executed"),
        ({"task": "push_button"}, "/objects tells nothing of button, cabinet within 1 s (seen: box, table)"),
    ],
)
def test_a_goal_that_cannot_be_is_refused_and_nothing_moves(doer, fields, words):
    result = execute(doer, **fields)
    assert result.error_code == RESULT.INVALID_GOAL
    assert words in result.error_string
    assert not result.success
    stands(doer)


def test_an_emergency_stop_ends_it_and_a_fallen_robot_is_not_commanded(doer):
    walk = Doing(doer)
    walk.reach("walk")
    doer.estop()
    result = walk.result()
    assert result.error_code == RESULT.FAILED
    assert "refused: emergency stop; reset first" in result.error_string
    doer.until(lambda: doer.diagnostics["task_executor"][1] == "fallen", "the fall to be noticed", 60.0)
    refused = execute(doer, task="box_lift")
    assert (refused.error_code, refused.error_string) == (RESULT.INVALID_GOAL, "the robot has fallen; reset first")
    assert doer.reset(distribution="D0", seed=1).success
    doer.until(lambda: doer.diagnostics["task_executor"][1] == "running", "the node to be well again")
    stands(doer)


def test_it_begins_nothing_while_it_is_not_active_or_another_source_has_the_joints(doer):
    def transition(number: int) -> None:
        request = ChangeState.Request()
        request.transition.id = number
        assert doer.call(ChangeState, "task_executor/change_state", request).success

    joints = g1().joints

    def command() -> JointCommand:
        blank = RobotCommand.blank(joints, "somebody", nanoseconds(doer.latest("joint_states").header.stamp))
        blank.active[joints.group("left_arm")] = True
        return joint_command(joints, blank)

    transition(Transition.TRANSITION_DEACTIVATE)
    # Nobody holds it any more: let it hang instead of fall.
    assert doer.reset(distribution="D0", seed=1).success
    inactive = execute(doer, task="box_lift")
    assert (inactive.error_code, inactive.error_string) == (RESULT.INVALID_GOAL, "the task executor is not active")
    timer = doer.on_executor(lambda: doer.node.create_timer(0.005, lambda: doer.commands.publish(command())))
    try:
        doer.next("command_trace", lambda m: m.source == "somebody" and not m.refused)
        transition(Transition.TRANSITION_ACTIVATE)
        doer.next("command_trace", lambda m: m.source == "task_executor" and m.refused)
        taken = execute(doer, task="box_lift")
    finally:
        doer.on_executor(lambda: doer.node.destroy_timer(timer))
    assert taken.error_code in (RESULT.INVALID_GOAL, RESULT.FAILED)
    assert "refused: left_arm owned by 'somebody'" in taken.error_string


# -- by the command line -----------------------------------------------------------------------------------------------


def test_supple_execute_shows_the_way_and_an_interrupt_cancels(doer):
    doing = subprocess.Popen([*SUPPLE, "execute", "box_lift"], stderr=subprocess.PIPE, text=True)
    for line in doing.stderr:
        if "s: group 1 of 1 (lift): walk" in line:
            break
    doing.send_signal(signal.SIGINT)
    _, said = doing.communicate(timeout=DISCOVERY)
    assert doing.returncode == 130, said
    assert "interrupted" in said
    stands(doer)


def test_supple_execute_ends_with_1_and_the_reason(doer):
    command = [*SUPPLE, "execute", "box_lift", "--settings", '{"walk_timeout": 0.5}', "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120.0)
    assert done.returncode == 1
    assert "failed (actuation during walk): the walk did not end within 0.5 s" in done.stderr
    result = json.loads(done.stdout)
    assert (result["error_code"], result["origin"], result["stage"]) == (RESULT.FAILED, "actuation", "walk")
    stands(doer)


def test_told_to_end_in_the_middle_of_a_walk_it_damps_and_ends(doer, start):
    """The last test here: the node is gone after it."""
    commands = doer.listen(JointCommand, "joint_commands", COMMAND)
    Doing(doer).reach("walk")
    node = start.nodes[-1]
    node.send(signal.SIGTERM)
    assert node.wait(DISCOVERY) == 0
    doer.until(
        lambda: any(m.source == "task_executor" and not np.any(m.kp) and np.all(m.kd) for m in list(commands)),
        "a damping command",
    )
