# SPDX-License-Identifier: Apache-2.0
"""Motions of waist, arms and hands along joint trajectories, watched by tolerances."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from supple.control.trajectory import JointTrajectory, Tolerances
from supple.control.upper_body import UpperBodyController
from supple.errors import StateError
from supple.robots import Robot, RobotCommand, RobotState

__all__ = ["Manipulation", "MotionOutcome"]

Array = NDArray[np.float64]

# A joint that a motion moves by less than this in [rad] stays where it is.
_DISPLACED = 1e-3


class MotionOutcome(StrEnum):
    """How a motion stands."""

    WAITING = "waiting"
    MOVING = "moving"
    REACHED = "reached"
    PATH_VIOLATED = "path tolerance violated"
    GOAL_VIOLATED = "goal tolerance violated"


class Manipulation:
    """Drive waist, arms and hands; hold the present posture until told to move.

    Args:
        robot: The robot.
        speed_limit: Largest speed of arm and waist targets in [rad/s].

    Attributes:
        outcome: How the last motion stands; ``REACHED`` before the first.
        reason: What went wrong with it, for a person.
    """

    def __init__(self, robot: Robot, speed_limit: float = 4.0) -> None:
        self._joints = robot.joints
        self._upper = UpperBodyController(robot, speed_limit)
        self.indices = self._upper.indices
        self.names = tuple(robot.joints.names[i] for i in self.indices)
        self.reset()

    @property
    def source(self) -> str:
        """Who commands."""
        return self._upper.source

    def reset(self) -> None:
        """Forget motion and target; the next step holds what is measured."""
        self._upper.reset()
        self._trajectory: JointTrajectory | None = None
        self._start_ns = 0
        self.outcome, self.reason = MotionOutcome.REACHED, ""
        self.desired: tuple[Array, Array] | None = None

    @property
    def moving(self) -> bool:
        """Whether a motion is not finished yet."""
        return self._trajectory is not None

    @property
    def trajectory(self) -> JointTrajectory | None:
        """The motion that is followed, or None."""
        return self._trajectory

    def posture(self, state: RobotState) -> Array:
        """Return all joint positions in [rad], the upper body as it is commanded, shape (n,)."""
        q = state.q.copy()
        target = self._upper.target
        if target is not None:
            q[self.indices] = target
        return q

    def follow(
        self, trajectory: JointTrajectory, path: Tolerances, goal: Tolerances, goal_time: float, start_ns: int
    ) -> None:
        """Begin to follow a trajectory.

        Args:
            trajectory: Joints of the upper body, or some of them; the others hold.
            path: Accepted deviations on the way.
            goal: Accepted deviations at the end.
            goal_time: How long after the end the goal may still be reached, in [s].
            start_ns: Stamp of its time 0 in [ns].

        Raises:
            StateError: The tolerances are for other joints.
        """
        if not path.names == goal.names == trajectory.names:
            raise StateError("tolerances must be for the joints of the trajectory, in its order")
        self._trajectory, self._path, self._goal, self._goal_time = trajectory, path, goal, goal_time
        self._start_ns = start_ns
        self._columns = self._joints.indices(trajectory.names)
        self._begun = False
        self.outcome, self.reason = MotionOutcome.WAITING, ""

    def stop(self) -> None:
        """Give up the motion and hold where it was."""
        self._trajectory = None
        self.desired = None

    def yield_to(self, state: RobotState) -> None:
        """Give up the motion and hold its joints where they are measured, so that they press on nothing any more."""
        target = self._upper.target
        if self._trajectory is not None and target is not None:
            target[np.searchsorted(self.indices, self._columns)] = state.q[self._columns]
            self._upper.command(target)
        self.stop()

    @property
    def moved(self) -> tuple[str, ...]:
        """Names of the joints that the motion under way displaces; none before it starts and after it ends."""
        if self._trajectory is None or self.outcome is not MotionOutcome.MOVING:
            return ()
        extent = np.ptp(self._trajectory.positions, axis=0)
        return tuple(name for name, e in zip(self._trajectory.names, extent, strict=True) if e > _DISPLACED)

    def step(self, state: RobotState, dt: float) -> RobotCommand:
        """Return the command for one tick.

        Args:
            state: Measured state.
            dt: Time since the last tick in [s].
        """
        if self._upper.target is None:
            # Measured fingers rest a little beyond their stops.
            within = np.clip(state.q, self._joints.lower, self._joints.upper)
            self._upper.command(within[self.indices])
        velocity = np.zeros(len(self._joints))
        if self._trajectory is not None and state.stamp_ns >= self._start_ns:
            velocity[self._columns] = self._follow(self._trajectory, state)
        command = self._upper.step(state, dt)
        return replace(command, v=velocity)

    def _follow(self, trajectory: JointTrajectory, state: RobotState) -> Array:
        if not self._begun:
            self._begun = True
            self.outcome = MotionOutcome.MOVING
            trajectory = self._trajectory = trajectory.starting_from(self.posture(state)[self._columns])
        time = (state.stamp_ns - self._start_ns) * 1e-9
        q, v = trajectory.sample(time)
        self.desired = q, v
        self._judge(trajectory, state, time, q, v)
        if self._trajectory is None:
            return np.zeros_like(v)
        target = self.posture(state)
        target[self._columns] = q
        self._upper.command(target[self.indices])
        return v

    def _judge(self, trajectory: JointTrajectory, state: RobotState, time: float, q: Array, v: Array) -> None:
        error, rate = q - state.q[self._columns], v - state.v[self._columns]
        if time < trajectory.duration:
            if found := self._path.violations(error, rate):
                self._end(MotionOutcome.PATH_VIOLATED, f"after {time:.2f} s: " + "; ".join(found))
            return
        found = self._goal.violations(error, rate)
        if not found:
            self._end(MotionOutcome.REACHED, "")
        elif time > trajectory.duration + self._goal_time:
            self._end(
                MotionOutcome.GOAL_VIOLATED, f"{time - trajectory.duration:.2f} s after the end: " + "; ".join(found)
            )

    def _end(self, outcome: MotionOutcome, reason: str) -> None:
        if outcome is not MotionOutcome.PATH_VIOLATED and self._trajectory is not None:
            q, _ = self._trajectory.sample(np.inf)
            target = self._upper.target
            if target is not None:
                row = np.searchsorted(self.indices, self._columns)
                target[row] = q
                self._upper.command(target)
        self.outcome, self.reason = outcome, reason
        self._trajectory = None
