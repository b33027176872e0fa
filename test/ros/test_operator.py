# SPDX-License-Identifier: Apache-2.0
"""An operator without a ros2 command: services and walks by ``supple call``, and what it says if nobody is there."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from node_graph import DISCOVERY

from supple.geometry import xyyaw_of
from supple.nodes.conversion import nanoseconds
from supple.nodes.operator import NobodyThereError, Operator, RefusedError

SUPPLE = (sys.executable, "-c", "from supple.cli.main import app; app()", "call")


@pytest.fixture(scope="module")
def legs(start, graph):
    start("sim_bridge", camera=False, real_time_factor=0.0)
    start("locomotion_executor")
    graph.until(lambda: "left_leg" in graph.owners(), "an owner of the legs", 40.0)
    return graph


@pytest.fixture
def operator() -> Iterator[Operator]:
    with Operator(timeout=DISCOVERY) as operator:
        yield operator


def call(*words: str) -> tuple[int, str]:
    done = subprocess.run([*SUPPLE, *words], capture_output=True, text=True, check=False, timeout=120.0)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr.strip()


def stamp_of(graph) -> int:
    return nanoseconds(graph.latest("joint_states").header.stamp)


def test_time_is_paused_stepped_and_put_back(legs, operator):
    with pytest.raises(RefusedError, match="the simulation is running; pause it"):
        operator.step(4)
    operator.pause(True)
    legs.until(lambda: legs.diagnostics["sim_bridge"][2]["physics"] == "paused", "the pause")
    still = stamp_of(legs)
    operator.step(8)
    legs.until(lambda: stamp_of(legs) >= still + 8 * 5_000_000, "eight steps")
    assert stamp_of(legs) == still + 8 * 5_000_000
    operator.pause(False)
    with pytest.raises(RefusedError, match="unknown distribution of box_lift 'D7'"):
        operator.reset(distribution="D7")
    operator.reset("box_lift", "D1", 3)
    legs.until(lambda: stamp_of(legs) > still + 1_000_000_000, "the jump of a reset")


def test_an_armed_stop_stops_at_enter_until_a_reset(legs):
    armed = subprocess.Popen([*SUPPLE, "estop", "--armed"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "armed" in armed.stderr.readline()
    start = len(legs.received["command_trace"])
    _, said = armed.communicate("\n", timeout=DISCOVERY)
    assert (armed.returncode, said.strip()) == (0, "everything is damped until the next reset")
    legs.until(
        lambda: any("emergency stop" in trace.refused for trace in legs.received["command_trace"][start:]),
        "a refused command",
    )
    assert call("reset", "--distribution", "D0") == (0, "reset")
    legs.next("command_trace", lambda trace: not trace.refused)


def test_a_walk_is_followed_and_an_interrupt_cancels_it(legs):
    legs.reset(distribution="D0", seed=1)
    x, y, _ = xyyaw_of(legs.base())
    code, said = call("walk-to", f"{x - 0.2:.3f}", f"{y + 0.1:.3f}", "0.1")
    assert code == 0, said
    assert re.search(r"s: 0\.\d\d m and -?0\.\d\d rad to go", said)
    assert "arrived: " in said
    walk = subprocess.Popen([*SUPPLE, "walk-to", "-2", "-1", "0"], stderr=subprocess.PIPE, text=True)
    assert "to go" in walk.stderr.readline()
    walk.send_signal(signal.SIGINT)
    _, said = walk.communicate(timeout=DISCOVERY)
    assert walk.returncode == 130
    assert "interrupted" in said
    legs.next("odom", lambda m: abs(m.twist.twist.linear.x) + abs(m.twist.twist.angular.z) < 0.02, 60.0)


def test_a_walk_that_cannot_be_is_refused_with_the_servers_reason(legs):
    code, said = call("walk-to", "0", "0", "0", "--frame", "moon")
    assert code == 1
    assert said.startswith("error: walk_to: target: unknown frame 'moon' (available: odom,")


def test_who_is_not_there_is_named_with_what_is_visible(legs):
    # Discovery can take some seconds; asked for less, it would truly see nobody.
    code, said = call("record", "start", "--timeout", "8")
    assert code == 3
    assert said.startswith("error: no service /teleop_recorder/start within 8 s; visible nodes: ")
    assert "/sim_bridge" in said
    with Operator("elsewhere", timeout=8.0) as stranger:
        with pytest.raises(
            NobodyThereError, match=r"no service /elsewhere/sim_bridge/estop .* /sim_bridge/estop \(see"
        ):
            stranger.stop()
        with pytest.raises(NobodyThereError, match=r"no action /elsewhere/walk_to .* visible: /walk_to \(see"):
            stranger.walk_to(0.0, 0.0, 0.0)


def test_a_label_belongs_to_a_mark_alone():
    assert call("record", "start", "here")[0] == 2
