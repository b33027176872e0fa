# SPDX-License-Identifier: Apache-2.0
"""Every node ends cleanly on SIGINT and SIGTERM, and what it moved is damped before it goes."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
from node_graph import Graph, NodeProcess
from supple_interfaces.msg import JointCommand

from supple.nodes.qos import COMMAND
from supple.tasks import task_names

# A node that hangs is found out by this; how long one takes is measured elsewhere.
HANGING = 20.0
SOURCES = {"locomotion_executor": "locomotion", "manipulation_executor": "manipulation"}


def damps(command: JointCommand) -> bool:
    return bool(np.all(np.array(command.kp) == 0.0) and np.all(np.array(command.kd) > 0.0) and not np.any(command.tau))


def last_commands(graph: Graph, messages: list[JointCommand]) -> dict[str, JointCommand]:
    graph.until(
        lambda: all(any(m.source == source and damps(m) for m in messages) for source in SOURCES.values()),
        "a damping command of each executor",
    )
    return {source: [m for m in messages if m.source == source][-1] for source in SOURCES.values()}


@pytest.mark.parametrize("numbers", [(signal.SIGINT,), (signal.SIGTERM,), (signal.SIGINT, signal.SIGINT)])
def test_nodes_end_with_code_0_and_actuators_damped(start, graph, numbers):
    commands = graph.listen(JointCommand, "joint_commands", COMMAND)
    nodes: dict[str, NodeProcess] = {
        name: start(name, **({"camera": False} if name == "sim_bridge" else {}))
        for name in ("sim_bridge", "robot_state", "locomotion_executor", "manipulation_executor", "episode_player")
    }
    graph.diagnostics.clear()
    graph.until(lambda: set(nodes) <= set(graph.diagnostics), "diagnostics of every node", 40.0)
    graph.until(lambda: len(graph.owners()) == 7, "an owner of every joint group", 40.0)
    for number in numbers:
        for name in ("locomotion_executor", "manipulation_executor"):
            nodes[name].send(number)
    for name in ("locomotion_executor", "manipulation_executor"):
        assert nodes[name].wait(HANGING) == 0, nodes[name].output()
    for source, command in last_commands(graph, commands).items():
        assert damps(command), f"the last command of {source} does not damp"
    for name in ("sim_bridge", "robot_state", "episode_player"):
        for number in numbers:
            nodes[name].send(number)
    for name, node in nodes.items():
        assert node.wait(HANGING) == 0, node.output()
        assert "Traceback" not in node.output(), f"{name}: {node.output()}"


def test_a_node_that_cannot_start_says_why_in_one_line(start):
    node = start("sim_bridge", task="juggling", camera=False)
    assert node.wait(HANGING) == 1
    assert f"UnknownNameError: unknown task 'juggling' (available: {', '.join(task_names())})" in node.output()
    assert "Traceback" not in node.output()


def alive(process: int) -> bool:
    """Tell whether a process runs; one that has ended but was not collected does not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def test_the_process_of_the_camera_ends_with_a_killed_bridge(start, graph):
    graph.diagnostics.clear()
    node = start("sim_bridge")
    graph.until(lambda: "sim_bridge" in graph.diagnostics, "diagnostics of the bridge", 40.0)
    tasks = Path(f"/proc/{node.process.pid}/task").glob("*/children")
    children = [int(child) for task in tasks for child in task.read_text().split()]
    assert any(b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes() for child in children)
    node.send(signal.SIGKILL)
    graph.until(lambda: not any(alive(child) for child in children), "the end of the camera's process", HANGING)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"real_time_factor": -1}, "parameter real_time_factor of sim_bridge: got -1.0, expected a number of at least"),
        ({"seed": "abc"}, "parameter seed of sim_bridge: got 'abc', expected a whole number of at least 0"),
        ({"distribution": "D9"}, "'D9'"),
    ],
)
def test_a_parameter_that_cannot_be_used_is_named_in_one_line(start, parameters, message):
    node = start("sim_bridge", camera=False, **{"real_time_factor": 2, **parameters})
    assert node.wait(HANGING) == 1
    errors = [line for line in node.output().splitlines() if "[ERROR]" in line]
    assert len(errors) == 1
    assert message in errors[0]
    assert node.output().count(message) == 1
    assert "Traceback" not in node.output()
