# SPDX-License-Identifier: Apache-2.0
"""The card of a dataset: what it is, what made it, and whether two runs belong to the same one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, field_validator

from supple.episodes.atomic import write_atomically
from supple.errors import DatasetError
from supple.robots import ActionContract
from supple.yaml_file import read_model

__all__ = ["DatasetCard"]


class DatasetCard(BaseModel):
    """What a dataset is.

    Attributes:
        name: Name of the dataset.
        task: Name of the task.
        distribution: Name of the initial distribution.
        robot: Name of the robot.
        seed: Seed that every attempt's random numbers derive from.
        source: Names of the seed files, in the order in which they count.
        source_sha256: Checksums of the seed files.
        settings: Settings of generation, plain data.
        contract: Meaning of the actions.
        versions: Versions of what makes it, e.g. ``{"mujoco": "3.17.0"}``.
        created: ISO date of its first attempt.
        supple: Version of Supple.
        counts: Attempted, completed, rejected, retained, as of the last time it was finalised.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    task: str
    distribution: str
    robot: str
    seed: int
    source: str
    source_sha256: str
    settings: dict[str, Any] = {}
    contract: ActionContract
    versions: dict[str, str] = {}
    created: str
    supple: str
    counts: dict[str, int] = {}

    @field_validator("created", mode="before")
    @classmethod
    def _iso(cls, value: Any) -> Any:
        # YAML reads an unquoted ISO date as a date.
        return value.isoformat() if hasattr(value, "isoformat") else value

    def differences(self, other: DatasetCard) -> list[str]:
        """Name everything that makes two cards those of different datasets; empty if attempts may be mixed.

        Name, date, counts and the place of the seed file do not count; its content does.
        """
        mine, theirs = self.model_dump(mode="json"), other.model_dump(mode="json")
        found = []
        for key in ("task", "distribution", "robot", "seed", "source_sha256"):
            if mine[key] != theirs[key]:
                found.append(f"{key}: {mine[key]!r} here, {theirs[key]!r} there")
        for key in ("settings", "versions"):
            found += _mapping_differences(key, mine[key], theirs[key])
        return found + [f"contract: {line}" for line in self.contract.differences(other.contract)]

    def write(self, path: Path) -> None:
        """Write the card as YAML, whole or not at all."""
        text = yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120)
        write_atomically(path, text.encode())

    @classmethod
    def read(cls, path: Path) -> DatasetCard:
        """Read a card.

        Raises:
            DatasetError: Missing, no YAML, or a field is missing, unknown or malformed; names the field.
        """
        return read_model(path, cls, DatasetError)


def _mapping_differences(name: str, mine: Any, theirs: Any) -> list[str]:
    if isinstance(mine, dict) and isinstance(theirs, dict):
        found = []
        for key in sorted(mine.keys() | theirs.keys()):
            if key not in theirs:
                found.append(f"{name}.{key}: only here ({mine[key]!r})")
            elif key not in mine:
                found.append(f"{name}.{key}: only there ({theirs[key]!r})")
            else:
                found += _mapping_differences(f"{name}.{key}", mine[key], theirs[key])
        return found
    return [] if mine == theirs else [f"{name}: {mine!r} here, {theirs!r} there"]
