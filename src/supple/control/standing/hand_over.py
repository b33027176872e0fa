# SPDX-License-Identifier: Apache-2.0
"""Who has the legs: the walking policy, or the standing controller at another height; and how one follows the other."""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from supple.control.standing.controller import StandingController
from supple.control.walking import WalkingPolicy
from supple.robots import Robot, RobotState

__all__ = ["WALKING_HEIGHT_TOLERANCE", "HandOver", "LegMode"]

Array = NDArray[np.float64]

WALKING_HEIGHT_TOLERANCE = 0.02
"""Heights this close to the robot's standing height in [m] are left to the walking policy."""

# The standing controller takes over when both soles have been flat, level and still for a moment, and the weight is on
# both (centre of mass and capture point near the middle): an unloaded sole would slide. [rad], [m], [m/s], [m], [s]
_FLAT, _LEVEL, _STILL = 0.035, 0.006, 0.06
_MIDDLE_LOWER, _MIDDLE_UPPER = np.array([-0.06, -0.03]), np.array([0.075, 0.03])
_STILL_TIME = 0.1
# With a load in its hands the policy may come to rest with the weight more on one foot, and would stay so. After this
# time in [s] that will do as long as the other sole still bears a quarter, in [m].
_PATIENCE, _UNEVEN = 1.0, np.array([0.0, 0.025])
# Found this far below walking height at the start, the robot is squatting already, in [m].
_SQUATTING = 0.06


class LegMode(StrEnum):
    """Who has the legs, and what for."""

    WALKING = "walking"
    """The walking policy walks or stands."""
    STOPPING = "stopping"
    """The walking policy comes to rest, for the standing controller to take over."""
    STANDING = "standing"
    """The standing controller is at its height or on the way there."""
    RISING = "rising"
    """The standing controller goes up to walking height, for the walking policy to take over."""


class HandOver:
    """Give the legs to the walking policy or to the standing controller, each time from a robot at rest.

    Down: the policy comes to stand, both feet side by side; when the weight is on both, the standing controller begins
    with what it measures as its reference. Up: only a wanted velocity brings the policy back. The standing controller
    rises to walking height and comes to rest there, the policy begins anew and steps off. Until then the robot stands
    at walking height by the standing controller, which minds neither stretched arms nor a load, as the policy does. A
    robot that is found squatting when control begins is the standing controller's.

    Args:
        robot: The robot.
        walking: The walking policy.
        standing: The standing controller.

    Attributes:
        mode: Who has the legs.
    """

    def __init__(self, robot: Robot, walking: WalkingPolicy, standing: StandingController) -> None:
        self._robot = robot
        self._walking = walking
        self._standing = standing
        self.reset()

    def reset(self) -> None:
        """Forget who had the legs; the next step looks."""
        self._standing.reset()
        self.mode = LegMode.WALKING
        self._fresh = True
        self._quiet = self._uneven = 0.0

    @property
    def standing(self) -> bool:
        """Whether the standing controller has the legs."""
        return self.mode in (LegMode.STANDING, LegMode.RISING)

    def step(self, state: RobotState, height: float, walk: bool, dt: float) -> LegMode:
        """Decide who has the legs for one tick.

        Args:
            state: Measured state.
            height: Wanted height of the base in [m].
            walk: Whether a velocity is wanted; it needs the walking height.
            dt: Time since the last tick in [s].
        """
        if self._fresh:
            if self._standing.look(state).height < self._robot.standing_height - _SQUATTING:
                self.mode = LegMode.STANDING
            self._fresh = False
        if self.standing and walk:
            self._rise()
        elif self.standing:
            self.mode = LegMode.STANDING
            self._standing.set_height(height)
        else:
            squat = not walk and abs(height - self._robot.standing_height) > WALKING_HEIGHT_TOLERANCE
            self._wait_for_rest(state, height if squat else None, dt)
        return self.mode

    def _wait_for_rest(self, state: RobotState, height: float | None, dt: float) -> None:
        if height is None:
            self.mode, self._quiet, self._uneven = LegMode.WALKING, 0.0, 0.0
            return
        self.mode = LegMode.STOPPING
        here = self._standing.look(state)
        flat = here.foot_tilt < _FLAT and here.foot_step < _LEVEL and here.foot_speed < _STILL
        points = np.stack([here.com, here.capture_point])
        resting = self._walking.standing and flat

        def within(more: Array | float) -> bool:
            return bool(((points > _MIDDLE_LOWER - more) & (points < _MIDDLE_UPPER + more)).all())

        self._quiet = self._quiet + dt if resting and within(0.0) else 0.0
        self._uneven = self._uneven + dt if resting and within(_UNEVEN) else 0.0
        if self._quiet >= _STILL_TIME or self._uneven >= _PATIENCE:
            self.mode = LegMode.STANDING
            self._standing.reset()
            self._standing.set_height(height)

    def _rise(self) -> None:
        self.mode = LegMode.RISING
        self._standing.set_height(self._robot.standing_height)
        if self._standing.settled:
            self._walking.reset()
            self._standing.reset()
            self.mode, self._quiet, self._uneven = LegMode.WALKING, 0.0, 0.0
