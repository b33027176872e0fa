# SPDX-License-Identifier: Apache-2.0
"""What an episode and a seed demonstration are: plain frozen records of arrays that share one time line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from supple.errors import DatasetError
from supple.robots.contract import ActionContract

__all__ = ["Episode", "InitialState", "Mark", "Outcome", "Seed", "SkillSegment"]

Array = NDArray[np.float64]


def _frozen(name: str, values: ArrayLike, dtype: DTypeLike) -> NDArray[Any]:
    try:
        # A cast that overflows is found by validation, which names the sample; numpy's warning would not.
        with np.errstate(over="ignore"):
            array = np.array(values, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise DatasetError(
            f"{name}: expected an array of {np.dtype(dtype)}, got {type(values).__name__}: {error}"
        ) from error
    array.setflags(write=False)
    return array


def _frozen_map(name: str, values: Mapping[str, ArrayLike], dtype: DTypeLike) -> Mapping[str, NDArray[Any]]:
    return MappingProxyType({key: _frozen(f"{name}/{key}", value, dtype) for key, value in values.items()})


@dataclass(frozen=True, eq=False)
class InitialState:
    """Everything that a reset needs to begin the same episode again.

    Attributes:
        state: Full physics state of the simulator, float64, shape (S,).
        model_hash: Hash of the simulation model that the state belongs to.
        objects: Pose of each object in the world frame, (x, y, z, qx, qy, qz, qw), in [m], shape (7,).
        materials: Material parameters that were drawn, in SI units, e.g. ``{"box.mass": 0.7}``.
        goal: Numbers that define the goal of this episode, in SI units.
    """

    state: Array
    model_hash: str
    objects: Mapping[str, Array] = field(default_factory=dict)
    materials: Mapping[str, float] = field(default_factory=dict)
    goal: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Copy the arrays and make them read-only."""
        object.__setattr__(self, "state", _frozen("initial/state", self.state, np.float64))
        object.__setattr__(self, "objects", _frozen_map("initial/objects", self.objects, np.float64))
        for name in ("materials", "goal"):
            values = {key: float(value) for key, value in getattr(self, name).items()}
            object.__setattr__(self, name, MappingProxyType(values))


@dataclass(frozen=True)
class Outcome:
    """How an episode ended.

    Attributes:
        success: Whether the task's test held on the final state.
        measures: What the test measured, in SI units, or yes and no.
        reason: A sentence for a person.
    """

    success: bool
    measures: Mapping[str, float | bool] = field(default_factory=dict)
    reason: str = ""

    def __post_init__(self) -> None:
        """Turn NumPy scalars into plain numbers, so that what is stored equals what is read back."""
        plain = {
            key: bool(value) if isinstance(value, bool | np.bool_) else float(value)
            for key, value in self.measures.items()
        }
        object.__setattr__(self, "success", bool(self.success))
        object.__setattr__(self, "measures", MappingProxyType(plain))


@dataclass(frozen=True, eq=False)
class Episode:
    """N actions and the N + 1 states before, between and after them.

    Action ``i`` is chosen in state ``i`` and brings about state ``i + 1``. Arrays are copied and read-only.
    Observations are float32, which is finer than any sensor; states, actions and poses are float64, so that a replay
    is exact.

    Attributes:
        task: Name of the task.
        distribution: Name of the initial distribution, e.g. ``"D0"``.
        robot: Name of the robot.
        contract: Meaning of the actions.
        attempt: Index of the attempt that made it, from 0.
        seed: Seed of that attempt's random numbers.
        source: Names of the seed demonstrations it was made from; empty for a seed itself.
        initial: What a reset needs.
        actions: Clean labels, shape (N, A).
        executed: What was really commanded, motion noise included, shape (N, A).
        states: Full physics states, shape (N + 1, S).
        stamps_ns: Simulation time of each state in [ns], shape (N + 1,).
        observations: ``q`` [rad], ``v`` [rad/s], ``effort`` [Nm] (N + 1, joints) in table order; ``base_pose``
            (N + 1, 7) x y z qx qy qz qw in the world frame; ``base_twist`` (N + 1, 6) linear in the world frame [m/s],
            angular in the base frame [rad/s]; ``base_acceleration`` (N + 1, 3) specific force in the base frame
            [m/s^2]; others as wanted.
        outcome: How it ended.
        effector_poses: Measured pose of each effector's frame in the world frame, shape (N + 1, 4, 4).
        target_poses: Commanded pose of each effector's frame in the world frame, shape (N, 4, 4).
        object_poses: Pose of each object in the world frame, shape (N + 1, 4, 4).
        contacts: Normal and tangential force in [N] by pair ``"a/b"``, shape (N + 1, 2).
        start_signals: Whether each skill has begun, by skill, bool, shape (N,).
        signals: Whether each skill is finished, by skill, bool, shape (N,).
        sources: Name of the demonstration that each skill was taken from, by skill.
        soundness: The worst of the episode as ``sim.soundness`` measured it, by name; empty if it was not measured.
        versions: Versions of what made it, e.g. ``{"supple": …, "mujoco": …}``.
    """

    task: str
    distribution: str
    robot: str
    contract: ActionContract
    attempt: int
    seed: int
    source: str
    initial: InitialState
    actions: Array
    executed: Array
    states: Array
    stamps_ns: NDArray[np.int64]
    observations: Mapping[str, NDArray[np.float32]]
    outcome: Outcome
    effector_poses: Mapping[str, Array] = field(default_factory=dict)
    target_poses: Mapping[str, Array] = field(default_factory=dict)
    object_poses: Mapping[str, Array] = field(default_factory=dict)
    contacts: Mapping[str, Array] = field(default_factory=dict)
    start_signals: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    signals: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    soundness: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Copy the arrays and make them read-only; shapes are checked by ``validation.validate``."""
        for name in ("actions", "executed", "states"):
            object.__setattr__(self, name, _frozen(name, getattr(self, name), np.float64))
        object.__setattr__(self, "stamps_ns", _frozen("stamps_ns", self.stamps_ns, np.int64))
        for name in ("effector_poses", "target_poses", "object_poses", "contacts"):
            object.__setattr__(self, name, _frozen_map(name, getattr(self, name), np.float64))
        object.__setattr__(self, "observations", _frozen_map("observations", self.observations, np.float32))
        for name in ("start_signals", "signals"):
            object.__setattr__(self, name, _frozen_map(name, getattr(self, name), np.bool_))
        object.__setattr__(self, "soundness", MappingProxyType({k: float(v) for k, v in self.soundness.items()}))
        for name in ("sources", "versions"):
            texts = {key: str(value) for key, value in getattr(self, name).items()}
            object.__setattr__(self, name, MappingProxyType(texts))

    @property
    def length(self) -> int:
        """Number of actions N."""
        return len(self.actions)

    @property
    def duration(self) -> float:
        """Time from the first state to the last in [s]."""
        return float(self.stamps_ns[-1] - self.stamps_ns[0]) * 1e-9

    def differences(self, other: Episode) -> list[str]:
        """Name every field that is not exactly equal to another episode's; empty if all are."""
        found = []
        origins = "attempt", "seed", "source", "sources"
        for name in ("task", "distribution", "robot", "contract", *origins, "outcome", "soundness", "versions"):
            if getattr(self, name) != getattr(other, name):
                found.append(name)
        if self.initial.model_hash != other.initial.model_hash:
            found.append("initial/model_hash")
        for name in ("materials", "goal"):
            if getattr(self.initial, name) != getattr(other.initial, name):
                found.append(f"initial/{name}")
        mine, theirs = self.arrays(), other.arrays()
        for name in sorted(mine.keys() | theirs.keys()):
            if name not in mine or name not in theirs or not np.array_equal(mine[name], theirs[name]):
                found.append(name)
        return found

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return every array by its path, e.g. ``"observations/q"``."""
        found: dict[str, NDArray[Any]] = {"initial/state": self.initial.state}
        found |= {f"initial/objects/{key}": value for key, value in self.initial.objects.items()}
        found |= {name: getattr(self, name) for name in ("actions", "executed", "states", "stamps_ns")}
        poses = "effector_poses", "target_poses", "object_poses"
        for name in ("observations", *poses, "contacts", "start_signals", "signals"):
            found |= {f"{name}/{key}": value for key, value in getattr(self, name).items()}
        return found


@dataclass(frozen=True)
class SkillSegment:
    """A part of a demonstration in which one effector acts on one object.

    Attributes:
        name: Name of the skill.
        effector: Name of the effector that acts.
        reference: Name of the object that it acts on.
        start: Index of the first action.
        end: Index after the last action.
    """

    name: str
    effector: str
    reference: str
    start: int
    end: int


@dataclass(frozen=True)
class Mark:
    """What an operator marked while demonstrating.

    Attributes:
        label: What was marked, e.g. ``"grasp"``.
        step: Index of the action at that moment.
    """

    label: str
    step: int


@dataclass(frozen=True, eq=False)
class Seed:
    """One demonstration with its skills: what generation starts from.

    Attributes:
        episode: What was demonstrated.
        skills: Its skills; those of one effector do not overlap.
        marks: What the operator marked.
        operator: Who demonstrated, e.g. ``"keyboard"`` or ``"scripted"``.
        notes: Free text.
    """

    episode: Episode
    skills: tuple[SkillSegment, ...]
    marks: tuple[Mark, ...] = ()
    operator: str = ""
    notes: str = ""
