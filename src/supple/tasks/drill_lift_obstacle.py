# SPDX-License-Identifier: Apache-2.0
"""DrillLiftObstacle: as DrillLift, with a shelf in the way that the robot must walk round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import mujoco
import numpy as np
import pinocchio as pin

from supple.geometry import pose_from_xyyaw
from supple.sim.viewpoint import Viewpoint
from supple.tasks.distribution import Ranges
from supple.tasks.drill_lift import DrillLift
from supple.tasks.furniture import add_shelf, distance_to_shelf

__all__ = ["DrillLiftObstacle"]

_SCALE = 0.7
# At the start the robot's hands, here as seen from its base in [m], keep this distance in [m] from the shelf.
_HANDS = np.array([[0.28, 0.30, 0.0], [0.28, -0.30, 0.0]])
_FREE = 0.05


class DrillLiftObstacle(DrillLift):
    """Walk round a shelf to a desk and lift a cordless drill with the right hand.

    Layouts in which the shelf would stand where the robot's hands are at the start are drawn again.
    """

    name: ClassVar[str] = "drill_lift_obstacle"
    summary: ClassVar[str] = "walk round a shelf to a table and lift a drill with the right hand"
    objects: ClassVar[tuple[str, ...]] = ("drill", "obstacle", "table")
    viewpoint: ClassVar[Viewpoint] = Viewpoint("external_camera", (1.3, 0.3, 0.9), 2.6, 120.0, -30.0)
    # As in DrillLift, and the obstacle's x, y [m] and yaw [rad] about where it nominally stands.
    ranges: ClassVar[Mapping[str, Ranges]] = {
        "D0": {
            **DrillLift.ranges["D0"],
            "drill_y": (0.45, 0.50),
            "obstacle_x": (-0.02, 0.02), "obstacle_y": (-0.10, 0.10), "obstacle_yaw": (-0.063, 0.063),
        },
        "D1": {
            "table_x": (-0.12, 0.12), "table_y": (-0.12, 0.12), "table_yaw": (-0.38, 0.38),
            "drill_x": (-0.38, -0.14), "drill_y": (0.28, 0.67), "drill_yaw": (-0.94, 0.94),
            "obstacle_x": (-0.12, 0.12), "obstacle_y": (-0.60, 0.60), "obstacle_yaw": (-0.38, 0.38),
            "robot_x": (-0.05, 0.05), "robot_y": (-0.05, 0.05), "robot_yaw": (-0.175, 0.175),
        },
    }  # fmt: skip

    def _add_furniture(self, spec: mujoco.MjSpec) -> None:
        super()._add_furniture(spec)
        add_shelf(spec, "obstacle", _SCALE)

    def _objects(self, drawn: Mapping[str, float]) -> dict[str, pin.SE3]:
        x, y, yaw = 0.7 + drawn["obstacle_x"], drawn["obstacle_y"], np.pi + drawn["obstacle_yaw"]
        return {**super()._objects(drawn), "obstacle": pose_from_xyyaw(x, y, yaw)}

    def _possible(self, drawn: Mapping[str, float]) -> bool:
        shelf, hands = self._objects(drawn)["obstacle"], [self._start(drawn).act(hand) for hand in _HANDS]
        nearest = min(distance_to_shelf(shelf, _SCALE, hand) for hand in hands)
        return super()._possible(drawn) and nearest >= _FREE
