# SPDX-License-Identifier: Apache-2.0
"""Sensors of touch as files: one YAML file adds one, with its placement, frame, calibration, unit and rate."""

from __future__ import annotations

import datetime
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from supple.contact.readings import PASCAL, RAW, PadLayout, TactileReading, TaxelStatus
from supple.errors import SensorError, UnknownNameError
from supple.robots import Robot
from supple.yaml_file import first_problem, read_yaml

__all__ = [
    "Calibration",
    "Dex3Hand",
    "Grid",
    "Placement",
    "TactileSensor",
    "Taxels",
    "TouchSensor",
    "WrenchCalibration",
    "WrenchSensor",
    "load_sensor",
    "load_sensors",
]

Array = NDArray[np.float64]
# What is no number in the file is refused: true is not 1, and "100" is not 100.
Number = Annotated[float, Field(strict=True)]
Vector = tuple[Number, Number, Number]
Six = tuple[Number, Number, Number, Number, Number, Number]
_NAME = r"^[A-Za-z][A-Za-z0-9_]*$"


class _Section(BaseModel):
    """A part of a sensor's file; a key that it does not have is refused with the nearest that it has."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            for key in data:
                if key not in cls.model_fields:
                    raise ValueError(str(UnknownNameError("key", str(key), cls.model_fields)))
        return data


class Placement(_Section):
    """Pose of a sensor's own frame in the frame that it is fixed to.

    Attributes:
        position: Origin in [m].
        rpy: Roll, pitch, yaw about the fixed axes x, y, z, as in URDF, in [rad].
    """

    position: Vector = (0.0, 0.0, 0.0)
    rpy: Vector = (0.0, 0.0, 0.0)

    @cached_property
    def T_frame_sensor(self) -> pin.SE3:
        """The pose; not to be changed."""
        return pin.SE3(pin.rpy.rpyToMatrix(*self.rpy), np.array(self.position))


class Grid(_Section):
    """A flat, regular array of taxels, centred in the sensor's xy plane, facing +z.

    Taxels are counted along x first: taxel ``row * columns + column``.

    Attributes:
        rows: Taxels along y.
        columns: Taxels along x.
        pitch: Distances between neighbours along x and y in [m].
        area: Sensitive area of one taxel in [m^2]; the whole cell if absent.
    """

    rows: int = Field(ge=1, strict=True)
    columns: int = Field(ge=1, strict=True)
    pitch: tuple[Annotated[Number, Field(gt=0.0)], Annotated[Number, Field(gt=0.0)]]
    area: Number | None = Field(default=None, gt=0.0)

    def taxels(self) -> Taxels:
        """Return the same taxels one by one."""
        x = (np.arange(self.columns) - 0.5 * (self.columns - 1)) * self.pitch[0]
        y = (np.arange(self.rows) - 0.5 * (self.rows - 1)) * self.pitch[1]
        position = tuple((float(a), float(b), 0.0) for b in y for a in x)
        return Taxels(position=position, normal=(0.0, 0.0, 1.0), area=self.area or self.pitch[0] * self.pitch[1])


class Taxels(_Section):
    """Taxels one by one, in the sensor's own frame.

    Attributes:
        position: Centres in [m], one per taxel.
        normal: Unit vectors towards what touches them: one for all, or one per taxel.
        area: Areas in [m^2]: one for all, or one per taxel.
    """

    position: tuple[Vector, ...] = Field(min_length=1)
    normal: Vector | tuple[Vector, ...] = (0.0, 0.0, 1.0)
    area: Number | tuple[Number, ...]


class Calibration(_Section):
    """What the numbers of a tactile sensor mean: pressure in [Pa] = scale (raw - offset).

    Attributes:
        date: When it was made.
        method: How, for a person.
        offset: Raw value without touch: one for all taxels, or one per taxel.
        scale: Pressure per raw unit in [Pa]: one for all taxels, or one per taxel.
        residual: Root mean square error against the reference in [Pa], if it was determined.
    """

    date: datetime.date
    method: str = Field(min_length=1)
    offset: Number | tuple[Number, ...] = 0.0
    scale: Number | tuple[Number, ...]
    residual: Number | None = Field(default=None, ge=0.0)

    @field_validator("scale")
    @classmethod
    def _not_zero(cls, scale: float | tuple[float, ...]) -> float | tuple[float, ...]:
        if not np.all(np.asarray(scale)):
            raise ValueError("a scale of 0 loses every reading")
        return scale


class WrenchCalibration(_Section):
    """What the numbers of a force-torque sensor mean: wrench = matrix (raw - bias).

    Attributes:
        date: When it was made.
        method: How, for a person.
        bias: Raw force in [N] and torque in [Nm] without load.
        matrix: Gain and crosstalk, row by row; the identity if absent.
        residual: Root mean square error of the force against the reference in [N], if it was determined.
    """

    date: datetime.date
    method: str = Field(min_length=1)
    bias: Six = (0.0,) * 6
    matrix: tuple[Six, ...] | None = Field(default=None, min_length=6, max_length=6)
    residual: Number | None = Field(default=None, ge=0.0)


class _Sensor(_Section):
    """What every sensor has.

    Attributes:
        name: Its name in messages, logs and diagnostics.
        topic: Where its readings come, relative to the namespace; by its kind and name if empty.
        frame: Link or named frame of the robot that it is fixed to.
        placement: Where on it.
        rate: Readings per second in [Hz].
        overload: Force in [N] above which it is overloaded; none if absent.
        description: What it is, for a person.
    """

    name: str = Field(pattern=_NAME)
    topic: str = Field(default="", pattern=r"^[A-Za-z0-9_/]*$")
    frame: str = Field(min_length=1)
    placement: Placement = Placement()
    rate: Number = Field(gt=0.0)
    overload: Number | None = Field(default=None, gt=0.0)
    description: str = ""


class TactileSensor(_Sensor):
    """An array of taxels, whose readings are TactileArray messages.

    Exactly one of ``grid`` and ``taxels`` says where the taxels are.

    Attributes:
        kind: What the file describes.
        unit: What the device sends: ``Pa``, or ``raw``, of which ``calibration`` makes Pa.
        grid: A flat, regular array.
        taxels: Taxels one by one.
        calibration: What raw numbers mean; a raw sensor without one is logged, but says nothing about forces.
        no_value: Raw values by which the device says that a taxel has none.
        lowest: Raw values below this are no measurements.
        saturation: Value of the device, in ``unit``, from which on the true one may be higher.
    """

    kind: Literal["tactile"] = "tactile"
    unit: Literal["Pa", "raw"]
    grid: Grid | None = None
    taxels: Taxels | None = None
    calibration: Calibration | None = None
    no_value: tuple[Number, ...] = ()
    lowest: Number | None = None
    saturation: Number | None = None

    @model_validator(mode="after")
    def _fits_together(self) -> TactileSensor:
        if (self.grid is None) == (self.taxels is None):
            raise ValueError("expected either 'grid' or 'taxels' to say where the taxels are")
        if self.unit == PASCAL and self.calibration is not None:
            raise ValueError("a sensor that sends Pa needs no calibration; expected unit: raw with it")
        count = len(self.layout)
        if self.calibration is not None:
            for field in ("offset", "scale"):
                value = np.asarray(getattr(self.calibration, field))
                if value.ndim and value.shape != (count,):
                    raise ValueError(f"calibration.{field}: {value.size} numbers for {count} taxels")
        return self

    @property
    def message_topic(self) -> str:
        """Topic of its readings."""
        return self.topic or f"tactile/{self.name}"

    @property
    def unit_of_readings(self) -> str:
        """Unit after calibration: ``Pa``, or ``raw`` where there is none."""
        return PASCAL if self.unit == PASCAL or self.calibration is not None else RAW

    @cached_property
    def layout(self) -> PadLayout:
        """Where its taxels are, in ``frame``."""
        taxels = self.taxels if self.grid is None else self.grid.taxels()
        if taxels is None:
            raise SensorError(f"sensor {self.name!r}: neither 'grid' nor 'taxels' says where its taxels are")
        pose, count = self.placement.T_frame_sensor, len(taxels.position)
        normal = np.atleast_2d(np.array(taxels.normal, dtype=np.float64))
        normal = np.broadcast_to(normal, (count, 3)) if len(normal) == 1 else normal
        area = np.array(taxels.area, dtype=np.float64)
        area = np.full(count, area) if area.ndim == 0 else area
        position = np.array(taxels.position) @ pose.rotation.T + pose.translation
        return PadLayout(self.name, self.frame, position, normal @ pose.rotation.T, area, self.unit_of_readings)

    def reading(
        self, stamp_ns: int, sequence: int, missed: int, values: ArrayLike, status: ArrayLike | None = None
    ) -> TactileReading:
        """Return what the device sent as a reading in the unit of its layout.

        Args:
            stamp_ns: When it was measured in [ns].
            sequence: Counts the sensor's readings.
            missed: Readings known to be lost before this one.
            values: One number per taxel as the device sends it, shape (n,).
            status: What the device itself says of its taxels (`TaxelStatus`), shape (n,).

        Raises:
            SensorError: Another number of values than there are taxels; an unknown status.
        """
        raw = np.array(values, dtype=np.float64)
        count = len(self.layout)
        if raw.shape != (count,):
            raise SensorError(f"sensor {self.name!r}: values of shape {raw.shape} for {count} taxels")
        state = np.zeros(count, dtype=np.uint8) if status is None else np.array(status, dtype=np.uint8)
        if state.shape != raw.shape or state.max() > max(TaxelStatus):
            raise SensorError(f"sensor {self.name!r}: status {state.tolist()} for {count} taxels")
        if self.saturation is not None:
            state[(raw >= self.saturation) & (state == TaxelStatus.OK)] = TaxelStatus.SATURATED
        dead = ~np.isfinite(raw) | np.isin(raw, self.no_value) | (state == TaxelStatus.DEAD)
        if self.lowest is not None:
            dead |= raw < self.lowest
        state[dead], raw[dead] = TaxelStatus.DEAD, np.nan
        if self.calibration is not None:
            raw = np.asarray(self.calibration.scale) * (raw - np.asarray(self.calibration.offset))
        return TactileReading(stamp_ns, sequence, missed, raw, state)


class WrenchSensor(_Sensor):
    """Anything that sends force and torque as WrenchStamped: a force-torque sensor, or an estimate.

    Attributes:
        kind: What the file describes.
        unit: Unit of its forces; torques are in Nm.
        calibration: What its numbers mean; they are taken as they are if absent.
    """

    kind: Literal["wrench"] = "wrench"
    unit: Literal["N"]
    calibration: WrenchCalibration | None = None

    @property
    def message_topic(self) -> str:
        """Topic of its readings."""
        return self.topic or f"wrench/{self.name}"

    def wrench(self, values: ArrayLike) -> Array:
        """Return what the device sent as force in [N] and torque in [Nm] about the origin of ``frame``, in its axes.

        Args:
            values: Force and torque in the sensor's own frame as sent, shape (6,).

        Raises:
            SensorError: Not six finite numbers.
        """
        raw = np.array(values, dtype=np.float64)
        if raw.shape != (6,) or not np.all(np.isfinite(raw)):
            raise SensorError(f"sensor {self.name!r}: expected six finite numbers, got {raw.tolist()}")
        if self.calibration is not None:
            raw = raw - np.array(self.calibration.bias)
            if self.calibration.matrix is not None:
                raw = np.array(self.calibration.matrix) @ raw
        return self.placement.T_frame_sensor.act(pin.Force(raw)).vector.copy()


TouchSensor = TactileSensor | WrenchSensor
"""What a file comes to: something that is read on one topic."""


class Dex3Hand(_Section):
    """The pads of one Dex3 hand, all of which come in one message of the hand (``unitree_hg/HandState``).

    Where the taxels are is the robot's own table of pads. The message numbers its pressure sensors; ``press`` says
    which pad each is. It is not documented by the vendor, and public sources contradict each other: press each pad of
    your hand once and look.

    Attributes:
        kind: What the file describes.
        press: Names of the robot's pads in the order of ``press_sensor_state``.
        rate: Readings per second in [Hz].
        unit: What comes: ``raw`` from a hand, ``Pa`` from a simulated one.
        calibration: What raw numbers mean, by pad; a pad without is logged, but says nothing about forces.
        no_value: Raw values by which the hand says that a taxel has none.
        lowest: Raw values below this are no measurements.
        saturation: Value, in ``unit``, from which on the true one may be higher.
        overload: Force in [N] above which a pad is overloaded; none if absent.
        description: What it is, for a person.
    """

    kind: Literal["dex3"] = "dex3"
    press: tuple[str, ...] = Field(min_length=1)
    rate: Number = Field(gt=0.0)
    unit: Literal["Pa", "raw"]
    calibration: Mapping[str, Calibration] = {}
    no_value: tuple[Number, ...] = ()
    lowest: Number | None = None
    saturation: Number | None = None
    overload: Number | None = Field(default=None, gt=0.0)
    description: str = ""

    @model_validator(mode="after")
    def _fits_together(self) -> Dex3Hand:
        twice = sorted({name for name in self.press if self.press.count(name) > 1})
        if twice:
            raise ValueError(f"press: given twice: {', '.join(twice)}")
        for name in self.calibration:
            if name not in self.press:
                raise ValueError(f"calibration: {UnknownNameError('pad', name, self.press)}")
        return self

    def sensors(self, robot: Robot) -> tuple[TactileSensor, ...]:
        """Return its pads as sensors of their own, in the order of the message.

        Raises:
            UnknownNameError: The robot has no such pad.
            ValidationError: A calibration does not fit the pad.
        """
        found = []
        for name in self.press:
            if name not in robot.pads:
                raise UnknownNameError("pad", name, robot.pads)
            pad = robot.pads[name]
            grid = pad.taxels()
            taxels = {"position": grid.position.tolist(), "normal": grid.normal.tolist(), "area": grid.area.tolist()}
            shared = self.model_dump(include={"rate", "unit", "no_value", "lowest", "saturation", "overload"})
            found.append(
                TactileSensor.model_validate(
                    shared
                    | {"name": name, "frame": pad.link, "taxels": taxels, "calibration": self.calibration.get(name)}
                    | {"description": self.description}
                )
            )
        return tuple(found)


# -- files -----------------------------------------------------------------------------------------------------------

_KINDS: dict[str, type[TactileSensor] | type[WrenchSensor] | type[Dex3Hand]] = {
    "tactile": TactileSensor,
    "wrench": WrenchSensor,
    "dex3": Dex3Hand,
}


def load_sensor(path: Path, robot: Robot) -> tuple[TouchSensor, ...]:
    """Read the file of a sensor.

    Args:
        path: The YAML file.
        robot: Whose links, frames and pads it names.

    Returns:
        The sensor, or the sensors of a device that has several.

    Raises:
        SensorError: It cannot be read, is no YAML, or a field is missing, unknown or malformed; names file and field.
    """
    data = read_yaml(path, SensorError)
    if not isinstance(data, dict):
        raise SensorError(f"{path}: expected a mapping of fields, got {type(data).__name__}")
    kind = str(data.get("kind"))
    if kind not in _KINDS:
        raise SensorError(f"{path}: kind: {UnknownNameError('kind', kind, _KINDS)}")
    try:
        sensor = _KINDS[kind].model_validate(data)
        if isinstance(sensor, Dex3Hand):
            return sensor.sensors(robot)
    except ValidationError as error:
        raise SensorError(f"{path}: {first_problem(error, _KINDS[kind])}") from error
    except UnknownNameError as error:
        raise SensorError(f"{path}: press: {error}") from error
    if sensor.frame not in (known := _frames(robot)):
        raise SensorError(f"{path}: frame: {UnknownNameError('frame', sensor.frame, known)}")
    return (sensor,)


def load_sensors(folder: Path, robot: Robot) -> tuple[TouchSensor, ...]:
    """Read every sensor of a folder, one ``*.yaml`` file each, in the order of the file names.

    Args:
        folder: The folder.
        robot: Whose links, frames and pads they name.

    Raises:
        SensorError: No folder, an empty one, a file that cannot be used, or two sensors of one name or topic; names
            the files.
    """
    if not folder.is_dir():
        raise SensorError(f"{folder}: no folder of sensors")
    found: list[TouchSensor] = []
    origin: dict[str, Path] = {}
    for path in sorted(folder.glob("*.yaml")):
        for sensor in load_sensor(path, robot):
            for what, key in (("name", sensor.name), ("topic", sensor.message_topic)):
                if (other := origin.setdefault(f"{what} {key!r}", path)) is not path:
                    raise SensorError(f"{path}: {what} {key!r} is that of a sensor in {other.name} as well")
            found.append(sensor)
    if not found:
        raise SensorError(f"{folder}: no sensor in it; expected *.yaml files")
    return tuple(found)


def _frames(robot: Robot) -> set[str]:
    links = {link.get("name", "") for link in ET.parse(robot.urdf).iter("link")}
    return links | set(robot.frames)
