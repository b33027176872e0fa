# SPDX-License-Identifier: Apache-2.0
"""What begins and ends at a sensor: touch made and broken, slip, overload, silence, and the commands it changed."""

from __future__ import annotations

import math
from collections import OrderedDict
from dataclasses import dataclass, replace
from enum import StrEnum

from supple.errors import SensorError

__all__ = ["ContactEvent", "EventFinder", "EventKind", "EventLimits", "Reactions"]

# An overload has ended once the force is this share of the limit again, so that noise at the limit is one event.
_REARM = 0.9
_REMEMBERED = 2000


class EventKind(StrEnum):
    """What happened (constants of ContactEvent)."""

    MADE = "made"
    BROKEN = "broken"
    SLIP = "slip"
    OVERLOAD = "overload"
    SILENT = "silent"
    RESUMED = "resumed"


@dataclass(frozen=True)
class ContactEvent:
    """One event at one sensor.

    Attributes:
        sensor: Name of the sensor.
        kind: What happened.
        stamp_ns: Time of the reading that showed it in [ns].
        sequence: That reading's; of silence, the last one that came.
        value: What was measured: [N] for made, broken and overload, [m/s] for slip, [s] without a reading for silent
            and resumed.
        threshold: What the value crossed, in the same unit.
        command_source: Who changed a command because of it; empty when nobody said so.
        command_sequence: That source's command.
    """

    sensor: str
    kind: EventKind
    stamp_ns: int
    sequence: int
    value: float
    threshold: float
    command_source: str = ""
    command_sequence: int = 0

    def __str__(self) -> str:
        """Return one line for a person."""
        unit = {EventKind.SLIP: "m/s", EventKind.SILENT: "s", EventKind.RESUMED: "s"}.get(self.kind, "N")
        because = f"; changed command {self.command_sequence} of {self.command_source}" if self.command_source else ""
        return (
            f"{self.sensor}: {self.kind} at reading {self.sequence} "
            f"({self.value:.3g} {unit}, threshold {self.threshold:.3g} {unit}){because}"
        )


@dataclass(frozen=True)
class EventLimits:
    """What the events of a sensor cross.

    Attributes:
        made: Normal force at which contact begins in [N].
        broken: Normal force at which it ends in [N].
        slip: Speed from which a moving surface is called slip in [m/s].
        overload: Normal force that the sensor should not bear in [N]; infinite if there is no limit.

    Raises:
        SensorError: A limit that is not positive.
    """

    made: float
    broken: float
    slip: float
    overload: float = math.inf

    def __post_init__(self) -> None:
        for name in ("made", "broken", "slip", "overload"):
            if not getattr(self, name) > 0.0:
                raise SensorError(f"limit {name!r} must be positive, got {getattr(self, name)}")


class EventFinder:
    """Find the events in the states of one sensor.

    Args:
        sensor: Name of the sensor.
        limits: What they cross, for the record; contact and slip themselves come from the detector.
    """

    def __init__(self, sensor: str, limits: EventLimits) -> None:
        self._sensor, self._limits = sensor, limits
        self.reset()

    def reset(self) -> None:
        """Begin anew, as without touch."""
        self._contact = self._slipping = self._overloaded = False

    def take(
        self,
        stamp_ns: int,
        sequence: int,
        in_contact: bool,
        normal_force: float,
        slipping: bool = False,
        slip_speed: float = math.nan,
    ) -> tuple[ContactEvent, ...]:
        """Take in what the detector said of one reading and return what began or ended with it.

        Args:
            stamp_ns: Time of the reading in [ns].
            sequence: The reading's.
            in_contact: Whether something touches the sensor.
            normal_force: Force along its normals in [N].
            slipping: Whether what touches moves across it.
            slip_speed: At what speed in [m/s]; NaN if that cannot be told.
        """
        limits, found = self._limits, []

        def note(kind: EventKind, value: float, threshold: float) -> None:
            found.append(ContactEvent(self._sensor, kind, stamp_ns, sequence, value, threshold))

        if in_contact and not self._contact:
            note(EventKind.MADE, normal_force, limits.made)
        if slipping and not self._slipping:
            note(EventKind.SLIP, slip_speed, limits.slip)
        if normal_force >= limits.overload and not self._overloaded:
            note(EventKind.OVERLOAD, normal_force, limits.overload)
            self._overloaded = True
        elif normal_force < _REARM * limits.overload:
            self._overloaded = False
        if self._contact and not in_contact:
            note(EventKind.BROKEN, normal_force, limits.broken)
        self._contact, self._slipping = in_contact, slipping
        return tuple(found)


class Reactions:
    """The events of late, so that a command that names a reading is joined to what that reading showed."""

    def __init__(self) -> None:
        self._events: OrderedDict[tuple[str, int], list[ContactEvent]] = OrderedDict()
        self._joined: OrderedDict[tuple[str, int, str], None] = OrderedDict()
        self.unmatched = 0

    def add(self, event: ContactEvent) -> None:
        """Remember an event."""
        self._events.setdefault((event.sensor, event.sequence), []).append(event)
        while len(self._events) > _REMEMBERED:
            self._events.popitem(last=False)

    def join(self, sensor: str, sequence: int, source: str, command_sequence: int) -> tuple[ContactEvent, ...]:
        """Return the events that a command answers, with the command in them.

        A source goes on naming the reading as long as its commands are changed; only its first counts.

        Args:
            sensor: Sensor that the command names.
            sequence: Reading that it names.
            source: Who commanded.
            command_sequence: That source's command.
        """
        key = (sensor, sequence, source)
        if key in self._joined:
            return ()
        self._joined[key] = None
        while len(self._joined) > _REMEMBERED:
            self._joined.popitem(last=False)
        events = self._events.get((sensor, sequence), [])
        self.unmatched += not events
        return tuple(replace(e, command_source=source, command_sequence=command_sequence) for e in events)
