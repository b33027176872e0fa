# SPDX-License-Identifier: Apache-2.0
"""One message to another process and back, to see whether DDS works on this machine.

``python -m supple.nodes.dds_check echo TOPIC`` answers until its standard input closes;
``python -m supple.nodes.dds_check ping TOPIC`` asks and prints the round trip as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from collections.abc import Sequence

import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.qos import QoSProfile, ReliabilityPolicy
from supple_interfaces.msg import JointCommand

__all__ = ["main"]

_PERIOD = 0.05  # [s] between questions
_TIMEOUT = 15.0  # [s] discovery of a first peer takes up to 3 s


def main(args: Sequence[str] | None = None) -> int:
    """Answer or ask; return 0, or 1 when no answer came."""
    parser = argparse.ArgumentParser(description="DDS round trip between two processes")
    parser.add_argument("role", choices=("echo", "ping"))
    parser.add_argument("topic")
    options = parser.parse_args(args)
    with rclpy.init(args=[]):
        return _echo(options.topic) if options.role == "echo" else _ping(options.topic)


def _qos() -> QoSProfile:
    return QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)


def _echo(topic: str) -> int:
    node = rclpy.create_node(f"{topic}_echo")
    answers = node.create_publisher(JointCommand, f"{topic}/answer", _qos())
    node.create_subscription(JointCommand, f"{topic}/question", answers.publish, _qos())

    closed = threading.Event()

    def await_end() -> None:
        sys.stdin.read()
        closed.set()

    # Only a flag: a context that is shut down while an executor is being made breaks it.
    threading.Thread(target=await_end, daemon=True).start()
    try:
        while not closed.is_set():
            rclpy.spin_once(node, timeout_sec=_PERIOD)
    except (KeyboardInterrupt, ExternalShutdownException):
        return 0
    return 0


def _ping(topic: str) -> int:
    node = rclpy.create_node(f"{topic}_ping")
    trips: list[float] = []

    def answered(message: JointCommand) -> None:
        # The question carries the steady time at which it was asked.
        trips.append(time.monotonic() - message.q[0])

    node.create_subscription(JointCommand, f"{topic}/answer", answered, _qos())
    questions = node.create_publisher(JointCommand, f"{topic}/question", _qos())
    deadline = time.monotonic() + _TIMEOUT
    while not trips and time.monotonic() < deadline:
        questions.publish(JointCommand(source=node.get_name(), name=["clock"], q=[time.monotonic()]))
        rclpy.spin_once(node, timeout_sec=_PERIOD)
    if not trips:
        sys.stderr.write(f"no answer on {topic}/answer within {_TIMEOUT:g} s\n")
        return 1
    answer = {
        "middleware": rclpy.get_rmw_implementation_identifier(),
        "domain": int(os.environ.get("ROS_DOMAIN_ID", "0")),
        "round_trip": trips[0],
    }
    sys.stdout.write(json.dumps(answer) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
