# SPDX-License-Identifier: Apache-2.0
"""What all tasks with the cordless drill have in common: the robot's start, the drill and its mass."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import mujoco
import numpy as np
import pinocchio as pin

from supple.geometry import pose_from_xyyaw
from supple.robots import Robot, g1
from supple.sim.g1_model import g1_spec
from supple.sim.world import World
from supple.tasks.distribution import Ranges, draw_accepted, middle
from supple.tasks.objects import add_drill
from supple.tasks.postures import hands_high
from supple.tasks.task import Layout, Task

__all__ = ["DrillTask"]

_MASS = (0.5, 0.7)
_NOMINAL_MASS = 0.6
_FRICTION = 1.0


class DrillTask(Task):
    """Base of tasks in which the right hand takes a cordless drill, 22 cm high.

    The published drill weighs about 10 g; ours weighs 0.5 to 0.7 kg, drawn per episode.

    Class attributes:
        ranges: What is drawn, by distribution: ``robot_x``, ``robot_y`` in [m] and ``robot_yaw`` in [rad], and what
            :meth:`_objects` asks for.
    """

    ranges: ClassVar[Mapping[str, Ranges]]
    # The drill may be turned away so far that the table is where one would have to stand.
    sides: ClassVar[tuple[float, ...]] = tuple(0.2 * i for i in range(-7, 8))

    @property
    def robot(self) -> Robot:
        """The G1."""
        return g1()

    def spec(self, visual: bool = False) -> mujoco.MjSpec:
        """Return the scene: robot, furniture, drill."""
        spec = g1_spec(visual)
        self._add_furniture(spec)
        add_drill(spec, "drill", _NOMINAL_MASS, _FRICTION)
        return spec

    def sample(self, distribution: str, rng: np.random.Generator) -> Layout:
        """Draw the objects' poses, the robot's start and the drill's mass; what cannot be is drawn again."""
        self.check_distribution(distribution)
        drawn = draw_accepted(self.ranges[distribution], rng, self._possible)
        return self._layout(drawn, float(rng.uniform(*_MASS)))

    def nominal(self) -> Layout:
        """Return the middle of D0 with a drill of 0.6 kg."""
        return self._layout(middle(self.ranges["D0"]), _NOMINAL_MASS)

    def apply_materials(self, world: World, materials: Mapping[str, float]) -> None:
        """Set the drill's mass in [kg]."""
        world.set_mass("drill", materials["drill.mass"])

    @abstractmethod
    def _add_furniture(self, spec: mujoco.MjSpec) -> None:
        """Add all but robot and drill to the scene."""

    @abstractmethod
    def _objects(self, drawn: Mapping[str, float]) -> dict[str, pin.SE3]:
        """Return the world pose of each of the task's objects for the numbers that were drawn."""

    def _possible(self, drawn: Mapping[str, float]) -> bool:
        """Tell whether a scene can begin like this."""
        return True

    def _layout(self, drawn: Mapping[str, float], mass: float) -> Layout:
        q = hands_high(self.robot, {"left_hand": "flat", "right_hand": "open"})
        return Layout(self._start(drawn), q, self._objects(drawn), {"drill.mass": mass})

    def _start(self, drawn: Mapping[str, float]) -> pin.SE3:
        height = self.robot.standing_height + 0.015
        return pose_from_xyyaw(drawn["robot_x"], drawn["robot_y"], drawn["robot_yaw"], height)
