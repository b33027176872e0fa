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

    def reset(self) -> None:
        """Begin at the next measurement, e.g. before a motion that starts from standing."""
        self._pose = None

    def step(self, T_world_base: pin.SE3, dt: float) -> pin.SE3:
        """Return the filtered base pose after one more measurement, ``dt`` in [s] after the last."""
        if self._pose is None:
            self._pose = T_world_base.copy()
        self._pose = interpolate_pose(self._pose, T_world_base, min(1.0, dt / self._time_constant))
        return self._pose.copy()
