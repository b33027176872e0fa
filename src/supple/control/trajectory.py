# SPDX-License-Identifier: Apache-2.0
"""Joint trajectories: checked on entry, interpolated as splines, watched by tolerances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supple.errors import JointError, StateError
from supple.robots import JointTable

__all__ = ["JointTrajectory", "Tolerances"]

Array = NDArray[np.float64]

# Positions may leave the table's limits by rounding of the sender's, no more.
_LIMIT_SLACK = 1e-3


def _unknown(joints: JointTable, allowed: Sequence[str], names: Sequence[str]) -> list[str]:
    known = set(allowed)
    return [f"{name} (not commanded here)" if name in joints.names else name for name in names if name not in known]


@dataclass(frozen=True)
class JointTrajectory:
    """Positions of some joints over time.

    Between points: a quintic where accelerations are given, a cubic where velocities are, else a straight line.

    Attributes:
        names: Joint names, shape (n,).
        times: Time of each point from the start in [s], strictly increasing, shape (k,).
        positions: In [rad], shape (k, n).
        velocities: In [rad/s], shape (k, n), if given.
        accelerations: In [rad/s^2], shape (k, n), if given; only together with velocities.
    """

    names: tuple[str, ...]
    times: Array
    positions: Array
    velocities: Array | None = None
    accelerations: Array | None = None

    @classmethod
    def checked(
        cls,
        joints: JointTable,
        allowed: Sequence[str],
        names: Sequence[str],
        times: ArrayLike,
        positions: Sequence[ArrayLike],
        velocities: Sequence[ArrayLike] = (),
        accelerations: Sequence[ArrayLike] = (),
        speed_limit: float = np.inf,
        ranges: Mapping[str, tuple[float, float]] | None = None,
    ) -> JointTrajectory:
        """Return a trajectory that can be executed, or refuse it.

        Args:
            joints: The joint table.
            allowed: Names of the joints that may be commanded.
            names: Joint of each column.
            times: Time of each point in [s].
            positions: One row per point.
            velocities: One row per point; rows may be empty if all are.
            accelerations: One row per point; rows may be empty if all are.
            speed_limit: Largest speed in [rad/s], where it is below the joint's own.
            ranges: Positions in [rad] in which the robot still stands, by joint, where they are narrower than limits.

        Raises:
            JointError: Joints unknown, not commanded here or doubled; lists them all.
            StateError: No points, wrong lengths, not finite, times not increasing, outside limits, too fast.
        """
        names = tuple(names)
        if not names:
            raise JointError("the trajectory names no joint")
        if unknown := _unknown(joints, allowed, names):
            raise JointError(f"cannot command {', '.join(unknown)} (available: {', '.join(allowed)})")
        if len(set(names)) != len(names):
            raise JointError(f"joints given twice: {', '.join(sorted({n for n in names if names.count(n) > 1}))}")
        time = np.asarray(times, dtype=np.float64)
        if time.size == 0:
            raise StateError("the trajectory has no points")
        table = _table("positions", positions, len(time), names)
        rates = _optional("velocities", velocities, len(time), names)
        curves = _optional("accelerations", accelerations, len(time), names)
        if rates is None and curves is not None:
            raise StateError("the trajectory gives accelerations without velocities")
        if time[0] < 0.0 or np.any(np.diff(time) <= 0.0) or not np.all(np.isfinite(time)):
            raise StateError(f"times of points must increase from 0 on, got {time.tolist()} s")
        trajectory = cls(names, time, table, rates, curves)
        trajectory._require_limits(joints, speed_limit)
        trajectory._require_ranges(ranges or {})
        return trajectory

    def _require_limits(self, joints: JointTable, speed_limit: float) -> None:
        at = joints.indices(self.names)
        outside = (self.positions < joints.lower[at] - _LIMIT_SLACK) | (
            self.positions > joints.upper[at] + _LIMIT_SLACK
        )
        if outside.any():
            point, column = np.argwhere(outside)[0]
            i = at[column]
            raise StateError(
                f"point {point}: {self.names[column]} at {self.positions[point, column]:.3f} rad is outside its limits "
                f"{joints.lower[i]:.3f} to {joints.upper[i]:.3f} rad"
            )
        if len(self.times) > 1:
            speed = np.abs(np.diff(self.positions, axis=0)) / np.diff(self.times)[:, None]
            limits = np.minimum(joints.velocity[at], speed_limit)
            too_fast = speed > limits
            if too_fast.any():
                point, column = np.argwhere(too_fast)[0]
                raise StateError(
                    f"point {point + 1}: {self.names[column]} would move at {speed[point, column]:.1f} rad/s; "
                    f"its limit is {limits[column]:.1f} rad/s"
                )

    def _require_ranges(self, ranges: Mapping[str, tuple[float, float]]) -> None:
        for column, name in enumerate(self.names):
            lower, upper = ranges.get(name, (-np.inf, np.inf))
            positions = self.positions[:, column]
            outside = np.flatnonzero((positions < lower - _LIMIT_SLACK) | (positions > upper + _LIMIT_SLACK))
            if outside.size:
                point = outside[0]
                raise StateError(
                    f"point {point}: {name} at {positions[point]:.3f} rad is outside {lower:.3f} to {upper:.3f} rad, "
                    "the range in which the robot still stands"
                )

    @property
    def duration(self) -> float:
        """Time of the last point in [s]."""
        return float(self.times[-1])

    def starting_from(self, q: Array) -> JointTrajectory:
        """Return the trajectory with the present positions, at rest, put before it, unless it has a point at time 0.

        Args:
            q: Present positions of its joints in [rad], shape (n,).
        """
        if self.times[0] == 0.0:
            return self
        still = np.zeros_like(q)

        def prepend(first: Array, rows: Array | None) -> Array | None:
            return None if rows is None else np.vstack([first, rows])

        return JointTrajectory(
            self.names,
            np.r_[0.0, self.times],
            np.vstack([q, self.positions]),
            prepend(still, self.velocities),
            prepend(still, self.accelerations),
        )

    def sample(self, time: float) -> tuple[Array, Array]:
        """Return positions in [rad] and velocities in [rad/s], shapes (n,), at a time from the start in [s]."""
        if time >= self.times[-1] or len(self.times) == 1:
            return self.positions[-1].copy(), np.zeros(len(self.names))
        i = max(int(np.searchsorted(self.times, time, side="right")) - 1, 0)
        h = self.times[i + 1] - self.times[i]
        s = float(np.clip((time - self.times[i]) / h, 0.0, 1.0))
        p0, p1 = self.positions[i], self.positions[i + 1]
        if self.velocities is None:
            return p0 + s * (p1 - p0), (p1 - p0) / h
        v0, v1 = h * self.velocities[i], h * self.velocities[i + 1]
        if self.accelerations is None:
            a, b = 2.0 * (p0 - p1) + v0 + v1, 3.0 * (p1 - p0) - 2.0 * v0 - v1
            return p0 + s * (v0 + s * (b + s * a)), (v0 + s * (2.0 * b + s * 3.0 * a)) / h
        a0, a1 = h * h * self.accelerations[i], h * h * self.accelerations[i + 1]
        d = p1 - p0
        c3 = 10.0 * d - 6.0 * v0 - 4.0 * v1 - 1.5 * a0 + 0.5 * a1
        c4 = -15.0 * d + 8.0 * v0 + 7.0 * v1 + 1.5 * a0 - a1
        c5 = 6.0 * d - 3.0 * v0 - 3.0 * v1 - 0.5 * a0 + 0.5 * a1
        q = p0 + s * (v0 + s * (0.5 * a0 + s * (c3 + s * (c4 + s * c5))))
        return q, (v0 + s * (a0 + s * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)))) / h


@dataclass(frozen=True)
class Tolerances:
    """Accepted deviations of joints from where a trajectory wants them.

    Attributes:
        names: Joint names, shape (n,).
        position: In [rad], shape (n,); infinite accepts everything.
        velocity: In [rad/s], shape (n,).
    """

    names: tuple[str, ...]
    position: Array
    velocity: Array

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        position: Mapping[str, float],
        velocity: Mapping[str, float],
        default_position: float = np.inf,
        default_velocity: float = np.inf,
    ) -> Tolerances:
        """Return tolerances as control_msgs means them: 0 is the default, a negative number accepts everything.

        Raises:
            JointError: A tolerance for a joint that the trajectory does not move.
            StateError: A tolerance that is not a number.
        """
        if unknown := sorted((set(position) | set(velocity)) - set(names)):
            raise JointError(f"tolerances for joints that the trajectory does not move: {', '.join(unknown)}")

        def values(given: Mapping[str, float], default: float) -> Array:
            row = np.array([given.get(name, 0.0) for name in names], dtype=np.float64)
            if np.isnan(row).any():
                raise StateError(f"tolerance is not a number for {names[int(np.flatnonzero(np.isnan(row))[0])]}")
            return np.where(row == 0.0, default, np.where(row < 0.0, np.inf, row))

        return cls(tuple(names), values(position, default_position), values(velocity, default_velocity))

    def violations(self, position_error: Array, velocity_error: Array) -> list[str]:
        """Return what lies outside, in words; empty if nothing does."""
        found = []
        for errors, limits, unit in ((position_error, self.position, "rad"), (velocity_error, self.velocity, "rad/s")):
            for i in np.flatnonzero(np.abs(errors) > limits):
                found.append(f"{self.names[i]} off by {abs(errors[i]):.4f} {unit}, tolerance {limits[i]:.4f} {unit}")
        return found


def _table(what: str, rows: Sequence[ArrayLike], count: int, names: Sequence[str]) -> Array:
    if len(rows) != count:
        raise StateError(f"{what}: {len(rows)} rows for {count} points")
    for point, row in enumerate(rows):
        if len(np.asarray(row)) != len(names):
            raise StateError(f"point {point}: {len(np.asarray(row))} {what} for {len(names)} joints")
    table = np.asarray(rows, dtype=np.float64)
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        raise StateError(f"point {bad[0][0]}: {what} of {names[bad[0][1]]} are not finite")
    return table


def _optional(what: str, rows: Sequence[ArrayLike], count: int, names: Sequence[str]) -> Array | None:
    given = [point for point, row in enumerate(rows) if len(np.asarray(row))]
    if not given:
        return None
    if len(given) != count:
        missing = sorted(set(range(count)) - set(given))
        raise StateError(f"{what} are given for some points, missing for point {missing[0]}")
    return _table(what, rows, count, names)
