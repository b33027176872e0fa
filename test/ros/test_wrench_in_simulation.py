# SPDX-License-Identifier: Apache-2.0
"""The whole way: a simulated robot that stands by its own controllers, and the node that tells what its feet bear."""

from __future__ import annotations

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from node_graph import Graph
from rclpy.qos import QoSProfile, ReliabilityPolicy

from supple.nodes.conversion import nanoseconds
from supple.robots import g1

FRAMES = g1().wrench_frames
_DEEP = QoSProfile(depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT)


@pytest.fixture(scope="module")
def standing(start, graph: Graph) -> Graph:
    start("sim_bridge", camera=False, markers=False)
    start("locomotion_executor")
    start("manipulation_executor")
    start("wrench_observer")
    graph.until(lambda: len(graph.owners()) == 7, "an owner of every joint group", 40.0)
    graph.run_for(2.0)
    return graph


def forces(messages: list[WrenchStamped]) -> dict[int, np.ndarray]:
    rows = ((nanoseconds(message.header.stamp), message.wrench.force) for message in messages)
    return {stamp: np.array([force.x, force.y, force.z]) for stamp, force in rows}


def test_estimates_agree_with_the_truth_while_standing(standing):
    told = {name: standing.listen(WrenchStamped, f"wrench/{name}", _DEEP) for name in FRAMES}
    true = {name: standing.listen(WrenchStamped, f"true_wrench/{name}", _DEEP) for name in FRAMES}
    standing.until(lambda: all(len(rows) > 200 for rows in (*told.values(), *true.values())), "two seconds of wrenches")
    for name in FRAMES:
        estimate, truth = forces(told[name]), forces(true[name])
        both = sorted(estimate.keys() & truth.keys())
        assert len(both) > 100, name
        error = np.array([estimate[stamp] - truth[stamp] for stamp in both])
        assert np.sqrt(np.mean(np.sum(error**2, axis=1))) < 3.0, name
        assert np.linalg.norm(truth[both[-1]]) > 50.0 or name.endswith("wrist")
