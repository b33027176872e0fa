# SPDX-License-Identifier: Apache-2.0
"""What every node says about its loops once a second: rate, latency, misses, and what went wrong."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock
from rclpy.clock_type import ClockType
from rclpy.node import Node

from supple.nodes.conversion import header
from supple.nodes.qos import EVENT

__all__ = ["Diagnostics", "LoopMonitor", "steady_clock"]

_PERIOD = 1.0


def steady_clock() -> Clock:
    """Return a clock for timeouts: it goes on while simulated time stands still."""
    return Clock(clock_type=ClockType.STEADY_TIME)


class LoopMonitor:
    """Rate, latency and misses of one loop.

    Args:
        interval: Time wanted between two ticks in [s].

    Attributes:
        misses: Ticks that came more than half an interval late, or not at all, since the start.
    """

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self.misses = 0
        self._last: float | None = None
        self._periods: deque[float] = deque(maxlen=4096)
        self._latencies: deque[float] = deque(maxlen=4096)

    def tick(self, latency: float | None = None) -> None:
        """Count one tick.

        Args:
            latency: Time that its work took in [s].
        """
        now = time.perf_counter()
        if self._last is not None:
            self._periods.append(now - self._last)
            self.misses += now - self._last > 1.5 * self.interval
        self._last = now
        if latency is not None:
            self._latencies.append(latency)

    def take(self) -> dict[str, str]:
        """Return what was measured since the last call, and begin anew."""
        periods, latencies = np.array(self._periods), np.array(self._latencies)
        self._periods.clear()
        self._latencies.clear()
        values = {"misses": str(self.misses)}
        if periods.size:
            values["rate [Hz]"] = f"{1.0 / periods.mean():.1f}"
            values["period error p99 [ms]"] = f"{1e3 * np.percentile(np.abs(periods - self.interval), 99):.2f}"
        if latencies.size:
            values["latency p50 [ms]"] = f"{1e3 * np.percentile(latencies, 50):.2f}"
            values["latency p99 [ms]"] = f"{1e3 * np.percentile(latencies, 99):.2f}"
        return values


class Diagnostics:
    """Publish the state of a node at 1 Hz (REP-107), and at once when it changes for the worse.

    Args:
        node: The node.
        hardware: What it drives.
    """

    def __init__(self, node: Node, hardware: str) -> None:
        self._node = node
        self._hardware = hardware
        self._publisher = node.create_publisher(DiagnosticArray, "diagnostics", EVENT)
        self._loops: dict[str, LoopMonitor] = {}
        self._values: dict[str, str] = {}
        self._level, self._text = DiagnosticStatus.OK, "running"
        self._parts: dict[str, tuple[bytes, str, Mapping[str, str]]] = {}
        self.counts: Counter[str] = Counter()
        self._said: dict[str, float] = {}
        self._measured: dict[str, str] = {}
        node.create_timer(_PERIOD, self._measure, clock=steady_clock())

    def loop(self, name: str, interval: float) -> LoopMonitor:
        """Return the monitor of a loop; its figures are published under its name."""
        self._loops[name] = LoopMonitor(interval)
        return self._loops[name]

    def set(self, key: str, value: object) -> None:
        """Publish a value from now on."""
        self._values[key] = str(value)

    def state(self, level: bytes, text: str) -> None:
        """Set how the node is, in words."""
        changed = (level, text) != (self._level, self._text)
        self._level, self._text = level, text
        if changed:
            self.publish()

    def part(self, name: str, level: bytes, text: str, values: Mapping[str, str]) -> None:
        """Set how a part of what the node looks after is; from the next message on it is a status of its own."""
        self._parts[name] = (level, text, values)

    def refuse(self, kind: str, reason: str, key: str = "") -> None:
        """Count something that was refused and say why, at most once in two seconds for each kind and key.

        Args:
            kind: What is counted.
            reason: Why.
            key: What makes two reasons the same; the reason's beginning if absent.
        """
        self.counts[kind] += 1
        now, key = time.monotonic(), f"{kind} {key or reason[:60]}"
        if now - self._said.get(key, -np.inf) < 2.0:
            return
        self._said[key] = now
        self.set(f"last {kind}", reason)
        self._node.get_logger().warning(reason)
        self.publish()

    def _measure(self) -> None:
        for name, loop in self._loops.items():
            self._measured |= {f"{name} {key}": value for key, value in loop.take().items()}
        self.publish()

    def publish(self) -> None:
        """Publish now."""
        if not self._node.context.ok():
            return
        # Other threads count as well: the copy is made in one go.
        values = self._values | {key: str(count) for key, count in dict(self.counts).items()} | self._measured
        name = self._node.get_fully_qualified_name().lstrip("/")
        own: tuple[bytes, str, Mapping[str, str]] = (self._level, self._text, values)
        rows = [(name, self._hardware, own)]
        rows += [(f"{name}: {part}", part, row) for part, row in self._parts.items()]
        status = [
            DiagnosticStatus(
                level=level,
                name=label,
                message=text,
                hardware_id=hardware,
                values=[KeyValue(key=key, value=value) for key, value in figures.items()],
            )
            for label, hardware, (level, text, figures) in rows
        ]
        message = DiagnosticArray(header=header(self._node.get_clock().now().nanoseconds), status=status)
        self._publisher.publish(message)
