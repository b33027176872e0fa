# SPDX-License-Identifier: Apache-2.0
"""A world that shows what was measured elsewhere: states, tests and pictures come out as in the simulator itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import mujoco
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.robots import RobotState
from supple.sim.world import World

__all__ = ["Mirror"]

Array = NDArray[np.float64]


class Mirror:
    """Put a world into measured states; it is never stepped.

    Args:
        world: The scene; from now on only this class should change it.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        model = world.model
        self._joints = np.array([model.joint(name).dofadr[0] for name in world.robot.joints.names])
        self._base = int(model.jnt_dofadr[model.body_jntadr[world.body_id(world.robot.base_link)]])
        self._below: dict[str, frozenset[str]] = {}

    def show(self, state: RobotState, poses: Mapping[str, pin.SE3], twists: Mapping[str, Array]) -> None:
        """Take over a measurement; contacts follow from geometry, their forces are only estimates.

        Args:
            state: The robot; its stamp becomes the world's time.
            poses: World pose of objects; others stay where they are.
            twists: Velocity of objects at their origin, linear and angular in the world frame, shape (6,); at rest if
                absent.
        """
        world, model, data = self.world, self.world.model, self.world.data
        data.time = state.stamp_ns * 1e-9
        world.place_robot(state.T_world_base, state.q)
        data.qvel[self._joints] = state.v
        data.qvel[self._base : self._base + 3] = state.base_linear_velocity
        data.qvel[self._base + 3 : self._base + 6] = state.base_angular_velocity
        for name, pose in poses.items():
            world.place_object(name, pose)
            if name in twists and not world.is_fixed(name):
                start = int(model.jnt_dofadr[model.body_jntadr[world.body_id(name)]])
                data.qvel[start : start + 3] = twists[name][:3]
                # A free joint's angular velocity is written in the body's own frame.
                data.qvel[start + 3 : start + 6] = pose.rotation.T @ twists[name][3:]
        world.hold()
        mujoco.mj_forward(model, data)

    def pair_forces(
        self, points: Iterable[tuple[str, str, float, float]], pairs: Sequence[tuple[str, str]]
    ) -> dict[str, tuple[float, float]]:
        """Return the summed normal and tangential force in [N] of measured contact points, by pair ``"a/b"``.

        Args:
            points: Both bodies, normal and tangential force of each point.
            pairs: Pairs of bodies; what hangs on a body counts as it.
        """
        sums = {f"{a}/{b}": [0.0, 0.0] for a, b in pairs}
        for first, second, normal, tangential in points:
            for a, b in pairs:
                one, other = self._hanging_on(a), self._hanging_on(b)
                if (first in one and second in other) or (first in other and second in one):
                    sums[f"{a}/{b}"][0] += normal
                    sums[f"{a}/{b}"][1] += tangential
        return {pair: (normal, tangential) for pair, (normal, tangential) in sums.items()}

    def _hanging_on(self, root: str) -> frozenset[str]:
        if root not in self._below:
            model = self.world.model
            found = {self.world.body_id(root)}
            for i in range(1, model.nbody):
                if int(model.body_parentid[i]) in found:
                    found.add(i)
            self._below[root] = frozenset(model.body(i).name for i in found)
        return self._below[root]
