# SPDX-License-Identifier: Apache-2.0
"""How waist and arms get to where a skill begins: straight in joint space where that is free, else round things."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.errors import PlanningError
from supple.planning.arm_path import Blocked, is_straight_free, plan_arm_path
from supple.robots import ActionKind, Robot
from supple.robots.g1 import ARM_GROUPS
from supple.sim.clearance import ClearanceChecker, Overlap

__all__ = ["ApproachPlanner"]

Array = NDArray[np.float64]

# Where the base may be while the arms move, relative to where it was measured, in [m]: it sways, and the arms sag.
_STILL = np.zeros((1, 3))
_SHIFTS = 0.02 * np.array([[0, 0, 0], [1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]])
# Depth of overlap that is forgiven in [m].
_TOLERANCE = 0.004


class ApproachPlanner:
    """Find ways for waist and arms in the present scene.

    Args:
        robot: The robot.
        clearance: Collision checks in the scene, with what the robot carries.
    """

    def __init__(self, robot: Robot, clearance: ClearanceChecker) -> None:
        self._clearance = clearance
        self._moving = robot.joints.group("waist", *ARM_GROUPS)
        contract = robot.contract
        entry_of = {contract.terms[i].name: i for i in contract.of_kind(ActionKind.JOINT_POSITION)}
        entries = [entry_of[robot.joints.names[i]] for i in self._moving]
        self._lower, self._upper = contract.lower[entries], contract.upper[entries]

    def way(self, T_world_base: pin.SE3, start: Array, goal: Array, rng: np.random.Generator) -> Array:
        """Return joint positions (k, n) in [rad], table order, from start to goal; two of them if straight on is free.

        Round things the arms keep 2 cm away where they can.

        Args:
            T_world_base: Where the base stands.
            start: Joint positions in [rad], shape (n,).
            goal: Joint positions in [rad], shape (n,); only waist and arms move.
            rng: Source of random positions; not drawn from if straight on is free.

        Raises:
            PlanningError: No way was found; says what was in the way.
        """
        begin, end = start[self._moving], goal[self._moving]
        still = self._blocked(T_world_base, start, goal, _STILL)
        if is_straight_free(begin, end, still):
            return np.array([start, goal])
        # A joint may have been measured, or demonstrated, a little beyond its limit.
        lower = np.minimum(self._lower, np.minimum(begin, end))
        upper = np.maximum(self._upper, np.maximum(begin, end))
        try:
            shifted = self._blocked(T_world_base, start, goal, _SHIFTS)
            way = plan_arm_path(begin, end, lower, upper, shifted, rng)
        except PlanningError:
            way = plan_arm_path(begin, end, lower, upper, still, rng)
        rows = np.repeat(start[None], len(way), axis=0)
        rows[:, self._moving] = way
        return rows

    def _blocked(self, T_world_base: pin.SE3, start: Array, goal: Array, shifts: Array) -> Blocked:
        """Return a test of the moving joints' positions, from places shifted a little.

        What overlaps at the start or at the goal may do so on the way, but no deeper.
        """
        places = [T_world_base * pin.SE3(np.eye(3), shift) for shift in shifts]

        def overlaps(q: Array, least: float) -> Iterator[Overlap]:
            for place in places:
                yield from self._clearance.overlaps(place, q, least)

        resting: dict[tuple[str, str], float] = {}
        for overlap in (*overlaps(start, 0.0), *overlaps(goal, 0.0)):
            pair = overlap.link, overlap.other
            resting[pair] = max(resting.get(pair, 0.0), overlap.depth)

        def blocked(row: Array) -> str | None:
            q = start.copy()
            q[self._moving] = row
            for overlap in overlaps(q, _TOLERANCE):
                if overlap.depth > resting.get((overlap.link, overlap.other), 0.0) + _TOLERANCE:
                    return f"{overlap.link} would be inside {overlap.other}"
            return None

        return blocked
