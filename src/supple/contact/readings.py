# SPDX-License-Identifier: Apache-2.0
"""What a tactile sensor is and what it says: where its taxels are, and one value of pressure per taxel."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supple.errors import SensorError

__all__ = ["PASCAL", "RAW", "PadLayout", "TactileReading", "TaxelStatus"]

Array = NDArray[np.float64]

PASCAL, RAW = "Pa", "raw"
"""Units of pressure: calibrated, and what an uncalibrated sensor counts in."""

_UNIT_NORM_TOLERANCE = 1e-3
# A pressure above this in [Pa] is beyond the strength of anything that a robot is made of.
_HIGHEST_PRESSURE = 1e9


class TaxelStatus(IntEnum):
    """How one value of one taxel is to be taken (constants of TactileArray)."""

    OK = 0
    DEAD = 1
    SATURATED = 2


# NumPy compares with a plain number several times faster than with a member of an enum.
_DEAD = int(TaxelStatus.DEAD)


@dataclass(frozen=True, eq=False)
class PadLayout:
    """Where the taxels of one sensor are; the arrays are copied and read-only.

    Attributes:
        name: Name of the sensor; it is published on ``tactile/<name>``.
        frame: Frame of positions and normals: a link of the robot, as on TF.
        position: Centres of the taxels in the frame in [m], shape (n, 3).
        normal: Unit vectors out of the surface, towards what touches it, shape (n, 3).
        area: Areas of the taxels in [m^2], shape (n,).
        unit: ``"Pa"``, or ``"raw"`` when the sensor is not calibrated.

    Raises:
        SensorError: Shapes that do not fit each other, numbers that are not finite, normals that are no unit vectors,
            areas that are not positive, or an unknown unit.
    """

    name: str
    frame: str
    position: Array
    normal: Array
    area: Array
    unit: str = PASCAL

    def __post_init__(self) -> None:
        where = f"sensor {self.name!r}"
        if not self.name or not self.frame:
            raise SensorError(f"a sensor needs a name and a frame, got {self.name!r} and {self.frame!r}")
        if self.unit not in (PASCAL, RAW):
            raise SensorError(f"{where}: unknown unit {self.unit!r} (available: {PASCAL}, {RAW})")
        count = len(np.atleast_1d(self.area))
        for name, shape in (("position", (count, 3)), ("normal", (count, 3)), ("area", (count,))):
            value = np.array(getattr(self, name), dtype=np.float64)
            if count == 0 or value.shape != shape:
                raise SensorError(f"{where}: {name} of shape {value.shape}, expected {shape} with at least one taxel")
            if not np.all(np.isfinite(value)):
                taxel = int(np.argwhere(~np.isfinite(value))[0, 0])
                raise SensorError(f"{where}: {name} of taxel {taxel} is not finite, got {value[taxel].tolist()}")
            value.setflags(write=False)
            object.__setattr__(self, name, value)
        norms = np.linalg.norm(self.normal, axis=1)
        worst = int(np.argmax(np.abs(norms - 1.0)))
        if abs(norms[worst] - 1.0) > _UNIT_NORM_TOLERANCE:
            raise SensorError(f"{where}: normal of taxel {worst} has norm {norms[worst]:.4f}, expected 1")
        if self.area.min() <= 0.0:
            taxel = int(np.argmin(self.area))
            raise SensorError(f"{where}: area of taxel {taxel} must be positive, got {self.area[taxel]} m^2")

    def __len__(self) -> int:
        """Return the number of taxels."""
        return len(self.area)

    def normal_forces(self, pressure: ArrayLike) -> Array:
        """Return the force along each taxel's normal in [N], shape (n,); a taxel without a value gives none.

        Args:
            pressure: One value per taxel in [Pa], NaN where there is none, shape (n,).

        Raises:
            SensorError: The sensor is not calibrated, or the number of values is not that of the taxels.
        """
        if self.unit != PASCAL:
            raise SensorError(f"sensor {self.name!r}: forces need a calibrated sensor, its unit is {self.unit!r}")
        value = np.asarray(pressure, dtype=np.float64)
        if value.shape != self.area.shape:
            raise SensorError(f"sensor {self.name!r}: {value.shape} values of pressure for {len(self)} taxels")
        forces = value * self.area
        forces[np.isnan(forces)] = 0.0
        return forces

    def check(self, reading: TactileReading) -> None:
        """Refuse a reading that this sensor cannot have taken.

        Raises:
            SensorError: Another number of taxels, an unknown status, or a pressure that nothing withstands.
        """
        where = f"sensor {self.name!r}"
        if len(reading.pressure) != len(self.area):
            raise SensorError(f"{where}: {len(reading.pressure)} values of pressure for {len(self)} taxels")
        status = reading.status.tobytes()
        if max(status) > TaxelStatus.SATURATED:
            taxel = next(i for i, value in enumerate(status) if value > TaxelStatus.SATURATED)
            known = ", ".join(f"{row.value} {row.name}" for row in TaxelStatus)
            raise SensorError(f"{where}: unknown status {status[taxel]} of taxel {taxel} (available: {known})")
        if self.unit == PASCAL and not (reading.lowest >= -_HIGHEST_PRESSURE and reading.highest <= _HIGHEST_PRESSURE):
            taxel = int(np.nanargmax(np.abs(reading.pressure)))
            raise SensorError(
                f"{where}: pressure of taxel {taxel} is {reading.pressure[taxel]:.3g} Pa, "
                f"expected at most {_HIGHEST_PRESSURE:.0e} Pa"
            )


@dataclass(frozen=True, eq=False)
class TactileReading:
    """One reading of one tactile sensor, in the order of its layout's taxels.

    Attributes:
        stamp_ns: When it was measured in [ns].
        sequence: Counts the sensor's readings; a gap is a lost reading.
        missed: Readings known to be lost before this one since the sensor started.
        pressure: One value per taxel in the layout's unit, NaN where the taxel is dead, shape (n,).
        status: A `TaxelStatus` per taxel, shape (n,).
        lowest: Lowest value; infinite if no taxel gives one.
        highest: Highest value; minus infinity if no taxel gives one.

    Raises:
        SensorError: The two arrays differ in length, or are not one-dimensional.
    """

    stamp_ns: int
    sequence: int
    missed: int
    pressure: Array
    status: NDArray[np.uint8]
    lowest: float = field(init=False)
    highest: float = field(init=False)

    def __post_init__(self) -> None:
        pressure = np.array(self.pressure, dtype=np.float64)
        status = np.array(self.status, dtype=np.uint8)
        if pressure.ndim != 1 or pressure.shape != status.shape:
            raise SensorError(
                f"reading {self.sequence}: pressure of shape {pressure.shape} and status of shape {status.shape}, "
                "expected one of each per taxel"
            )
        # Of so few numbers, Python finds the extremes several times faster than NumPy.
        values = pressure.tolist()
        if math.isnan(sum(values)):
            values = [value for value in values if not math.isnan(value)]
        pressure.setflags(write=False)
        status.setflags(write=False)
        found = {
            "pressure": pressure,
            "status": status,
            "lowest": min(values, default=math.inf),
            "highest": max(values, default=-math.inf),
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def count(self, status: TaxelStatus) -> int:
        """Return how many taxels have a status."""
        return self.status.tobytes().count(status)

    @property
    def usable(self) -> NDArray[np.bool_]:
        """Taxels that give a value, a saturated one included, shape (n,)."""
        return np.isfinite(self.pressure) & (self.status != _DEAD)
