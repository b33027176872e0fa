# SPDX-License-Identifier: Apache-2.0
"""Serialised TactileArray messages: which of their bytes are the layout, the same in each, and which the reading."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Self

from rclpy.serialization import serialize_message
from supple_interfaces.msg import TactileArray

from supple.contact.readings import TactileReading
from supple.errors import SensorError

__all__ = ["LITTLE_ENDIAN", "TactileBytes", "TactilePlaces", "aligned"]

LITTLE_ENDIAN = b"\x00\x01"
"""How a message in plain CDR begins whose numbers are written as this kind of machine does."""

_STAMP = 4


def aligned(at: int, size: int) -> int:
    """Return the next place of a number of that size; places count from behind the four bytes of the encapsulation."""
    return 4 + -(-(at - 4) // size) * size


@dataclass(frozen=True)
class TactilePlaces:
    """Where the parts of a serialised TactileArray are (CDR: each number at its own alignment).

    Attributes:
        size: Length of the message in bytes.
        count: Number of taxels.
        numbers: Place of sequence and missed.
        pressure: Place of the pressures.
        status: Place of the statuses.
        fixed: Every part that belongs to the layout: its place and bytes.
    """

    size: int
    count: int
    numbers: int
    pressure: int
    status: int
    fixed: tuple[tuple[int, bytes], ...]

    @classmethod
    def of(cls, data: bytes, message: TactileArray) -> Self | None:
        """Return the places of a message; None if it is at odds with itself, or in another byte order.

        Args:
            data: The message, serialised.
            message: The same, taken apart.
        """
        count = len(message.pressure)
        sizes = {len(getattr(message, field)) for field in ("position", "normal", "area", "status")}
        if not count or sizes != {count} or data[:2] != LITTLE_ENDIAN:
            return None
        spans, at = [], _STAMP + 8
        for text in (message.header.frame_id, message.sensor):
            length = len(text.encode()) + 1
            spans.append((aligned(at, 4), length + 4))
            at = aligned(at, 4) + 4 + length
        numbers = aligned(at, 8)
        at = numbers + 16
        for size in (24, 24, 8):
            begin = aligned(aligned(at, 4) + 4, 8)
            spans.append((begin, count * size))
            at = begin + count * size
        pressure = aligned(at, 4) + 4
        status = pressure + 4 * count + 4
        spans.append((aligned(status + count, 4), 4 + len(message.unit.encode()) + 1))
        fixed = tuple((begin, bytes(data[begin : begin + size])) for begin, size in spans)
        return cls(len(data), count, numbers, pressure, status, fixed)

    def fit(self, data: bytes) -> bool:
        """Tell whether another message has the same layout."""
        if len(data) != self.size or data[:2] != LITTLE_ENDIAN:
            return False
        return all(data[at : at + len(part)] == part for at, part in self.fixed)


class TactileBytes:
    """The messages of one sensor, serialised: only what is read is written anew.

    To make such a message out of objects takes twenty times as long, in the thread in which physics runs.

    Args:
        message: A message of the sensor with any reading.

    Raises:
        SensorError: The message is at odds with itself.
    """

    def __init__(self, message: TactileArray) -> None:
        data = serialize_message(message)
        places = TactilePlaces.of(data, message)
        if places is None:
            raise SensorError(f"sensor {message.sensor!r}: its message cannot be written in parts")
        self._places, self._data = places, bytearray(data)

    def of(self, reading: TactileReading) -> bytes:
        """Return the message of a reading."""
        places, data = self._places, self._data
        struct.pack_into("<iI", data, _STAMP, *divmod(reading.stamp_ns, 1_000_000_000))
        struct.pack_into("<QQ", data, places.numbers, reading.sequence, reading.missed)
        data[places.pressure : places.pressure + 4 * places.count] = reading.pressure.astype("<f4").tobytes()
        data[places.status : places.status + places.count] = reading.status.tobytes()
        return bytes(data)
