# SPDX-License-Identifier: Apache-2.0
"""How to walk to a place: straight on where that is free, round what is in the way where it is not."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.control.path_following import FloorPath, waypoint_walk
from supple.errors import PlanningError
from supple.geometry import xyyaw_of
from supple.planning.base_path import plan_base_path, swept
from supple.planning.base_space import BaseSpace
from supple.planning.lattice import RequiredMargin
from supple.sim.outlines import robot_outlines, scene_outlines
from supple.sim.world import World

__all__ = ["WalkPlanner"]

Array = NDArray[np.float64]

# The straight walk is taken if it keeps this distance in [m] from everything, less near ends that are closer.
_STRAIGHT_MARGIN = 0.05


class WalkPlanner:
    """Find ways from where the robot stands, in a posture that it keeps.

    Args:
        world: The scene as it is now; it is only read.
        T_world_base: Where the robot stands.
        q: Joint positions in [rad] that it walks with.
        carried: Bodies that it carries.
        patience: How many places without a way to them are put up with.

    Attributes:
        path: The way to the last place that there was one to; None for a straight walk.
        failures: Why there was no way to others.
    """

    def __init__(
        self, world: World, T_world_base: pin.SE3, q: Array, carried: Sequence[str] = (), patience: int = 4
    ) -> None:
        self._here = xyyaw_of(T_world_base)
        self._robot, self._scene = robot_outlines(world, q, carried), scene_outlines(world, carried)
        self._patience = patience
        self._goal = self._here
        self.path: FloorPath | None = None
        self.failures: list[str] = []

    def leads_to(self, T_world_goal: pin.SE3) -> bool:
        """Tell whether there is a way to a place where the robot touches nothing; :attr:`path` then holds it.

        Raises:
            PlanningError: There was none to this place nor to several before.
        """
        self._goal = xyyaw_of(T_world_goal)
        try:
            self.path = self._way()
        except PlanningError as error:
            self.failures.append(str(error))
            if len(self.failures) > self._patience:
                raise
            return False
        return True

    def path_from(self, pose: Array) -> FloorPath:
        """Return a way to the same place from a pose (x, y, yaw) that was really reached.

        Raises:
            PlanningError: There is none.
        """
        return self._round(self._space(pose), pose)

    def _space(self, start: Array) -> BaseSpace:
        return BaseSpace(self._robot, self._scene, known_free=[start, self._goal])

    def _way(self) -> FloorPath | None:
        space, ends = self._space(self._here), np.array([self._here, self._goal])
        straight = swept(waypoint_walk(self._here, self._goal))
        gaps = np.array([space.nearest(end).distance for end in ends])
        if space.free(straight, RequiredMargin(_STRAIGHT_MARGIN, ends, gaps).at(straight)).all():
            return None
        try:
            return self._round(space, self._here)
        except PlanningError:
            # A straight walk that comes close to something, but does not touch it, is better than none.
            if space.free(straight).all():
                return None
            raise

    def _round(self, space: BaseSpace, start: Array) -> FloorPath:
        way = plan_base_path(space, start, self._goal)
        return FloorPath(way.waypoints, way.times)
