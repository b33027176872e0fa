# SPDX-License-Identifier: Apache-2.0
"""The robot as seen by a task that runs in a thread beside the loop that commands the robot; knows no ROS."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.errors import SuppleError
from supple.robots import RobotState
from supple.sim.mirror import Mirror
from supple.tasks import Environment

__all__ = ["TaskHost", "TaskStoppedError", "Wanted"]

Array = NDArray[np.float64]

# So many control intervals a walk goes on for a task that has fallen behind; one that plans stands still.
_COAST = 5


class TaskStoppedError(SuppleError, RuntimeError):
    """Somebody ended the task from outside."""


@dataclass(frozen=True)
class Wanted:
    """What a task wants of the robot for one control interval.

    Attributes:
        q: Joint targets in [rad], shape (n,); those of waist, arms and hands count.
        velocity: Base velocity (vx, vy, wz) in [m/s, m/s, rad/s].
        height: Height of the base in [m]; None for that of walking.
    """

    q: Array
    velocity: Array
    height: float | None = None

    def at_rest(self) -> Wanted:
        """Return the same posture and height, standing still."""
        return replace(self, velocity=np.zeros(3))


class TaskHost:
    """A ``Host`` (see ``supple.generation.host``) whose control interval passes in another thread.

    The loop hands over every state with ``exchange`` and gets what is to be commanded. While the task keeps up, that
    answers the very state it was given for, as in generation. While the task plans, or is late, the loop goes on with
    what was wanted last; a walk is stopped after a tenth of a second. A late wish is not made up for: time goes on.

    Motion noise is for data and never sent to a robot.

    Args:
        environment: A copy of the scene that is never stepped; it shows the robot as measured and the objects as told,
            and judges success. Only the task's thread may use it.
        state: The robot now.
        objects: Returns pose and velocity of each of the task's objects as they are known now.
        patience: Longest time in [s] that the loop waits for a task that keeps up.
    """

    def __init__(
        self,
        environment: Environment,
        state: RobotState,
        objects: Callable[[], tuple[Mapping[str, pin.SE3], Mapping[str, Array]]],
        patience: float,
    ) -> None:
        self._environment, self._objects, self._patience = environment, objects, patience
        self._mirror = Mirror(environment.world)
        self._changed = threading.Condition()
        self._state = state
        self._wanted: Wanted | None = None
        self._fresh = self._waiting = False
        self._stale = 0
        self._stopped = ""
        self._see(state)

    # -- the loop's side ---------------------------------------------------------------------------------------------

    def exchange(self, state: RobotState) -> Wanted | None:
        """Hand a new state to the task and return what it wants; None before its first wish."""
        with self._changed:
            keeps_up, self._waiting = self._waiting, False
            self._state = state
            self._changed.notify_all()
            if keeps_up:
                self._changed.wait_for(lambda: self._waiting or bool(self._stopped), self._patience)
            self._stale = 0 if self._fresh else self._stale + 1
            self._fresh = False
            if self._wanted is not None and (self._stale > _COAST or self._stopped):
                self._wanted = self._wanted.at_rest()
            return self._wanted

    def stop(self, reason: str) -> None:
        """End the task at its next step; the reason must not be empty."""
        with self._changed:
            self._stopped = reason
            self._changed.notify_all()

    # -- the task's side ---------------------------------------------------------------------------------------------

    @property
    def state(self) -> RobotState:
        """The newest state.

        Raises:
            TaskStoppedError: Somebody ended the task.
        """
        with self._changed:
            self._go_on()
            return self._state

    def tick(
        self,
        q: Array,
        targets: Mapping[str, pin.SE3] | None = None,
        velocity: Array | None = None,
        noise: Array | None = None,
        height: float | None = None,
    ) -> None:
        """Have one action executed and wait for the next state; arguments as in ``Host``, noise without effect.

        Raises:
            TaskStoppedError: Somebody ended the task.
        """
        with self._changed:
            self._go_on()
            self._wanted = Wanted(q.copy(), np.zeros(3) if velocity is None else np.array(velocity), height)
            self._fresh = self._waiting = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: bool(self._stopped) or not self._waiting)
            self._go_on()
            state = self._state
        self._see(state)
        self._environment.observe_success()

    def _see(self, state: RobotState) -> None:
        self._mirror.show(state, *self._objects())

    def _go_on(self) -> None:
        if self._stopped:
            raise TaskStoppedError(self._stopped)
