# SPDX-License-Identifier: Apache-2.0
"""How well touch was detected, in counts and delays, and what is required of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

__all__ = ["REQUIREMENTS", "ContactScore", "Requirement", "Score"]


class Score(BaseModel):
    """Counts of a yes-or-no answer against the truth.

    Attributes:
        true_positive: Said yes, rightly.
        false_positive: Said yes, wrongly.
        false_negative: Said no, wrongly.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    true_positive: int = 0
    false_positive: int = 0
    false_negative: int = 0

    def __add__(self, other: Score) -> Score:
        """Return the counts of both."""
        return Score(**{name: getattr(self, name) + getattr(other, name) for name in type(self).model_fields})

    @property
    def precision(self) -> float:
        """Share of the yeses that are right; NaN when there is none."""
        return _share(self.true_positive, self.true_positive + self.false_positive)

    @property
    def recall(self) -> float:
        """Share of what there was that was found; NaN when there was nothing."""
        return _share(self.true_positive, self.true_positive + self.false_negative)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall; NaN when both are unknown."""
        found = 2 * self.true_positive
        return _share(found, found + self.false_positive + self.false_negative)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


class ContactScore(BaseModel):
    """How well touch on one object under one friction was detected.

    Attributes:
        object: Body that touched; ``"nothing"`` for false alarms without any, ``"all"`` for the sum.
        friction: Friction between hands and objects; None is what the episodes were made with, or all together.
        contact: Readings: in contact or not.
        slip: Readings: slipping or not; slip is true only in contact.
        held: Readings: held or not.
        slip_events: Slips: a true one is found if slip is said during it or within ``merge_gap`` after it; a reported
            one is right if the true speed reached half of ``least_slip`` about then.
        delays_ms: For each contact found, from the true force's crossing of ``least_force`` until the reading that says
            so arrives, in [ms].
        missed: Contacts that were never found.
        slip_delays_ms: For each slip found, from its beginning until it is said, in [ms].
        untold: Readings in true slip at which no slip speed could be told; they count as not found.
        stuck_alarms: Readings truly in contact and not in slip at which slip is said.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    object: str
    friction: float | None
    contact: Score = Score()
    slip: Score = Score()
    held: Score = Score()
    slip_events: Score = Score()
    delays_ms: tuple[float, ...] = ()
    missed: int = 0
    slip_delays_ms: tuple[float, ...] = ()
    untold: int = 0
    stuck_alarms: int = 0

    def __add__(self, other: ContactScore) -> ContactScore:
        """Return both together, under this one's name."""
        summed = {
            name: getattr(self, name) + getattr(other, name)
            for name in type(self).model_fields
            if name not in ("object", "friction")
        }
        return ContactScore(object=self.object, friction=self.friction, **summed)

    @property
    def median_delay_ms(self) -> float:
        """Median delay of contact in [ms]; a missed contact is later than any. NaN without a contact."""
        return _quantile((*self.delays_ms, *[math.inf] * self.missed), 0.5)

    @property
    def late_delay_ms(self) -> float:
        """The same of the 95th percentile."""
        return _quantile((*self.delays_ms, *[math.inf] * self.missed), 0.95)

    @property
    def median_slip_delay_ms(self) -> float:
        """Median delay of the slips found in [ms]; NaN without any."""
        return _quantile(self.slip_delays_ms, 0.5)

    @property
    def touched(self) -> int:
        """Readings truly in contact."""
        return self.contact.true_positive + self.contact.false_negative

    @property
    def slip_share(self) -> float:
        """Share of the readings in contact that truly slip: the precision of always saying so."""
        return _share(self.slip.true_positive + self.slip.false_negative, self.touched)

    @property
    def slip_false_alarms(self) -> float:
        """Share of the readings in contact and not in slip for which slip is said all the same."""
        slips = self.slip.true_positive + self.slip.false_negative
        return _share(self.stuck_alarms, self.touched - slips)

    def figures(self) -> dict[str, Any]:
        """Return what is told of it, None for what was not measured."""
        values = {
            "object": self.object,
            "friction": self.friction,
            "readings": self.touched,
            "contacts": len(self.delays_ms) + self.missed,
            "missed": self.missed,
            "precision": self.contact.precision,
            "recall": self.contact.recall,
            "f1": self.contact.f1,
            "median_delay_ms": self.median_delay_ms,
            "late_delay_ms": self.late_delay_ms,
            "slip_share": self.slip_share,
            "slip_precision": self.slip.precision,
            "slip_recall": self.slip.recall,
            "slip_false_alarms": self.slip_false_alarms,
            "slips": self.slip_events.true_positive + self.slip_events.false_negative,
            "slip_event_precision": self.slip_events.precision,
            "slip_event_recall": self.slip_events.recall,
            "median_slip_delay_ms": self.median_slip_delay_ms,
            "held_precision": self.held.precision,
            "held_recall": self.held.recall,
            "untold": self.untold,
        }
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in values.items()
        }


def _quantile(values: Sequence[float], fraction: float) -> float:
    if not values:
        return math.nan
    # Always one of the values: between a delay and a missed contact there is no middle.
    return sorted(values)[min(int(fraction * len(values)), len(values) - 1)]


@dataclass(frozen=True)
class Requirement:
    """What must hold of all readings together.

    Attributes:
        text: What is wanted.
        measure: Takes the sum and returns the figure.
        limit: The figure must be at least this, or at most if ``at_most``.
        at_most: Whether smaller is better.
    """

    text: str
    measure: Callable[[ContactScore], float]
    limit: float
    at_most: bool = False

    def holds(self, score: ContactScore) -> bool:
        """Tell whether it holds; what was not measured does not."""
        value = self.measure(score)
        return value <= self.limit if self.at_most else value >= self.limit

    def sentence(self, score: ContactScore) -> str:
        """Return what is wanted, what was found and whether that is enough."""
        value = self.measure(score)
        found = "not measured" if math.isnan(value) else f"{value:.3g}"
        wanted = f"at {'most' if self.at_most else 'least'} {self.limit:g}"
        return f"{self.text}: {found}, wanted {wanted}: {'holds' if self.holds(score) else 'falls short'}"


REQUIREMENTS = (
    Requirement("contact F1 at 1 N", lambda score: score.contact.f1, 0.97),
    Requirement("median delay of contact in ms", lambda score: score.median_delay_ms, 20.0, at_most=True),
    Requirement("recall of slips at 10 mm/s, by event", lambda score: score.slip_events.recall, 0.9),
    Requirement("recall of slip at 10 mm/s, by reading", lambda score: score.slip.recall, 0.9),
)
