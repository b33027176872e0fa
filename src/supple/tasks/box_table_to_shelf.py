# SPDX-License-Identifier: Apache-2.0
"""BoxTableToShelf: take a box from a table with both hands, carry it to a shelf and put it on the middle board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import mujoco
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.geometry import pose_from_xyyaw
from supple.robots import Robot, g1
from supple.sim.g1_model import g1_spec
from supple.sim.viewpoint import Viewpoint
from supple.sim.world import World
from supple.tasks.criteria import still, upright, upright_object
from supple.tasks.distribution import Ranges, draw_accepted, middle
from supple.tasks.furniture import LAB_TABLE_TOP, SHELF_BOARDS, add_lab_table, add_shelf, distance_to_shelf
from supple.tasks.objects import add_cardboard_box
from supple.tasks.postures import hands_raised
from supple.tasks.task import Criterion, Layout, Skill, Task

__all__ = ["TARGET_BOARD", "BoxTableToShelf"]

_SCALE = 0.8
TARGET_BOARD = _SCALE * SHELF_BOARDS[1]
"""Height of the top of the board that the box goes to in [m]."""

_BOX_SIZE = (0.197, 0.279, 0.102)
_BOX_MASS = (0.5, 1.0)
_BOX_FRICTION = 1.0
_NOMINAL_MASS = 0.75
# Motion noise in [rad]: under the usual 0.01 a box that is carried far creeps down between the hands and tilts.
_ARM_NOISE = 0.004

# The table stands still. Points along its edges towards robot and shelf, 1 cm inside: nominally shelf and table almost
# touch.
_TABLE, _TABLE_FRONT = (1.22, 0.0), 0.85
_TABLE_EDGES = np.array(
    [(0.86, y) for y in np.linspace(-0.575, 0.575, 9)] + [(x, -0.575) for x in np.linspace(0.86, 1.58, 7)]
)
# A box stands if its middle is so far from the table's edge; the robot starts so far from the shelf at least, in [m].
_ON_TABLE, _FREE = 0.03, 0.05
# The robot's hands at the start as seen from its base in [m].
_HANDS = np.array([[0.28, 0.30, 0.0], [0.28, -0.30, 0.0], [0.0, 0.0, 0.0]])

# Ranges of the uniform distributions as published (HumanoidMimicGen), around the nominal layout: box, shelf and robot
# x, y [m] and yaw [rad].
_RANGES: Mapping[str, Ranges] = {
    "D0": {
        "box_x": (0.0, 0.0), "box_y": (0.0, 0.0), "box_yaw": (0.0, 0.0),
        "shelf_x": (0.55, 0.55), "shelf_y": (-0.83, -0.83), "shelf_yaw": (0.0, 0.0),
        "robot_x": (0.73, 0.73), "robot_y": (-0.06, 0.06), "robot_yaw": (0.0, 0.0),
    },
    "D1": {
        "box_x": (-0.18, 0.18), "box_y": (-0.18, 0.18), "box_yaw": (-0.60, 0.60),
        "shelf_x": (0.37, 0.73), "shelf_y": (-0.91, -0.55), "shelf_yaw": (-0.36, 0.36),
        "robot_x": (-0.05, 0.05), "robot_y": (-0.05, 0.05), "robot_yaw": (-0.175, 0.175),
    },
}  # fmt: skip


class BoxTableToShelf(Task):
    """Carry a flat box of 20 x 28 x 10 cm from a table to the middle board of a shelf beside it, with both hands.

    The published box is a tray with handles and weighs 11 g; ours is closed, is pressed between the hands, and weighs
    0.5 to 1 kg, drawn per episode. Layouts in which it would not stand on the table, or the shelf would stand in the
    table or in the robot, are drawn again.
    """

    name: ClassVar[str] = "box_table_to_shelf"
    summary: ClassVar[str] = "carry a box from a table to a shelf with both hands"
    objects: ClassVar[tuple[str, ...]] = ("box", "shelf", "table")
    skills: ClassVar[tuple[Skill, ...]] = (
        Skill("pick", "left_hand", "box", _ARM_NOISE),
        Skill("pick", "right_hand", "box", _ARM_NOISE),
        Skill("place", "left_hand", "shelf", _ARM_NOISE),
        Skill("place", "right_hand", "shelf", _ARM_NOISE),
    )
    coordination: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1), (2, 3))
    contact_pairs: ClassVar[tuple[tuple[str, str], ...]] = (
        ("left_wrist_yaw_link", "box"),
        ("right_wrist_yaw_link", "box"),
        ("table", "box"),
        ("shelf", "box"),
    )
    grasp_pairs: ClassVar[tuple[tuple[str, str], ...]] = contact_pairs[3:]
    viewpoint: ClassVar[Viewpoint] = Viewpoint("external_camera", (0.7, -0.3, 0.8), 2.4, 60.0, -30.0)

    @property
    def robot(self) -> Robot:
        """The G1."""
        return g1()

    def spec(self, visual: bool = False) -> mujoco.MjSpec:
        """Return the scene: robot, table, shelf, box."""
        spec = g1_spec(visual)
        add_lab_table(spec, "table")
        add_shelf(spec, "shelf", _SCALE)
        add_cardboard_box(spec, "box", _BOX_SIZE, _NOMINAL_MASS, _BOX_FRICTION)
        return spec

    def start_posture(self) -> NDArray[np.float64]:
        """Return the joint positions (43,) in [rad] at the start: standing, hands raised and flat."""
        return hands_raised(self.robot, {"left_hand": "flat", "right_hand": "flat"})

    def sample(self, distribution: str, rng: np.random.Generator) -> Layout:
        """Draw box, shelf, robot start and box mass."""
        self.check_distribution(distribution)
        return self._layout(draw_accepted(_RANGES[distribution], rng, self._possible), float(rng.uniform(*_BOX_MASS)))

    def nominal(self) -> Layout:
        """Return the middle of D0 with a box of 0.75 kg."""
        return self._layout(middle(_RANGES["D0"]), _NOMINAL_MASS)

    def _poses(self, drawn: Mapping[str, float]) -> dict[str, pin.SE3]:
        x, y = 1.079 + drawn["box_x"], 0.022 + drawn["box_y"]
        return {
            "box": pose_from_xyyaw(x, y, np.pi + drawn["box_yaw"], LAB_TABLE_TOP + 0.001),
            "shelf": pose_from_xyyaw(drawn["shelf_x"], drawn["shelf_y"], 0.5 * np.pi + drawn["shelf_yaw"]),
            "table": pose_from_xyyaw(*_TABLE, 0.5 * np.pi),
        }

    def _start(self, drawn: Mapping[str, float]) -> pin.SE3:
        height = self.robot.standing_height + 0.015
        return pose_from_xyyaw(drawn["robot_x"], drawn["robot_y"], drawn["robot_yaw"], height)

    def _possible(self, drawn: Mapping[str, float]) -> bool:
        poses, start = self._poses(drawn), self._start(drawn)
        if poses["box"].translation[0] < _TABLE_FRONT + _ON_TABLE:
            return False
        in_table = any(distance_to_shelf(poses["shelf"], _SCALE, point) == 0.0 for point in _TABLE_EDGES)
        in_robot = any(distance_to_shelf(poses["shelf"], _SCALE, start.act(hand)) < _FREE for hand in _HANDS)
        return not in_table and not in_robot

    def _layout(self, drawn: Mapping[str, float], mass: float) -> Layout:
        return Layout(self._start(drawn), self.start_posture(), self._poses(drawn), {"box.mass": mass})

    def apply_materials(self, world: World, materials: Mapping[str, float]) -> None:
        """Set the box's mass in [kg]."""
        world.set_mass("box", materials["box.mass"])

    def criteria(self, world: World) -> Iterator[Criterion]:
        """Box at rest and upright on the shelf's middle board, robot upright."""
        on_shelf = world.touching("box", "shelf")
        yield Criterion("box_on_shelf", on_shelf, on_shelf, "the box must stand on the shelf")
        z = float(world.object_pose("box").translation[2])
        text = f"box at {z:.3f} m, wanted on the board at {TARGET_BOARD:.3f} m"
        yield Criterion("box_height", z, abs(z - TARGET_BOARD) < 0.01, text)
        yield upright_object(world, "box", 0.95)
        yield still(world, "box")
        yield upright(world, self.robot)
