# SPDX-License-Identifier: Apache-2.0
"""Contact at one tactile sensor, reading by reading: touched or not, how hard, since when, slipping or held."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from supple.contact.readings import PadLayout, TactileReading
from supple.errors import SensorError

__all__ = ["ContactDetector", "ContactEstimate", "ContactSettings", "patch_of", "tangential_share"]

Array = NDArray[np.float64]


class ContactSettings(BaseModel):
    """When a sensor counts as touched, slipping and held.

    Attributes:
        made_force: Normal force at which a contact begins in [N].
        broken_force: Normal force below which it ends in [N]; what lies between the two changes nothing.
        slip_speed: Speed across the sensor at which slip begins in [m/s].
        stick_speed: Speed below which it may end in [m/s].
        stick_time: How long the speed must stay below that before it does in [s]; two readings at 100 Hz, so that a
            single slow one does not break a slip in two.
        hold_time: Time in contact and without slip after which an object counts as held in [s].
        longest_gap: Time between two readings in [s] after which what was known before them is forgotten.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    made_force: float = Field(default=1.0, gt=0.0)
    broken_force: float = Field(default=0.7, gt=0.0)
    slip_speed: float = Field(default=0.01, gt=0.0)
    stick_speed: float = Field(default=0.005, ge=0.0)
    stick_time: float = Field(default=0.02, ge=0.0)
    hold_time: float = Field(default=0.2, ge=0.0)
    longest_gap: float = Field(default=0.5, gt=0.0)

    @model_validator(mode="after")
    def _ordered(self) -> ContactSettings:
        for low, high in (("broken_force", "made_force"), ("stick_speed", "slip_speed")):
            if getattr(self, low) > getattr(self, high):
                raise ValueError(f"{low} must not exceed {high}: {getattr(self, low)} > {getattr(self, high)}")
        return self


@dataclass(frozen=True)
class ContactEstimate:
    """What one reading says about contact; the fields of the message ContactState.

    Attributes:
        stamp_ns: Stamp of the reading in [ns].
        sequence: Sequence number of the reading.
        in_contact: Something touches the sensor.
        normal_force: Force along the taxels' normals in [N]; NaN when no taxel gives a value.
        tangential_force: Magnitude of the force across them in [N]; NaN when it cannot be told.
        slip_speed: Speed of the surface across the sensor in [m/s]; NaN when it cannot be told.
        slipping: What touches moves across the sensor.
        held: What touches is held: in contact and without slip for some time. Without a slip speed it says no more than
            that the contact lasts.
        since_ns: Since when ``in_contact`` is as it is, in [ns].
    """

    stamp_ns: int
    sequence: int
    in_contact: bool
    normal_force: float
    tangential_force: float
    slip_speed: float
    slipping: bool
    held: bool
    since_ns: int


class ContactDetector:
    """Follow one sensor's readings.

    A reading that is older than the last one begins anew, as after a jump of the clock; so does one after a long gap.

    Args:
        layout: Where its taxels are; its unit must be Pa.
        settings: When it counts as touched.

    Raises:
        SensorError: The sensor is not calibrated, so that its values are no forces.
    """

    def __init__(self, layout: PadLayout, settings: ContactSettings | None = None) -> None:
        self.layout = layout
        self.settings = settings or ContactSettings()
        layout.normal_forces(np.zeros(len(layout)))
        self.reset()

    def reset(self) -> None:
        """Forget everything, as before the first reading."""
        self._stamp: int | None = None
        self._in_contact = False
        self._since = 0
        self._slipping = False
        self._stuck_since = 0
        self._fast_until = 0

    def normal_force(self, reading: TactileReading) -> float:
        """Return the force along the normals in [N], at least that when a taxel is saturated; NaN without a value.

        Raises:
            SensorError: The reading has not the number of taxels of the layout.
        """
        layout = self.layout
        if math.isfinite(reading.lowest) and not reading.status.any() and len(reading.pressure) == len(layout.area):
            # Most readings are whole, and this is asked thousands of times a second.
            total = float(layout.area @ reading.pressure)
            if math.isfinite(total):
                return max(total, 0.0)
        forces = layout.normal_forces(reading.pressure)
        if not reading.usable.any():
            return math.nan
        # All taxels, negative noise too: the sum of what is above some floor would be a force that nobody exerts.
        return max(float(forces[reading.usable].sum()), 0.0)

    def update(
        self, reading: TactileReading, tangential_force: float = math.nan, slip_speed: float = math.nan
    ) -> ContactEstimate:
        """Take the next reading.

        Args:
            reading: The reading.
            tangential_force: Force across the sensor in [N], if something measures it (``tangential_share``).
            slip_speed: Speed across the sensor in [m/s], if something measures it (``SlipEstimator``).

        Raises:
            SensorError: The reading has not the number of taxels of the layout, or a value is negative.
        """
        for name, value in (("tangential_force", tangential_force), ("slip_speed", slip_speed)):
            if value < 0.0:
                raise SensorError(f"sensor {self.layout.name!r}: {name} must not be negative, got {value}")
        settings, stamp = self.settings, reading.stamp_ns
        force = self.normal_force(reading)
        if self._stamp is None or not 0 <= stamp - self._stamp <= round(1e9 * settings.longest_gap):
            self.reset()
            self._since = self._stuck_since = stamp
        self._stamp = stamp
        # A sensor without any value says nothing; it must not go on to claim a contact.
        touched = bool(force >= (settings.broken_force if self._in_contact else settings.made_force))
        if touched != self._in_contact:
            self._in_contact, self._since = touched, stamp
            self._slipping, self._stuck_since = False, stamp
        if not touched:
            return ContactEstimate(stamp, reading.sequence, False, force, math.nan, math.nan, False, False, self._since)
        self._follow_slip(stamp, slip_speed)
        held = not self._slipping and stamp - self._stuck_since >= round(1e9 * settings.hold_time)
        return ContactEstimate(
            stamp, reading.sequence, True, force, tangential_force, slip_speed, self._slipping, held, self._since
        )

    def _follow_slip(self, stamp: int, speed: float) -> None:
        settings = self.settings
        if speed >= (settings.stick_speed if self._slipping else settings.slip_speed):
            self._slipping, self._fast_until = True, stamp
        elif self._slipping and stamp - self._fast_until >= round(1e9 * settings.stick_time):
            self._slipping, self._stuck_since = False, stamp


def patch_of(layout: PadLayout, reading: TactileReading, noise_floor: float = 0.0) -> tuple[Array, Array, float] | None:
    """Return where a sensor is touched: centre of pressure (3,) in [m], unit normal (3,), and force in [N].

    Both are in the layout's frame and weighted by force; None when no taxel rises above the noise.

    Args:
        layout: Where the taxels are.
        reading: A reading of the sensor.
        noise_floor: Taxels below this value in [Pa] do not count.

    Raises:
        SensorError: The reading has not the number of taxels of the layout.
    """
    if reading.pressure.shape == layout.area.shape and not reading.highest >= noise_floor:
        return None  # quickly: most sensors touch nothing
    forces = layout.normal_forces(reading.pressure)
    weight = np.where(reading.usable & (reading.pressure >= noise_floor), np.maximum(forces, 0.0), 0.0)
    total = float(weight.sum())
    if total <= 0.0:
        return None
    normal = weight @ layout.normal
    length = math.sqrt(float(normal @ normal))
    # Pressed from opposite sides at once: there is no one normal, and nothing can be said about sliding.
    if length < 0.1 * total:
        return None
    return weight @ layout.position / total, normal / length, total


def tangential_share(force: ArrayLike, normals: ArrayLike, normal_forces: ArrayLike) -> Array:
    """Return the tangential force at each of a hand's sensors in [N], from the force on the whole hand.

    Pressure says nothing about shear, a wrist's force-torque sensor (or its estimate from joint torques) says its sum.
    What the normal forces leave unexplained is shared out in proportion to them, as friction on equal material would be
    used alike. NaN where a sensor is not touched.

    Args:
        force: Force on the hand by contacts in [N], weight of the hand taken out, shape (3,).
        normals: Unit vectors out of the sensors' surfaces where they are touched, in the same frame, shape (n, 3).
        normal_forces: Force along them in [N], shape (n,); the sensors are pushed against their normals.

    Raises:
        SensorError: Shapes that do not fit, or a force that is not finite.
    """
    total, directions = np.asarray(force, dtype=np.float64), np.asarray(normals, dtype=np.float64)
    loads = np.asarray(normal_forces, dtype=np.float64)
    if total.shape != (3,) or loads.ndim != 1 or directions.shape != (len(loads), 3):
        raise SensorError(
            f"expected a force (3,), normals (n, 3) and n normal forces, got {total.shape}, {directions.shape} and "
            f"{loads.shape}"
        )
    if not np.all(np.isfinite(total)):
        raise SensorError(f"the force on the hand is not finite, got {total.tolist()}")
    touched = loads > 0.0
    if not touched.any():
        return np.full(len(loads), math.nan)
    weights = np.where(touched, loads, 0.0)
    shear = total + weights @ np.nan_to_num(directions)
    return np.where(touched, float(np.linalg.norm(shear)) * weights / weights.sum(), math.nan)
