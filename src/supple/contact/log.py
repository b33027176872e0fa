# SPDX-License-Identifier: Apache-2.0
"""What a log of touch holds and what it lacks: one account, for a person now and for whoever reads the log later."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

from supple.contact.health import SensorHealth
from supple.errors import SensorError
from supple.yaml_file import first_problem

__all__ = ["LogReport", "SensorAccount", "account_of"]

# Of each kind of trouble the line for a person names so many; the account has all.
_SHOWN = 4


class SensorAccount(BaseModel):
    """What one sensor, or any other stream with stamps, gave to a log.

    Attributes:
        readings: Readings that came.
        lost: Readings missing by sequence.
        known: Of these, lost by the sensor itself, as it says; the others were lost on the way.
        pauses: Times in which its stamps leave out three intervals or more, no reading missing by sequence.
        silences: Times that nothing came for longer than is normal.
        restarts: Times that it began to count anew, or its clock jumped back.
        gaps: (stamp after it in [ns], readings lost, duration in [s]) of the first gaps and pauses.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    readings: int
    lost: int = 0
    known: int = 0
    pauses: int = 0
    silences: int = 0
    restarts: int = 0
    gaps: tuple[tuple[int, int, float], ...] = ()


def account_of(health: SensorHealth) -> SensorAccount:
    """Return the account of a sensor."""
    gaps = tuple((gap.stamp_ns, gap.lost, round(gap.duration, 6)) for gap in health.gaps)
    return SensorAccount(
        readings=health.readings,
        lost=health.lost,
        known=health.known,
        pauses=health.pauses,
        silences=health.silences,
        restarts=health.restarts,
        gaps=gaps,
    )


class LogReport(BaseModel):
    """What became of a log.

    Attributes:
        duration: Time logged, steady clock, in [s].
        written: Messages written, by topic.
        dropped: Messages that came and were not written, or that the middleware reports as lost, by topic and how.
        sensors: Account of every sensor and stream with stamps, by name.
        events: Number of events, by kind.
        reactions: Commands that changed because of an event.
        stall: Longest time that a message waited for the logger to take it in, in [s].
        patience: How long the subscriptions keep what waits for it in [s]; after a longer stall something may be lost
            without anybody knowing. None where the middleware numbers all messages, so that no loss is overlooked.
        unread: Whether messages that had come were left behind when the logger was ended.
        failure: Why the log ended early; empty if it did not.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    duration: float
    written: dict[str, int]
    dropped: dict[str, int]
    sensors: dict[str, SensorAccount]
    events: dict[str, int]
    reactions: int
    stall: float
    patience: float | None = None
    unread: bool = False
    failure: str = ""

    @property
    def lost(self) -> int:
        """Messages that are known to be missing."""
        return sum(self.dropped.values()) + sum(account.lost for account in self.sensors.values())

    @property
    def complete(self) -> bool:
        """Whether everything that was sent is in the log, as far as anybody can know."""
        return not self.failure and self.lost == 0 and not self.unread and not self._overslept

    @property
    def _overslept(self) -> bool:
        return self.patience is not None and self.stall >= self.patience

    def __str__(self) -> str:
        """Return one line for a person."""
        total = f"{sum(self.written.values())} messages on {len(self.written)} topics in {self.duration:.1f} s"
        worst = sorted(self.dropped.items(), key=lambda row: -row[1])
        parts = _shortened([f"{count} of {what}" for what, count in worst])
        lost = sorted(((row.lost, row.known, name) for name, row in self.sensors.items() if row.lost), reverse=True)
        parts += _shortened([_missing(*row) for row in lost])
        if self.unread:
            parts.append("what had come last and was not yet taken in")
        if self._overslept:
            parts.append(f"perhaps more: the logger stood still for {self.stall:.1f} s")
        notes = [note for what in ("pauses", "silences", "restarts") if (note := _counted(self.sensors, what))]
        if self.failure:
            notes.append(f"ended early: {self.failure}")
        said = "nothing lost" if self.complete else f"LOST {'; '.join(parts)}" if parts else "incomplete"
        return "; ".join([f"{total}: {said}", *notes])

    def to_json(self) -> str:
        """Return it as text."""
        return self.model_dump_json()

    @classmethod
    def from_json(cls, text: str) -> LogReport:
        """Return what ``to_json`` wrote.

        Raises:
            SensorError: It is something else; names the field.
        """
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise SensorError(f"report of a log: {first_problem(error, cls)}") from error


def _missing(count: int, known: int, name: str) -> str:
    return f"{count} of {name} by sequence" + (f" ({known} by the sensor itself)" if known else "")


def _counted(sensors: dict[str, SensorAccount], what: str) -> str:
    rows = sorted(((getattr(row, what), name) for name, row in sensors.items()), reverse=True)
    found = [f"{name} {count}" for count, name in rows if count]
    return f"{what}: {', '.join(_shortened(found))}" if found else ""


def _shortened(rows: list[str]) -> list[str]:
    more = len(rows) - _SHOWN
    return rows if more <= 0 else [*rows[:_SHOWN], f"{more} more"]
