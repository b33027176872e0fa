# SPDX-License-Identifier: Apache-2.0
"""What an attempt began with, as plain numbers: poses of objects relative to the robot and to each other, materials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from supple.episodes import AttemptRecord

__all__ = ["ROBOT_NAMES", "PlanarPoses", "Variable", "planar_poses", "variables"]

Array = NDArray[np.float64]

ROBOT_NAMES = ("robot", "base", "base_link")
"""Names under which a ledger may keep the robot's own pose."""

_SAME = 1e-6


@dataclass(frozen=True, eq=False)
class PlanarPoses:
    """Where one object stands in the frame of another, attempt by attempt.

    Attributes:
        name: The object.
        frame: What its pose is relative to.
        values: x and y in [m], yaw in [rad], shape (attempts, 3); NaN where an attempt does not say.
    """

    name: str
    frame: str
    values: Array


@dataclass(frozen=True, eq=False)
class Variable:
    """One number that attempts began with.

    Attributes:
        label: What it is.
        unit: Its unit.
        values: One number per attempt; NaN where an attempt does not say.
    """

    label: str
    unit: str
    values: Array

    @property
    def varies(self) -> bool:
        """Tell whether at least two attempts differ in it."""
        known = self.values[np.isfinite(self.values)]
        return known.size > 1 and float(np.ptp(known)) > _SAME


def planar_poses(records: Sequence[AttemptRecord], order: Sequence[str] = ()) -> list[PlanarPoses]:
    """Return every object relative to the robot (to the world if its pose was not kept), and the first to the others.

    Args:
        records: The attempts.
        order: Names of objects, the one that is acted on first; others follow by name.
    """
    world = _world_poses(records)
    robot = next((name for name in ROBOT_NAMES if name in world), None)
    names = [name for name in order if name in world] + sorted(set(world) - set(order) - set(ROBOT_NAMES))
    if robot is None:
        found = [PlanarPoses(name, "world", _centred(world[name])) for name in names]
    else:
        found = [PlanarPoses(name, "robot", _relative(world[robot], world[name])) for name in names]
    for other in names[1:]:
        found.insert(1, PlanarPoses(names[0], other, _relative(world[other], world[names[0]])))
    if robot is not None:
        found.append(PlanarPoses("robot", "world", _centred(world[robot])))
    return found


def variables(records: Sequence[AttemptRecord], poses: Sequence[PlanarPoses]) -> list[Variable]:
    """Return all numbers that attempts began with: planar poses, then whatever else the ledger keeps as one number."""
    found = []
    for pose in poses:
        for column, (axis, unit) in enumerate((("x", "m"), ("y", "m"), ("yaw", "°"))):
            values = pose.values[:, column]
            label = f"{pose.name} {axis}" + ("" if pose.frame == "world" else f" from the {pose.frame}")
            found.append(Variable(label, unit, np.degrees(values) if unit == "°" else values))
    begun = [_named(record) for record in records]
    for name in sorted({name for row in begun for name, values in row.items() if len(values) == 1}):
        scalars = [row[name][0] if len(row.get(name, ())) == 1 else np.nan for row in begun]
        found.append(Variable(name.replace(".", " "), "kg" if name.endswith("mass") else "", np.array(scalars)))
    return found


def _named(record: AttemptRecord) -> dict[str, Sequence[float]]:
    """Return what an attempt began with by name, without the kind that the ledger puts in front of it."""
    return {name.rpartition("/")[2]: values for name, values in record.initial.items()}


def _world_poses(records: Sequence[AttemptRecord]) -> dict[str, Array]:
    begun = [_named(record) for record in records]
    names = {name for row in begun for name, values in row.items() if len(values) in (4, 7)}
    return {name: np.array([_planar(row.get(name, ())) for row in begun]) for name in names}


def _planar(pose: Sequence[float]) -> tuple[float, float, float]:
    """Return x, y and yaw of a pose kept as (x, y, z, yaw) or as position and quaternion (x, y, z, w)."""
    if len(pose) == 4:
        return pose[0], pose[1], pose[3]
    if len(pose) != 7:
        return np.nan, np.nan, np.nan
    px, py, _, x, y, z, w = pose
    return px, py, float(np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z)))


def _relative(frame: Array, pose: Array) -> Array:
    delta, yaw = pose[:, :2] - frame[:, :2], frame[:, 2]
    c, s = np.cos(yaw), np.sin(yaw)
    result = np.column_stack([c * delta[:, 0] + s * delta[:, 1], c * delta[:, 1] - s * delta[:, 0], pose[:, 2] - yaw])
    return _centred(result)


def _centred(poses: Array) -> Array:
    """Move the cut of the angle to the far side of where the yaws are, so that 179 and 181 degrees are neighbours."""
    result, yaw = poses.copy(), poses[:, 2]
    known = yaw[np.isfinite(yaw)]
    if known.size:
        middle = np.arctan2(np.sin(known).mean(), np.cos(known).mean())
        result[:, 2] = middle + (yaw - middle + np.pi) % (2.0 * np.pi) - np.pi
    return result
