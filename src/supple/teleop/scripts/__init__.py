# SPDX-License-Identifier: Apache-2.0
"""What the scripted operator demonstrates, one file per task."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from supple.teleop.scripts.box_lift import box_lift
from supple.teleop.scripts.drill import drill_lift, drill_pick_place
from supple.teleop.scripts.motions import Motions, Script
from supple.teleop.scripts.push_button import push_button

__all__ = ["SCRIPTS"]

SCRIPTS: Mapping[str, Callable[[Motions], Script]] = {
    "box_lift": box_lift,
    "drill_lift": drill_lift,
    "drill_pick_place": drill_pick_place,
    "push_button": push_button,
}
"""Script of each task that the scripted operator knows."""
