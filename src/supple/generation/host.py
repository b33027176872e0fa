# SPDX-License-Identifier: Apache-2.0
"""Whom a task is done with: the robot, simulated or real, as whoever does the task sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.episodes import Origin
from supple.robots import RobotState

__all__ = ["Host", "RejectionError"]

Array = NDArray[np.float64]


class RejectionError(Exception):
    """Ends an attempt.

    Args:
        origin: Where it failed.
        reason: Why.
    """

    def __init__(self, origin: Origin, reason: str) -> None:
        super().__init__(reason)
        self.origin = origin
        self.reason = reason


class Host(Protocol):
    """The robot that a task is done with, simulated or real, seen by who does it."""

    @property
    def state(self) -> RobotState:
        """The newest state."""
        ...

    def tick(
        self,
        q: Array,
        targets: Mapping[str, pin.SE3] | None = None,
        velocity: Array | None = None,
        noise: Array | None = None,
        height: float | None = None,
    ) -> None:
        """Execute one action and pass one control interval.

        Args:
            q: Joint targets in [rad]; those of waist, arms and hands count.
            targets: What the hands follow, in the world frame, by effector; others stay where they are.
            velocity: Base velocity (vx, vy, wz); zero without.
            noise: Added to the targets of waist, arms and hands for execution only, in [rad].
            height: Height of the base in [m]; that of walking without.

        Raises:
            RejectionError: It cannot go on.
        """
        ...
