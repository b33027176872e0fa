# SPDX-License-Identifier: Apache-2.0
"""DrillLift: walk to a table, grasp a cordless drill by its handle and lift it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import mujoco
import numpy as np
import pinocchio as pin

from supple.geometry import pose_from_xyyaw
from supple.robots import Robot, g1
from supple.sim.g1_model import g1_spec
from supple.sim.viewpoint import Viewpoint
from supple.sim.world import World
from supple.tasks.criteria import above, clear_of, grasped, upright
from supple.tasks.distribution import Ranges, draw_accepted, middle
from supple.tasks.furniture import ERGO_TABLE_TOP, add_ergo_table, stands_on_ergo_table
from supple.tasks.objects import DRILL_RADIUS, add_drill
from supple.tasks.postures import hands_high
from supple.tasks.task import Criterion, Layout, Skill, Task

__all__ = ["DrillLift"]

_MASS = (0.5, 0.7)
_NOMINAL_MASS = 0.6
_FRICTION = 1.0

# Ranges of the uniform distributions as published (HumanoidMimicGen), around the nominal layout: table x, y [m] and yaw
# [rad]; drill x, y [m] relative to the table's position, in world axes, and yaw [rad]; robot x, y [m] and yaw [rad].
_RANGES: Mapping[str, Ranges] = {
    "D0": {
        "table_x": (-0.02, 0.02), "table_y": (-0.02, 0.02), "table_yaw": (-0.063, 0.063),
        "drill_x": (-0.28, -0.24), "drill_y": (-0.05, 0.05), "drill_yaw": (-0.157, 0.157),
        "robot_x": (0.0, 0.0), "robot_y": (0.0, 0.0), "robot_yaw": (0.0, 0.0),
    },
    "D1": {
        "table_x": (-0.16, 0.16), "table_y": (-0.16, 0.16), "table_yaw": (-0.50, 0.50),
        "drill_x": (-0.42, -0.10), "drill_y": (-0.40, 0.40), "drill_yaw": (-1.26, 1.26),
        "robot_x": (-0.05, 0.05), "robot_y": (-0.05, 0.05), "robot_yaw": (-0.175, 0.175),
    },
}  # fmt: skip


class DrillLift(Task):
    """Lift a cordless drill, 22 cm high, from a desk with the right hand.

    The published drill weighs about 10 g; ours weighs 0.5 to 0.7 kg, drawn per episode. Layouts in which it would stand
    over the table's edge are drawn again.
    """

    name: ClassVar[str] = "drill_lift"
    summary: ClassVar[str] = "walk to a table and lift a drill with the right hand"
    objects: ClassVar[tuple[str, ...]] = ("drill", "table")
    skills: ClassVar[tuple[Skill, ...]] = (Skill("lift", "right_hand", "drill"),)
    sides: ClassVar[tuple[float, ...]] = tuple(0.2 * i for i in range(-7, 8))
    contact_pairs: ClassVar[tuple[tuple[str, str], ...]] = (("right_wrist_yaw_link", "drill"), ("table", "drill"))
    grasp_pairs: ClassVar[tuple[tuple[str, str], ...]] = contact_pairs[:1]
    viewpoint: ClassVar[Viewpoint] = Viewpoint("external_camera", (1.6, 0.0, 0.9), 1.6, 80.0, -25.0)

    @property
    def robot(self) -> Robot:
        """The G1."""
        return g1()

    def spec(self, visual: bool = False) -> mujoco.MjSpec:
        """Return the scene: robot, desk, drill."""
        spec = g1_spec(visual)
        add_ergo_table(spec, "table")
        add_drill(spec, "drill", _NOMINAL_MASS, _FRICTION)
        return spec

    def sample(self, distribution: str, rng: np.random.Generator) -> Layout:
        """Draw table, drill, robot start and the drill's mass."""
        self.check_distribution(distribution)
        drawn = draw_accepted(_RANGES[distribution], rng, self._on_table)
        return self._layout(drawn, float(rng.uniform(*_MASS)))

    def nominal(self) -> Layout:
        """Return the middle of D0 with a drill of 0.6 kg."""
        return self._layout(middle(_RANGES["D0"]), _NOMINAL_MASS)

    def _on_table(self, drawn: Mapping[str, float]) -> bool:
        objects = self._objects(drawn)
        return stands_on_ergo_table(objects["table"], objects["drill"].translation, DRILL_RADIUS)

    @staticmethod
    def _objects(drawn: Mapping[str, float]) -> dict[str, pin.SE3]:
        x, y = 2.0 + drawn["table_x"], drawn["table_y"]
        table = pose_from_xyyaw(x, y, np.pi + drawn["table_yaw"])
        drill = pose_from_xyyaw(x + drawn["drill_x"], y + drawn["drill_y"], drawn["drill_yaw"], ERGO_TABLE_TOP + 0.001)
        return {"drill": drill, "table": table}

    def _layout(self, drawn: Mapping[str, float], mass: float) -> Layout:
        base = pose_from_xyyaw(
            drawn["robot_x"], drawn["robot_y"], drawn["robot_yaw"], self.robot.standing_height + 0.015
        )
        q = hands_high(self.robot, {"left_hand": "flat", "right_hand": "open"})
        return Layout(base, q, self._objects(drawn), {"drill.mass": mass})

    def apply_materials(self, world: World, materials: Mapping[str, float]) -> None:
        """Set the drill's mass in [kg]."""
        world.set_mass("drill", materials["drill.mass"])

    def criteria(self, world: World) -> Iterator[Criterion]:
        """Drill off the table and 10 cm above it, a finger tip on it, robot upright."""
        yield above(world, "drill", ERGO_TABLE_TOP + 0.1)
        yield clear_of(world, "drill", "table")
        yield grasped(world, "drill")
        yield upright(world, self.robot)
