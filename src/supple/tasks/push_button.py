# SPDX-License-Identifier: Apache-2.0
"""PushButton: walk to a control cabinet and press the button on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import mujoco
import numpy as np

from supple.geometry import pose_from_xyyaw
from supple.robots import Robot, g1
from supple.sim.g1_model import g1_spec
from supple.sim.viewpoint import Viewpoint
from supple.sim.world import World
from supple.tasks.criteria import upright
from supple.tasks.distribution import Ranges, draw, middle
from supple.tasks.furniture import add_control_cabinet
from supple.tasks.objects import add_button
from supple.tasks.postures import hands_raised
from supple.tasks.task import Criterion, Layout, Skill, Task

__all__ = ["PushButton"]

_TRAVEL, _WANTED = 0.015, 0.010
_STIFFNESS = 300.0
_PANEL_HEIGHT = 0.8

# Ranges of the uniform distributions as published (HumanoidMimicGen): cabinet x, y [m]; panel y [m] relative to the
# cabinet; robot x, y [m] and yaw [rad].
_RANGES: Mapping[str, Ranges] = {
    "D0": {
        "cabinet_x": (1.0, 1.5), "cabinet_y": (0.0, 0.5), "panel_y": (-0.42, -0.38),
        "robot_x": (0.0, 0.0), "robot_y": (0.0, 0.0), "robot_yaw": (0.0, 0.0),
    },
    "D1": {
        "cabinet_x": (1.0, 1.8), "cabinet_y": (-0.2, 0.8), "panel_y": (-0.48, -0.38),
        "robot_x": (-0.05, 0.05), "robot_y": (-0.05, 0.05), "robot_yaw": (-0.175, 0.175),
    },
}  # fmt: skip


class PushButton(Task):
    """Press a push-button at breast height with the right index finger and keep it pressed.

    The published spring gives way to 15 mN; ours, of 300 N/m, wants 3 N where the button counts as pressed.
    """

    name: ClassVar[str] = "push_button"
    summary: ClassVar[str] = "walk to a cabinet and press a button with the right hand"
    objects: ClassVar[tuple[str, ...]] = ("button", "cabinet")
    skills: ClassVar[tuple[Skill, ...]] = (Skill("press", "right_hand", "button"),)
    contact_pairs: ClassVar[tuple[tuple[str, str], ...]] = (("right_wrist_yaw_link", "button"),)
    grasp_pairs: ClassVar[tuple[tuple[str, str], ...]] = contact_pairs
    viewpoint: ClassVar[Viewpoint] = Viewpoint("external_camera", (0.75, -0.1, 0.9), 1.6, 60.0, -20.0)

    @property
    def robot(self) -> Robot:
        """The G1."""
        return g1()

    def spec(self, visual: bool = False) -> mujoco.MjSpec:
        """Return the scene: robot, cabinet, button."""
        spec = g1_spec(visual)
        add_control_cabinet(spec, "cabinet")
        add_button(spec, "button", _STIFFNESS, _TRAVEL)
        return spec

    def sample(self, distribution: str, rng: np.random.Generator) -> Layout:
        """Draw cabinet, panel and robot start."""
        self.check_distribution(distribution)
        return self._layout(draw(_RANGES[distribution], rng))

    def nominal(self) -> Layout:
        """Return the middle of D0."""
        return self._layout(middle(_RANGES["D0"]))

    def _layout(self, drawn: Mapping[str, float]) -> Layout:
        x, y = drawn["cabinet_x"], drawn["cabinet_y"]
        objects = {
            "button": pose_from_xyyaw(x - 0.3, y + drawn["panel_y"], 0.5 * np.pi, _PANEL_HEIGHT),
            "cabinet": pose_from_xyyaw(x, y, 0.5 * np.pi),
        }
        base = pose_from_xyyaw(
            drawn["robot_x"], drawn["robot_y"], drawn["robot_yaw"], self.robot.standing_height + 0.015
        )
        return Layout(base, hands_raised(self.robot, {"left_hand": "flat", "right_hand": "flat"}), objects)

    def criteria(self, world: World) -> Iterator[Criterion]:
        """Button at least 10 of its 15 mm in, robot upright."""
        panel, cap = world.object_pose("button"), world.object_pose("button_cap")
        rest = float(world.model.body("button_cap").pos[1])
        depth = rest - float(panel.actInv(cap).translation[1])
        text = f"button {1e3 * depth:.1f} mm in, wanted at least {1e3 * _WANTED:.0f} mm"
        yield Criterion("button_depth", depth, depth >= _WANTED, text)
        yield upright(world, self.robot)
