# SPDX-License-Identifier: Apache-2.0
"""Play a bag over DDS as it was recorded: same bytes, same pace, the quality of service that the bag asks for."""

from __future__ import annotations

import importlib
import time
from pathlib import Path

from node_graph import Graph
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosbags.interfaces import ConnectionExtRosbag2, QosDurability, QosReliability
from rosbags.rosbag2 import Reader

__all__ = ["play_bag"]


def play_bag(graph: Graph, path: Path, listened: str, rate: float = 1.0) -> None:
    """Play a bag once somebody listens.

    Args:
        graph: The client that publishes.
        path: The bag.
        listened: A topic of it on which a subscription is waited for.
        rate: Speed.
    """
    with Reader(path) as reader:
        publishers = {}
        for connection in reader.connections:
            package, _, name = connection.msgtype.split("/")
            kind = getattr(importlib.import_module(f"{package}.msg"), name)
            assert isinstance(connection.ext, ConnectionExtRosbag2)
            offered = connection.ext.offered_qos_profiles[0]
            reliable = offered.reliability == QosReliability.RELIABLE
            latched = offered.durability == QosDurability.TRANSIENT_LOCAL
            profile = QoSProfile(
                depth=max(offered.depth, 10),
                reliability=ReliabilityPolicy.RELIABLE if reliable else ReliabilityPolicy.BEST_EFFORT,
                durability=DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE,
            )
            publishers[connection.topic] = graph.publisher(kind, connection.topic, profile)
        graph.until(publishers[listened].get_subscription_count, f"a subscription of {listened}")
        rows = [(stamp, connection.topic, data) for connection, stamp, data in reader.messages()]
    first, began = rows[0][0], time.monotonic()
    for stamp, topic, data in rows:
        wait = (stamp - first) * 1e-9 / rate - (time.monotonic() - began)
        if wait > 0.0:
            time.sleep(wait)
        publishers[topic].publish(bytes(data))
