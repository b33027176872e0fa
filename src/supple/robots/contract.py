# SPDX-License-Identifier: Apache-2.0
"""The action contract: what every number of an action means, stored with data and compared before anything moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, field_validator

from supple.errors import ContractError

__all__ = ["ActionContract", "ActionKind", "ActionTerm"]


def _constant(values: Sequence[float]) -> NDArray[np.float64]:
    """Return an array that is looked at in every tick and shared, so that nobody may write to it."""
    array = np.array(values)
    array.flags.writeable = False
    return array


class ActionKind(StrEnum):
    """How a number of an action is to be understood."""

    JOINT_POSITION = "joint_position"
    BASE_VELOCITY = "base_velocity"
    BASE_HEIGHT = "base_height"
    EFFECTOR_POSE = "effector_pose"
    GRIPPER = "gripper"


class ActionTerm(BaseModel):
    """One number of an action.

    Attributes:
        name: Joint name, or name of the command channel.
        kind: How it is to be understood; always absolute, never a difference to the state.
        unit: SI unit, e.g. ``"rad"``.
        frame: Frame it is given in; ``"joint"`` for joint positions.
        lower: Smallest allowed value in that unit.
        upper: Largest allowed value in that unit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: ActionKind
    unit: str
    frame: str
    lower: float
    upper: float


class ActionContract(BaseModel):
    """Meaning, order, limits and rate of an action vector.

    Attributes:
        robot: Name of the robot it was made for.
        control_interval: Time between two actions in [s].
        terms: One entry per number, in order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    robot: str
    control_interval: float
    terms: tuple[ActionTerm, ...]

    @field_validator("terms")
    @classmethod
    def _named_once(cls, terms: tuple[ActionTerm, ...]) -> tuple[ActionTerm, ...]:
        names = [term.name for term in terms]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"every entry needs a name of its own, got twice: {', '.join(twice)}")
        return terms

    @property
    def size(self) -> int:
        """Number of entries of an action."""
        return len(self.terms)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the entries, in order."""
        return tuple(term.name for term in self.terms)

    @cached_property
    def lower(self) -> NDArray[np.float64]:
        """Smallest allowed values, shape (size,)."""
        return _constant([term.lower for term in self.terms])

    @cached_property
    def upper(self) -> NDArray[np.float64]:
        """Largest allowed values, shape (size,)."""
        return _constant([term.upper for term in self.terms])

    def of_kind(self, kind: ActionKind) -> NDArray[np.intp]:
        """Return the positions of all entries of one kind."""
        return np.array([i for i, term in enumerate(self.terms) if term.kind == kind], dtype=np.intp)

    def differences(self, other: ActionContract) -> list[str]:
        """Name every difference to another contract, in words; empty if the two mean the same."""
        found = []
        if self.robot != other.robot:
            found.append(f"robot: {self.robot!r} here, {other.robot!r} there")
        if abs(self.control_interval - other.control_interval) > 1e-9:
            found.append(f"control interval: {self.control_interval} s here, {other.control_interval} s there")
        mine, theirs = {t.name: t for t in self.terms}, {t.name: t for t in other.terms}
        found += [f"{name}: only here" for name in self.names if name not in theirs]
        found += [f"{name}: only there" for name in other.names if name not in mine]
        for name in (name for name in self.names if name in theirs):
            for key in ("kind", "unit", "frame", "lower", "upper"):
                here, there = getattr(mine[name], key), getattr(theirs[name], key)
                if here != there:
                    found.append(f"{name}: {key} {here} here, {there} there")
        common_here = [name for name in self.names if name in theirs]
        common_there = [name for name in other.names if name in mine]
        if common_here != common_there:
            first = next(i for i, pair in enumerate(zip(common_here, common_there, strict=True)) if pair[0] != pair[1])
            found.append(f"order: {common_here[first]!r} here, {common_there[first]!r} there, at position {first}")
        return found

    def require(self, other: ActionContract, where: str) -> None:
        """Refuse another contract that does not mean the same.

        Raises:
            ContractError: Names each difference.
        """
        if differences := self.differences(other):
            raise ContractError(f"{where}: action contracts differ: " + "; ".join(differences))

    def check(self, action: ArrayLike, where: str = "action") -> NDArray[np.float64]:
        """Return one action as an array, or refuse it.

        Raises:
            ContractError: Wrong size, or a number that is not finite; names the entries.
        """
        value = np.asarray(action, dtype=np.float64)
        if value.shape != (self.size,):
            raise ContractError(f"{where}: expected {self.size} numbers, got shape {value.shape}")
        finite = np.isfinite(value)
        if not finite.all():
            bad = np.flatnonzero(~finite)
            raise ContractError(f"{where}: not finite: {', '.join(self.names[i] for i in bad)}")
        return value

    def clamp(self, action: NDArray[np.float64]) -> tuple[NDArray[np.float64], list[str]]:
        """Return the action within its limits and the names of the entries that a limit changed."""
        # Twice in each control tick: np.clip takes three times as long for so few numbers.
        clamped = np.minimum(np.maximum(action, self.lower), self.upper)
        changed = clamped != action
        return clamped, [self.names[i] for i in np.flatnonzero(changed)] if changed.any() else []

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> ActionContract:
        """Read a contract back from plain data, e.g. parsed JSON."""
        return cls.model_validate(mapping)
