# SPDX-License-Identifier: Apache-2.0
"""DrillPickPlace: take a drill from one table, carry it to another at a right angle and put it down."""

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
from supple.tasks.criteria import still, upright, upright_object
from supple.tasks.distribution import Ranges, draw, middle
from supple.tasks.furniture import ERGO_TABLE_TOP, add_ergo_table
from supple.tasks.objects import add_drill
from supple.tasks.postures import hands_high
from supple.tasks.task import Criterion, Layout, Skill, Task

__all__ = ["DrillPickPlace"]

_MASS = (0.5, 0.7)
_NOMINAL_MASS = 0.6
_FRICTION = 1.0
_HAND_AWAY = 0.1

# Ranges of the uniform distributions as published (HumanoidMimicGen), around the nominal layout: tables' x, y [m];
# drill x, y [m] relative to the source table's position and yaw [rad]; robot x, y [m] and yaw [rad].
_RANGES: Mapping[str, Ranges] = {
    "D0": {
        "source_x": (-0.02, 0.02), "source_y": (-0.02, 0.02), "target_x": (-0.02, 0.02), "target_y": (-0.02, 0.02),
        "drill_x": (-0.28, -0.24), "drill_y": (-0.05, 0.05), "drill_yaw": (-0.157, 0.157),
        "robot_x": (0.0, 0.0), "robot_y": (0.0, 0.0), "robot_yaw": (0.0, 0.0),
    },
    "D1": {
        "source_x": (-0.12, 0.12), "source_y": (-0.12, 0.12), "target_x": (-0.12, 0.12), "target_y": (-0.12, 0.12),
        "drill_x": (-0.38, -0.14), "drill_y": (-0.30, 0.30), "drill_yaw": (-0.94, 0.94),
        "robot_x": (-0.05, 0.05), "robot_y": (-0.05, 0.05), "robot_yaw": (-0.175, 0.175),
    },
}  # fmt: skip


class DrillPickPlace(Task):
    """Carry a cordless drill from the desk ahead to the desk on the left with the right hand.

    The published drill weighs about 10 g; ours weighs 0.5 to 0.7 kg, drawn per episode.
    """

    name: ClassVar[str] = "drill_pick_place"
    summary: ClassVar[str] = "carry a drill from one table to another with the right hand"
    objects: ClassVar[tuple[str, ...]] = ("drill", "source_table", "target_table")
    skills: ClassVar[tuple[Skill, ...]] = (
        Skill("pick", "right_hand", "drill"),
        Skill("place", "right_hand", "target_table"),
    )
    sides: ClassVar[tuple[float, ...]] = tuple(0.2 * i for i in range(-7, 8))
    contact_pairs: ClassVar[tuple[tuple[str, str], ...]] = (
        ("right_wrist_yaw_link", "drill"),
        ("source_table", "drill"),
        ("target_table", "drill"),
    )
    grasp_pairs: ClassVar[tuple[tuple[str, str], ...]] = contact_pairs[2:]
    viewpoint: ClassVar[Viewpoint] = Viewpoint("external_camera", (0.3, 0.6, 0.9), 2.4, -10.0, -30.0)

    @property
    def robot(self) -> Robot:
        """The G1."""
        return g1()

    def spec(self, visual: bool = False) -> mujoco.MjSpec:
        """Return the scene: robot, two desks, drill."""
        spec = g1_spec(visual)
        add_ergo_table(spec, "source_table")
        add_ergo_table(spec, "target_table")
        add_drill(spec, "drill", _NOMINAL_MASS, _FRICTION)
        return spec

    def sample(self, distribution: str, rng: np.random.Generator) -> Layout:
        """Draw tables, drill, robot start and the drill's mass."""
        self.check_distribution(distribution)
        return self._layout(draw(_RANGES[distribution], rng), float(rng.uniform(*_MASS)))

    def nominal(self) -> Layout:
        """Return the middle of D0 with a drill of 0.6 kg."""
        return self._layout(middle(_RANGES["D0"]), _NOMINAL_MASS)

    @staticmethod
    def _objects(drawn: Mapping[str, float]) -> dict[str, pin.SE3]:
        x, y = 1.2 + drawn["source_x"], drawn["source_y"]
        return {
            "drill": pose_from_xyyaw(
                x + drawn["drill_x"], y + drawn["drill_y"], drawn["drill_yaw"], ERGO_TABLE_TOP + 0.001
            ),
            "source_table": pose_from_xyyaw(x, y, -np.pi),
            "target_table": pose_from_xyyaw(drawn["target_x"], 1.2 + drawn["target_y"], -0.5 * np.pi),
        }

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
        """Drill at rest and upright on the target table, both hands more than 10 cm from it, robot upright."""
        on_target = world.touching("drill", "target_table")
        yield Criterion("drill_on_target", on_target, on_target, "the drill must stand on the target table")
        yield upright_object(world, "drill", 0.95)
        drill = world.object_pose("drill").translation
        nearest = min(float(np.linalg.norm(world.link_pose(f"{side}_wrist").translation - drill)) for side in "lr")
        text = f"nearest hand {nearest:.3f} m away, wanted above {_HAND_AWAY} m"
        yield Criterion("hand_distance", nearest, nearest > _HAND_AWAY, text)
        yield still(world, "drill")
        yield upright(world, self.robot)
