# SPDX-License-Identifier: Apache-2.0
"""Reaching: hands along straight lines to poses, turned into one joint trajectory by inverse kinematics."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.control.trajectory import JointTrajectory
from supple.errors import StateError, SuppleError
from supple.geometry import interpolate_pose, minimum_jerk, pose_error
from supple.kinematics.whole_body_ik import IkSolution, WholeBodyIK
from supple.robots.g1 import ARM_GROUPS

__all__ = ["UnreachableError", "plan_reach"]

Array = NDArray[np.float64]

# One inverse kinematics per this much of the way, in [m] and [rad].
_STRIDE = 0.03
_TURN = 0.2
_FEWEST, _MOST = 4, 24
# A motion takes at least this long in [s], however little there is to move.
_SHORTEST = 0.1
# On the way a hand may leave the straight line by this much in [m] and [rad], where the arm asks for it.
_WAY_POSITION, _WAY_ORIENTATION = 0.03, 0.3


class UnreachableError(SuppleError, ValueError):
    """No configuration within limits brings the hands to their targets."""


def plan_reach(
    ik: WholeBodyIK,
    T_world_base: pin.SE3,
    q: Array,
    targets: Mapping[str, pin.SE3],
    duration: float = 0.0,
    speed_limit: float = 2.0,
    position_tolerance: float = 5e-3,
    orientation_tolerance: float = 0.05,
) -> JointTrajectory:
    """Return a joint trajectory that moves hands along straight lines, all arriving together.

    The arms alone move if they can; the waist helps where they cannot.

    Args:
        ik: Inverse kinematics of the robot.
        T_world_base: Where the base stands.
        q: Joint positions at the start in [rad], shape (n,).
        targets: World pose wanted of each effector's frame, by effector name.
        duration: Time to take in [s]; 0 takes as long as the speed limit asks for.
        speed_limit: Largest joint speed in [rad/s].
        position_tolerance: Accepted distance of the planned end to its target in [m].
        orientation_tolerance: Accepted angle in [rad].

    Raises:
        UnreachableError: Some point of the way has no configuration; says which and how far off.
        StateError: The duration is too short for the speed limit.
    """
    robot = ik.robot
    start = _effector_poses(ik, T_world_base, q, targets)
    fractions = [minimum_jerk(s) for s in np.linspace(0.0, 1.0, _count(start, targets) + 1)]
    ways = [{name: interpolate_pose(start[name], targets[name], s) for name in targets} for s in fractions]
    for free in (ARM_GROUPS, ("waist", *ARM_GROUPS)):
        postures, failure = _solve(ik, T_world_base, q, ways, free, (position_tolerance, orientation_tolerance))
        if failure is None:
            break
    else:
        raise UnreachableError(failure)
    moving = robot.joints.group("waist", *ARM_GROUPS)
    positions = np.array(postures)[:, moving]
    return _timed(tuple(robot.joints.names[i] for i in moving), positions, duration, speed_limit)


def _effector_poses(
    ik: WholeBodyIK, T_world_base: pin.SE3, q: Array, names: Mapping[str, pin.SE3]
) -> dict[str, pin.SE3]:
    frames = [ik.robot.effector(name).frame for name in names]
    poses = ik.kinematics.frame_poses(ik.kinematics.configuration(T_world_base, q), *frames)
    return dict(zip(names, poses, strict=True))


def _count(start: Mapping[str, pin.SE3], targets: Mapping[str, pin.SE3]) -> int:
    ways = [pose_error(start[name], target) for name, target in targets.items()]
    wanted = max(max(distance / _STRIDE, angle / _TURN) for distance, angle in ways)
    return int(np.clip(np.ceil(wanted), _FEWEST, _MOST))


def _solve(
    ik: WholeBodyIK,
    T_world_base: pin.SE3,
    q: Array,
    ways: list[dict[str, pin.SE3]],
    free: tuple[str, ...],
    end_tolerances: tuple[float, float],
) -> tuple[list[Array], str | None]:
    postures, last = [q], len(ways) - 1
    for i, way in enumerate(ways[1:], start=1):
        solution: IkSolution = ik.solve(T_world_base, postures[-1], way, free, posture=q)
        position, orientation = end_tolerances
        if i < last:
            position, orientation = max(position, _WAY_POSITION), max(orientation, _WAY_ORIENTATION)
        if solution.position_error > position or solution.orientation_error > orientation:
            return postures, (
                f"{', '.join(way)}: no configuration {100 * i // last} % of the way; best is "
                f"{1e3 * solution.position_error:.0f} mm and {solution.orientation_error:.2f} rad off"
            )
        postures.append(solution.q)
    return postures, None


def _timed(names: tuple[str, ...], positions: Array, duration: float, speed_limit: float) -> JointTrajectory:
    # Points are even in time along a minimum-jerk profile; the spline through them takes one unit of time here.
    shares = np.linspace(0.0, 1.0, len(positions))
    slopes = np.gradient(positions, shares, axis=0)
    slopes[0] = slopes[-1] = 0.0
    unit = JointTrajectory(names, shares, positions, slopes)
    fastest = max(float(np.abs(unit.sample(share)[1]).max()) for share in np.linspace(0.0, 1.0, 8 * len(positions)))
    shortest = max(fastest / speed_limit, _SHORTEST)
    if duration and duration < shortest:
        raise StateError(f"reach: {duration:.2f} s is too short for {speed_limit:.1f} rad/s; at least {shortest:.2f} s")
    time = duration or shortest
    return JointTrajectory(names, time * shares, positions, slopes / time)
