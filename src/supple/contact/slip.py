# SPDX-License-Identifier: Apache-2.0
"""Slip of a held object, from where hands are touched, how their links move and, if known, how the object moves.

Pressure alone cannot tell sliding: a flat face that slides across a pad keeps its pattern. What can be measured is how
fast the touched point of each link moves (joint encoders and kinematics) and what the object does. Nothing measures the
latter at the rate of touch, so it is estimated: the object is rigid, most of what touches it sticks, and a tracker
(a camera, if there is one) sees its pose now and then. What a link's touched point moves beyond that is slip.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from supple.contact.detection import patch_of
from supple.contact.readings import PadLayout, TactileReading
from supple.errors import SensorError, UnknownNameError

__all__ = ["SlipEstimator", "SlipSettings"]

Array = NDArray[np.float64]

_ITERATIONS = 4
# Without knowing anything, an object moves no faster than this: m/s and rad/s.
_PRIOR = np.array([0.3, 0.3, 0.3, 2.0, 2.0, 2.0]) ** 2
# A twist has six numbers, a touched point gives three, and one link cannot be compared with itself.
_FEWEST_LINKS = 3
# How long the links' poses are kept in s: a tracked motion is as old as its window and its delay.
_HISTORY = 0.5


class SlipSettings(BaseModel):
    """How the motion of an object is estimated.

    Attributes:
        window: Time over which a link's motion is taken in [s]; a control interval and a half averages the servos'
            chatter out, two already cost recall.
        least_force: Sensors pressed less than this in [N] say nothing.
        noise_floor: Taxels below this value in [Pa] do not count.
        stick_noise: How exactly a sticking point moves with the object in [m/s], standard deviation.
        drift: How much the object's velocity may change in [m/s per sqrt(s)]. It is also how fast fingers that slide
            together talk the estimate over to their side between two tracked poses, so a low one finds slow slips.
        spin_drift: How much its angular velocity may change in [rad/s per sqrt(s)].
        track_window: Time over which tracked poses are turned into a velocity in [s].
        track_position: Noise of a tracked position in [m], standard deviation.
        track_rotation: Noise of a tracked orientation in [rad], standard deviation.
        track_slide: Mean speed over ``track_window`` in [m/s] from which a touched point counts as sliding, and says
            nothing about the object, until the next tracked pose. Four poses at 15 Hz know the speed of a point 0.1 m
            from the object's origin to 4 mm/s per axis: at three times that, what sticks is still accused too often.
        track_lag: What a tracked velocity may have changed by since in [m/s], standard deviation.
        track_spin_lag: The same of the angular velocity in [rad/s].
        track_timeout: Time after which the last tracked pose no longer counts in [s].
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    window: float = Field(default=0.03, gt=0.0)
    least_force: float = Field(default=0.5, gt=0.0)
    noise_floor: float = Field(default=1500.0, ge=0.0)
    stick_noise: float = Field(default=0.004, gt=0.0)
    drift: float = Field(default=0.03, gt=0.0)
    spin_drift: float = Field(default=0.3, gt=0.0)
    track_window: float = Field(default=0.21, gt=0.0)
    track_position: float = Field(default=0.0005, gt=0.0)
    track_rotation: float = Field(default=0.0035, gt=0.0)
    track_slide: float = Field(default=0.015, gt=0.0)
    track_lag: float = Field(default=0.003, ge=0.0)
    track_spin_lag: float = Field(default=0.02, ge=0.0)
    track_timeout: float = Field(default=0.3, gt=0.0)


@dataclass(frozen=True, eq=False)
class _Touch:
    """One touched sensor: its link, and point, unit normal and velocity in the common frame."""

    name: str
    link: str
    point: Array
    normal: Array
    velocity: Array


class SlipEstimator:
    """Slip speed at each sensor that touches one rigid object.

    A Kalman filter over the object's twist. Each touched point is a measurement of the object's velocity there, if it
    sticks; weights after Cauchy take those that do not out of the sum. Tracked poses are measurements of the whole
    twist, and tell which points have slid since: those have no vote until the next pose, even if all of them agree, as
    they do when an object sinks between hands that stand still. Without a tracker nobody sees that. With neither a
    fresh pose nor three touched links nothing is said: the speeds are NaN.

    All poses are given in one frame, any that moves smoothly: the robot's base, or the world.

    Args:
        layouts: The sensors; their frames name the links.
        settings: How the object's motion is estimated.
    """

    def __init__(self, layouts: Iterable[PadLayout], settings: SlipSettings | None = None) -> None:
        self.layouts = {layout.name: layout for layout in layouts}
        self.settings = settings or SlipSettings()
        self.reset()

    def reset(self) -> None:
        """Forget links, object and tracked poses."""
        self._stamp: int | None = None
        self._links: deque[tuple[int, Mapping[str, pin.SE3]]] = deque()
        self._poses: deque[tuple[int, pin.SE3]] = deque()
        self._patches: dict[str, tuple[str, Array, Array]] = {}  # link, point and normal in its frame, by sensor
        self._sliding: set[str] = set()
        self._centre = np.zeros(3)
        self._forget()

    def _forget(self) -> None:
        self._twist, self._covariance = np.zeros(6), np.diag(_PRIOR)

    def observe_object(self, stamp_ns: int, T_base_object: pin.SE3) -> None:
        """Take a tracked pose of the object, whenever it becomes known; an older one than the last is ignored.

        Args:
            stamp_ns: When it was seen in [ns], on the clock of the readings.
            T_base_object: Its pose in the common frame.
        """
        poses, settings = self._poses, self.settings
        if poses and stamp_ns <= poses[-1][0]:
            return
        poses.append((stamp_ns, T_base_object.copy()))
        while stamp_ns - poses[0][0] > round(1e9 * settings.track_window):
            poses.popleft()
        if len(poses) < 2:
            return
        time = 1e-9 * np.array([stamp - stamp_ns for stamp, _ in poses], dtype=np.float64)
        time -= time.mean()
        spread = float(time @ time)
        last = poses[-1][1]
        turns = np.array([pin.log3(pose.rotation @ last.rotation.T) for _, pose in poses])
        spin = time @ turns / spread
        # The frame's origin is seen; the twist is kept about the middle of what touches.
        velocity = time @ np.array([pose.translation for _, pose in poses]) / spread
        velocity = velocity + np.cross(spin, self._centre - last.translation)
        seen = np.r_[velocity, spin]
        sliding = self._slide_under(seen, poses[0][0], stamp_ns)
        if not sliding <= self._sliding:
            # What such points have said about the object is wrong, however often and unanimously they said it.
            self._covariance = np.diag(_PRIOR)
        self._sliding = sliding
        deviation = np.repeat(
            [
                settings.track_position / math.sqrt(spread) + settings.track_lag,
                settings.track_rotation / math.sqrt(spread) + settings.track_spin_lag,
            ],
            3,
        )
        gain = self._covariance @ np.linalg.inv(self._covariance + np.diag(deviation**2))
        self._twist = self._twist + gain @ (seen - self._twist)
        self._covariance = self._covariance - gain @ self._covariance

    def _slide_under(self, twist: Array, begin_ns: int, end_ns: int) -> set[str]:
        """Return the touched sensors whose points moved, on the mean between two times, unlike an object at a twist."""
        if not self._links or end_ns <= self._links[0][0]:
            return set()
        then_ns, then = self._at(begin_ns)
        now_ns, now = self._at(end_ns)
        if now_ns <= then_ns:
            return set()
        found = set()
        for name, (link, point, normal) in self._patches.items():
            if link not in then or link not in now:
                continue
            place = now[link].act(point)
            motion = (place - then[link].act(point)) / (1e-9 * (now_ns - then_ns))
            motion -= twist[:3] + np.cross(twist[3:], place - self._centre)
            axis = now[link].rotation @ normal
            if np.linalg.norm(motion - axis * (axis @ motion)) > self.settings.track_slide:
                found.add(name)
        return found

    def _at(self, stamp_ns: int) -> tuple[int, Mapping[str, pin.SE3]]:
        """Return the links' poses nearest to a time."""
        return min(self._links, key=lambda entry: abs(entry[0] - stamp_ns))

    def step(
        self, stamp_ns: int, T_base_link: Mapping[str, pin.SE3], readings: Mapping[str, TactileReading]
    ) -> dict[str, float]:
        """Return the slip speed at each sensor in [m/s], NaN where it is not touched or nothing can be told.

        Args:
            stamp_ns: When the readings were taken in [ns]; going back begins anew.
            T_base_link: Pose of the link of every sensor that gave a reading, in the common frame; it is kept, looked
                at only when something is touched, and must not change.
            readings: Readings of that time, by sensor.

        Raises:
            UnknownNameError: A sensor is unknown, or its link has no pose.
        """
        if self._stamp is not None and stamp_ns <= self._stamp:
            self.reset()
        elapsed = 0.0 if self._stamp is None else 1e-9 * (stamp_ns - self._stamp)
        self._stamp = stamp_ns
        self._links.append((stamp_ns, T_base_link))
        result = dict.fromkeys(readings, math.nan)
        touches = self._touches(readings)
        tracked = bool(self._poses) and stamp_ns - self._poses[-1][0] <= round(1e9 * self.settings.track_timeout)
        if not tracked:
            self._sliding = set()
        if not touches:
            if tracked:
                self._predict(elapsed, self._centre)
            else:
                self._forget()
            return result
        self._predict(elapsed, np.mean([touch.point for touch in touches], axis=0))
        arms = np.array([touch.point for touch in touches]) - self._centre
        # Velocity of a point of the object: v + w x r.
        jacobian = np.concatenate([np.tile(np.eye(3), (len(arms), 1, 1)), -_cross_matrices(arms)], axis=2)
        velocity = np.array([touch.velocity for touch in touches])
        self._correct(jacobian, velocity, np.array([touch.name not in self._sliding for touch in touches]))
        if not tracked and len({touch.link for touch in touches}) < _FEWEST_LINKS:
            return result
        for touch, motion in zip(touches, velocity - jacobian @ self._twist, strict=True):
            across = motion - touch.normal * (touch.normal @ motion)
            result[touch.name] = float(np.linalg.norm(across))
        return result

    def _touches(self, readings: Mapping[str, TactileReading]) -> list[_Touch]:
        """Return the touched sensors whose links' motion is known over the window."""
        settings = self.settings
        now_ns, now = self._links[-1]
        while now_ns - self._links[0][0] > round(1e9 * _HISTORY):
            self._links.popleft()
        found: list[_Touch] = []
        self._patches = {}
        if not readings:
            return found
        then_ns, then = self._at(now_ns - round(1e9 * settings.window))
        elapsed = 1e-9 * (now_ns - then_ns)
        for name, reading in readings.items():
            if name not in self.layouts:
                raise UnknownNameError("sensor", name, self.layouts)
            layout = self.layouts[name]
            if layout.frame not in now:
                raise UnknownNameError(f"pose of the link of sensor {name!r}:", layout.frame, now)
            patch = patch_of(layout, reading, settings.noise_floor)
            # A window that is far from the wanted one (at the start, after a gap) would mix other motion in.
            fits = 0.5 <= elapsed / settings.window <= 2.0
            if patch is None or patch[2] < settings.least_force or layout.frame not in then or not fits:
                continue
            self._patches[name] = (layout.frame, patch[0], patch[1])
            pose, before = now[layout.frame], then[layout.frame]
            point = pose.act(patch[0])
            found.append(
                _Touch(name, layout.frame, point, pose.rotation @ patch[1], (point - before.act(patch[0])) / elapsed)
            )
        return found

    def _predict(self, elapsed: float, centre: Array) -> None:
        """Carry the twist over to the present middle of what touches, less sure than before."""
        shift = np.eye(6)
        shift[:3, 3:] = -_cross_matrices((centre - self._centre)[None])[0]
        self._twist, self._covariance = shift @ self._twist, shift @ self._covariance @ shift.T
        self._centre = centre
        self._covariance += np.diag(np.repeat([self.settings.drift**2, self.settings.spin_drift**2], 3) * elapsed)

    def _correct(self, jacobian: Array, velocity: Array, may_stick: NDArray[np.bool_]) -> None:
        """Let the touched points vote, shape (n, 3, 6) and (n, 3): those that stick agree on one rigid motion."""
        noise = self.settings.stick_noise
        information = np.linalg.inv(self._covariance)
        before, twist = information @ self._twist, self._twist
        total = information
        for _ in range(_ITERATIONS):
            residual = np.linalg.norm(velocity - jacobian @ twist, axis=1)
            weight = may_stick / (1.0 + (residual / (2.0 * noise)) ** 2) / noise**2
            total = information + np.einsum("nki,n,nkj->ij", jacobian, weight, jacobian)
            twist = np.linalg.solve(total, before + np.einsum("nki,n,nk->i", jacobian, weight, velocity))
        if not np.all(np.isfinite(twist)):
            raise SensorError(f"the motion of the touched links is not finite: {velocity.tolist()}")
        self._twist, self._covariance = twist, np.linalg.inv(total)


def _cross_matrices(vectors: Array) -> Array:
    """Return the matrices of the cross products with vectors (n, 3), shape (n, 3, 3)."""
    x, y, z = vectors.T
    zero = np.zeros_like(x)
    return np.stack([zero, -z, y, z, zero, -x, -y, x, zero], axis=1).reshape(-1, 3, 3)
