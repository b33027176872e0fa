# SPDX-License-Identifier: Apache-2.0
"""The seam between everything that commands and everything that moves."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np

from supple.errors import StateError
from supple.robots.joints import JointTable
from supple.robots.state import RobotCommand, RobotState

__all__ = ["Body", "PerfectBody", "ReadOnlyBody"]


@runtime_checkable
class Body(Protocol):
    """Something with joints: MuJoCo in process, a robot or simulator behind ROS topics, or a perfect tracker.

    A control loop is ``state = body.read(); command = controller.step(state, dt); applied = body.write(command)``, once
    per ``control_interval``: ``write`` returns when the next control tick is due (at once in process, since there the
    physics is what passes the time).
    """

    @property
    def joints(self) -> JointTable:
        """The joint table that every array follows."""

    @property
    def control_interval(self) -> float:
        """Time between two writes in [s]."""

    def read(self) -> RobotState:
        """Return the newest measurement.

        Raises:
            StateError: No valid measurement (never received, stale, not finite).
        """

    def write(self, command: RobotCommand) -> RobotCommand:
        """Command the body for one control interval and return what was really applied after limits."""

    def close(self) -> None:
        """Leave the body safe: damped, released. May be called twice."""


class PerfectBody:
    """A body without physics that reaches every commanded position within one interval.

    It serves dry runs of a motion and tests of loops, where nothing but kinematics matters.

    Args:
        joints: The joint table.
        control_interval: Time between two writes in [s].
        state: Where it starts; at the origin in the home posture if absent.
    """

    def __init__(self, joints: JointTable, control_interval: float = 0.02, state: RobotState | None = None) -> None:
        n = len(joints)
        upright = np.array([0.0, 0.0, 0.0, 1.0])
        rest = np.array([0.0, 0.0, 9.81])
        self._joints = joints
        self._interval = control_interval
        self._state = state or RobotState(
            0, joints.home.copy(), np.zeros(n), np.zeros(n), np.zeros(3), upright, np.zeros(3), np.zeros(3), rest
        )

    @property
    def joints(self) -> JointTable:
        """The joint table that every array follows."""
        return self._joints

    @property
    def control_interval(self) -> float:
        """Time between two writes in [s]."""
        return self._interval

    def read(self) -> RobotState:
        """Return the state that the last command brought about."""
        return self._state

    def write(self, command: RobotCommand) -> RobotCommand:
        """Move the addressed joints to their targets, clamped to the position limits."""
        command.check(self._joints)
        q = np.where(command.active, np.clip(command.q, self._joints.lower, self._joints.upper), self._state.q)
        stamp = self._state.stamp_ns + round(self._interval * 1e9)
        self._state = replace(self._state, stamp_ns=stamp, q=q, v=(q - self._state.q) / self._interval)
        return replace(command, q=q)

    def close(self) -> None:
        """Do nothing: there is nothing to make safe."""


class ReadOnlyBody:
    """A wrapper that lets a program watch a body and refuses every command.

    Args:
        body: The body to watch.
    """

    def __init__(self, body: Body) -> None:
        self._body = body

    @property
    def joints(self) -> JointTable:
        """The joint table of the watched body."""
        return self._body.joints

    @property
    def control_interval(self) -> float:
        """Control interval of the watched body in [s]."""
        return self._body.control_interval

    def read(self) -> RobotState:
        """Return the newest measurement of the watched body."""
        return self._body.read()

    def write(self, command: RobotCommand) -> RobotCommand:
        """Refuse.

        Raises:
            StateError: Always.
        """
        raise StateError(f"this body is read-only; a command from {command.source!r} was refused")

    def close(self) -> None:
        """Leave the watched body alone: it belongs to somebody else."""
