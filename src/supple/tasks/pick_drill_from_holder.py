# SPDX-License-Identifier: Apache-2.0
"""PickDrillFromHolder: walk to a shelf and pull a cordless drill out of the holder at its end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

import mujoco
import numpy as np
import pinocchio as pin

from supple.geometry import pose_from_xyyaw
from supple.sim.viewpoint import Viewpoint
from supple.sim.world import World
from supple.tasks.criteria import clear_of, grasped, upright
from supple.tasks.distribution import Ranges
from supple.tasks.drill_task import DrillTask
from supple.tasks.furniture import HOLDER_SLOT, add_drill_holder, add_shelf
from supple.tasks.task import Criterion, Skill

__all__ = ["PickDrillFromHolder"]

_HOLDER_HEIGHT = 0.965
# The drill's body lies in the slot of 44 mm: its bottom is so far below the holder's top in [m].
_HANGS = 0.179


class PickDrillFromHolder(DrillTask):
    """Pull a cordless drill out of a comb-like holder with the right hand."""

    name: ClassVar[str] = "pick_drill_from_holder"
    summary: ClassVar[str] = "walk to a shelf and pull a drill out of the holder at its end"
    objects: ClassVar[tuple[str, ...]] = ("drill", "holder", "shelf")
    skills: ClassVar[tuple[Skill, ...]] = (Skill("pull_out", "right_hand", "drill"),)
    contact_pairs: ClassVar[tuple[tuple[str, str], ...]] = (("right_wrist_yaw_link", "drill"), ("holder", "drill"))
    grasp_pairs: ClassVar[tuple[tuple[str, str], ...]] = contact_pairs[:1]
    viewpoint: ClassVar[Viewpoint] = Viewpoint("external_camera", (0.35, 0.0, 0.9), 1.6, 60.0, -20.0)
    # Ranges of the uniform distributions as published (HumanoidMimicGen): shelf x, y [m] and yaw [rad] about where it
    # nominally stands; holder y [m] relative to the shelf; robot x, y [m] and yaw [rad].
    ranges: ClassVar[Mapping[str, Ranges]] = {
        "D0": {
            "shelf_x": (-0.02, 0.02), "shelf_y": (-0.02, 0.02), "shelf_yaw": (-0.031, 0.031),
            "holder_y": (-0.02, 0.02),
            "robot_x": (-0.5, -0.5), "robot_y": (0.0, 0.0), "robot_yaw": (0.0, 0.0),
        },
        "D1": {
            "shelf_x": (-0.15, 0.15), "shelf_y": (-0.15, 0.15), "shelf_yaw": (-0.031, 0.031),
            "holder_y": (-0.02, 0.02),
            "robot_x": (-0.5, -0.5), "robot_y": (0.0, 0.0), "robot_yaw": (0.0, 0.0),
        },
    }  # fmt: skip

    def _add_furniture(self, spec: mujoco.MjSpec) -> None:
        add_shelf(spec, "shelf", 1.0)
        add_drill_holder(spec, "holder")

    def _objects(self, drawn: Mapping[str, float]) -> dict[str, pin.SE3]:
        x, y = 1.35 + drawn["shelf_x"], drawn["shelf_y"]
        holder = pose_from_xyyaw(x - 0.75, y + drawn["holder_y"], 0.5 * np.pi, _HOLDER_HEIGHT)
        slot = holder.act(np.array([*HOLDER_SLOT, 0.0]))
        return {
            "drill": pose_from_xyyaw(slot[0], slot[1], 0.0, slot[2] - _HANGS + 0.001),
            "holder": holder,
            "shelf": pose_from_xyyaw(x, y, 0.5 * np.pi + drawn["shelf_yaw"]),
        }

    def criteria(self, world: World) -> Iterator[Criterion]:
        """Drill out of the holder, a finger tip on it, robot upright."""
        yield clear_of(world, "drill", "holder")
        yield grasped(world, "drill")
        yield upright(world, self.robot)
