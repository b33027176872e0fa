# SPDX-License-Identifier: Apache-2.0
"""Would the robot touch anything in a configuration: asked of MuJoCo's own collision detection, without moving time."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.sim.world import World

__all__ = ["ClearanceChecker", "Overlap"]


@dataclass(frozen=True)
class Overlap:
    """Two bodies that overlap.

    Attributes:
        link: Body of the robot.
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
        self._robot = world.robot_bodies()
        self._floor = world.model.geom("floor").id

    def overlaps(self, T_world_base: pin.SE3, q: NDArray[np.float64], tolerance: float = 0.002) -> list[Overlap]:
        """Return what the robot would overlap by more than a tolerance in [m]; the floor does not count.

        Args:
            T_world_base: Base pose.
            q: Joint positions in [rad], table order.
            tolerance: Depth that is forgiven, e.g. of links that touch at rest.
        """
        model, data = self._world.model, self._data
        data.qpos[:] = self._world.data.qpos
        self._world.write_robot(data, T_world_base, q)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        found: dict[tuple[str, str], float] = {}
        for i in np.flatnonzero(data.contact.dist < -tolerance):
            geoms = data.contact.geom[i]
            if self._floor in geoms:
                continue
            bodies = model.geom_bodyid[geoms]
            if not self._robot[bodies].any():
                continue
            first, second = (bodies if self._robot[bodies[0]] else bodies[::-1]).tolist()
            key = (model.body(first).name, model.body(second).name)
            found[key] = max(found.get(key, 0.0), -float(data.contact.dist[i]))
        return [Overlap(link, other, depth) for (link, other), depth in found.items()]
