# SPDX-License-Identifier: Apache-2.0
"""Reasons of rejection, grouped: those that differ in their numbers alone are one and the same."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from supple.episodes import AttemptRecord

__all__ = ["ReasonGroup", "grouped_reasons"]

_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True)
class ReasonGroup:
    """Rejections for one reason.

    Attributes:
        origin: Where they come from.
        stages: The stages in which they happened.
        example: The reason of the first of them, with its numbers.
        attempts: Indices of the attempts.
    """

    origin: str
    stages: tuple[str, ...]
    example: str
    attempts: tuple[int, ...]


def grouped_reasons(records: Iterable[AttemptRecord]) -> list[ReasonGroup]:
    """Return the reasons of all rejections, most frequent first."""
    groups: dict[tuple[str, str], list[AttemptRecord]] = {}
    for record in records:
        if record.origin is not None:
            groups.setdefault((record.origin.value, _NUMBER.sub("#", record.reason)), []).append(record)
    found = [
        ReasonGroup(
            origin,
            tuple(sorted({record.stage for record in members})),
            members[0].reason,
            tuple(record.attempt for record in members),
        )
        for (origin, _), members in groups.items()
    ]
    return sorted(found, key=lambda group: (-len(group.attempts), group.attempts))
