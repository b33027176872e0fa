# SPDX-License-Identifier: Apache-2.0
"""The simulated robot as a Body, in process: writing a command passes one control interval of physics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from supple.errors import StateError
from supple.robots import JointTable, RobotCommand, RobotState
from supple.robots.limits import CommandLimiter
from supple.sim.world import World

__all__ = ["SimBody"]


class SimBody:
    """A robot in a MuJoCo world.

    Args:
        world: The scene with the robot.
        control_interval: Time between two writes in [s], a multiple of the physics step.

    Raises:
        StateError: The interval is no (positive) multiple of the physics step.
    """

    def __init__(self, world: World, control_interval: float) -> None:
        self.world = world
        self._interval = control_interval
        self._substeps = round(control_interval / world.model.opt.timestep)
        if self._substeps < 1 or abs(self._substeps * world.model.opt.timestep - control_interval) > 1e-9:
            raise StateError(f"control interval {control_interval} s is no multiple of {world.model.opt.timestep} s")
        self.limiter = CommandLimiter(world.robot.joints)
        self._last: RobotCommand | None = None

    @property
    def joints(self) -> JointTable:
        """The joint table that every array follows."""
        return self.world.robot.joints

    @property
    def control_interval(self) -> float:
        """Time between two writes in [s]."""
        return self._interval

    def read(self) -> RobotState:
        """Return the simulated measurement."""
        return self.world.robot_state()

    def reset(self) -> None:
        """Forget earlier commands, e.g. after the world was put into another state."""
        self._last = None
        self.world.hold()

    def apply(self, command: RobotCommand) -> RobotCommand:
        """Set the servos without passing time; joints that are not addressed keep their last target."""
        command.check(self.joints)
        limited = self.limiter.limit(command)
        active = command.active
        if active.all():
            self._last = limited
            self.world.apply(limited)
            return limited
        base = self._last or self._holding()
        merged = replace(
            base,
            stamp_ns=command.stamp_ns,
            source=command.source,
            **{
                key: np.where(active, getattr(limited, key), getattr(base, key))
                for key in ("q", "v", "tau", "kp", "kd")
            },
            active=np.ones(len(self.joints), dtype=bool),
        )
        self._last = merged
        self.world.apply(merged)
        return merged

    def _holding(self) -> RobotCommand:
        return replace(RobotCommand.blank(self.joints, "hold"), q=self.world.robot_state().q)

    def write(self, command: RobotCommand) -> RobotCommand:
        """Apply a command, let one control interval pass and return what was applied."""
        applied = self.apply(command)
        self.world.step(self._substeps)
        return applied

    def close(self) -> None:
        """Damp the robot."""
        self.world.apply(RobotCommand.damping(self.joints, "close", self.world.time_ns))
