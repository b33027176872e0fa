# SPDX-License-Identifier: Apache-2.0
"""Two soles on a floor: how the robot stands on them, and which wrenches they can transmit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.robots.g1 import SOLE_HEIGHT

__all__ = ["GRAVITY", "LEAST_PRESSURE", "SOLE_MIDDLE", "Support", "wrench_cone"]

Array = NDArray[np.float64]

GRAVITY = 9.81
"""Acceleration of free fall in [m/s^2]."""

LEAST_PRESSURE = 10.0
"""Normal force that keeps a sole on the floor in [N]."""

# The part of the sole that is trusted with the centre of pressure, sole frame, in [m].
_SOLE_X, _SOLE_Y = (-0.044, 0.122), 0.02
_FRICTION = 0.4
_TORSION = 0.02  # moment about the normal per normal force in [m]

SOLE_MIDDLE = 0.5 * (_SOLE_X[0] + _SOLE_X[1])
"""Middle of the trusted part of a sole ahead of the ankle in [m]."""


@dataclass(frozen=True)
class Support:
    """The robot seen from between its soles.

    Attributes:
        T_world_support: Frame on the floor between the middles of both soles, x along their mean heading.
        height: Height of the base above it in [m].
        height_rate: Its change in [m/s].
        com: Centre of mass x, y in it in [m], shape (2,).
        com_rate: Its velocity in [m/s], shape (2,).
        base_rotation: Orientation of the base in it, shape (3, 3).
        foot_tilt: Larger of the soles' angles to the horizontal in [rad].
        foot_speed: Larger of the soles' speeds in [m/s].
        foot_step: Difference of the soles' heights in [m].
    """

    T_world_support: pin.SE3
    height: float
    height_rate: float
    com: Array
    com_rate: Array
    base_rotation: Array
    foot_tilt: float
    foot_speed: float
    foot_step: float

    @property
    def capture_point(self) -> Array:
        """Where the centre of pressure would have to be for the robot to come to rest, support frame, in [m]."""
        return self.com + self.com_rate / np.sqrt(GRAVITY / max(self.height, 0.3))


def wrench_cone() -> Array:
    """Return rows C, shape (11, 6), with C w >= 0 for a wrench that a flat sole can transmit.

    The wrench is force and moment of the floor on the ankle link, about its origin, in its axes. The first row is the
    normal force; the others are friction, centre of pressure (four each) and torsion (two).
    """
    mu, (x0, x1), y, h = 0.7 * _FRICTION, _SOLE_X, _SOLE_Y, SOLE_HEIGHT
    return np.array(
        [
            [0, 0, 1, 0, 0, 0],
            [1, 0, mu, 0, 0, 0],
            [-1, 0, mu, 0, 0, 0],
            [0, 1, mu, 0, 0, 0],
            [0, -1, mu, 0, 0, 0],
            [-h, 0, -x0, 0, -1, 0],
            [h, 0, x1, 0, 1, 0],
            [0, -h, y, 1, 0, 0],
            [0, h, y, -1, 0, 0],
            [0, 0, _TORSION, 0, 0, 1],
            [0, 0, _TORSION, 0, 0, -1],
        ]
    )
