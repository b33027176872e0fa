# SPDX-License-Identifier: Apache-2.0
"""A node shows the same markers as a bag, and what a bag holds is what ROS itself reads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rclpy.serialization import deserialize_message
from rosbags.rosbag2 import Reader
from visualization_msgs.msg import MarkerArray

from supple.episodes import BagWriter
from supple.nodes.marker_message import marker_array
from supple.sim.forces import LinkWrenches
from supple.sim.markers import contact_markers, scene_markers, taxel_marker, wrench_marker
from supple.tasks import Environment, task_named

STAMP = 1_250_000_000


@pytest.fixture(scope="module")
def markers():
    environment = Environment(task_named("box_lift"))
    environment.reset(environment.task.nominal())
    world = environment.world
    world.step(60)
    pressure = np.linspace(0.0, 1e6, 216)
    pressure[7] = np.nan
    taxels = [taxel_marker(np.arange(648.0).reshape(216, 3), pressure, np.arange(216, dtype=np.uint8) % 3)]
    arrows = [wrench_marker(wrench, world.link_pose(name)) for name, wrench in LinkWrenches(world).read().items()]
    arrows = [arrow for arrow in arrows if arrow is not None]
    return [*scene_markers(world), *contact_markers(world.contacts()), *taxels, *arrows]


def test_node_and_bag_show_the_same(markers, tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as bag:
        bag.markers(STAMP, markers)
    with Reader(tmp_path / "bag") as reader:
        ((_, stamp, raw),) = reader.messages()
    found, sent = deserialize_message(raw, MarkerArray), marker_array(markers, STAMP)
    assert stamp == STAMP
    assert {m.ns for m in sent.markers} == {"", "world", "table", "box", "contacts", "forces", "taxels", "wrenches"}
    assert len(found.markers) == len(sent.markers)
    for mine, theirs in zip(sent.markers, found.markers, strict=True):
        # Only a deleting entry differs: its pose and size mean nothing.
        keys = ["header", "ns", "id", "type", "action", "pose", "scale", "color", "points", "colors"]
        for key in keys if mine.action == mine.ADD else ["header", "action"]:
            value, other = getattr(mine, key), getattr(theirs, key)
            if key in ("color", "colors"):
                colours = [colour if key == "colors" else [colour] for colour in (value, other)]
                value, other = ([getattr(c, k) for c in row for k in "rgba"] for row in colours)
                assert value == pytest.approx(other, abs=1e-6)
            else:
                assert value == other, key


def test_each_marker_has_its_own_name_and_the_old_ones_go_first(markers) -> None:
    message = marker_array(markers, STAMP)
    assert message.markers[0].action == message.markers[0].DELETEALL
    assert len({(m.ns, m.id) for m in message.markers[1:]}) == len(message.markers) - 1
