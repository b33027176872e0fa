# SPDX-License-Identifier: Apache-2.0
"""What a bag tells about touch: forces, contacts, slip and events over time, read in one pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from supple.episodes.bag_reader import BagContents, stream_bag
from supple.report.episode_timelines import body_label

__all__ = ["BagSignals", "SensorSignals", "TouchEvent", "read_signals"]

Array = NDArray[np.float64]

_CONTACTS, _TACTILE = "supple_interfaces/msg/ContactArray", "supple_interfaces/msg/TactileArray"
_STATE, _EVENT = "supple_interfaces/msg/ContactState", "supple_interfaces/msg/ContactEvent"
_WRENCH = "geometry_msgs/msg/WrenchStamped"
_KINDS = (_CONTACTS, _TACTILE, _STATE, _EVENT, _WRENCH)
# A header's stamp this far from when the message came belongs to another clock.
_SAME_CLOCK_NS = 5_000_000_000


@dataclass(frozen=True)
class TouchEvent:
    """Something that happened at a sensor.

    Attributes:
        time: When, in [s] from the bag's start.
        sensor: Name of the sensor.
        kind: ``"made"``, ``"broken"``, ``"slip"``, ``"overload"``, ``"silent"`` or ``"resumed"``.
        value: What was measured: N, m/s for a slip, s for silence.
        threshold: What it crossed.
        command: The command that changed because of it; empty if none did.
    """

    time: float
    sensor: str
    kind: str
    value: float
    threshold: float
    command: str


@dataclass(frozen=True, eq=False)
class SensorSignals:
    """What came from one tactile sensor, and what was detected in it.

    Attributes:
        name: Name of the sensor.
        times: Times of the readings in [s], shape (n,).
        force: Force in ``unit``, shape (n,); NaN where no taxel gave a value.
        unit: ``"N"``, or ``"raw"`` for a sensor without calibration.
        lost: Readings that are missing by their sequence.
        longest_gap: Longest time between two readings in [s].
        state_times: Times of the detected states in [s], shape (m,).
        in_contact: Whether something touched it, shape (m,).
        slipping: Whether that moved across it, shape (m,).
        held: Whether that was held, shape (m,).
    """

    name: str
    times: Array
    force: Array
    unit: str = "N"
    lost: int = 0
    longest_gap: float = 0.0
    state_times: Array = field(default_factory=lambda: np.empty(0))
    in_contact: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    slipping: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    held: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))


@dataclass(frozen=True, eq=False)
class BagSignals:
    """Touch in a bag; times are in [s] from the bag's start.

    Attributes:
        contact_times: Times of the simulator's contacts, shape (n,).
        contacts: Normal force in [N] by pair of bodies ``"box and left hand"``, shape (n,).
        sensors: By name of the sensor.
        wrenches: Times and magnitude of the force in [N] by topic.
        events: In order of time.
    """

    contact_times: Array
    contacts: Mapping[str, Array]
    sensors: Mapping[str, SensorSignals]
    wrenches: Mapping[str, tuple[Array, Array]]
    events: tuple[TouchEvent, ...]

    @property
    def empty(self) -> bool:
        """Whether the bag tells nothing about touch."""
        return not (self.contacts or self.sensors or self.wrenches or self.events)


@dataclass
class _Rows:
    """Rows of numbers as they come."""

    times: list[float] = field(default_factory=list)
    rows: list[tuple[float, ...]] = field(default_factory=list)
    sequences: list[int] = field(default_factory=list)
    unit: str = "N"

    def columns(self, count: int) -> tuple[Array, ...]:
        table = np.array(self.rows, np.float64).reshape(-1, count)
        return tuple(table[:, i] for i in range(count))


def read_signals(path: Path, contents: BagContents) -> BagSignals:
    """Read everything about touch.

    Args:
        path: Folder of the bag.
        contents: What it holds; its messages are not needed.

    Raises:
        DatasetError: The bag is damaged.
    """
    topics = [topic for topic, kind in contents.types.items() if kind in _KINDS]
    pairs: list[dict[str, float]] = []
    contact_times: list[float] = []
    readings: dict[str, _Rows] = {}
    states: dict[str, _Rows] = {}
    wrenches: dict[str, _Rows] = {}
    events: list[TouchEvent] = []
    for topic, log_ns, message in stream_bag(path, topics) if topics else ():
        time = (_stamp(message, log_ns) - contents.start_ns) * 1e-9
        kind = contents.types[topic]
        if kind == _CONTACTS:
            contact_times.append(time)
            pairs.append(_by_pair(message))
        elif kind == _TACTILE:
            rows = readings.setdefault(message.sensor or topic, _Rows())
            rows.unit = "N" if message.unit == "Pa" else "raw"
            rows.times.append(time)
            rows.rows.append((_force(message),))
            rows.sequences.append(int(message.sequence))
        elif kind == _STATE:
            rows = states.setdefault(message.sensor or topic, _Rows())
            rows.times.append(time)
            rows.rows.append((message.normal_force, message.in_contact, message.slipping, message.held))
        elif kind == _WRENCH:
            rows = wrenches.setdefault(topic, _Rows())
            force = message.wrench.force
            rows.times.append(time)
            rows.rows.append((float(np.sqrt(force.x**2 + force.y**2 + force.z**2)),))
        else:
            events.append(_event(time, message))
    names = list(dict.fromkeys(name for found in pairs for name in found))
    return BagSignals(
        np.array(contact_times),
        {name: np.array([found.get(name, 0.0) for found in pairs]) for name in names},
        {name: _sensor(name, readings.get(name), states.get(name)) for name in sorted({*readings, *states})},
        {topic: (np.array(rows.times), rows.columns(1)[0]) for topic, rows in sorted(wrenches.items())},
        tuple(sorted(events, key=lambda event: event.time)),
    )


def _stamp(message: Any, log_ns: int) -> int:
    """Return when a message was measured in [ns]: its own stamp, unless that is unset or of another clock."""
    stamp = int(message.header.stamp.sec) * 10**9 + int(message.header.stamp.nanosec)
    return stamp if stamp > 0 and abs(stamp - log_ns) < _SAME_CLOCK_NS else log_ns


def _by_pair(message: Any) -> dict[str, float]:
    """Return the summed normal force by pair; the links of one hand count as one body."""
    found: dict[str, float] = {}
    for contact in message.contacts:
        name = " and ".join(sorted((body_label(contact.body1), body_label(contact.body2))))
        found[name] = found.get(name, 0.0) + float(contact.normal_force)
    return found


def _force(message: Any) -> float:
    """Return the force on a sensor in [N], or the sum of its raw values; NaN if no taxel gives one."""
    pressure = np.asarray(message.pressure, np.float64)
    known = np.isfinite(pressure)
    if not known.any():
        return float("nan")
    area = np.asarray(message.area, np.float64)
    weight = area if message.unit == "Pa" and len(area) == len(pressure) else np.ones(len(pressure))
    return float(pressure[known] @ weight[known])


def _event(time: float, message: Any) -> TouchEvent:
    source = str(message.command_source)
    command = f"{source} {int(message.command_sequence)}" if source else ""
    return TouchEvent(
        time, str(message.sensor), str(message.kind), float(message.value), float(message.threshold), command
    )


def _sensor(name: str, readings: _Rows | None, states: _Rows | None) -> SensorSignals:
    source = readings or states or _Rows()
    times = np.array(source.times)
    force = source.columns(1 if readings else 4)[0]
    detected = states or _Rows()
    _, in_contact, slipping, held = detected.columns(4)
    steps = np.diff(source.sequences)
    return SensorSignals(
        name,
        times,
        force,
        source.unit,
        int(np.sum(steps[steps > 1] - 1)),
        float(np.diff(times).max()) if len(times) > 1 else 0.0,
        np.array(detected.times),
        in_contact > 0.5,
        slipping > 0.5,
        held > 0.5,
    )
