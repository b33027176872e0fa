# SPDX-License-Identifier: Apache-2.0
"""The verdict on a replay: contract, frames really applied, first divergence and the task's success."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BaseModel, ConfigDict

from supple.episodes.atomic import write_atomically
from supple.errors import ReplayError
from supple.robots import ActionContract

__all__ = ["DivergenceWatch", "Verdict", "compare_contracts"]


class Verdict(BaseModel):
    """What a replay showed.

    Attributes:
        contract: ``"match"``, or each difference between the episode's contract and the robot's.
        frames_applied: Actions that the body confirmed.
        frames_total: Actions in the episode.
        first_divergence_step: First step whose state differs beyond tolerance; None if none does. State 0 is the one
            before the first action.
        divergence: How far that state differs; without a divergence, the largest difference of the whole replay:
            ``joint_rad`` and ``base_m``. Empty if no state was compared.
        success: Whether the task's success test held at the end.
        reason: Why, for a person.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    contract: Literal["match"] | tuple[str, ...]
    frames_applied: int
    frames_total: int
    first_divergence_step: int | None
    divergence: dict[str, float]
    success: bool
    reason: str

    def write(self, path: Path | str) -> None:
        """Write it as JSON, whole or not at all."""
        write_atomically(Path(path), (self.model_dump_json(indent=2) + "\n").encode())


def compare_contracts(episode: ActionContract, robot: ActionContract) -> Literal["match"] | tuple[str, ...]:
    """Return ``"match"``, or each difference in words (here: the robot; there: the episode)."""
    return tuple(robot.differences(episode)) or "match"


@dataclass
class DivergenceWatch:
    """Compare replayed states with recorded ones, one after the other.

    Attributes:
        joint_tolerance: Accepted difference of a joint in [rad].
        base_tolerance: Accepted distance of the base in [m].
        first_step: First step beyond tolerance, or None.
        compared: Number of states compared.
    """

    joint_tolerance: float = 0.05
    base_tolerance: float = 0.05
    first_step: int | None = None
    compared: int = 0

    def __post_init__(self) -> None:
        """Begin with no difference seen."""
        self._size: dict[str, float] = {}

    @property
    def size(self) -> dict[str, float]:
        """Difference at the first diverging step; without one, the largest so far."""
        return dict(self._size)

    def observe(
        self, step: int, q: ArrayLike, base: ArrayLike, recorded_q: ArrayLike, recorded_base: ArrayLike
    ) -> None:
        """Compare one state.

        Args:
            step: Number of actions applied before it.
            q: Joint positions in [rad], shape (n,).
            base: Base position in [m], shape (3,).
            recorded_q: The same of the recording.
            recorded_base: The same of the recording.

        Raises:
            ReplayError: The shapes differ.
        """
        pairs = {"joint_rad": (q, recorded_q), "base_m": (base, recorded_base)}
        delta = {}
        for name, (now, then) in pairs.items():
            a, b = np.asarray(now, dtype=np.float64), np.asarray(then, dtype=np.float64)
            if a.shape != b.shape:
                raise ReplayError(f"step {step}: {name} has shape {a.shape} here, {b.shape} in the recording")
            delta[name] = a - b
        self.compared += 1
        if self.first_step is not None:
            return
        size = {"joint_rad": float(np.abs(delta["joint_rad"]).max()), "base_m": float(np.linalg.norm(delta["base_m"]))}
        if not (size["joint_rad"] <= self.joint_tolerance and size["base_m"] <= self.base_tolerance):
            self.first_step, self._size = step, size
        else:
            self._size = {name: max(value, self._size.get(name, 0.0)) for name, value in size.items()}
