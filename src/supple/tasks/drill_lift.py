# SPDX-License-Identifier: Apache-2.0
"""DrillLift: walk to a table, grasp a cordless drill by its handle and lift it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import mujoco
import numpy as np
import pinocchio as pin

from supple.geometry import pose_from_xyyaw
from supple.sim.viewpoint import Viewpoint
from supple.sim.world import World
from supple.tasks.criteria import above, clear_of, grasped, upright
from supple.tasks.distribution import Ranges
from supple.tasks.drill_task import DrillTask
from supple.tasks.furniture import ERGO_TABLE_TOP, add_ergo_table, stands_on_ergo_table
from supple.tasks.objects import DRILL_RADIUS
from supple.tasks.task import Criterion, Skill

__all__ = ["DrillLift"]


class DrillLift(DrillTask):
    """Lift a cordless drill from a desk with the right hand.

    Layouts in which it would stand over the table's edge are drawn again.
    """

    name: ClassVar[str] = "drill_lift"
    summary: ClassVar[str] = "walk to a table and lift a drill with the right hand"
    objects: ClassVar[tuple[str, ...]] = ("drill", "table")
    skills: ClassVar[tuple[Skill, ...]] = (Skill("lift", "right_hand", "drill"),)
    contact_pairs: ClassVar[tuple[tuple[str, str], ...]] = (("right_wrist_yaw_link", "drill"), ("table", "drill"))
    grasp_pairs: ClassVar[tuple[tuple[str, str], ...]] = contact_pairs[:1]
    viewpoint: ClassVar[Viewpoint] = Viewpoint("external_camera", (1.6, 0.0, 0.9), 1.6, 80.0, -25.0)
    # Ranges of the uniform distributions as published (HumanoidMimicGen), around the nominal layout: table x, y [m] and
    # yaw [rad]; drill x, y [m] relative to the table's position, in world axes, and yaw [rad]; robot x, y [m] and yaw
    # [rad].
    ranges: ClassVar[Mapping[str, Ranges]] = {
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

    def _add_furniture(self, spec: mujoco.MjSpec) -> None:
        add_ergo_table(spec, "table")

    def _objects(self, drawn: Mapping[str, float]) -> dict[str, pin.SE3]:
        x, y = 2.0 + drawn["table_x"], drawn["table_y"]
        table = pose_from_xyyaw(x, y, np.pi + drawn["table_yaw"])
        drill = pose_from_xyyaw(x + drawn["drill_x"], y + drawn["drill_y"], drawn["drill_yaw"], ERGO_TABLE_TOP + 0.001)
        return {"drill": drill, "table": table}

    def _possible(self, drawn: Mapping[str, float]) -> bool:
        objects = self._objects(drawn)
        return stands_on_ergo_table(objects["table"], objects["drill"].translation, DRILL_RADIUS)

    def criteria(self, world: World) -> Iterator[Criterion]:
        """Drill off the table and 10 cm above it, a finger tip on it, robot upright."""
        yield above(world, "drill", ERGO_TABLE_TOP + 0.1)
        yield clear_of(world, "drill", "table")
        yield grasped(world, "drill")
        yield upright(world, self.robot)
