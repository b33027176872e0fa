# SPDX-License-Identifier: Apache-2.0
"""Batches of whole-body configurations: as few joints moved as needed, balanced, and clear of scene and self."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.errors import SettingError, StateError
from supple.kinematics.collision import Allowance, CollisionModel
from supple.kinematics.ik_problem import IkProblem, Shortfall
from supple.kinematics.solids import Solids
from supple.kinematics.stance import BASE, STANCE, Footing, StanceModel
from supple.robots import Robot
from supple.robots.g1 import ARM_GROUPS, LEG_GROUPS

__all__ = ["STAGES", "IkBatch", "IkBatchSolver", "IkSolution"]

Array = NDArray[np.float64]

STAGES = ("arms", "arms + torso", "arms + legs/base", "all")
"""What is freed, in this order, until something is found (HumanoidMimicGen, whole-body inverse kinematics)."""

# How far seeds after the first are drawn from it: share of an arm joint's range, metres and radians of place.
_ARM_SPREAD, _PLACE_SPREAD, _TURN_SPREAD = 0.25, 0.1, 0.25

# A stage whose first start leaves a hand farther away than this in [m] is not tried again from elsewhere.
_HOPELESS = 0.03


@dataclass(frozen=True)
class IkSolution:
    """A configuration and how well it does what was asked.

    Attributes:
        T_world_base: Base pose.
        q: Joint positions in [rad], table order, shape (n,).
        position_error: Largest distance of a hand to its target in [m].
        orientation_error: Largest angle of a hand to its target in [rad].
        iterations: Steps taken.
        support_margin: Distance of the centre of mass to the edge of the feet's support in [m]; negative outside.
        freed: Joint groups that were free to move (``"base"`` among them if the base was).
    """

    T_world_base: pin.SE3
    q: Array
    position_error: float
    orientation_error: float
    iterations: int
    support_margin: float
    freed: tuple[str, ...]


@dataclass(frozen=True)
class IkBatch:
    """What a search found.

    Attributes:
        candidates: Configurations that meet every requirement, at most as many as were wanted.
        group: Which of :data:`STAGES` was needed; None when nothing was found.
        shortfall: When nothing was found, the requirement that failed last and by how much.
        tried: Number of starts that were iterated from, over all stages.
    """

    candidates: tuple[IkSolution, ...]
    group: str | None
    shortfall: Shortfall | None
    tried: int


class IkBatchSolver:
    """Find configurations that bring the hands to their targets.

    Joints are freed in the order of :data:`STAGES`; the first stage in which anything is found gives all candidates.
    Within a stage each seed is iterated by Gauss-Newton steps (a QP with the joints' limits), first without minding
    collisions and balance; only when the hands are there and one of these fails, it joins as constraints.

    Args:
        robot: The robot.
        collisions: Its collision spheres; nothing is checked against collisions without.
    """

    def __init__(self, robot: Robot, collisions: CollisionModel | None = None) -> None:
        self.robot = robot
        self.collisions = collisions
        self._stance = StanceModel(robot)

    def search(
        self,
        T_world_base: pin.SE3,
        q: Array,
        targets: Mapping[str, pin.SE3],
        rng: np.random.Generator,
        *,
        footing: Footing | None = None,
        solids: Solids | None = None,
        contacts: Collection[str] = (),
        allowance: Allowance | None = None,
        posture: Array | None = None,
        seeds: int = 4,
        wanted: int = 1,
        least_margin: float = 0.0,
        position_tolerance: float = 2e-3,
        orientation_tolerance: float = 0.02,
    ) -> IkBatch:
        """Return candidates of the first stage that has any.

        Args:
            T_world_base: Base pose to start from.
            q: Joint positions to start from in [rad], table order, shape (n,).
            targets: World pose wanted of each effector's frame, by effector name; others are left alone.
            rng: Randomness of the seeds after the first.
            footing: What legs and base may do; by default both stay as they are.
            solids: The scene; only self-collision is checked if absent.
            contacts: Bodies that the hands are meant to press on at their targets.
            allowance: Which overlaps are excused; by default these contacts, and what touches at the start or with the
                hands at their targets.
            posture: Joint positions to stay near and to start the arms from; ``q`` if absent.
            seeds: Starts per stage.
            wanted: Candidates after which to stop.
            least_margin: Least distance of the centre of mass from the edge of the support in [m].
            position_tolerance: Accepted distance of a hand in [m].
            orientation_tolerance: Accepted angle of a hand in [rad].

        Raises:
            UnknownNameError: An effector or a body that is to be pressed on does not exist.
            StateError: A target, the base pose or a joint position is not finite.
            SettingError: No seed or no candidate is asked for, or a range is empty.
        """
        if seeds < 1 or wanted < 1:
            raise SettingError(f"at least one seed and one candidate, got seeds {seeds} and wanted {wanted}")
        footing = footing or Footing()
        for name, target in targets.items():
            self.robot.effector(name)
            # Comparisons with NaN are false: such a target would count as reached.
            if not np.isfinite(target.homogeneous).all():
                raise StateError(f"target of {name!r} is not finite")
        standing = self._stance.standing(T_world_base, q, footing.feet)
        if solids is None:
            solids = Solids(())
        if allowance is None and self.collisions is not None:
            allowance = self.collisions.touching_at(T_world_base, q, targets, solids, contacts)
        problem = IkProblem(
            stance=self._stance,
            standing=standing,
            targets=targets,
            footing=footing,
            collisions=self.collisions,
            solids=solids,
            allowance=allowance,
            least_margin=least_margin,
            tolerances=(position_tolerance, orientation_tolerance),
        )
        first = standing.x.copy()
        if posture is not None:
            if not np.isfinite(posture).all():
                raise StateError("the posture to stay near is not finite")
            arms = self.robot.joints.group(*ARM_GROUPS)
            first[self._stance.columns[arms]] = posture[arms]
        tried, last = 0, None
        self._stance.update(standing.x)
        beyond_arms = any(self._stance.beyond_arm(name, target) for name, target in targets.items())
        for stage, groups in self._stages(targets, footing):
            if stage == STAGES[0] and beyond_arms:
                continue
            free = self._free(groups, footing)
            found = []
            best: Shortfall | None = None
            for number in range(seeds):
                start = first if number == 0 else self._drawn(first, free, footing, rng)
                x, shortfall = problem.solve(start, free)
                tried += 1
                if shortfall is None:
                    found.append(self._solution(problem, x, groups, T_world_base, q, free))
                    if len(found) == wanted:
                        break
                    continue
                if best is None or shortfall.rank > best.rank:
                    best = shortfall
                if number == 0 and shortfall.requirement == "position" and shortfall.amount > _HOPELESS:
                    break
            if found:
                return IkBatch(tuple(found), stage, None, tried)
            last = best
        return IkBatch((), None, last, tried)

    def _stages(self, targets: Mapping[str, pin.SE3], footing: Footing) -> list[tuple[str, tuple[str, ...]]]:
        """Return each stage with the joint groups that it frees, ``"base"`` among them."""
        arms = tuple(sorted(self.robot.effector(name).arm for name in targets))
        lower = (*(LEG_GROUPS if footing.heights else ()), *(("base",) if footing.moves else ()))
        stages = [("arms", arms), ("arms + torso", (*arms, "waist"))]
        if lower:
            stages += [("arms + legs/base", (*arms, *lower)), ("all", (*ARM_GROUPS, "waist", *lower))]
        return stages

    def _free(self, groups: Sequence[str], footing: Footing) -> NDArray[np.intp]:
        """Return the coordinates that a stage frees; the base keeps its roll."""
        joints = [group for group in groups if group != "base"]
        free = self._stance.columns[self.robot.joints.group(*joints)].tolist()
        if "base" in groups:
            free += [*range(STANCE.start, STANCE.stop)] if footing.step else []
            free += [*range(BASE.start, BASE.stop - 1)] if footing.heights else []
        return np.array(sorted(free))

    def _drawn(self, first: Array, free: NDArray[np.intp], footing: Footing, rng: np.random.Generator) -> Array:
        """Return another start: arms drawn round the first one's, place and height as far as they are free."""
        x = first.copy()
        joints, columns = self.robot.joints, self._stance.columns
        arms = joints.group(*ARM_GROUPS)
        arms = arms[np.isin(columns[arms], free)]
        reach = _ARM_SPREAD * (joints.upper[arms] - joints.lower[arms])
        x[columns[arms]] += reach * rng.uniform(-1.0, 1.0, len(arms))
        if np.isin(STANCE.start, free):
            spread = np.array([_PLACE_SPREAD, _PLACE_SPREAD, _TURN_SPREAD])
            x[STANCE] += spread * rng.uniform(-1.0, 1.0, 3)
        if footing.heights and np.isin(BASE.start, free):
            x[BASE.start + 2] = rng.uniform(*footing.heights)
        return x

    def _solution(
        self,
        problem: IkProblem,
        x: Array,
        groups: Sequence[str],
        T_world_base: pin.SE3,
        q: Array,
        free: NDArray[np.intp],
    ) -> IkSolution:
        base, joints = self._stance.pose(x)
        joints = np.where(np.isin(self._stance.columns, free), joints, q)
        if "base" not in groups:
            base = T_world_base
        position, angle = problem.hand_errors()
        margin = problem.margin(x)
        return IkSolution(base, joints, position, angle, problem.iterations, margin, tuple(sorted(groups)))
