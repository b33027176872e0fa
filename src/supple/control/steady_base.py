# SPDX-License-Identifier: Apache-2.0
"""The base pose that hands are steered from: the measured one without its sway."""

from __future__ import annotations

import pinocchio as pin

from supple.geometry import interpolate_pose

__all__ = ["SteadyBase"]


class SteadyBase:
    """Low-pass filter of the base pose for tracking with the hands.

    Hands that answer each sway of the pelvis at once move the robot's own balance: with a box at arm's length the two
    feed each other until the robot rocks (measured). Answered over a second they do not; slow drift is still made up.

    Args:
        time_constant: Time constant in [s].
    """

    def __init__(self, time_constant: float = 1.0) -> None:
        self._time_constant = time_constant
        self._pose: pin.SE3 | None = None
        self._moving = False

    def reset(self) -> None:
        """Begin at the next measurement, e.g. before a motion that starts from standing."""
        self._pose = None

    def step(self, T_world_base: pin.SE3, dt: float, expected: pin.SE3 | None = None) -> pin.SE3:
        """Return the filtered base pose after one more measurement, ``dt`` in [s] after the last.

        Args:
            T_world_base: Measured base pose.
            dt: Time since the last measurement in [s].
            expected: How the base is meant to move, e.g. down and forward in a squat: where it should be now relative
                to any frame that stands still. It counts at once, only what differs from it is filtered; late hands
                would be left behind.
        """
        still = T_world_base if expected is None else T_world_base * expected.inverse()
        if self._pose is None or (expected is not None) != self._moving:
            self._pose, self._moving = still.copy(), expected is not None
        self._pose = interpolate_pose(self._pose, still, min(1.0, dt / self._time_constant))
        return self._pose.copy() if expected is None else self._pose * expected
