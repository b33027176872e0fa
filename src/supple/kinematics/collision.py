# SPDX-License-Identifier: Apache-2.0
"""How far a robot's collision spheres are from the scene and from each other, with intended contacts excused."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.errors import UnknownNameError
from supple.kinematics.collision_spheres import LinkSpheres
from supple.kinematics.model import KinematicModel
from supple.kinematics.solids import Solids
from supple.robots import Robot

__all__ = ["Allowance", "CollisionModel", "Distances", "NearPair", "Nearest"]

Array = NDArray[np.float64]

# How deep bodies that touch may be in each other in [m], the spheres' inflation apart.
_TOUCH_DEPTH = 0.005


@dataclass(frozen=True, eq=False)
class Allowance:
    """By how much pairs may overlap because they are meant to touch, in [m]; both arrays as in :class:`Distances`."""

    scene: Array
    own: Array

    def wider(self, other: Allowance) -> Allowance:
        """Return what either of two allowances forgives."""
        return Allowance(np.maximum(self.scene, other.scene), np.maximum(self.own, other.own))


@dataclass(frozen=True, eq=False)
class Distances:
    """Distances in one configuration, negative where spheres overlap by more than is excused.

    Attributes:
        centres: Centres of the robot's spheres in the world frame in [m], shape (n, 3).
        scene: Distance of each sphere from each solid in [m], shape (s, n).
        own: Distance of the robot's spheres from each other in [m], shape (n, n); infinite for those that cannot meet.
    """

    centres: Array
    scene: Array
    own: Array


@dataclass(frozen=True)
class Nearest:
    """The two things that are nearest to each other.

    Attributes:
        link: A link of the robot.
        other: Another link, or a body of the scene.
        distance: How far they are apart in [m], negative when they overlap by more than is excused.
    """

    link: str
    other: str
    distance: float


@dataclass(frozen=True, eq=False)
class NearPair:
    """Two things that are near each other, by the spheres that are nearest.

    Attributes:
        distance: How far they are apart in [m].
        sphere: The robot's sphere.
        away: Direction in which it leaves the other one, world frame, shape (3,).
        other: The other sphere, if that is the robot's too.
    """

    distance: float
    sphere: int
    away: Array
    other: int | None = None


class CollisionModel:
    """The robot as spheres, against solids of a scene and against itself.

    Links that touch by construction are left out of self-collision: neighbours with at most two joints between them,
    which their limits keep apart; those that overlap in the home posture; and the links of one hand, which no arm
    brings together.

    Args:
        robot: The robot.
        spheres: Its spheres, by link.

    Attributes:
        spheres: The spheres.
        meets: Which spheres can meet each other, symmetric, shape (n, n).
        joint_ids: Pinocchio's joint that carries each sphere, the same in any model of the robot's URDF, shape (n,).
        cluster: The same with fingers counted to the link that carries the hand, shape (n,).
        runs: First sphere of each run of one cluster.

    Raises:
        UnknownNameError: A link that the robot's model does not have.
    """

    def __init__(self, robot: Robot, spheres: LinkSpheres) -> None:
        self.robot, self.spheres = robot, spheres
        self._kinematics = KinematicModel(robot)
        model = self._kinematics.model
        frames = [model.frames[self._kinematics.frame_id(link)] for link in spheres.links]
        self.joint_ids = np.array([frame.parentJoint for frame in frames])[spheres.link]
        self._carriers, self._carrier = np.unique(self.joint_ids, return_inverse=True)
        placements = [frames[link].placement for link in spheres.link.tolist()]
        self._local = np.array([pose.act(centre) for pose, centre in zip(placements, spheres.centres, strict=True)])
        self._hand_frames = {name: self._kinematics.frame_id(e.frame) for name, e in robot.effectors.items()}
        fingers = {name for e in robot.effectors.values() for name in self._names(e.fingers)}
        self.cluster = np.array([self._cluster_of(joint, fingers) for joint in self.joint_ids.tolist()])
        self.runs = np.flatnonzero(np.diff(self.cluster, prepend=-1))
        # Solids of the scene are exact: one inflation keeps them away. Of two inflated spheres one gives it up.
        self._touch = spheres.radii[:, None] + spheres.radii - spheres.inflation
        self.meets = self._meets()
        self._never = np.where(self.meets, 0.0, np.inf)

    def _names(self, group: str) -> list[str]:
        return [self.robot.joints.names[i] for i in self.robot.joints.group(group)]

    def _cluster_of(self, joint: int, fingers: set[str]) -> int:
        """Return the joint that moves a sphere when fingers are still."""
        model = self._kinematics.model
        while model.names[joint] in fingers:
            joint = model.parents[joint]
        return int(joint)

    def _meets(self) -> NDArray[np.bool_]:
        model, data = self._kinematics.model, self._kinematics.data
        home = self._kinematics.configuration(pin.SE3.Identity(), self.robot.joints.home)
        pin.forwardKinematics(model, data, home)
        centres, clusters = self.centres(data), set(self.cluster.tolist())
        meets = self.cluster[:, None] != self.cluster
        for child in clusters:
            nearest, joints = int(model.parents[child]), 1
            while nearest and nearest not in clusters:
                nearest, joints = int(model.parents[nearest]), joints + 1
            mine, others = self.cluster == child, self.cluster == nearest
            gaps = np.linalg.norm(centres[mine][:, None] - centres[others], axis=2)
            if joints <= 2 or (gaps < self._touch[np.ix_(mine, others)]).any():
                meets[np.ix_(mine, others)] = meets[np.ix_(others, mine)] = False
        return meets

    def centres(self, data: pin.Data) -> Array:
        """Return the centres in the world in [m], shape (n, 3), after forward kinematics of a model of the URDF."""
        placements = [data.oMi[joint] for joint in self._carriers.tolist()]
        rotation = np.array([pose.rotation for pose in placements])
        translation = np.array([pose.translation for pose in placements])
        return np.einsum("nij,nj->ni", rotation[self._carrier], self._local) + translation[self._carrier]

    def distances(self, centres: Array, solids: Solids, allowance: Allowance | None = None) -> Distances:
        """Return all distances with spheres at given centres (n, 3) in the world frame in [m]."""
        scene = solids.distances(centres) - self.spheres.radii
        square = np.einsum("ni,ni->n", centres, centres)
        own = np.sqrt(np.maximum(square[:, None] + square - 2.0 * centres @ centres.T, 0.0)) - self._touch + self._never
        if allowance is not None:
            scene, own = scene + allowance.scene, own + allowance.own
        return Distances(centres, scene, own)

    def at(self, T_world_base: pin.SE3, q: Array, solids: Solids, allowance: Allowance | None = None) -> Distances:
        """Return all distances in a configuration.

        Args:
            T_world_base: Base pose.
            q: Joint positions in [rad], table order.
            solids: The scene.
            allowance: What is excused.
        """
        model, data = self._kinematics.model, self._kinematics.data
        pin.forwardKinematics(model, data, self._kinematics.configuration(T_world_base, q))
        return self.distances(self.centres(data), solids, allowance)

    def nearest_scene(self, distances: Distances, solids: Solids) -> Nearest | None:
        """Return the sphere and the solid that are nearest to each other, or nothing in an empty scene."""
        if not distances.scene.size:
            return None
        solid, sphere = np.unravel_index(int(np.argmin(distances.scene)), distances.scene.shape)
        body = solids.solids[int(solid)].body
        return Nearest(self._link(int(sphere)), body, float(distances.scene[solid, sphere]))

    def nearest_own(self, distances: Distances) -> Nearest | None:
        """Return the two of the robot's own links that are nearest to each other, or nothing if none can meet."""
        first, second = (int(i) for i in np.unravel_index(int(np.argmin(distances.own)), distances.own.shape))
        nearest = float(distances.own[first, second])
        return Nearest(self._link(first), self._link(second), nearest) if np.isfinite(nearest) else None

    def _link(self, sphere: int) -> str:
        return self.spheres.links[int(self.spheres.link[sphere])]

    def near_pairs(self, distances: Distances, solids: Solids, within: float) -> list[NearPair]:
        """Return one pair for each two things nearer than a distance in [m], the nearest first."""
        runs, bounds = self.runs, [*self.runs.tolist(), len(distances.centres)]
        scene = np.minimum.reduceat(distances.scene, runs, axis=1)
        own = np.minimum.reduceat(np.minimum.reduceat(distances.own, runs, axis=0), runs, axis=1)
        found = []
        for solid, run in np.argwhere(scene < within).tolist():
            spheres = slice(bounds[run], bounds[run + 1])
            sphere = bounds[run] + int(np.argmin(distances.scene[solid, spheres]))
            away = solids.normal(solid, distances.centres[sphere])
            found.append(NearPair(float(scene[solid, run]), sphere, away))
        for first, second in np.argwhere(np.triu(own < within)).tolist():
            rows, columns = slice(bounds[first], bounds[first + 1]), slice(bounds[second], bounds[second + 1])
            block = distances.own[rows, columns]
            i, j = np.unravel_index(int(np.argmin(block)), block.shape)
            other, sphere = bounds[first] + int(i), bounds[second] + int(j)
            offset = distances.centres[sphere] - distances.centres[other]
            away = offset / max(float(np.linalg.norm(offset)), 1e-9)
            found.append(NearPair(float(own[first, second]), sphere, away, other))
        return sorted(found, key=lambda pair: pair.distance)

    def touching(self, distances: Distances) -> Allowance:
        """Return what excuses every pair that touches there: its spheres count as shrunk until they just do not.

        Bodies that overlap by more than 5 mm do not merely touch; what is beyond that stays a collision.
        """
        most = self.spheres.inflation + _TOUCH_DEPTH
        scene, own = (np.clip(-array, 0.0, most) for array in (distances.scene, distances.own))
        return Allowance(np.minimum(scene, self.spheres.radii), own)

    def touching_at(
        self,
        T_world_base: pin.SE3,
        q: Array,
        targets: Mapping[str, pin.SE3],
        solids: Solids,
        contacts: Collection[str] = (),
    ) -> Allowance:
        """Return what excuses every pair that touches at the start or with the hands at their targets.

        Args:
            T_world_base: Base pose at the start.
            q: Joint positions at the start in [rad]; the fingers keep them.
            targets: World poses that hands are to reach, by effector.
            solids: The scene.
            contacts: Bodies of the scene that these hands are meant to press on: excused at any depth, since a hand is
                sent some way into what it presses.

        Raises:
            UnknownNameError: There is no such effector, or no such body.
        """
        bodies = {solid.body for solid in solids.solids}
        for name in contacts:
            if name not in bodies:
                raise UnknownNameError("body", name, bodies)
        start = self.at(T_world_base, q, solids)
        allowance = self.touching(start)
        data, model = self._kinematics.data, self._kinematics.model
        pin.updateFramePlacements(model, data)
        centres = start.centres.copy()
        there = np.zeros(len(centres), dtype=bool)
        for name, target in targets.items():
            if name not in self._hand_frames:
                raise UnknownNameError("effector", name, self._hand_frames)
            frame = self._hand_frames[name]
            mine = self.cluster == model.frames[frame].parentJoint
            moved = target * data.oMf[frame].inverse()
            centres[mine] = centres[mine] @ moved.rotation.T + moved.translation
            there |= mine
        end = self.touching(self.distances(centres, solids))
        # Only what is in the hands is known to be there; the rest of the robot will have moved.
        both = there[:, None] & there
        pressed = np.array([solid.body in contacts for solid in solids.solids], dtype=bool)
        scene = np.where(pressed[:, None] & there, np.inf, np.where(there, end.scene, 0.0))
        return allowance.wider(Allowance(scene, np.where(both, end.own, 0.0)))
