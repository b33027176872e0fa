# SPDX-License-Identifier: Apache-2.0
"""A robot behind ROS topics as a Body: read the newest state, write a command and learn what was really applied."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.subscription import Subscription
from supple_interfaces.msg import CommandTrace, JointCommand

from supple.errors import StateError
from supple.nodes.conversion import joint_command
from supple.nodes.diagnostics import Diagnostics
from supple.nodes.qos import COMMAND, EVENT, publisher, subscription
from supple.nodes.state_input import StateInput
from supple.robots import JointTable, Robot, RobotCommand, RobotState

__all__ = ["TopicBody"]


class TopicBody:
    """A robot or simulator behind ``joint_states``, ``odom``, ``imu/data``, ``joint_commands`` and ``command_trace``.

    The node must be spun by another thread than the one that reads and writes. All timeouts are on the steady clock, so
    a paused simulation ends a wait instead of blocking it for ever.

    Args:
        node: The node whose topics are used. If it has a lifecycle, commands go out only while it is active, and this
            must be made before it is activated.
        robot: The robot.
        source: Who commands; one body per source, since traces are matched by it.
        diagnostics: Where unusable messages are counted.
        timeout: Longest wait for a state or a trace in [s].

    Attributes:
        applied: Commands that the other side confirmed.
        pass_time: Called after a command was confirmed, before the next state is waited for; lets a paused simulation
            step.
    """

    def __init__(
        self,
        node: Node,
        robot: Robot,
        source: str,
        diagnostics: Diagnostics,
        timeout: float = 2.0,
    ) -> None:
        self._robot, self._source, self._timeout = robot, source, timeout
        self._node = node
        self._changed = threading.Condition(threading.RLock())
        self._state: RobotState | None = None
        self._resets = 0
        self._traces: deque[CommandTrace] = deque(maxlen=64)
        self._others: dict[str, float] = {}
        self._commanded = np.zeros(len(robot.joints), dtype=bool)
        self.applied = 0
        self._closed = False
        self.pass_time: Callable[[], None] | None = None
        self._publisher = publisher(node, JointCommand, "joint_commands", COMMAND)
        self._input = StateInput(
            node, robot.joints, robot.contract.control_interval, self._on_state, self._on_reset, diagnostics
        )
        self._trace_input: Subscription[Any] | None = subscription(
            node, CommandTrace, "command_trace", self._on_trace, EVENT
        )

    @property
    def joints(self) -> JointTable:
        """The joint table that every array follows."""
        return self._robot.joints

    @property
    def control_interval(self) -> float:
        """Time between two writes in [s]."""
        return self._robot.contract.control_interval

    @property
    def resets(self) -> int:
        """How often the clock of the states jumped since the start."""
        return self._resets

    def others(self, within: float) -> list[str]:
        """Return the sources whose commands were applied besides ours in the last seconds."""
        with self._changed:
            return sorted(name for name, when in self._others.items() if time.monotonic() - when < within)

    # -- in: called in the node's thread ---------------------------------------------------------------------------

    def _on_state(self, state: RobotState) -> None:
        with self._changed:
            self._state = state
            self._changed.notify_all()

    def _on_reset(self) -> None:
        with self._changed:
            self._state = None
            self._resets += 1
            self._changed.notify_all()

    def _on_trace(self, message: CommandTrace) -> None:
        with self._changed:
            if message.source == self._source:
                self._traces.append(message)
                self._changed.notify_all()
            elif not message.refused:
                self._others[message.source] = time.monotonic()

    # -- the Body ----------------------------------------------------------------------------------------------------

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        self._changed.wait_for(lambda: self._closed or condition(), self._timeout)
        if self._closed:
            raise StateError(f"closed while waiting for {what}")
        if not condition():
            raise StateError(f"no {what} within {self._timeout:.1f} s")

    def read(self) -> RobotState:
        """Return the newest measurement at a control tick; the first may have to be waited for.

        Raises:
            StateError: None arrived in time.
        """
        with self._changed:
            self._wait(lambda: self._state is not None, "state on joint_states, odom and imu/data")
            if self._state is None:
                raise StateError("the state was forgotten by a reset while it was read")
            return self._state

    def write(self, command: RobotCommand) -> RobotCommand:
        """Send a command, wait until it is confirmed and the next control tick has come.

        Returns:
            What was applied: positions after limits.

        Raises:
            StateError: Malformed, not confirmed in time, refused (says by whom), or no next state.
        """
        command.check(self.joints)
        # What speaks for this body is its own name, whatever controller made the command.
        command = replace(command, source=self._source)
        with self._changed:
            before = self._state.stamp_ns if self._state is not None else -1
            self._traces.clear()
        self._commanded |= command.active
        self._publisher.publish(joint_command(self.joints, command))
        with self._changed:
            self._wait(lambda: len(self._traces) > 0, f"command_trace that confirms a command of {self._source!r}")
            trace = self._traces.popleft()
        if trace.refused:
            raise StateError(trace.refused)
        self.applied += 1
        if self.pass_time is not None:
            self.pass_time()
        with self._changed:
            self._wait(
                lambda: self._state is not None and self._state.stamp_ns > before, "state of the next control tick"
            )
        q = command.q.copy()
        q[self.joints.indices(list(trace.name))] = trace.applied
        return replace(command, q=q)

    def await_peers(self, timeout: float = 10.0) -> None:
        """Wait until a state has come and somebody takes commands and confirms them.

        Raises:
            StateError: Nobody is there; names what is missing.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            missing = [
                name
                for name, there in (
                    ("states on joint_states, odom and imu/data", self._input.age < self._timeout),
                    ("a subscriber of joint_commands", self._publisher.get_subscription_count() > 0),
                    ("a publisher of command_trace", self._node.count_publishers("command_trace") > 0),
                )
                if not there
            ]
            if not missing:
                return
            time.sleep(0.02)
        raise StateError(f"within {timeout:.0f} s there was no {', no '.join(missing)}")

    def await_reset(self, seen: int) -> RobotState:
        """Return the first state after a reset.

        Args:
            seen: What ``resets`` was before the reset was asked for.

        Raises:
            StateError: None arrived in time.
        """
        with self._changed:
            self._wait(lambda: self._resets > seen and self._state is not None, "state after the reset")
            return self.read()

    def damp(self) -> None:
        """Damp what was commanded, if anything was."""
        if not self._commanded.any() or not self._node.context.ok():
            return
        stamp = self._state.stamp_ns if self._state is not None else 0
        damping = RobotCommand.damping(self.joints, self._source, stamp)
        self._publisher.publish(joint_command(self.joints, replace(damping, active=self._commanded)))
        self._commanded = np.zeros(len(self.joints), dtype=bool)

    def close(self) -> None:
        """Damp what was commanded and stop listening; may be called twice."""
        self.damp()
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._trace_input is not None:
            self._input.close()
            self._node.destroy_subscription(self._trace_input)
            self._trace_input = None
