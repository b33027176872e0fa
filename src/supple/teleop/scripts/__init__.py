# SPDX-License-Identifier: Apache-2.0
"""What the scripted operator demonstrates, one file per task."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from supple.teleop.scripts.box_lift import box_lift
from supple.teleop.scripts.box_lift_floor import box_lift_floor
from supple.teleop.scripts.box_table_to_shelf import box_table_to_shelf
from supple.teleop.scripts.drill import drill_lift, drill_lift_obstacle, drill_pick_place, pick_drill_from_holder
from supple.teleop.scripts.motions import Motions, Script
from supple.teleop.scripts.push_button import push_button
from supple.teleop.scripts.push_shelf_forward import push_shelf_forward

__all__ = ["SCRIPTS"]

SCRIPTS: Mapping[str, Callable[[Motions], Script]] = {
    "box_lift": box_lift,
    "box_lift_floor": box_lift_floor,
    "box_table_to_shelf": box_table_to_shelf,
    "drill_lift": drill_lift,
    "drill_lift_obstacle": drill_lift_obstacle,
    "drill_pick_place": drill_pick_place,
    "pick_drill_from_holder": pick_drill_from_holder,
    "push_button": push_button,
    "push_shelf_forward": push_shelf_forward,
}
"""Script of each task that the scripted operator knows."""
