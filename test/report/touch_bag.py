# SPDX-License-Identifier: Apache-2.0
"""A bag of a hand that touches, holds, slips and lets go, with one reading lost and a sensor that falls silent."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from supple.episodes.bag import BagWriter, ContactPoint

START_NS, DURATION = 1_000_000_000, 4.0
MADE, SLIP, BROKEN = 1.0, 2.0, 3.0
LOST = 150
SILENT_FROM = 2.5


def force_at(time: float) -> float:
    """Return the force in [N] on the left palm."""
    return 12.0 * float(MADE <= time < BROKEN)


def write_bag(path: Path, pictures: int = 5) -> Path:
    """Write four seconds of it, with ``pictures`` pictures per second whose brightness grows."""
    with BagWriter(path) as bag:
        for i in range(round(DURATION * 100) + 1):
            time = 0.01 * i
            stamp = START_NS + round(time * 1e9)
            if i != LOST:
                _reading(bag, stamp, "left_palm", i, force_at(time), "Pa")
                _state(bag, stamp, "left_palm", i, time)
            if time < SILENT_FROM:
                _reading(bag, stamp, "right_palm", i, 7.0, "raw")
            if i % 2 == 0:
                _contacts(bag, stamp, force_at(time))
                _wrench(bag, stamp, force_at(time))
            if pictures and i % (100 // pictures) == 0:
                bag.image(stamp, np.full((49, 65, 3), min(255, i // 2), np.uint8))
        for time, sensor, kind, value, source in (
            (MADE, "left_palm", "made", 12.0, "compliant_policy"),
            (SLIP, "left_palm", "slip", 0.03, ""),
            (BROKEN, "left_palm", "broken", 0.0, ""),
            (SILENT_FROM + 0.5, "right_palm", "silent", 0.5, ""),
        ):
            _event(bag, time, sensor, kind, value, source)
    return path


def _make(bag: BagWriter, kind: str, /, **fields: object) -> object:
    return bag.types.types[kind](**fields)


def _header(bag: BagWriter, stamp: int) -> object:
    seconds, rest = divmod(stamp, 10**9)
    time = _make(bag, "builtin_interfaces/msg/Time", sec=seconds, nanosec=rest)
    return _make(bag, "std_msgs/msg/Header", stamp=time, frame_id="left_hand_palm_link")


def _reading(bag: BagWriter, stamp: int, sensor: str, sequence: int, force: float, unit: str) -> None:
    # Four taxels of 1 cm^2, one of them dead: three carry the force.
    pressure = np.array([force / 3e-4 if unit == "Pa" else force] * 3 + [np.nan], np.float32)
    kind = "supple_interfaces/msg/TactileArray"
    message = _make(
        bag,
        kind,
        header=_header(bag, stamp),
        sensor=sensor,
        sequence=sequence,
        missed=0,
        position=[_make(bag, "geometry_msgs/msg/Point", x=0.0, y=0.0, z=0.0)] * 4,
        normal=[_make(bag, "geometry_msgs/msg/Vector3", x=0.0, y=0.0, z=1.0)] * 4,
        area=np.full(4, 1e-4),
        pressure=pressure,
        status=np.array([0, 0, 0, 1], np.uint8),
        unit=unit,
    )
    bag.write(f"tactile/{sensor}", kind, stamp, message)


def _state(bag: BagWriter, stamp: int, sensor: str, sequence: int, time: float) -> None:
    touched = MADE <= time < BROKEN
    slipping = SLIP <= time < SLIP + 0.2
    kind = "supple_interfaces/msg/ContactState"
    message = _make(
        bag,
        kind,
        header=_header(bag, stamp),
        sensor=sensor,
        sequence=sequence,
        in_contact=touched,
        normal_force=force_at(time),
        tangential_force=0.0,
        slip_speed=0.03 * slipping,
        slipping=slipping,
        held=touched and not slipping,
        since=_make(bag, "builtin_interfaces/msg/Time", sec=1, nanosec=0),
    )
    bag.write(f"contact/{sensor}", kind, stamp, message)


def _event(bag: BagWriter, time: float, sensor: str, kind: str, value: float, source: str) -> None:
    stamp = START_NS + round(time * 1e9)
    name = "supple_interfaces/msg/ContactEvent"
    message = _make(
        bag,
        name,
        header=_header(bag, stamp),
        sensor=sensor,
        kind=kind,
        sequence=round(time * 100),
        value=value,
        threshold=0.5,
        command_source=source,
        command_sequence=41 if source else 0,
    )
    bag.write("contact_events", name, stamp, message)


def _contacts(bag: BagWriter, stamp: int, force: float) -> None:
    points = [ContactPoint("world", "left_ankle_roll_link", [0, 0, 0], [0, 0, 1], 150.0, 0.0)]
    if force:
        # Two links of one hand: their forces belong together.
        points += [
            ContactPoint("left_wrist_yaw_link", "box", [0, 0, 1], [0, 1, 0], 0.75 * force, 1.0),
            ContactPoint("box", "left_hand_index_0_link", [0, 0, 1], [0, 1, 0], 0.25 * force, 1.0),
        ]
    bag.contacts(stamp, points)


def _wrench(bag: BagWriter, stamp: int, force: float) -> None:
    vector = [_make(bag, "geometry_msgs/msg/Vector3", x=x, y=y, z=0.0) for x, y in ((0.6 * force, 0.8 * force), (0, 0))]
    wrench = _make(bag, "geometry_msgs/msg/Wrench", force=vector[0], torque=vector[1])
    kind = "geometry_msgs/msg/WrenchStamped"
    message = _make(bag, kind, header=_header(bag, stamp), wrench=wrench)
    bag.write("wrench/left_wrist_yaw_link", kind, stamp, message)
