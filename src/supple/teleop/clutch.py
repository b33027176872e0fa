# SPDX-License-Identifier: Apache-2.0
"""The clutch between device and robot: motion is taken over relative to where both were when it engaged."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np
import pinocchio as pin

from supple.errors import TeleopError
from supple.geometry import pose_error

__all__ = ["Clutch"]

_IDENTITY_TOLERANCE = 1e-6
# A tracked hand trembles; one that does not move by a tenth of a millimetre for a second is not tracked any more.
_FROZEN_DISTANCE = 1e-4
_FROZEN_TIME = 1.0


class Clutch:
    """Map device poses to effector targets while engaged.

    Args:
        tracked: Whether the device's poses come from tracking hardware.
        interval: Time between two updates in [s].
    """

    def __init__(self, tracked: bool, interval: float) -> None:
        self._tracked = tracked
        self._length = max(2, round(_FROZEN_TIME / interval))
        self._history: dict[str, deque[pin.SE3]] = {}
        self._offsets: dict[str, tuple[pin.SE3, pin.SE3]] = {}

    @property
    def engaged(self) -> bool:
        """Whether the robot follows the device."""
        return bool(self._offsets)

    def update(self, poses: Mapping[str, pin.SE3]) -> None:
        """Remember the newest device poses; call it every tick, engaged or not.

        Raises:
            TeleopError: A pose is not finite.
        """
        for name, pose in poses.items():
            if not np.all(np.isfinite(pose.homogeneous)):
                raise TeleopError(f"device pose of {name} is not finite")
            self._history.setdefault(name, deque(maxlen=self._length)).append(pose.copy())

    def engage(self, targets: Mapping[str, pin.SE3]) -> None:
        """Begin to follow the device from the present effector targets on.

        Raises:
            TeleopError: There is no hand at all, a hand has no pose, its pose is the identity (no tracking yet) or has
                not changed for a second although the device tracks (tracking lost); names the hand and what to do.
        """
        if not targets:
            raise TeleopError("engagement refused: the device gives no hand pose yet")
        problems = [text for name in targets if (text := self._problem(name))]
        if problems:
            raise TeleopError("engagement refused: " + "; ".join(problems))
        self._offsets = {name: (self._history[name][-1], target.copy()) for name, target in targets.items()}

    def _problem(self, name: str) -> str | None:
        history = self._history.get(name)
        if not history:
            return f"{name} has no device pose yet"
        if max(pose_error(pin.SE3.Identity(), history[-1])) < _IDENTITY_TOLERANCE:
            return f"{name} is at the identity pose, so the device does not track it; hold it where it can be seen"
        if not self._tracked:
            return None
        if len(history) < self._length:
            return f"{name} has been tracked for less than {_FROZEN_TIME:.0f} s"
        if max(pose_error(history[0], pose)[0] for pose in history) < _FROZEN_DISTANCE:
            return f"{name} has not moved at all for {_FROZEN_TIME:.0f} s, so tracking is lost; move it and try again"
        return None

    def release(self) -> None:
        """Stop following; targets stay where they are."""
        self._offsets = {}

    def targets(self) -> dict[str, pin.SE3]:
        """Return the world pose that each engaged effector is to go to.

        Translation is taken over in the device's axes, rotation relative to the hand's orientation at engagement.
        """
        result = {}
        for name, (device_start, target_start) in self._offsets.items():
            device = self._history[name][-1]
            rotation = device.rotation @ device_start.rotation.T @ target_start.rotation
            result[name] = pin.SE3(rotation, target_start.translation + device.translation - device_start.translation)
        return result
