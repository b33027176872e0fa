# SPDX-License-Identifier: Apache-2.0
"""The ledger of a dataset: one line per attempt, with what became of it and why."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from supple.errors import DatasetError
from supple.yaml_file import first_problem

__all__ = ["AttemptRecord", "Ledger", "Origin", "worst_soundness"]


class Origin(StrEnum):
    """Where a rejection comes from."""

    STATE_ESTIMATION = "state_estimation"
    REGISTRATION = "registration"
    PLANNING = "planning"
    ACTUATION = "actuation"
    CONTACT = "contact"
    SUCCESS_TEST = "success_test"


class AttemptRecord(BaseModel):
    """One line of the ledger.

    Attributes:
        attempt: Index of the attempt, from 0.
        seed: Seed of its random numbers.
        source: Names of the seed demonstrations it was made from.
        sources: Name of the demonstration that each skill was taken from, by the skill's signal, as far as it came.
        distribution: Name of the initial distribution.
        outcome: What became of it.
        completed: Whether its motion was carried out to the end, whatever the success test said.
        stage: The stage that it reached, e.g. ``"walk"``.
        origin: Where a rejection comes from; absent when retained.
        reason: A sentence that a person can act on; empty when retained.
        initial: Initial poses and the like, by name, for the report.
        measures: What the success test measured; None where it could not be measured (it was not finite).
        soundness: The worst of the attempt by name, as ``sim.soundness`` measures it; empty if it was not measured.
        sim_seconds: Simulated time in [s].
        wall_seconds: Wall time in [s]; differs from run to run.
        timings: Wall time per stage in [s]; differs from run to run.
        demo: Name of its episode in ``demos.hdf5`` (retained) or ``rejected.hdf5`` (rejected); absent if not kept.
        sha256: Checksum of the part file its episode was first written to; absent if not kept.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    attempt: int = Field(ge=0)
    seed: int
    source: str
    sources: dict[str, str] = {}
    distribution: str
    outcome: Literal["retained", "rejected"]
    completed: bool
    stage: str
    origin: Origin | None = None
    reason: str = ""
    initial: dict[str, list[float]] = {}
    measures: dict[str, float | bool | None] = {}
    soundness: dict[str, float] = {}
    sim_seconds: float = 0.0
    wall_seconds: float = 0.0
    timings: dict[str, float] = {}
    demo: str | None = None
    sha256: str | None = None

    @field_validator("measures", mode="before")
    @classmethod
    def _plain(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        plain = {key: value.item() if isinstance(value, np.generic) else value for key, value in values.items()}
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in plain.items()}

    @model_validator(mode="after")
    def _explained(self) -> AttemptRecord:
        if self.outcome == "rejected" and (self.origin is None or not self.reason):
            raise ValueError(f"attempt {self.attempt}: a rejection needs an origin and a reason")
        if self.outcome == "retained" and (self.origin is not None or not self.completed):
            raise ValueError(f"attempt {self.attempt}: a retained attempt is completed and has no origin of rejection")
        return self

    def line(self) -> bytes:
        """Return the line of the ledger, newline included."""
        return json.dumps(self.model_dump(mode="json"), allow_nan=False).encode() + b"\n"


class Ledger:
    """The attempts of a dataset, read once.

    A later line for the same attempt supersedes an earlier one (the attempt was done again because its episode was
    damaged). A last line without a newline was cut off by a kill and does not count.

    Args:
        path: The ``ledger.jsonl``; a missing file is an empty ledger.

    Raises:
        DatasetError: A line cannot be understood, or an attempt is missing between others; names line or gap.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        content = self.path.read_bytes() if self.path.is_file() else b""
        whole, newline, tail = content.rpartition(b"\n")
        self.cut_off = len(tail)
        """Length in bytes of a half-written last line."""
        newest: dict[int, AttemptRecord] = {}
        for number, line in enumerate(whole.split(b"\n") if newline else [], start=1):
            record = self._parse(line, number)
            if record.attempt > len(newest):
                raise DatasetError(
                    f"{self.path}: line {number}: attempt {record.attempt} after {len(newest)} attempts; missing: "
                    f"{_range(len(newest), record.attempt - 1)}"
                )
            newest[record.attempt] = record
        self.records = tuple(_named(newest[i] for i in range(len(newest))))
        """The newest record of every attempt, in order, with the names that the episodes have in their files."""

    def __len__(self) -> int:
        """Return the number of attempts."""
        return len(self.records)

    def counts(self) -> dict[str, int]:
        """Return how many were attempted, completed, rejected and retained."""
        outcomes = Counter(record.outcome for record in self.records)
        return {
            "attempted": len(self.records),
            "completed": sum(record.completed for record in self.records),
            "rejected": outcomes["rejected"],
            "retained": outcomes["retained"],
        }

    def by_origin(self) -> dict[str, int]:
        """Return the number of rejections by origin; every origin is named, also with none."""
        found = Counter(record.origin for record in self.records if record.origin is not None)
        return {origin.value: found[origin] for origin in Origin}

    def reasons(self) -> dict[str, int]:
        """Return the number of rejections by reason, most frequent first."""
        return dict(Counter(record.reason for record in self.records if record.outcome == "rejected").most_common())

    def _parse(self, line: bytes, number: int) -> AttemptRecord:
        try:
            return AttemptRecord.model_validate_json(line)
        except ValidationError as error:
            raise DatasetError(f"{self.path}: line {number}: {first_problem(error, AttemptRecord)}") from error


def worst_soundness(records: Iterable[AttemptRecord]) -> dict[str, float]:
    """Return the largest of each measure of soundness over all retained attempts; empty if it was never measured."""
    worst: dict[str, float] = {}
    for record in records:
        if record.outcome == "retained":
            worst |= {name: max(value, worst.get(name, value)) for name, value in record.soundness.items()}
    return worst


def _named(records: Any) -> Any:
    # The names follow from the order alone, so they hold even if an attempt that was done again ended otherwise.
    stored = Counter[str]()
    for record in records:
        if record.demo is None:
            yield record
        else:
            yield record.model_copy(update={"demo": f"demo_{stored[record.outcome]}"})
            stored[record.outcome] += 1


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"
