# SPDX-License-Identifier: Apache-2.0
"""Whether what happened in a scene could happen in the world: nobody falls, feet hold, nothing passes through another.

Contacts are intended, have no limit here and are reported apart, if they lie between

- soles and floor,
- two bodies that a task names as a pair, or what hangs on them: a hand and what it holds, an object and its support,
- a deformable body and anything: it is soft.

All others are outside them, those of the robot with itself included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from supple.sim.world import World

__all__ = ["LIMITS", "UPRIGHT", "Soundness", "SoundnessMonitor"]

Array = NDArray[np.float64]

UPRIGHT = 0.6
"""Cosine of the pelvis' tilt from the vertical below which the robot falls."""

LIMITS: Mapping[str, float] = {"tilt": float(np.arccos(UPRIGHT)), "foot_slide": 0.02, "penetration": 0.005}
"""What a retained episode may reach: tilt in [rad], slide and penetration in [m]."""

# Contacts flicker: a point of a sole that touched the floor is held until it is so far above it, in [m].
_LIFTED = 0.002


@dataclass(frozen=True)
class Soundness:
    """The worst of an episode.

    Attributes:
        tilt: Of the pelvis from the vertical in [rad].
        foot_slide: Farthest that a point of a sole moved along the floor, from touching down to lifting off while the
            robot was told to stand, in [m].
        penetration: Deepest outside intended contacts in [m].
        intended_penetration: Deepest in intended contacts in [m].
        deepest: The two bodies of the deepest contact outside intended ones; empty if there was none.
    """

    tilt: float
    foot_slide: float
    penetration: float
    intended_penetration: float
    deepest: tuple[str, ...] = ()

    @property
    def measures(self) -> dict[str, float]:
        """The numbers by name."""
        names = ("tilt", "foot_slide", "penetration", "intended_penetration")
        return {name: getattr(self, name) for name in names}

    def excess(self) -> dict[str, str]:
        """Return what is beyond its limit, by name, each as a sentence for a person; empty if all is sound."""
        bodies, limit = " and ".join(self.deepest), LIMITS
        texts = {
            "tilt": f"the pelvis tilted by {np.degrees(self.tilt):.0f} deg, wanted at most "
            f"{np.degrees(limit['tilt']):.0f} deg",
            "foot_slide": f"a foot slid {1e2 * self.foot_slide:.1f} cm while the robot stood, wanted at most "
            f"{1e2 * limit['foot_slide']:g} cm",
            "penetration": f"{bodies} were {1e3 * self.penetration:.1f} mm inside each other, wanted at most "
            f"{1e3 * limit['penetration']:g} mm",
        }
        return {name: text for name, text in texts.items() if getattr(self, name) > limit[name]}


class SoundnessMonitor:
    """Note once per control interval what tells whether an episode is sound; the sums are done at its end.

    Args:
        world: The scene; it is only read.
        intended: Pairs of bodies whose contact is intended, each with what hangs on it.
    """

    def __init__(self, world: World, intended: Iterable[tuple[str, str]]) -> None:
        self._world = world
        model, robot = world.model, world.robot
        links = [robot.frame(name).link for name in robot.wrench_frames if name.endswith("_sole")]
        self._pelvis = world.body_id(robot.base_link)
        self._feet = np.array([world.body_id(name) for name in links], dtype=np.intp)
        # Views of the simulation's own memory, looked up once.
        self._positions, self._rotations = world.data.xpos, world.data.xmat
        floor = model.geom("floor")
        self._floor = float(floor.pos[2])
        self._soles = [self._sole(body) for body in self._feet.tolist()]
        of_floor = np.arange(model.ngeom) == floor.id
        # One row and column more, the last: index -1, by which MuJoCo names a deformable body.
        self._intended = np.ones((model.ngeom + 1, model.ngeom + 1), dtype=bool)
        self._intended[:-1, :-1] = False
        pairs = [[world.attached_to(name)[model.geom_bodyid] for name in pair] for pair in intended]
        pairs += [[world.attached_to(link)[model.geom_bodyid], of_floor] for link in links]
        for first, second in pairs:
            self._intended[:-1, :-1] |= np.outer(first, second) | np.outer(second, first)
        self.reset()

    def _sole(self, body: int) -> tuple[Array, Array]:
        """Return both ends of each capsule of a sole in the link's frame in [m], shape (n, 3), and their radii (n,)."""
        model = self._world.model
        mine = (model.geom_bodyid == body) & (model.geom_type == mujoco.mjtGeom.mjGEOM_CAPSULE)
        ends, radii = [], []
        for geom in np.flatnonzero(mine).tolist():
            rotation = np.zeros(9)
            mujoco.mju_quat2Mat(rotation, model.geom_quat[geom])
            radius, half, _ = model.geom_size[geom]
            ends += [model.geom_pos[geom] + sign * half * rotation[[2, 5, 8]] for sign in (-1.0, 1.0)]
            radii += [radius, radius]
        return np.reshape(ends, (-1, 3)), np.array(radii)

    def reset(self) -> None:
        """Forget what was noted, before another episode."""
        self._upright = 1.0
        # Positions and rotations of the feet over each stretch of standing.
        self._stretches: list[tuple[list[Array], list[Array]]] = []
        self._stood = False
        self._geoms: list[NDArray[np.int32]] = []
        self._distances: list[Array] = []

    def observe(self, standing: bool) -> None:
        """Note the present state, and the contacts of the last physics step.

        Args:
            standing: Whether the robot is told to stand; feet that walk are free.
        """
        contact = self._world.data.contact
        self._geoms.append(contact.geom.copy())
        self._distances.append(contact.dist.copy())
        self._upright = min(self._upright, self._rotations.item(self._pelvis, 8))
        if standing:
            if not self._stood:
                self._stretches.append(([], []))
            positions, rotations = self._stretches[-1]
            positions.append(self._positions.take(self._feet, axis=0))
            rotations.append(self._rotations.take(self._feet, axis=0))
        self._stood = standing

    def result(self) -> Soundness:
        """Return the worst of what was noted."""
        slide = max((self._slide(np.array(p), np.array(r)) for p, r in self._stretches), default=0.0)
        tilt = float(np.arccos(np.clip(self._upright, -1.0, 1.0)))
        if not self._geoms:
            return Soundness(tilt, slide, 0.0, 0.0)
        geoms, depth = np.concatenate(self._geoms), -np.concatenate(self._distances)
        intended = self._intended[geoms[:, 0], geoms[:, 1]]
        wanted, other = (np.where(mask, depth, 0.0) for mask in (intended, ~intended))
        penetration, intended_penetration = (max(0.0, float(values.max(initial=0.0))) for values in (other, wanted))
        deepest: tuple[str, ...] = ()
        if penetration > 0.0:
            model = self._world.model
            deepest = tuple(model.body(model.geom_bodyid[geom]).name for geom in geoms[int(other.argmax())])
        return Soundness(tilt, slide, penetration, intended_penetration, deepest)

    def _slide(self, positions: Array, rotations: Array) -> float:
        """Return how far a point of a sole slid in one stretch, given poses, shapes (t, feet, 3) and (t, feet, 9)."""
        farthest = 0.0
        for foot, (ends, radii) in enumerate(self._soles):
            matrices = rotations[:, foot].reshape(-1, 3, 3)
            points = positions[:, foot, None] + ends @ matrices.transpose(0, 2, 1)
            height = points[..., 2] - radii - self._floor
            steps = np.arange(len(points))[:, None]
            # A point is held from where it touched down until it is lifted.
            touches, lifted = height < 0.0, height > _LIFTED
            newest = np.maximum.accumulate(np.where(touches | lifted, steps, 0), axis=0)
            held = np.take_along_axis(touches, newest, axis=0)
            before = np.vstack([np.zeros_like(held[:1]), held[:-1]])
            landed = np.maximum.accumulate(np.where(held & ~before, steps, 0), axis=0)
            moved = points[..., :2] - np.take_along_axis(points[..., :2], landed[..., None], axis=0)
            farthest = max(farthest, float(np.square(moved[held]).sum(axis=-1).max(initial=0.0)))
        return float(np.sqrt(farthest))
