# SPDX-License-Identifier: Apache-2.0
"""PushShelfForward: take hold of a shelving cart with both hands and push it, walking, to a place ahead."""

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
from supple.tasks.cart import CART_TOP, add_cart
from supple.tasks.criteria import upright, upright_object
from supple.tasks.distribution import Ranges, draw, middle
from supple.tasks.furniture import add_floor_mark
from supple.tasks.objects import add_cardboard_box
from supple.tasks.postures import hands_raised
from supple.tasks.task import Criterion, Layout, Skill, Task

__all__ = ["PushShelfForward"]

_BOX_SIZE = (0.172, 0.231, 0.168)
_BOX_MASS = (0.5, 1.0)
_BOX_FRICTION = 1.0
_NOMINAL_MASS = 0.75
_NEAR_TARGET = 0.3

# Ranges of the uniform distributions as published (HumanoidMimicGen): cart x, y [m] and yaw [rad] about where it
# nominally stands; box x, y [m] beside the cart's middle, in world axes, and yaw [rad]; target x, y [m]; robot x, y [m]
# and yaw [rad].
_RANGES: Mapping[str, Ranges] = {
    "D0": {
        "cart_x": (-0.1, 0.1), "cart_y": (-0.1, 0.1), "cart_yaw": (-0.063, 0.063),
        "box_x": (-0.05, 0.05), "box_y": (-0.05, 0.05), "box_yaw": (-np.pi, np.pi),
        "target_x": (-0.1, 0.1), "target_y": (-0.1, 0.1),
        "robot_x": (0.0, 0.0), "robot_y": (0.0, 0.0), "robot_yaw": (0.0, 0.0),
    },
    "D1": {
        "cart_x": (-0.3, 0.3), "cart_y": (-0.3, 0.3), "cart_yaw": (-0.19, 0.19),
        "box_x": (-0.05, 0.05), "box_y": (-0.05, 0.05), "box_yaw": (-np.pi, np.pi),
        "target_x": (-0.1, 0.1), "target_y": (-0.1, 0.1),
        "robot_x": (-0.05, 0.05), "robot_y": (-0.05, 0.05), "robot_yaw": (-0.175, 0.175),
    },
}  # fmt: skip


class PushShelfForward(Task):
    """Push a shelving cart of 17 kg with a box on it 2.5 m ahead with both hands.

    The published box weighs 7 g; ours weighs 0.5 to 1 kg, drawn per episode.
    """

    name: ClassVar[str] = "push_shelf_forward"
    summary: ClassVar[str] = "push a shelving cart with a box on it to a place ahead with both hands"
    objects: ClassVar[tuple[str, ...]] = ("cart", "box", "target")
    skills: ClassVar[tuple[Skill, ...]] = (
        Skill("reach", "left_hand", "cart"),
        Skill("reach", "right_hand", "cart"),
        Skill("push", "left_hand", "target"),
        Skill("push", "right_hand", "target"),
    )
    coordination: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1), (2, 3))
    contact_pairs: ClassVar[tuple[tuple[str, str], ...]] = (
        ("left_wrist_yaw_link", "cart"),
        ("right_wrist_yaw_link", "cart"),
        ("cart", "box"),
    )
    grasp_pairs: ClassVar[tuple[tuple[str, str], ...]] = contact_pairs[2:]
    viewpoint: ClassVar[Viewpoint] = Viewpoint("external_camera", (1.8, 0.0, 0.8), 4.2, 75.0, -15.0)

    @property
    def robot(self) -> Robot:
        """The G1."""
        return g1()

    def spec(self, visual: bool = False) -> mujoco.MjSpec:
        """Return the scene: robot, cart, box, a mark on the floor."""
        spec = g1_spec(visual)
        add_floor_mark(spec, "target")
        add_cart(spec, "cart")
        add_cardboard_box(spec, "box", _BOX_SIZE, _NOMINAL_MASS, _BOX_FRICTION)
        return spec

    def sample(self, distribution: str, rng: np.random.Generator) -> Layout:
        """Draw cart, box, target, robot start and the box's mass."""
        self.check_distribution(distribution)
        return self._layout(draw(_RANGES[distribution], rng), float(rng.uniform(*_BOX_MASS)))

    def nominal(self) -> Layout:
        """Return the middle of D0 with a box of 0.75 kg."""
        return self._layout(middle(_RANGES["D0"]), _NOMINAL_MASS)

    def _layout(self, drawn: Mapping[str, float], mass: float) -> Layout:
        x, y = 1.5 + drawn["cart_x"], drawn["cart_y"]
        objects: dict[str, pin.SE3] = {
            "cart": pose_from_xyyaw(x, y, np.pi + drawn["cart_yaw"]),
            "box": pose_from_xyyaw(x + drawn["box_x"], y + drawn["box_y"], drawn["box_yaw"], CART_TOP + 0.001),
            "target": pose_from_xyyaw(4.0 + drawn["target_x"], drawn["target_y"], 0.0),
        }
        base = pose_from_xyyaw(
            drawn["robot_x"], drawn["robot_y"], drawn["robot_yaw"], self.robot.standing_height + 0.015
        )
        q = hands_raised(self.robot, {"left_hand": "open", "right_hand": "open"})
        return Layout(base, q, objects, {"box.mass": mass})

    def apply_materials(self, world: World, materials: Mapping[str, float]) -> None:
        """Set the box's mass in [kg]."""
        world.set_mass("box", materials["box.mass"])

    def criteria(self, world: World) -> Iterator[Criterion]:
        """Cart within 0.3 m of the target and upright, box still on it, robot upright."""
        offset = world.object_pose("cart").translation - world.object_pose("target").translation
        distance = float(np.linalg.norm(offset[:2]))
        text = f"cart {distance:.2f} m from the target, wanted at most {_NEAR_TARGET} m"
        yield Criterion("target_distance", distance, distance <= _NEAR_TARGET, text)
        on_cart = world.touching("cart", "box")
        yield Criterion("box_on_cart", on_cart, on_cart, "the box must stand on the cart")
        yield upright_object(world, "cart", 0.8)
        yield upright(world, self.robot)
