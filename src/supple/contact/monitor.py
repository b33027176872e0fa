# SPDX-License-Identifier: Apache-2.0
"""All of a robot's tactile sensors together: contact, shear, slip and events, as their readings come."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray

from supple.contact.detection import ContactDetector, ContactEstimate, ContactSettings, patch_of, tangential_share
from supple.contact.events import ContactEvent, EventFinder, EventLimits
from supple.contact.readings import PadLayout, TactileReading
from supple.contact.slip import SlipEstimator
from supple.errors import SensorError, SuppleError, UnknownNameError

__all__ = ["TouchMonitor", "TouchNews"]

Array = NDArray[np.float64]
Poses = Callable[[int], Mapping[str, pin.SE3] | None]

# A wrench this much older or newer than a reading in [ns] does not explain it.
_WRENCH_AGE_NS = 50_000_000


@dataclass(frozen=True)
class TouchNews:
    """What one reading came to.

    Attributes:
        sensor: Name of the sensor.
        estimate: What it says about contact; None if it could not be used.
        events: What began or ended with it.
        problem: Why it could not be used; empty if it could.
    """

    sensor: str
    estimate: ContactEstimate | None
    events: tuple[ContactEvent, ...] = ()
    problem: str = ""


@dataclass(frozen=True)
class _Sensor:
    detector: ContactDetector
    events: EventFinder
    hand: str


class TouchMonitor:
    """Contact of several sensors at once.

    Readings of one stamp are taken together, since slip is seen by comparing them; they are dealt with as soon as every
    sensor that spoke last time has spoken, or something newer comes.

    Args:
        poses: Returns the pose of the sensors' links and of the wrists by name, at a stamp in [ns], in one frame; None
            if they are not known, and then nothing is said about slip and shear. What it returns is kept for a while
            and looked at only when something is touched: it may be computed then, and must not change.
        settings: When a sensor counts as touched.
    """

    def __init__(self, poses: Poses, settings: ContactSettings | None = None) -> None:
        self._poses = poses
        self._settings = settings or ContactSettings()
        self._sensors: dict[str, _Sensor] = {}
        self._frames: frozenset[str] = frozenset()
        self._slip = SlipEstimator(())
        self._floor = self._slip.settings.noise_floor
        self._wrenches: dict[str, tuple[int, Array]] = {}
        self._waiting: dict[str, TactileReading] = {}
        self._usual: set[str] = set()
        self._done_ns: int | None = None

    def add(self, layout: PadLayout, overload: float = math.inf, hand: str = "") -> None:
        """Take in a sensor, or a known one whose layout has changed; its detection begins anew.

        Args:
            layout: Where its taxels are; its unit must be Pa.
            overload: Normal force that it should not bear in [N].
            hand: Frame of the wrist that bears it, whose wrench tells its shear; empty if there is none.

        Raises:
            SensorError: The sensor is not calibrated, or the limit is not positive.
        """
        settings = self._settings
        limits = EventLimits(settings.made_force, settings.broken_force, settings.slip_speed, overload)
        detector = ContactDetector(layout, settings)
        self._sensors[layout.name] = _Sensor(detector, EventFinder(layout.name, limits), hand)
        sensors = self._sensors.values()
        self._slip = SlipEstimator(sensor.detector.layout for sensor in sensors)
        self._frames = frozenset(s.detector.layout.frame for s in sensors) | {s.hand for s in sensors if s.hand}

    @property
    def frames(self) -> frozenset[str]:
        """Frames whose poses are asked for."""
        return self._frames

    def observe_wrench(self, frame: str, stamp_ns: int, force: ArrayLike) -> None:
        """Take in the force by contacts on everything behind a wrist.

        Args:
            frame: The wrist's frame.
            stamp_ns: When it was measured in [ns].
            force: In that frame's axes in [N], shape (3,); one that is not finite is ignored.
        """
        value = np.array(force, dtype=np.float64)
        if np.all(np.isfinite(value)):
            self._wrenches[frame] = (stamp_ns, value)

    def observe_object(self, stamp_ns: int, pose: pin.SE3) -> None:
        """Take in the tracked pose of what is held, in the frame of all poses."""
        self._slip.observe_object(stamp_ns, pose)

    def take(self, sensor: str, reading: TactileReading) -> list[TouchNews]:
        """Take in a reading and return what has become of all that could be dealt with.

        Raises:
            UnknownNameError: No such sensor was added.
        """
        if sensor not in self._sensors:
            raise UnknownNameError("sensor", sensor, self._sensors)
        news: list[TouchNews] = []
        if self.waiting_ns not in (None, reading.stamp_ns):
            news += self.flush()
        if reading.stamp_ns == self._done_ns:
            # One that came after the others of its stamp: the next time it is waited for.
            self._usual.add(sensor)
            return [*news, self._conclude(sensor, reading, math.nan, math.nan)]
        self._waiting[sensor] = reading
        if self._usual <= set(self._waiting):
            news += self.flush()
        return news

    @property
    def waiting_ns(self) -> int | None:
        """Stamp in [ns] of the readings that wait for others; None if there are none."""
        return next((reading.stamp_ns for reading in self._waiting.values()), None)

    def flush(self) -> list[TouchNews]:
        """Deal with the readings that still wait for others of their stamp."""
        readings, self._waiting = self._waiting, {}
        if not readings:
            return []
        self._usual = set(readings)
        stamp = next(iter(readings.values())).stamp_ns
        self._done_ns = stamp
        poses = self._poses(stamp)
        speeds, shears = dict.fromkeys(readings, math.nan), dict.fromkeys(readings, math.nan)
        problem = ""
        if poses is not None:
            try:
                pressed = {name: row for name, row in readings.items() if row.highest >= self._floor}
                speeds |= self._slip.step(stamp, poses, pressed)
                shears |= self._shear(stamp, poses, pressed)
            except SuppleError as error:
                self._slip.reset()
                problem = str(error)
        news = [self._conclude(name, reading, shears[name], speeds[name]) for name, reading in readings.items()]
        if problem:
            news.append(TouchNews(next(iter(readings)), None, problem=problem))
        return news

    def _shear(
        self, stamp: int, poses: Mapping[str, pin.SE3], readings: Mapping[str, TactileReading]
    ) -> dict[str, float]:
        found: dict[str, float] = {}
        for hand, (measured, force) in self._wrenches.items():
            touched = {}
            for name, reading in readings.items():
                layout = self._sensors[name].detector.layout
                if self._sensors[name].hand != hand or (patch := patch_of(layout, reading, self._floor)) is None:
                    continue
                touched[name] = (poses[layout.frame].rotation @ patch[1], patch[2])
            if not touched or abs(stamp - measured) > _WRENCH_AGE_NS or hand not in poses:
                continue
            normals, loads = (np.array(column) for column in zip(*touched.values(), strict=True))
            shares = tangential_share(poses[hand].rotation @ force, normals, loads)
            found |= dict(zip(touched, shares.tolist(), strict=True))
        return found

    def _conclude(self, name: str, reading: TactileReading, shear: float, speed: float) -> TouchNews:
        sensor = self._sensors[name]
        try:
            found = sensor.detector.update(reading, shear, speed)
        except SensorError as error:
            return TouchNews(name, None, problem=str(error))
        events = sensor.events.take(
            found.stamp_ns, found.sequence, found.in_contact, found.normal_force, found.slipping, found.slip_speed
        )
        return TouchNews(name, found, events)

    def reset(self) -> None:
        """Begin anew, as after a jump of the clock."""
        for sensor in self._sensors.values():
            sensor.detector.reset()
            sensor.events.reset()
        self._slip.reset()
        self._wrenches.clear()
        self._waiting.clear()
        self._done_ns = None
