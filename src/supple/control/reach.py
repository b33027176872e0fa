# SPDX-License-Identifier: Apache-2.0
"""Reaching: hands along straight lines to poses, turned into one joint trajectory by inverse kinematics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.control.trajectory import JointTrajectory
from supple.errors import StateError, SuppleError
from supple.geometry import interpolate_pose, minimum_jerk, pose_error
from supple.kinematics.ik_batch import IkBatch, IkBatchSolver
from supple.kinematics.model import KinematicModel
from supple.robots import Robot
from supple.robots.g1 import ARM_GROUPS

__all__ = ["ReachPlanner", "UnreachableError"]

Array = NDArray[np.float64]

# One inverse kinematics per this much of the way, in [m] and [rad].
_STRIDE = 0.03
_TURN = 0.2
_FEWEST, _MOST = 4, 24
# A motion takes at least this long in [s], however little there is to move.
_SHORTEST = 0.1
# On the way a hand may leave the straight line by this much in [m] and [rad], where the arm asks for it.
_WAY_POSITION, _WAY_ORIENTATION = 0.03, 0.3
# What is tried first, in [m] and [rad], whatever is accepted.
_EXACT = (2e-3, 0.02)


class UnreachableError(SuppleError, ValueError):
    """No configuration within limits brings the hands to their targets."""


class ReachPlanner:
    """Plan joint trajectories that move hands along straight lines, all arriving together.

    The arms alone move if they can; the waist helps where they cannot. Legs and base stay as they are, and the centre
    of mass over the feet.

    Args:
        robot: The robot.

    Attributes:
        kinematics: Where its hands are.
    """

    def __init__(self, robot: Robot) -> None:
        self.kinematics = KinematicModel(robot)
        self._robot, self._ik = robot, IkBatchSolver(robot)

    def plan(
        self,
        T_world_base: pin.SE3,
        q: Array,
        targets: Mapping[str, pin.SE3],
        duration: float = 0.0,
        speed_limit: float = 2.0,
        position_tolerance: float = 5e-3,
        orientation_tolerance: float = 0.05,
    ) -> JointTrajectory:
        """Return a joint trajectory to the targets.

        Args:
            T_world_base: Where the base stands.
            q: Joint positions at the start in [rad], shape (n,).
            targets: World pose wanted of each effector's frame, by effector name.
            duration: Time to take in [s]; 0 takes as long as the speed limit asks for.
            speed_limit: Largest joint speed in [rad/s].
            position_tolerance: Accepted distance of the planned end to its target in [m].
            orientation_tolerance: Accepted angle in [rad].

        Raises:
            UnreachableError: Some point of the way has no configuration; says which, what fails and by how much.
            StateError: The duration is too short for the speed limit.
        """
        start = self._effector_poses(T_world_base, q, targets)
        last = _count(start, targets)
        postures = [q]
        for i in range(1, last + 1):
            share = minimum_jerk(i / last)
            way = {name: interpolate_pose(start[name], target, share) for name, target in targets.items()}
            accepted = (position_tolerance, orientation_tolerance)
            if i < last:
                accepted = max(accepted[0], _WAY_POSITION), max(accepted[1], _WAY_ORIENTATION)
            found = self._search(T_world_base, postures[-1], way, accepted)
            if not found.candidates:
                where = f"{', '.join(targets)}: no configuration {100 * i // last} % of the way"
                raise UnreachableError(f"{where}: {found.shortfall}")
            postures.append(found.candidates[0].q)
        moving = self._robot.joints.group("waist", *ARM_GROUPS)
        names = tuple(self._robot.joints.names[i] for i in moving)
        return _timed(names, np.array(postures)[:, moving], duration, speed_limit)

    def _search(
        self, T_world_base: pin.SE3, q: Array, targets: Mapping[str, pin.SE3], accepted: tuple[float, float]
    ) -> IkBatch:
        """Look for a configuration near the one before: exact if there is one, else as near as is accepted."""
        exact = min(_EXACT[0], accepted[0]), min(_EXACT[1], accepted[1])
        for position, orientation in (exact, accepted):
            found = self._ik.search(
                T_world_base,
                q,
                targets,
                np.random.default_rng(0),
                seeds=1,
                position_tolerance=position,
                orientation_tolerance=orientation,
            )
            if found.candidates:
                break
        return found

    def _effector_poses(self, T_world_base: pin.SE3, q: Array, names: Iterable[str]) -> dict[str, pin.SE3]:
        frames = {name: self._robot.effector(name).frame for name in names}
        poses = self.kinematics.frame_poses(self.kinematics.configuration(T_world_base, q), *frames.values())
        return dict(zip(frames, poses, strict=True))


def _count(start: Mapping[str, pin.SE3], targets: Mapping[str, pin.SE3]) -> int:
    ways = [pose_error(start[name], target) for name, target in targets.items()]
    wanted = max(max(distance / _STRIDE, angle / _TURN) for distance, angle in ways)
    return int(np.clip(np.ceil(wanted), _FEWEST, _MOST))


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
