# SPDX-License-Identifier: Apache-2.0
"""Tasks: scene, initial distribution, skills and success test, one file per task."""

from __future__ import annotations

from supple.errors import UnknownNameError
from supple.tasks.box_lift import BoxLift
from supple.tasks.box_lift_floor import BoxLiftFloor
from supple.tasks.box_table_to_shelf import BoxTableToShelf
from supple.tasks.drill_lift import DrillLift
from supple.tasks.drill_lift_obstacle import DrillLiftObstacle
from supple.tasks.drill_pick_place import DrillPickPlace
from supple.tasks.environment import Environment
from supple.tasks.pick_drill_from_holder import PickDrillFromHolder
from supple.tasks.push_button import PushButton
from supple.tasks.push_shelf_forward import PushShelfForward
from supple.tasks.task import Criterion, Layout, Skill, Task

__all__ = ["Criterion", "Environment", "Layout", "Skill", "Task", "task_named", "task_names"]

_TASKS: dict[str, type[Task]] = {
    task.name: task
    for task in (
        BoxLift,
        BoxLiftFloor,
        BoxTableToShelf,
        DrillLift,
        DrillLiftObstacle,
        DrillPickPlace,
        PickDrillFromHolder,
        PushButton,
        PushShelfForward,
    )
}


def task_names() -> tuple[str, ...]:
    """Return the names of all tasks."""
    return tuple(sorted(_TASKS))


def task_named(name: str) -> Task:
    """Return a task by its command name."""
    if name not in _TASKS:
        raise UnknownNameError("task", name, _TASKS)
    return _TASKS[name]()
