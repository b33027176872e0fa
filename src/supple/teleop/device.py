# SPDX-License-Identifier: Apache-2.0
"""What a teleoperation device gives, and what it may see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.robots import RobotState

__all__ = ["END_LABEL", "Device", "OperatorInput", "OperatorView"]

END_LABEL = "end"
"""Label of a mark that ends the skill before it without beginning another."""


@dataclass(frozen=True)
class OperatorInput:
    """What the operator does at one moment.

    Attributes:
        poses: Pose of each hand (by effector name) in the device's own frame: x forward, y left, z up, in [m].
        fingers: Name of the finger posture wanted, by effector name; missing hands keep theirs.
        velocity: Base velocity (vx, vy, wz) in the heading frame in [m/s, m/s, rad/s].
        clutch: Whether the hands are to follow the device now.
        events: ``"start"``, ``"stop"``, ``"discard"``, ``"quit"`` or ``"mark:<label>"``, in order.
        height: Height of the base wanted in [m]; without one it stays as it was. A velocity brings that of walking.
    """

    poses: Mapping[str, pin.SE3] = field(default_factory=dict)
    fingers: Mapping[str, str] = field(default_factory=dict)
    velocity: NDArray[np.float64] = field(default_factory=lambda: np.zeros(3))
    clutch: bool = False
    events: tuple[str, ...] = ()
    height: float | None = None


@dataclass(frozen=True)
class OperatorView:
    """What an operator can see: the robot and the things around it.

    Attributes:
        state: The robot's measurement.
        effectors: World pose of each effector's frame.
        objects: World pose of each object.
    """

    state: RobotState
    effectors: Mapping[str, pin.SE3]
    objects: Mapping[str, pin.SE3]


class Device(Protocol):
    """Something that an operator drives the robot with.

    Attributes:
        name: Name stored with the seed, e.g. ``"keyboard"`` or ``"scripted"``.
        tracked: Whether its poses come from tracking hardware, so that a frozen pose means a lost tracker.
    """

    name: str
    tracked: bool

    def read(self, view: OperatorView) -> OperatorInput:
        """Return what the operator does now; never waits for the operator."""

    def tell(self, text: str) -> None:
        """Show the operator a message."""

    def close(self) -> None:
        """Let go of terminal, sockets and the like."""
