# SPDX-License-Identifier: Apache-2.0
"""A scripted operator: does by program, through the same device interface, what a person would do by hand."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from supple.errors import TeleopError, UnknownNameError
from supple.robots import Robot
from supple.teleop.device import OperatorInput, OperatorView
from supple.teleop.scripts import SCRIPTS
from supple.teleop.scripts.motions import Motions

__all__ = ["ScriptedOperator", "scripted_tasks"]

_LOG = logging.getLogger(__name__)


def scripted_tasks() -> tuple[str, ...]:
    """Return the names of the tasks that the scripted operator knows."""
    return tuple(sorted(SCRIPTS))


class ScriptedOperator:
    """A device whose hand poses, velocities and marks come from a program that sees what an operator would see.

    Args:
        robot: The robot.
        task: Name of the task to demonstrate.
        say: Where messages to the operator go; nobody looks at a screen here, so they are logged if absent.

    Raises:
        UnknownNameError: No script for that task.
    """

    name = "scripted"
    tracked = False

    def __init__(self, robot: Robot, task: str, say: Callable[[str], object] = _LOG.info) -> None:
        if task not in SCRIPTS:
            raise UnknownNameError("scripted task", task, SCRIPTS)
        self._say = say
        self._view: OperatorView | None = None
        self._script = SCRIPTS[task](Motions(robot, robot.contract.control_interval, self._newest))
        self._last = OperatorInput()

    def _newest(self) -> OperatorView:
        if self._view is None:
            raise TeleopError("the scripted operator was asked before it saw anything")
        return self._view

    def read(self, view: OperatorView) -> OperatorInput:
        """Return the script's next input; after its end the last one without events."""
        self._view = view
        try:
            self._last = next(self._script)
        except StopIteration:
            return OperatorInput(self._last.poses, self._last.fingers, np.zeros(3), self._last.clutch)
        return self._last

    def tell(self, text: str) -> None:
        """Pass a message on."""
        self._say(text)

    def close(self) -> None:
        """End the script."""
        self._script.close()
