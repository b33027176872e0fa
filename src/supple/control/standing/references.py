# SPDX-License-Identifier: Apache-2.0
"""What the balance is to follow: smooth references for height, lean, centre of mass, posture and hands."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

__all__ = ["BalanceReference", "HandReference", "SmoothReference", "SmoothRotation"]

Array = NDArray[np.float64]


class SmoothReference:
    """A value that follows a target which may jump: critically damped, with bounded speed and acceleration.

    Args:
        value: Where it begins, shape (n,).
        speed: Largest speed of the whole vector in [unit/s].
        acceleration: Largest acceleration in [unit/s^2].
        bandwidth: Natural frequency in [rad/s].
        velocity: How fast it begins, shape (n,); at rest if absent.
    """

    def __init__(
        self,
        value: ArrayLike,
        speed: float,
        acceleration: float,
        bandwidth: float = 5.0,
        velocity: ArrayLike | None = None,
    ) -> None:
        self.value = np.array(value, dtype=np.float64)
        self.velocity = np.zeros_like(self.value) if velocity is None else np.array(velocity, dtype=np.float64)
        self.acceleration = np.zeros_like(self.value)
        self.target = self.value.copy()
        self.speed = speed
        self._most = acceleration
        self._bandwidth = bandwidth

    @property
    def distance(self) -> float:
        """How far the value still is from its target, in its unit."""
        return float(np.linalg.norm(self.target - self.value))

    def step(self, dt: float) -> None:
        """Move on by ``dt`` in [s]."""
        wanted = _bounded(0.5 * self._bandwidth * (self.target - self.value), self.speed)
        # Over one tick the lag of the velocity must not be made up more than once.
        rate = min(2.0 * self._bandwidth, 1.0 / dt)
        self.acceleration = _bounded(rate * (wanted - self.velocity), self._most)
        self.value = self.value + self.velocity * dt + 0.5 * self.acceleration * dt * dt
        self.velocity = self.velocity + self.acceleration * dt


class SmoothRotation:
    """An orientation that follows a target: along the geodesic, as SmoothReference does on a line.

    Args:
        value: Where it begins, at rest, shape (3, 3).
        speed: Largest speed in [rad/s].
        acceleration: Largest acceleration in [rad/s^2].
    """

    def __init__(self, value: Array, speed: float, acceleration: float) -> None:
        self.value = np.array(value, dtype=np.float64)
        self.target = self.value.copy()
        self._way = SmoothReference(np.zeros(3), speed, acceleration)

    @property
    def velocity(self) -> Array:
        """Angular velocity in the world frame in [rad/s], shape (3,)."""
        return self._way.velocity

    def step(self, dt: float) -> None:
        """Move on by ``dt`` in [s]."""
        self._way.value = np.zeros(3)
        self._way.target = pin.log3(self.target @ self.value.T)
        self._way.step(dt)
        self.value = pin.exp3(self._way.value) @ self.value


def _bounded(vector: Array, most: float) -> Array:
    size = math.sqrt(vector.dot(vector))
    return vector if size <= most else vector * (most / size)


@dataclass(frozen=True)
class HandReference:
    """Where a hand's tool frame is to be.

    Attributes:
        T_world_hand: Pose in the world frame.
        twist: Velocity, linear and angular, in world axes in [m/s, rad/s], shape (6,).
    """

    T_world_hand: pin.SE3
    twist: Array


@dataclass(frozen=True)
class BalanceReference:
    """What one solution of the balance is to realise. Positions are given in the support frame (between the soles).

    Attributes:
        height: Height of the base above the soles, its velocity and acceleration in [m, m/s, m/s^2], shape (3,).
        com: Centre of mass x, y in [m]; rows position, velocity, acceleration, shape (3, 2).
        base_rotation: Orientation of the base in the support frame, shape (3, 3).
        posture: Positions of the balanced joints in [rad], shape (n,); legs are led by it only weakly.
        hands: Poses for some hands by effector; their arms follow these rather than the posture.
    """

    height: Array
    com: Array
    base_rotation: Array
    posture: Array
    hands: Mapping[str, HandReference] = field(default_factory=dict)
