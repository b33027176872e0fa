# SPDX-License-Identifier: Apache-2.0
"""From the pressure sensors in a Dex3 hand's state message to readings of its pads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from supple.contact.readings import TactileReading
from supple.contact.sensors import TactileSensor
from supple.errors import SensorError

__all__ = ["PRESS_VALUES", "Dex3Decoder", "PressSensor"]

PRESS_VALUES = 12
"""Values of pressure in each pressure sensor of the message."""

_COUNTER = 2**32


class PressSensor(Protocol):
    """One ``unitree_hg/PressSensorState``, as any library decodes it; its temperatures have no documented unit.

    Attributes:
        pressure: Raw values, shape (12,).
        lost: Messages that the hand itself lost from this sensor so far; an unsigned 32-bit counter.
    """

    @property
    def pressure(self) -> ArrayLike:
        """Raw values."""

    @property
    def lost(self) -> int:
        """Lost so far."""


class Dex3Decoder:
    """Turn the messages of one hand into readings, counting them.

    Args:
        sensors: The hand's pads in the order of the message, as its file lists them (``load_sensor``).

    Raises:
        SensorError: A pad has another number of taxels than the message has values.
    """

    def __init__(self, sensors: Sequence[TactileSensor]) -> None:
        self.sensors = tuple(sensors)
        for sensor in self.sensors:
            if len(sensor.layout) != PRESS_VALUES:
                raise SensorError(
                    f"sensor {sensor.name!r}: {len(sensor.layout)} taxels, a Dex3 pressure sensor has {PRESS_VALUES}"
                )
        self.reset()

    def reset(self) -> None:
        """Begin to count anew."""
        self._sequence = 0
        self._lost: list[int] = []
        self._missed = [0] * len(self.sensors)

    def readings(self, stamp_ns: int, press: Sequence[PressSensor]) -> dict[str, TactileReading]:
        """Return one reading for each pad, by name.

        Args:
            stamp_ns: When the message was sent in [ns].
            press: ``press_sensor_state`` of the message.

        Raises:
            SensorError: Another number of pressure sensors than the file lists, or of values than taxels.
        """
        if len(press) != len(self.sensors):
            raise SensorError(
                f"a hand's message with {len(press)} pressure sensors, its file lists {len(self.sensors)}: "
                f"{', '.join(sensor.name for sensor in self.sensors)}"
            )
        for index, entry in enumerate(press):
            if (shape := np.shape(entry.pressure)) != (PRESS_VALUES,):
                raise SensorError(f"press_sensor_state[{index}].pressure: shape {shape}, expected ({PRESS_VALUES},)")
        lost = [int(entry.lost) % _COUNTER for entry in press]
        for index, (now, before) in enumerate(zip(lost, self._lost or lost, strict=True)):
            # A counter that went back belongs to a hand that was switched on again.
            self._missed[index] += now - before if now >= before else now
        self._lost = lost
        found = {
            sensor.name: sensor.reading(stamp_ns, self._sequence, missed, entry.pressure)
            for sensor, entry, missed in zip(self.sensors, press, self._missed, strict=True)
        }
        self._sequence += 1
        return found
