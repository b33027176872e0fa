# SPDX-License-Identifier: Apache-2.0
"""Would the robot touch anything in a configuration: asked of MuJoCo's own collision detection, without moving time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import mujoco
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.kinematics.solids import Solids
from supple.sim.collision_geometry import scene_solids
from supple.sim.world import World

__all__ = ["ClearanceChecker", "Overlap"]


@dataclass(frozen=True)
class Overlap:
    """Two bodies that overlap.

    Attributes:
        link: Body of the robot, or an object that it carries.
        other: The other body; a second link if the robot touches itself.
        depth: Penetration in [m].
    """

    link: str
    other: str
    depth: float


class ClearanceChecker:
    """Check configurations of the robot against the scene as it stands now.

    Args:
        world: The scene; it is only read.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._data = mujoco.MjData(world.model)
        self._robot = self._moving = world.robot_bodies()
        self._floor = world.model.geom("floor").id
        self._carried: dict[str, tuple[str, pin.SE3]] = {}
        self._hands: dict[str, NDArray[np.bool_]] = {}

    def carry(self, links: Mapping[str, str]) -> None:
        """Let objects move with the robot from now on, as they lie in its hands in the present scene.

        Args:
            links: Link of the robot that carries each object, by the object's name; what is left out stays where it is.
        """
        self._carried = {
            name: (link, self._world.object_pose(link).actInv(self._world.object_pose(name)))
            for name, link in links.items()
        }
        self._moving = self._robot.copy()
        self._hands = {}
        wrists = [self._world.robot.frame(effector.frame).link for effector in self._world.robot.effectors.values()]
        for name, link in links.items():
            self._moving |= self._world.attached_to(name)
            holding = [wrist for wrist in wrists if wrist == link or self._world.touching(wrist, name)]
            self._hands[name] = np.any([self._world.attached_to(wrist) for wrist in holding], axis=0)

    def _in_hand(self, bodies: NDArray[np.int32]) -> bool:
        """Tell whether of two bodies one is carried by a hand, or two, that the other belongs to."""
        return any(
            bool((self._world.attached_to(name)[bodies] & hands[bodies[::-1]]).any())
            for name, hands in self._hands.items()
        )

    def scene(self) -> Solids:
        """Return everything that the robot could touch, where it stands now: all but the floor and what it carries."""
        solids = scene_solids(self._world, list(self._carried)).solids
        return Solids([solid for solid in solids if solid.body != "floor"])

    def _write(self, T_world_base: pin.SE3, q: NDArray[np.float64]) -> None:
        """Put robot and what it carries into a configuration."""
        model, data = self._world.model, self._data
        data.qpos[:] = self._world.data.qpos
        self._world.write_robot(data, T_world_base, q)
        mujoco.mj_kinematics(model, data)
        if not self._carried:
            return
        for name, (link, T_link_object) in self._carried.items():
            index = self._world.body_id(link)
            T_world_link = pin.SE3(data.xmat[index].reshape(3, 3), data.xpos[index])
            self._world.write_object(data, name, T_world_link * T_link_object)
        mujoco.mj_kinematics(model, data)

    def overlaps(self, T_world_base: pin.SE3, q: NDArray[np.float64], tolerance: float = 0.002) -> list[Overlap]:
        """Return what the robot, or what it carries, would overlap by more than a tolerance in [m].

        The floor does not count, nor does a carried object in the hands that hold it.

        Args:
            T_world_base: Base pose.
            q: Joint positions in [rad], table order.
            tolerance: Depth that is forgiven, e.g. of links that touch at rest.
        """
        model, data = self._world.model, self._data
        self._write(T_world_base, q)
        mujoco.mj_collision(model, data)
        found: dict[tuple[str, str], float] = {}
        for i in np.flatnonzero(data.contact.dist < -tolerance):
            geoms = data.contact.geom[i]
            if self._floor in geoms:
                continue
            bodies = model.geom_bodyid[geoms]
            if not self._moving[bodies].any() or self._in_hand(bodies):
                continue
            first, second = (bodies if self._moving[bodies[0]] else bodies[::-1]).tolist()
            key = (model.body(first).name, model.body(second).name)
            found[key] = max(found.get(key, 0.0), -float(data.contact.dist[i]))
        return [Overlap(link, other, depth) for (link, other), depth in found.items()]
