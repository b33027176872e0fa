# SPDX-License-Identifier: Apache-2.0
"""One inverse-kinematics problem of a standing robot: what is required, and Gauss-Newton steps towards it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import daqp
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.kinematics.collision import Allowance, CollisionModel, Distances
from supple.kinematics.solids import Solids
from supple.kinematics.stance import BASE, STANCE, Footing, StanceModel, Standing
from supple.robots.g1 import ANKLE_COUPLING, LEG_GROUPS, STANDING_WAIST_RANGE

__all__ = ["IkProblem", "Shortfall"]

Array = NDArray[np.float64]

_HAND_COST = np.array([10.0, 10.0, 10.0, 4.0, 4.0, 4.0])
_SOLE_COST = 30.0
_POSTURE_COST, _DAMPING = 3e-2, 3e-3
# Largest change per iteration: of a joint in [rad], of the base over the feet and of the place in [m] and [rad].
_JOINT_STEP, _BASE_STEP, _STANCE_STEP = 0.4, 0.15, 0.5
_SOLE_TOLERANCES = (1e-3, 5e-3)
# Spheres that overlap by less count as clear; constraints keep them a little farther apart than that.
_CLEARANCE_TOLERANCE, _PAD = 1e-3, 2e-3
# Pairs nearer than this become constraints, the nearest first; one that overlaps is parted by so much per iteration.
_NEAR, _MOST_PAIRS, _PARTING = 0.05, 16, 0.04
_NEAR_EDGE = 0.06
_ITERATIONS, _GUARDED_ITERATIONS = 30, 20
# Without so much progress within some iterations, a start is given up; sooner where no base has to come along.
_WINDOW, _FIXED_WINDOW, _PROGRESS = 4, 3, 0.7
_SOFT = 8
_BASE_RANGES = {"x": 0.25, "y": 0.15, "yaw": 0.5}
_PITCH_RANGE = (-0.2, 0.9)
_ORDER = ("position", "orientation", "feet", "balance", "self_collision", "scene_collision")


@dataclass(frozen=True)
class Shortfall:
    """The requirement that a configuration misses; those before it in the order are met.

    Attributes:
        requirement: ``"position"`` or ``"orientation"`` of a hand, ``"feet"``, ``"balance"``, ``"self_collision"`` or
            ``"scene_collision"``: the order in which they are checked.
        amount: By how much it is missed, in [m]; in [rad] for an orientation.
        subject: What misses it, e.g. ``"left_hand"`` or ``"left_elbow_link and table"``.
    """

    requirement: str
    amount: float
    subject: str

    @property
    def rank(self) -> tuple[int, float]:
        """What orders shortfalls from far away to nearly met."""
        return _ORDER.index(self.requirement), -self.amount

    def __str__(self) -> str:
        """Return a sentence for a person."""
        if self.requirement == "orientation":
            return f"{self.subject} ends {np.degrees(self.amount):.1f} deg beyond its tolerance"
        text = {
            "position": "{} ends {} cm beyond its tolerance",
            "feet": "{} is {} cm off the floor's place for it",
            "balance": "{} is {} cm too far out over the feet",
            "self_collision": "{} overlap by {} cm",
            "scene_collision": "{} overlap by {} cm",
        }[self.requirement]
        return text.format(self.subject, f"{100.0 * self.amount:.1f}")


class IkProblem:
    """Targets, footing and obstacles of one search.

    Args:
        stance: The model.
        standing: How the robot stands at the beginning.
        targets: World poses of hands, by effector.
        footing: What legs and base may do.
        collisions: The robot's spheres, if collisions count.
        solids: The scene.
        allowance: Overlaps that are excused.
        least_margin: Least distance of the centre of mass from the edge of the support in [m].
        tolerances: Accepted distance in [m] and angle in [rad] of a hand.

    Attributes:
        iterations: Steps taken for the last start.
    """

    def __init__(
        self,
        stance: StanceModel,
        standing: Standing,
        targets: Mapping[str, pin.SE3],
        footing: Footing,
        collisions: CollisionModel | None,
        solids: Solids,
        allowance: Allowance | None,
        least_margin: float,
        tolerances: tuple[float, float],
    ) -> None:
        self._stance, self._standing, self._targets, self._footing = stance, standing, dict(targets), footing
        self._collisions, self._solids, self._allowance = collisions, solids, allowance
        self._least_margin, self._tolerances = least_margin, tolerances
        self.iterations = 0
        self._hands: dict[str, tuple[Array, Array]] = {}
        self._soles: list[tuple[Array, Array]] = []
        # While the walking policy owns the legs, the waist keeps the range in which it still stands.
        lower, upper = stance.limits({} if footing.heights else STANDING_WAIST_RANGE)
        if footing.heights:
            at = standing.x[BASE]
            for i, name in ((0, "x"), (1, "y"), (3, "yaw")):
                lower[BASE.start + i], upper[BASE.start + i] = at[i] - _BASE_RANGES[name], at[i] + _BASE_RANGES[name]
            lower[BASE.start + 2], upper[BASE.start + 2] = footing.heights
            lower[BASE.start + 4], upper[BASE.start + 4] = _PITCH_RANGE
        self._lower, self._upper = lower, upper
        self._step = np.full(len(lower), _JOINT_STEP)
        self._step[STANCE], self._step[BASE] = _STANCE_STEP, _BASE_STEP
        index = stance.robot.joints.index
        self._ankles = np.zeros((4, len(lower)))
        for i, (side, sign) in enumerate(itertools.product(("left", "right"), (-1.0, 1.0))):
            self._ankles[i, stance.columns[index(f"{side}_ankle_pitch_joint")]] = 1.0
            self._ankles[i, stance.columns[index(f"{side}_ankle_roll_joint")]] = sign * ANKLE_COUPLING
        self._lowest_ankle = lower[stance.columns[index("left_ankle_pitch_joint")]]

    def hand_errors(self) -> tuple[float, float]:
        """Return the largest distance in [m] and angle in [rad] of a hand to its target, where the search is now."""
        errors = [error for error, _ in self._hands.values()]
        return (
            max((float(np.linalg.norm(error[:3])) for error in errors), default=0.0),
            max((float(np.linalg.norm(error[3:])) for error in errors), default=0.0),
        )

    def margin(self, x: Array) -> float:
        """Return the distance of the centre of mass from the edge of the support in [m], where the search is now."""
        return float(self._stance.balance(x, self._standing.edges)[0].min())

    def solve(self, start: Array, free: NDArray[np.intp]) -> tuple[Array, Shortfall | None]:
        """Iterate from a start with some coordinates free.

        Args:
            start: Coordinates; those that are free are brought within their limits.
            free: Indices of the coordinates that may move.

        Returns:
            Where it ended, and which requirement failed last on the way there; None if all are met.
        """
        x = self._standing.x.copy()
        x[free] = np.clip(start[free], self._lower[free], self._upper[free])
        near = x[free].copy()
        legs = bool(np.isin(self._stance.columns[self._stance.robot.joints.group(*LEG_GROUPS)], free).any())
        window = _FIXED_WINDOW if free.min() >= BASE.stop else _WINDOW
        guarded = False
        history: list[float] = []
        nearest: Shortfall | None = None
        self.iterations = budget = 0
        while True:
            self._update(x, legs)
            shortfall = self._reach(legs)
            distances = None
            if shortfall is None or guarded:
                distances = self._distances()
                shortfall = shortfall or self._balance(x) or self._clearance(distances)
            if shortfall is None:
                return x, None
            # Minding a collision can take the hand away again; it is the collision that stands in the way.
            if nearest is None or shortfall.rank > nearest.rank:
                nearest = shortfall
            if not guarded and shortfall.requirement in _ORDER[3:]:
                guarded, budget, history = True, self.iterations + _GUARDED_ITERATIONS, []
            history.append(self._measure(shortfall))
            stuck = len(history) > window and min(history[-window:]) > _PROGRESS * min(history[:-window])
            if stuck or self.iterations >= (budget if guarded else _ITERATIONS):
                return x, nearest
            move = self._move(x, near, free, guarded, distances)
            if move is None:
                return x, nearest
            x[free] += move
            self.iterations += 1

    # -- requirements ------------------------------------------------------------------------------------------------

    def _update(self, x: Array, legs: bool) -> None:
        stance = self._stance
        stance.update(x)
        self._hands = {name: stance.hand_error(name, target) for name, target in self._targets.items()}
        soles = self._standing.soles if legs else ()
        self._soles = [stance.sole_error(foot, x, sole) for foot, sole in enumerate(soles)]

    def _reach(self, legs: bool) -> Shortfall | None:
        for part, name, tolerance in zip((slice(0, 3), slice(3, 6)), _ORDER[:2], self._tolerances, strict=True):
            sizes = [(math.sqrt(error[part] @ error[part]), hand) for hand, (error, _) in self._hands.items()]
            worst, hand = max(sizes, default=(0.0, ""))
            if worst > tolerance:
                return Shortfall(name, worst - tolerance, hand)
        for side, (error, _) in zip(("left", "right"), self._soles, strict=False):
            distance, angle = math.sqrt(error[:3] @ error[:3]), math.sqrt(error[3:] @ error[3:])
            if distance > _SOLE_TOLERANCES[0] or angle > _SOLE_TOLERANCES[1]:
                return Shortfall("feet", max(distance, 0.1 * angle), f"{side} sole")
        return None

    def _balance(self, x: Array) -> Shortfall | None:
        missing = self._least_margin - self.margin(x)
        return Shortfall("balance", missing, "the centre of mass") if missing > 0.0 else None

    def _distances(self) -> Distances | None:
        if self._collisions is None:
            return None
        centres = self._collisions.centres(self._stance.data)
        return self._collisions.distances(centres, self._solids, self._allowance)

    def _clearance(self, distances: Distances | None) -> Shortfall | None:
        if self._collisions is None or distances is None:
            return None
        own = self._collisions.nearest_own(distances)
        scene = self._collisions.nearest_scene(distances, self._solids)
        for name, nearest in (("self_collision", own), ("scene_collision", scene)):
            if nearest is not None and nearest.distance < -_CLEARANCE_TOLERANCE:
                return Shortfall(name, -nearest.distance, f"{nearest.link} and {nearest.other}")
        return None

    def _measure(self, shortfall: Shortfall) -> float:
        """Return one number that falls while a start makes progress."""
        errors = [_HAND_COST * error for error, _ in self._hands.values()]
        errors += [_SOLE_COST * error for error, _ in self._soles]
        size = float(np.sqrt(sum(float(error @ error) for error in errors)))
        return size + (_SOLE_COST * shortfall.amount if shortfall.requirement in _ORDER[3:] else 0.0)

    # -- steps -------------------------------------------------------------------------------------------------------

    def _move(
        self, x: Array, near: Array, free: NDArray[np.intp], guarded: bool, distances: Distances | None
    ) -> Array | None:
        """Return the best change of the free coordinates within limits, or nothing if the solver finds none."""
        weight = _POSTURE_COST**2
        hessian = np.diag(np.full(len(free), weight + _DAMPING))
        gradient = weight * (x[free] - near)
        terms = [(error, jacobian, _HAND_COST) for error, jacobian in self._hands.values()]
        terms += [(error, jacobian, np.full(6, _SOLE_COST)) for error, jacobian in self._soles]
        for error, jacobian, cost in terms:
            weighed = cost[:, None] * jacobian[:, free]
            hessian += weighed.T @ weighed
            gradient += weighed.T @ (cost * error)
        step = self._step[free]
        lower = np.maximum(self._lower[free] - x[free], -step)
        upper = np.minimum(self._upper[free] - x[free], step)
        rows, least = self._guards(x, free, guarded, distances)
        matrix = np.array(rows).reshape(len(rows), len(free))
        sense = np.zeros(len(free) + len(rows), dtype=np.int32)
        sense[len(free) :] = _SOFT
        move, _, flag, _ = daqp.solve(
            hessian,
            gradient,
            matrix,
            np.concatenate([upper, np.full(len(rows), 1e30)]),
            np.concatenate([lower, np.array(least)]),
            sense,
        )
        return np.clip(move, lower, upper) if flag > 0 else None

    def _guards(
        self, x: Array, free: NDArray[np.intp], guarded: bool, distances: Distances | None
    ) -> tuple[list[Array], list[float]]:
        """Return gradients of what must stay large enough, and by how much each must grow at least."""
        rows: list[Array] = []
        least: list[float] = []
        if self._soles:
            rows += list(self._ankles[:, free])
            least += (self._lowest_ankle - self._ankles @ x).tolist()
        if not guarded:
            return rows, least
        margins, gradients = self._stance.balance(x, self._standing.edges)
        for margin, gradient in zip(margins.tolist(), gradients, strict=True):
            if margin < self._least_margin + _NEAR_EDGE:
                rows.append(gradient[free])
                least.append(self._least_margin + _PAD - margin)
        if self._collisions is not None and distances is not None:
            joints, centres = self._collisions.joint_ids, distances.centres
            for pair in self._collisions.near_pairs(distances, self._solids, _NEAR)[:_MOST_PAIRS]:
                row = self._stance.point_jacobian(int(joints[pair.sphere]), centres[pair.sphere], pair.away)
                if pair.other is not None:
                    row = row - self._stance.point_jacobian(int(joints[pair.other]), centres[pair.other], pair.away)
                rows.append(row[free])
                least.append(min(_PAD - pair.distance, _PARTING))
        return rows, least
