# SPDX-License-Identifier: Apache-2.0
"""Robot states put together from joint_states, odom and imu/data, once per control interval of the stamps."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import Imu, JointState

from supple.errors import SuppleError
from supple.nodes.conversion import nanoseconds, state_of
from supple.nodes.diagnostics import Diagnostics
from supple.nodes.qos import SENSOR_INPUT, subscription
from supple.robots import JointTable, RobotState
from supple.sim.clock import RESET_GAP_NS

__all__ = ["StateInput"]

_KEPT = 100
_TOPICS = ("joint_states", "odom", "imu/data")


class StateInput:
    """Call back with a robot state at every control tick.

    A tick is the first stamp in each control interval: a 50 Hz loop on 200 Hz states runs by the states' own time, at
    any real-time factor, and stands still when the simulation does. The three messages of a state carry the same stamp.

    Args:
        node: The node that subscribes.
        joints: The joint table.
        interval: Control interval in [s]; 0 calls back for every stamp.
        on_state: Called with each state.
        on_reset: Called before the first state after the clock jumped, back or over the gap that a reset leaves.
        diagnostics: Where unusable messages are counted.
    """

    def __init__(
        self,
        node: Node,
        joints: JointTable,
        interval: float,
        on_state: Callable[[RobotState], None],
        on_reset: Callable[[], None],
        diagnostics: Diagnostics,
    ) -> None:
        self._node, self._joints, self._diagnostics = node, joints, diagnostics
        self._interval_ns = max(round(interval * 1e9), 1)
        self._on_state, self._on_reset = on_state, on_reset
        self._waiting: OrderedDict[int, dict[str, Any]] = OrderedDict()
        self._last_ns: int | None = None
        self._newest_ns = 0
        self._arrived: float | None = None
        self.joint_states_received = 0
        self._subscriptions = [
            subscription(node, kind, topic, self._receiver(topic), SENSOR_INPUT)
            for kind, topic in zip((JointState, Odometry, Imu), _TOPICS, strict=True)
        ]

    @property
    def age(self) -> float:
        """Time since the last complete state in [s], steady clock; infinite before the first."""
        return float("inf") if self._arrived is None else time.monotonic() - self._arrived

    def close(self) -> None:
        """Stop listening."""
        for entry in self._subscriptions:
            self._node.destroy_subscription(entry)
        self._subscriptions = []

    def _receiver(self, topic: str) -> Callable[[Any], None]:
        def receive(message: Any) -> None:
            if topic == "joint_states":
                self.joint_states_received += 1
            self._receive(topic, message)

        return receive

    def _receive(self, topic: str, message: Any) -> None:
        stamp = nanoseconds(message.header.stamp)
        self._newest_ns = max(self._newest_ns, stamp)
        if self._last_ns is not None:
            if stamp <= self._last_ns - RESET_GAP_NS:
                self._jumped("back", stamp)
            elif stamp // self._interval_ns <= self._last_ns // self._interval_ns:
                return
        parts = self._waiting.setdefault(stamp, {})
        parts[topic] = message
        if len(parts) == len(_TOPICS):
            self._complete(stamp, parts)
        elif len(self._waiting) > _KEPT:
            self._report_unmatched(*self._waiting.popitem(last=False))

    def _complete(self, stamp: int, parts: dict[str, Any]) -> None:
        for older in [key for key in self._waiting if key <= stamp]:
            del self._waiting[older]
        try:
            state = state_of(self._joints, *(parts[topic] for topic in _TOPICS))
        except SuppleError as error:
            self._diagnostics.refuse("unusable states", str(error))
            return
        if self._last_ns is not None and stamp - self._last_ns >= RESET_GAP_NS:
            self._jumped("on", stamp)
        self._last_ns, self._arrived = stamp, time.monotonic()
        self._on_state(state)

    def _jumped(self, direction: str, stamp: int) -> None:
        gap = abs(stamp - (self._last_ns or 0)) * 1e-9
        self._node.get_logger().info(f"stamps jumped {direction} by {gap:.2f} s: controllers begin anew")
        if direction == "back":
            self._waiting.clear()
        self._last_ns = None
        self._on_reset()

    def _report_unmatched(self, stamp: int, parts: dict[str, Any]) -> None:
        missing = [topic for topic in _TOPICS if topic not in parts]
        others = [key for key, row in self._waiting.items() if all(topic in row for topic in missing)]
        gap = min((abs(key - stamp) for key in others), default=None)
        nearest = "none received" if gap is None else f"nearest {gap * 1e-6:.1f} ms away"
        topics = ", ".join(self._node.resolve_topic_name(topic) for topic in missing)
        self._diagnostics.refuse(
            "unmatched states", f"no message on {topics} with the stamp of {list(parts)} ({nearest})"
        )
