# SPDX-License-Identifier: Apache-2.0
"""BoxLift: walk to a table, press a box between both hands and lift it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from supple.geometry import pose_from_xyyaw
from supple.robots import Robot, g1
from supple.sim.g1_model import g1_spec
from supple.sim.viewpoint import Viewpoint
from supple.sim.world import World
from supple.tasks.criteria import above, clear_of, upright
from supple.tasks.distribution import Ranges, draw, middle
from supple.tasks.furniture import ERGO_TABLE_TOP, add_ergo_table
from supple.tasks.objects import add_cardboard_box
from supple.tasks.postures import hands_raised
from supple.tasks.task import Criterion, Layout, Skill, Task

__all__ = ["BoxLift"]

_BOX_SIZE = (0.172, 0.231, 0.168)
_BOX_MASS = (0.5, 1.0)
_BOX_FRICTION = 1.0
_NOMINAL_MASS = 0.75

# Ranges of the uniform distributions as published (HumanoidMimicGen), around the nominal layout: table x, y [m] and yaw
# [rad]; box x, y [m] relative to the table's position, in world axes, and yaw [rad]; robot x, y [m] and yaw [rad].
_RANGES: Mapping[str, Ranges] = {
    "D0": {
        "table_x": (-0.02, 0.02), "table_y": (-0.02, 0.02), "table_yaw": (-0.063, 0.063),
        "box_x": (-0.26, -0.24), "box_y": (-0.02, 0.02), "box_yaw": (-0.031, 0.031),
        "robot_x": (0.0, 0.0), "robot_y": (0.0, 0.0), "robot_yaw": (0.0, 0.0),
    },
    "D1": {
        "table_x": (-0.16, 0.16), "table_y": (-0.16, 0.16), "table_yaw": (-0.50, 0.50),
        "box_x": (-0.41, -0.09), "box_y": (-0.16, 0.16), "box_yaw": (-0.25, 0.25),
        "robot_x": (-0.05, 0.05), "robot_y": (-0.05, 0.05), "robot_yaw": (-0.175, 0.175),
    },
}  # fmt: skip


class BoxLift(Task):
    """Lift a cardboard box of 17 x 23 x 17 cm from a desk with both hands.

    The published box weighs 7 g; ours weighs 0.5 to 1 kg, drawn per episode.
    """

    name: ClassVar[str] = "box_lift"
    summary: ClassVar[str] = "walk to a table and lift a box with both hands"
    objects: ClassVar[tuple[str, ...]] = ("box", "table")
    skills: ClassVar[tuple[Skill, ...]] = (
        Skill("lift", "left_hand", "box"),
        Skill("lift", "right_hand", "box"),
    )
    coordination: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1),)
    contact_pairs: ClassVar[tuple[tuple[str, str], ...]] = (
        ("left_wrist_yaw_link", "box"),
        ("right_wrist_yaw_link", "box"),
        ("table", "box"),
    )

    grasp_pairs: ClassVar[tuple[tuple[str, str], ...]] = contact_pairs[:2]
    working_height: ClassVar[float | None] = 0.74
    # Beside the table's right end, above the robot's arm: box, both hands and the table top are in view.
    viewpoint: ClassVar[Viewpoint] = Viewpoint("external_camera", (1.6, 0.0, 0.9), 1.6, 80.0, -25.0)

    @property
    def robot(self) -> Robot:
        """The G1."""
        return g1()

    def spec(self, visual: bool = False) -> mujoco.MjSpec:
        """Return the scene: robot, desk, box."""
        spec = g1_spec(visual)
        add_ergo_table(spec, "table")
        add_cardboard_box(spec, "box", _BOX_SIZE, _NOMINAL_MASS, _BOX_FRICTION)
        return spec

    def start_posture(self) -> NDArray[np.float64]:
        """Return the joint positions (43,) in [rad] at the start: standing, hands raised and flat."""
        return hands_raised(self.robot, {"left_hand": "flat", "right_hand": "flat"})

    def sample(self, distribution: str, rng: np.random.Generator) -> Layout:
        """Draw table, box, robot start and box mass."""
        self.check_distribution(distribution)
        return self._layout(draw(_RANGES[distribution], rng), float(rng.uniform(*_BOX_MASS)))

    def nominal(self) -> Layout:
        """Return the middle of D0 with a box of 0.75 kg."""
        return self._layout(middle(_RANGES["D0"]), _NOMINAL_MASS)

    def _layout(self, drawn: Mapping[str, float], mass: float) -> Layout:
        table_x, table_y = 2.0 + drawn["table_x"], drawn["table_y"]
        table = pose_from_xyyaw(table_x, table_y, np.pi + drawn["table_yaw"])
        box = pose_from_xyyaw(
            table_x + drawn["box_x"], table_y + drawn["box_y"], 0.5 * np.pi + drawn["box_yaw"], ERGO_TABLE_TOP + 0.001
        )
        base = pose_from_xyyaw(
            drawn["robot_x"], drawn["robot_y"], drawn["robot_yaw"], self.robot.standing_height + 0.015
        )
        return Layout(base, self.start_posture(), {"box": box, "table": table}, {"box.mass": mass})

    def apply_materials(self, world: World, materials: Mapping[str, float]) -> None:
        """Set the box's mass in [kg]."""
        world.set_mass("box", materials["box.mass"])

    def criteria(self, world: World) -> Iterator[Criterion]:
        """Box off the table and 10 cm above it, both hands within 0.4 m of it, robot upright."""
        yield above(world, "box", ERGO_TABLE_TOP + 0.1)
        yield clear_of(world, "box", "table")
        box = world.object_pose("box").translation
        hands = [float(np.linalg.norm(world.link_pose(f"{side}_wrist").translation - box)) for side in "lr"]
        yield Criterion(
            "hand_distance", max(hands), max(hands) < 0.4, f"farthest hand {max(hands):.3f} m, wanted below 0.4 m"
        )
        yield upright(world, self.robot)
