# SPDX-License-Identifier: Apache-2.0
"""BoxLiftFloor: walk to a tall box on the floor, squat, press it between both hands and lift it."""

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
from supple.tasks.criteria import above, upright
from supple.tasks.distribution import Ranges, draw, middle
from supple.tasks.objects import add_cardboard_box
from supple.tasks.postures import hands_raised
from supple.tasks.task import Criterion, Layout, Skill, Task

__all__ = ["BoxLiftFloor"]

_BOX_SIZE = (0.276, 0.283, 0.555)
_BOX_MASS = (0.5, 1.0)
_BOX_FRICTION = 1.0
_NOMINAL_MASS = 0.75
_LIFTED = 0.10

# Ranges of the uniform distributions as published (HumanoidMimicGen), around the nominal layout: box x, y [m] and yaw
# [rad]; robot x, y [m] and yaw [rad].
_RANGES: Mapping[str, Ranges] = {
    "D0": {
        "box_x": (-0.02, 0.02), "box_y": (-0.02, 0.02), "box_yaw": (-0.063, 0.063),
        "robot_x": (0.0, 0.0), "robot_y": (0.0, 0.0), "robot_yaw": (0.0, 0.0),
    },
    "D1": {
        "box_x": (-0.16, 0.16), "box_y": (-0.16, 0.16), "box_yaw": (-0.50, 0.50),
        "robot_x": (-0.05, 0.05), "robot_y": (-0.05, 0.05), "robot_yaw": (-0.175, 0.175),
    },
}  # fmt: skip


class BoxLiftFloor(Task):
    """Lift a cardboard box of 28 x 28 x 56 cm from the floor with both hands.

    The published box weighs 43 g; ours weighs 0.5 to 1 kg, drawn per episode.
    """

    name: ClassVar[str] = "box_lift_floor"
    summary: ClassVar[str] = "squat before a tall box on the floor and lift it with both hands"
    objects: ClassVar[tuple[str, ...]] = ("box",)
    skills: ClassVar[tuple[Skill, ...]] = (
        Skill("lift", "left_hand", "box"),
        Skill("lift", "right_hand", "box"),
    )
    coordination: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1),)
    contact_pairs: ClassVar[tuple[tuple[str, str], ...]] = (
        ("left_wrist_yaw_link", "box"),
        ("right_wrist_yaw_link", "box"),
    )
    grasp_pairs: ClassVar[tuple[tuple[str, str], ...]] = contact_pairs
    viewpoint: ClassVar[Viewpoint] = Viewpoint("external_camera", (0.8, 0.0, 0.5), 2.0, 120.0, -15.0)

    @property
    def robot(self) -> Robot:
        """The G1."""
        return g1()

    def spec(self, visual: bool = False) -> mujoco.MjSpec:
        """Return the scene: robot and box."""
        spec = g1_spec(visual)
        add_cardboard_box(spec, "box", _BOX_SIZE, _NOMINAL_MASS, _BOX_FRICTION)
        return spec

    def start_posture(self) -> NDArray[np.float64]:
        """Return the joint positions (43,) in [rad] at the start: standing, hands raised and flat."""
        return hands_raised(self.robot, {"left_hand": "flat", "right_hand": "flat"})

    def sample(self, distribution: str, rng: np.random.Generator) -> Layout:
        """Draw box, robot start and box mass."""
        self.check_distribution(distribution)
        return self._layout(draw(_RANGES[distribution], rng), float(rng.uniform(*_BOX_MASS)))

    def nominal(self) -> Layout:
        """Return the middle of D0 with a box of 0.75 kg."""
        return self._layout(middle(_RANGES["D0"]), _NOMINAL_MASS)

    def _layout(self, drawn: Mapping[str, float], mass: float) -> Layout:
        box = pose_from_xyyaw(1.0 + drawn["box_x"], drawn["box_y"], np.pi + drawn["box_yaw"], 0.001)
        height = self.robot.standing_height + 0.015
        base = pose_from_xyyaw(drawn["robot_x"], drawn["robot_y"], drawn["robot_yaw"], height)
        return Layout(base, self.start_posture(), {"box": box}, {"box.mass": mass})

    def apply_materials(self, world: World, materials: Mapping[str, float]) -> None:
        """Set the box's mass in [kg]."""
        world.set_mass("box", materials["box.mass"])

    def criteria(self, world: World) -> Iterator[Criterion]:
        """Box 10 cm above the floor, robot upright."""
        yield above(world, "box", _LIFTED)
        yield upright(world, self.robot)
