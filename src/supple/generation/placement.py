# SPDX-License-Identifier: Apache-2.0
"""Where to stand for a group of skills: reachable from start to end, balanced, and clear of the furniture."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.geometry import pose_error, pose_from_xyyaw, xyyaw_of
from supple.kinematics.hand_tracking import HandTracking
from supple.kinematics.ik_batch import IkBatchSolver, IkSolution
from supple.kinematics.model import KinematicModel
from supple.sim.clearance import ClearanceChecker

__all__ = ["Placement", "PlacementPlanner"]

Array = NDArray[np.float64]

# Walking ends a few centimetres off and the pelvis sways: a place counts as clear if it is so this much farther ahead.
_CLEARANCE = 0.07
# The margin is computed with the legs as they are; the walking policy shifts the pelvis back by 3 to 4 cm when the arms
# reach forward (measured), so a centre of mass that far ahead of the soles still balances.
_LEAST_MARGIN = -0.03
# The path is followed at every eighth step; there a hand may come a little short.
_STRIDE, _ITERATIONS = 8, 3
_LATER_POSITION, _LATER_ORIENTATION = 0.025, 0.2
_MAX_SPEED = 3.0
_BACK = (0.0, -0.03, 0.03, -0.06, -0.09, -0.12, -0.15, -0.18, -0.22)
_SIDE = (0.0, 0.06, -0.06, 0.12, -0.12)
_TURN = (0.0, 0.15, -0.15, 0.3, -0.3)


def _turned(place: Array, pivot: Array, angle: float) -> Array:
    """Return a place (x, y, yaw) turned about a point by an angle in [rad]."""
    if angle == 0.0:
        return place
    c, s = np.cos(angle), np.sin(angle)
    return np.array([*(pivot + np.array([[c, -s], [s, c]]) @ (place[:2] - pivot)), place[2] + angle])


@dataclass(frozen=True)
class Placement:
    """A place to stand and the configuration to begin the skills in.

    Attributes:
        T_world_base: Base pose.
        start: Configuration with the hands where the skills begin.
    """

    T_world_base: pin.SE3
    start: IkSolution


class PlacementPlanner:
    """Look for a place to stand, nearest to the demonstrated one first.

    Args:
        tracking: Inverse kinematics that follows paths.
        starts: Inverse kinematics that finds where they begin.
        kinematics: Where hands are.
        clearance: Collision checks in the present scene.
        rng: Random numbers for what the search starts from.
    """

    def __init__(
        self,
        tracking: HandTracking,
        starts: IkBatchSolver,
        kinematics: KinematicModel,
        clearance: ClearanceChecker,
        rng: np.random.Generator,
    ) -> None:
        self._tracking, self._starts, self._kinematics = tracking, starts, kinematics
        self._clearance, self._rng = clearance, rng
        self.failures: list[str] = []

    def reach(
        self,
        T_world_base: pin.SE3,
        q: Array,
        paths: Mapping[str, Sequence[pin.SE3]],
        postures: Array,
        motion: Sequence[pin.SE3] | None = None,
    ) -> IkSolution | None:
        """Return the configuration in which the skills begin from a given place, or None with the reason noted.

        Args:
            T_world_base: Where the robot stands.
            q: Joint positions to start from in [rad].
            paths: Hand targets over time, by effector; of equal length.
            postures: Joint positions of the demonstration over time, shape (steps, n).
            motion: Where the base is over time, relative to the given place; it stays there without.
        """
        targets = {name: path[0] for name, path in paths.items()}
        bases = None if motion is None else [T_world_base * T_stand_base for T_stand_base in motion]
        if bases is not None:
            q, T_world_base = q.copy(), bases[0]
            q[:12] = postures[0][:12]
        posture = q.copy()
        posture[12:29] = postures[0][12:29]
        # Neither legs nor base are freed: the walking policy, or the squat that was shown, has them.
        found = self._starts.search(
            T_world_base,
            q,
            targets,
            self._rng,
            solids=self._clearance.scene(),
            posture=posture,
            least_margin=_LEAST_MARGIN,
        )
        if not found.candidates:
            self.failures.append(f"{found.shortfall} at step 0 of {len(postures)}")
            return None
        start = found.candidates[0]
        return start if self._can_follow(bases or [T_world_base], start.q, paths, postures) else None

    def _can_follow(
        self, bases: Sequence[pin.SE3], q: Array, paths: Mapping[str, Sequence[pin.SE3]], postures: Array
    ) -> bool:
        """Tell whether the hands can be tracked to the end, as the skill will, without running into joint limits."""
        steps = len(postures)
        posture = q.copy()
        model = self._kinematics
        frames = [model.robot.effector(name).frame for name in paths]
        for i in (*range(_STRIDE, steps - 1, _STRIDE), steps - 1):
            targets = {name: path[min(i, len(path) - 1)] for name, path in paths.items()}
            T_world_base = bases[min(i, len(bases) - 1)]
            posture[15:29] = postures[i][15:29]
            before = q
            for _ in range(_ITERATIONS):
                q = self._tracking.step(T_world_base, q, targets, posture)
            speed = float(np.abs(q - before).max()) / (_STRIDE * model.robot.contract.control_interval)
            if speed > _MAX_SPEED:
                self.failures.append(f"an arm would have to move at {speed:.1f} rad/s at step {i} of {steps}")
                return False
            poses = model.frame_poses(model.configuration(T_world_base, q), *frames)
            for pose, target in zip(poses, targets.values(), strict=True):
                distance, angle = pose_error(pose, target)
                if distance > _LATER_POSITION or angle > _LATER_ORIENTATION:
                    self._miss(distance, angle, i, steps)
                    return False
        return True

    def _miss(self, distance: float, angle: float, step: int, steps: int) -> None:
        self.failures.append(
            f"hands end {100 * distance:.1f} cm and {np.degrees(angle):.0f} deg from their targets "
            f"at step {step} of {steps}"
        )

    def clear(self, T_world_base: pin.SE3, q: Array, margin: float = _CLEARANCE) -> bool:
        """Tell whether the robot stands clear of everything at a place, and a margin in [m] ahead of it."""
        for ahead in (0.0, margin):
            overlaps = self._clearance.overlaps(T_world_base * pin.SE3(np.eye(3), np.array([ahead, 0.0, 0.0])), q)
            if overlaps:
                worst = max(overlaps, key=lambda overlap: overlap.depth)
                self.failures.append(f"{worst.link} would be {100 * worst.depth:.1f} cm inside {worst.other}")
                return False
        return True

    def find(
        self,
        nominal: pin.SE3,
        height: float,
        q: Array,
        paths: Mapping[str, Sequence[pin.SE3]],
        postures: Array,
        limit: int,
        sides: Sequence[float] = (0.0,),
        accept: Callable[[pin.SE3], bool] | None = None,
        motion: Sequence[pin.SE3] | None = None,
    ) -> Placement | None:
        """Return a place to stand, or None; :attr:`failures` then says what was wrong with each.

        Args:
            nominal: The demonstrated place, carried over to the present object pose.
            height: Height of the standing base in [m].
            q: Joint positions the robot walks with in [rad].
            paths: Hand targets over time, by effector.
            postures: Joint positions of the demonstration over time, shape (steps, n).
            limit: Most places to try that are clear.
            sides: Angles in [rad] by which the place may be turned about where the hands work: from which sides.
            accept: Asked last whether a place will do, e.g. whether there is a way to it.
            motion: Where the base is over time, relative to the place; it stays there without.
        """
        self.failures = []
        work = np.mean([pose.translation[:2] for path in paths.values() for pose in path], axis=0)
        around = {angle: _turned(xyyaw_of(nominal), work, angle) for angle in sides}
        offsets = sorted(
            itertools.product(sides, _BACK, _SIDE, _TURN),
            key=lambda o: abs(o[1]) + abs(o[2]) + 0.3 * (abs(o[3]) + abs(o[0])),
        )
        tried = 0
        for angle, back, side, turn in offsets:
            x, y, yaw = around[angle]
            c, s = np.cos(yaw), np.sin(yaw)
            base = pose_from_xyyaw(x + c * back - s * side, y + s * back + c * side, yaw + turn, height)
            if not self.clear(base, q):
                continue
            if tried == limit:
                break
            tried += 1
            start = self.reach(base, q, paths, postures, motion)
            if start is not None and (accept is None or accept(base)):
                return Placement(base, start)
        return None
