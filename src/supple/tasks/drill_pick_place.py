# SPDX-License-Identifier: Apache-2.0
"""DrillPickPlace: take a drill from one table, carry it to another at a right angle and put it down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import mujoco
import numpy as np
import pinocchio as pin

from supple.geometry import pose_from_xyyaw
from supple.sim.viewpoint import Viewpoint
from supple.sim.world import World
from supple.tasks.criteria import still, upright, upright_object
from supple.tasks.distribution import Ranges
from supple.tasks.drill_task import DrillTask
from supple.tasks.furniture import ERGO_TABLE_TOP, add_ergo_table
from supple.tasks.task import Criterion, Skill

__all__ = ["DrillPickPlace"]

_HAND_AWAY = 0.1


class DrillPickPlace(DrillTask):
    """Carry a cordless drill from the desk ahead to the desk on the left with the right hand."""

    name: ClassVar[str] = "drill_pick_place"
    summary: ClassVar[str] = "carry a drill from one table to another with the right hand"
    objects: ClassVar[tuple[str, ...]] = ("drill", "source_table", "target_table")
    skills: ClassVar[tuple[Skill, ...]] = (
        Skill("pick", "right_hand", "drill"),
        Skill("place", "right_hand", "target_table"),
    )
    contact_pairs: ClassVar[tuple[tuple[str, str], ...]] = (
        ("right_wrist_yaw_link", "drill"),
        ("source_table", "drill"),
        ("target_table", "drill"),
    )
    grasp_pairs: ClassVar[tuple[tuple[str, str], ...]] = contact_pairs[2:]
    viewpoint: ClassVar[Viewpoint] = Viewpoint("external_camera", (0.3, 0.6, 0.9), 2.4, -10.0, -30.0)
    # Ranges of the uniform distributions as published (HumanoidMimicGen), around the nominal layout: tables' x, y [m];
    # drill x, y [m] relative to the source table's position and yaw [rad]; robot x, y [m] and yaw [rad].
    ranges: ClassVar[Mapping[str, Ranges]] = {
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

    def _add_furniture(self, spec: mujoco.MjSpec) -> None:
        add_ergo_table(spec, "source_table")
        add_ergo_table(spec, "target_table")

    def _objects(self, drawn: Mapping[str, float]) -> dict[str, pin.SE3]:
        x, y = 1.2 + drawn["source_x"], drawn["source_y"]
        return {
            "drill": pose_from_xyyaw(
                x + drawn["drill_x"], y + drawn["drill_y"], drawn["drill_yaw"], ERGO_TABLE_TOP + 0.001
            ),
            "source_table": pose_from_xyyaw(x, y, -np.pi),
            "target_table": pose_from_xyyaw(drawn["target_x"], 1.2 + drawn["target_y"], -0.5 * np.pi),
        }

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
