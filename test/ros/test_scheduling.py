# SPDX-License-Identifier: Apache-2.0
"""Control loops take real-time priority where the system permits it, and say what they got."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from supple.nodes.scheduling import take_priority


def permitted(priority: int) -> bool:
    limit = resource.getrlimit(resource.RLIMIT_RTPRIO)[0]
    return os.geteuid() == 0 or limit == resource.RLIM_INFINITY or limit >= priority


def scheduling(graph, name: str) -> str:
    return graph.until(lambda: graph.diagnostics.get(name, ("", "", {}))[2].get("scheduling"), f"diagnostics of {name}")


def test_every_thread_of_a_control_node_is_scheduled_in_real_time(start, graph):
    node = start("locomotion_executor", realtime_priority=3)
    said = scheduling(graph, "locomotion_executor")
    policies = {os.sched_getscheduler(int(t.name)) for t in Path(f"/proc/{node.process.pid}/task").iterdir()}
    if permitted(3):
        assert said == "real time, priority 3"
        assert policies == {os.SCHED_RR}
    else:
        assert "not permitted" in said
        assert policies == {os.SCHED_OTHER}


def test_a_simulation_as_fast_as_possible_leaves_room_for_others(start, graph):
    node = start("sim_bridge", camera=False, real_time_factor=0.0, realtime_priority=3)
    assert scheduling(graph, "sim_bridge") == "normal"
    assert os.sched_getscheduler(node.process.pid) == os.SCHED_OTHER


@pytest.mark.parametrize(("priority", "words"), [(0, "normal"), (120, "does not exist, the highest is 99")])
def test_no_priority_and_an_impossible_one_change_nothing(priority, words):
    assert words in take_priority(priority)
    assert os.sched_getscheduler(0) == os.SCHED_OTHER
