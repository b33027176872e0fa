# SPDX-License-Identifier: Apache-2.0
"""When joints should be where: the quickest timing of a joint-space way under velocity and acceleration limits."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supple.errors import PlanningError, StateError

__all__ = ["TimedPath", "time_path"]

Array = NDArray[np.float64]

# The spline goes through positions at most so far apart in [rad]; between them it stays within a few mrad of the line.
_SPACING = 0.05
# Grid points of the timing for each piece of the spline.
_GRID = 4


@dataclass(frozen=True)
class TimedPath:
    """Joint positions over time, from rest to rest.

    Attributes:
        times: In [s], from 0 on, shape (k,).
        positions: In [rad], shape (k, n).
        velocities: In [rad/s], shape (k, n).
        accelerations: In [rad/s^2], shape (k, n).
    """

    times: Array
    positions: Array
    velocities: Array
    accelerations: Array

    @property
    def duration(self) -> float:
        """Time of the last point in [s]."""
        return float(self.times[-1])


def time_path(way: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike, interval: float = 0.02) -> TimedPath:
    """Return the quickest motion along a way that keeps to the limits (TOPP-RA, Pham and Pham 2018).

    Args:
        way: Joint positions in [rad], shape (k, n); straight lines lie between them.
        velocity: Largest speed of each joint in [rad/s], one for all or shape (n,).
        acceleration: Largest acceleration in [rad/s^2], one for all or shape (n,).
        interval: Time between two points of the result in [s].

    Raises:
        StateError: Wrong shapes, not finite, or limits that are not positive.
        PlanningError: No timing was found.
    """
    given = np.asarray(way, dtype=np.float64)
    if given.ndim != 2 or not len(given) or not np.all(np.isfinite(given)):
        raise StateError(f"way in joint space: expected finite (k, n) positions, got shape {given.shape}")
    limits = [
        np.broadcast_to(np.asarray(limit, dtype=np.float64), given.shape[1]) for limit in (velocity, acceleration)
    ]
    for what, limit in zip(("velocity", "acceleration"), limits, strict=True):
        if not np.all(np.isfinite(limit) & (limit > 0.0)):
            raise StateError(f"{what} limits: expected positive numbers, got {limit.tolist()}")
    even = _even(given)
    if len(even) == 1:
        still = np.zeros_like(even)
        return TimedPath(np.zeros(1), even, still, still)
    # It loads matplotlib, which takes a second: only for those who time a way.
    from toppra import SplineInterpolator
    from toppra.algorithm import TOPPRA
    from toppra.constraint import JointAccelerationConstraint, JointVelocityConstraint

    marks = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(even, axis=0)).max(axis=1))])
    path = SplineInterpolator(marks, even)
    grid = np.interp(np.arange(_GRID * (len(marks) - 1) + 1) / _GRID, np.arange(len(marks)), marks)
    both = [np.stack([-limit, limit], axis=1) for limit in limits]
    constraints = [JointVelocityConstraint(both[0]), JointAccelerationConstraint(both[1])]
    # The default parametrizer fits a spline through the speeds, which exceeds the limits even on a straight line.
    algorithm = TOPPRA(
        constraints, path, gridpoints=grid, solver_wrapper="seidel", parametrizer="ParametrizeConstAccel"
    )
    trajectory = algorithm.compute_trajectory(0.0, 0.0)
    if trajectory is None:
        raise PlanningError(f"no timing found for a way of {len(given)} positions under the given limits")
    count = max(int(np.ceil(trajectory.duration / interval - 1e-9)), 1)
    while True:
        times = np.arange(count + 1) * np.float64(interval)
        pace = trajectory.duration / times[-1]
        rows = [np.asarray(trajectory(pace * times, order)) * pace**order for order in (0, 1, 2)]
        # Between the grid's points limits are exceeded, most at sharp corners: take as much longer as that asks for.
        excess = max(float((np.abs(rows[1]) / limits[0]).max()), float(np.sqrt((np.abs(rows[2]) / limits[1]).max())))
        if excess <= 1.0 + 1e-9:
            break
        count = max(count + 1, int(np.ceil(count * excess)))
    rows[1][[0, -1]] = 0.0
    return TimedPath(times, *rows)


def _even(rows: Array) -> Array:
    """Return a way's positions without repetitions and with more of them on long lines."""
    pieces = [rows[:1]]
    for begin, end in itertools.pairwise(rows):
        distance = float(np.abs(end - begin).max())
        if distance > 1e-9:
            steps = int(np.ceil(distance / _SPACING))
            pieces.append(begin + np.linspace(0.0, 1.0, steps + 1)[1:, None] * (end - begin))
    return np.vstack(pieces)
