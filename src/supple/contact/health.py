# SPDX-License-Identifier: Apache-2.0
"""How a sensor is doing: readings that are missing by sequence and by stamp, silence, taxels without a value."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from enum import StrEnum

from supple.contact.events import ContactEvent, EventKind

__all__ = ["Condition", "Gap", "SensorHealth", "SensorReport"]

# So many intervals without a reading are a gap; before that it is late.
_GAP_INTERVALS = 3.0
# The interval of a sensor whose rate nobody gave is the median of so many.
_LEARNED = 20
_KEPT_GAPS = 200
# A stamp further back than this in [s] is no reading that was overtaken, but a clock that jumped.
_OVERTAKEN = 1.0


class Condition(StrEnum):
    """How a sensor is."""

    OK = "ok"
    DEGRADED = "degraded"
    SILENT = "silent"
    MISSING = "missing"


@dataclass(frozen=True)
class Gap:
    """Readings, or time, missing between two readings.

    Attributes:
        stamp_ns: Stamp of the reading after it in [ns].
        sequence: That reading's; 0 from a sensor that does not count.
        lost: Readings that are missing by sequence; 0 for time alone.
        known: Of these, how many the sensor itself says it lost; the others were lost on the way.
        duration: Time between the stamps before and after in [s].
    """

    stamp_ns: int
    sequence: int
    lost: int
    known: int
    duration: float


@dataclass(frozen=True)
class SensorReport:
    """How a sensor is, in words and figures.

    Attributes:
        sensor: Name of the sensor.
        condition: How it is.
        text: One line for a person.
        values: Figures by name.
    """

    sensor: str
    condition: Condition
    text: str
    values: dict[str, str]


class SensorHealth:
    """Health of one sensor, from its readings as they come.

    Args:
        sensor: Name of the sensor.
        rate: Readings per second that it should give in [Hz]; 0: learned from its first stamps.
        silent_after: Time without a reading after which it is called silent in [s]; never less than three intervals.

    Attributes:
        readings: Readings that came.
        lost: Readings that did not, by sequence.
        known: Of these, how many the sensor says it lost itself.
        pauses: Times in which the stamps leave out three intervals or more without a reading missing by sequence.
        restarts: Times that the sensor began to count anew, or its clock jumped back.
        disorder: Readings that came twice or out of order.
        silences: Times that it fell silent.
        gaps: The first of the gaps, lost readings and pauses alike.
    """

    def __init__(self, sensor: str, rate: float = 0.0, silent_after: float = 0.25) -> None:
        self.sensor = sensor
        self._interval = 1.0 / rate if rate > 0.0 else None
        self._silent_after = silent_after
        self.readings = self.lost = self.known = self.pauses = 0
        self.restarts = self.disorder = self.silences = 0
        self.gaps: list[Gap] = []
        self._steps: list[float] = []
        self._last: tuple[int, int | None, int] | None = None
        self._arrived: float | None = None
        self._silent = False
        self._taxels = self._dead = self._saturated = 0
        self._reported = (0, 0)
        self._since: float | None = None

    @property
    def silent(self) -> bool:
        """Whether it has fallen silent."""
        return self._silent

    @property
    def patience(self) -> float:
        """Time without a reading after which it is silent in [s]."""
        return max(self._silent_after, _GAP_INTERVALS * (self._interval or 0.0))

    def take(
        self,
        stamp_ns: int,
        arrived: float,
        sequence: int | None = None,
        missed: int = 0,
    ) -> ContactEvent | None:
        """Take in a reading.

        Args:
            stamp_ns: When it was measured in [ns].
            arrived: When it came, steady clock, in [s].
            sequence: Counts the sensor's readings; absent from a sensor that does not count.
            missed: Readings that the sensor says it has lost since it started.

        Returns:
            That it resumed, if it had been silent.
        """
        self.readings += 1
        if self._last is None or self._is_news(self._last, stamp_ns, sequence, missed):
            self._last = (stamp_ns, sequence, missed)
        silence = arrived - (self._arrived if self._arrived is not None else arrived)
        self._arrived = arrived
        if not self._silent:
            return None
        self._silent = False
        return ContactEvent(self.sensor, EventKind.RESUMED, stamp_ns, sequence or 0, silence, self.patience)

    def taxels(self, count: int, dead: int, saturated: int) -> None:
        """Take in what the last reading says of its taxels: how many there are, give no value, and are saturated."""
        self._taxels, self._dead, self._saturated = count, dead, saturated

    def _is_news(self, last: tuple[int, int | None, int], stamp_ns: int, sequence: int | None, missed: int) -> bool:
        """Compare a reading with the newest one and tell whether it is newer, or the first of a new count."""
        before, counted, known_before = last
        step = (stamp_ns - before) * 1e-9
        ahead = 1 if sequence is None or counted is None else sequence - counted
        if -_OVERTAKEN < step <= 0.0 and (ahead <= 0 or sequence is None):
            # One that was overtaken has been counted as lost.
            self.disorder += 1
            self.lost -= ahead < 0 < self.lost
            return False
        if ahead <= 0 or step <= 0.0:
            self.restarts += 1
            return True
        if ahead > 1:
            known = min(max(missed - known_before, 0), ahead - 1)
            self.lost += ahead - 1
            self.known += known
            self._keep(Gap(stamp_ns, sequence or 0, ahead - 1, known, step))
        elif self._interval is None:
            self._steps.append(step)
            if len(self._steps) == _LEARNED:
                self._interval = statistics.median(self._steps)
        elif step >= _GAP_INTERVALS * self._interval:
            self.pauses += 1
            self._keep(Gap(stamp_ns, sequence or 0, 0, 0, step))
        return True

    def _keep(self, gap: Gap) -> None:
        if len(self.gaps) < _KEPT_GAPS:
            self.gaps.append(gap)

    def check(self, now: float) -> ContactEvent | None:
        """Return that it fell silent, once.

        Args:
            now: Steady clock in [s].
        """
        if self._last is None or self._arrived is None or self._silent or now - self._arrived <= self.patience:
            return None
        self._silent = True
        self.silences += 1
        stamp, sequence, _ = self._last
        return ContactEvent(self.sensor, EventKind.SILENT, stamp, sequence or 0, now - self._arrived, self.patience)

    def report(self, now: float) -> SensorReport:
        """Return how it is, with the rate since the last report.

        Args:
            now: Steady clock in [s].
        """
        (count, troubles), self._reported = self._reported, (self.readings, self.lost + self.pauses + self.disorder)
        since, self._since = self._since, now
        values = {
            "readings": str(self.readings),
            "lost by sequence": str(self.lost),
            "of these lost by the sensor": str(self.known),
            "pauses by stamp": str(self.pauses),
            "out of order": str(self.disorder),
            "restarts": str(self.restarts),
            "silences": str(self.silences),
            "dead taxels": f"{self._dead} of {self._taxels}",
            "saturated taxels": f"{self._saturated} of {self._taxels}",
        }
        rate = (self.readings - count) / (now - since) if since is not None and now > since else None
        if rate is not None:
            values["rate [Hz]"] = f"{rate:.1f}"
        if self._arrived is None:
            return SensorReport(self.sensor, Condition.MISSING, "no reading yet", values)
        values["age [s]"] = f"{now - self._arrived:.3f}"
        if self._silent:
            text = f"silent for {now - self._arrived:.1f} s"
            return SensorReport(self.sensor, Condition.SILENT, text, values)
        complaints = []
        if news := self._reported[1] - troubles:
            complaints.append(f"{news} gaps or readings out of order since the last report")
        if self._dead:
            complaints.append(f"{self._dead} of {self._taxels} taxels give no value")
        if self._saturated:
            complaints.append(f"{self._saturated} of {self._taxels} taxels are saturated")
        slow = rate is not None and self._interval is not None and rate * self._interval < 1.0 / _GAP_INTERVALS
        if slow:
            complaints.append(f"{rate:.1f} Hz of {1.0 / (self._interval or 1.0):.1f} Hz")
        condition = Condition.DEGRADED if complaints else Condition.OK
        return SensorReport(self.sensor, condition, "; ".join(complaints) or "ok", values)
