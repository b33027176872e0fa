# SPDX-License-Identifier: Apache-2.0
"""Limits that clamp commands and say which joints they changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np

from supple.robots.joints import JointTable
from supple.robots.state import RobotCommand

__all__ = ["CommandLimiter"]

_KEYS = ("q", "v", "tau", "kp", "kd")


class CommandLimiter:
    """Clamp commands to what the robot's table allows.

    Args:
        joints: The joint table.

    Attributes:
        counts: How often each joint was limited since the start, by name.
    """

    def __init__(self, joints: JointTable) -> None:
        self._joints = joints
        zero, infinite = np.zeros(len(joints)), np.full(len(joints), np.inf)
        self._lowest = np.stack([joints.lower, -joints.velocity, -joints.effort, zero, zero])
        self._highest = np.stack([joints.upper, joints.velocity, joints.effort, infinite, infinite])
        self.counts: Counter[str] = Counter()

    def limit(self, command: RobotCommand) -> RobotCommand:
        """Return the command with position within the joint range, torque within effort, gains not negative."""
        rows = np.array([command.q, command.v, command.tau, command.kp, command.kd])
        if (self._lowest <= rows).all() and (rows <= self._highest).all():
            return command
        q, v, tau, kp, kd = np.clip(rows, self._lowest, self._highest)
        limited = replace(command, q=q, v=v, tau=tau, kp=kp, kd=kd)
        self.counts.update(self.changed(command, limited))
        return limited

    def changed(self, requested: RobotCommand, applied: RobotCommand) -> list[str]:
        """Return the names of the addressed joints whose target, velocity, torque or gains a limit changed."""
        before = np.stack([getattr(requested, key) for key in _KEYS])
        after = np.stack([getattr(applied, key) for key in _KEYS])
        different = (before != after).any(axis=0) & requested.active
        return [self._joints.names[i] for i in np.flatnonzero(different)]
