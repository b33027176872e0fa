# SPDX-License-Identifier: Apache-2.0
"""Checks of episodes and seeds at the border: what is malformed is refused by field and sample, never repaired."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from supple.episodes.episode import Episode, Seed
from supple.errors import DatasetError, SeedError
from supple.robots import Robot, robot_named

__all__ = ["validate", "validate_seed"]

# Widths of the agreed observations that do not depend on the robot.
_BASE_WIDTHS = {"base_pose": 7, "base_twist": 6, "base_acceleration": 3}
_STAMP_TOLERANCE = 0.01
_ROTATION_TOLERANCE = 1e-4
_NORM_TOLERANCE = 0.1


def validate(episode: Episode, where: str) -> None:
    """Refuse an episode that is malformed in any field.

    Args:
        episode: What is checked.
        where: Where it comes from, e.g. a file and a demonstration's name; begins every message.

    Raises:
        DatasetError: Names the field, the index of the first bad sample, what was expected and what was got.
    """
    robot = robot_named(episode.robot)
    if episode.contract.robot != episode.robot:
        raise DatasetError(f"{where}: contract: made for robot {episode.contract.robot!r}, expected {episode.robot!r}")
    if episode.attempt < 0:
        raise DatasetError(f"{where}: attempt: expected an index from 0, got {episode.attempt}")
    n = len(episode.actions) if episode.actions.ndim else 0
    if n == 0:
        raise DatasetError(f"{where}: actions: expected at least one action, got shape {episode.actions.shape}")
    for name in ("actions", "executed"):
        _array(getattr(episode, name), (n, episode.contract.size), f"{where}: {name}", episode.contract.names)
    if episode.initial.state.ndim != 1 or episode.initial.state.size == 0:
        raise DatasetError(f"{where}: initial/state: expected shape (S,), got {episode.initial.state.shape}")
    _array(episode.initial.state, episode.initial.state.shape, f"{where}: initial/state")
    _array(episode.states, (n + 1, episode.initial.state.size), f"{where}: states")
    _stamps(episode.stamps_ns, n + 1, episode.contract.control_interval, f"{where}: stamps_ns")
    _observations(episode.observations, n + 1, robot, where)
    _effectors(episode, robot, where)
    for name, rows in (("effector_poses", n + 1), ("target_poses", n), ("object_poses", n + 1)):
        poses: Mapping[str, NDArray[np.float64]] = getattr(episode, name)
        _names(poses, f"{where}: {name}")
        for key, matrices in poses.items():
            _poses(matrices, rows, f"{where}: {name}/{key}")
    _contacts(episode.contacts, n + 1, where)
    for name in ("start_signals", "signals"):
        signals: Mapping[str, NDArray[np.bool_]] = getattr(episode, name)
        _names(signals, f"{where}: {name}")
        for key, signal in signals.items():
            if signal.shape != (n,):
                raise DatasetError(f"{where}: {name}/{key}: expected shape ({n},), got {signal.shape}")
    _names(episode.initial.objects, f"{where}: initial/objects")
    for key, pose in episode.initial.objects.items():
        _array(pose, (7,), f"{where}: initial/objects/{key}")
        _quaternions(pose[np.newaxis, 3:], f"{where}: initial/objects/{key}")
    for name in ("materials", "goal"):
        _numbers(getattr(episode.initial, name), f"{where}: initial/{name}")
    _numbers(episode.outcome.measures, f"{where}: outcome/measures")
    _numbers(episode.soundness, f"{where}: soundness")


def validate_seed(seed: Seed, where: str) -> None:
    """Refuse a seed that nothing can be generated from.

    Args:
        seed: What is checked.
        where: Where it comes from; begins every message.

    Raises:
        SeedError: The episode is malformed, there is no skill, an effector or object is unknown, a segment lies outside
            the episode, or two skills of one effector overlap.
    """
    try:
        validate(seed.episode, where)
    except DatasetError as error:
        raise SeedError(str(error)) from error
    n = seed.episode.length
    if not seed.skills:
        raise SeedError(
            f"{where}: no skill is marked in this seed, so nothing can be generated from it; mark skills while "
            "recording or with 'supple annotate'"
        )
    effectors = robot_named(seed.episode.robot).effectors
    for skill in seed.skills:
        if skill.effector not in effectors:
            raise SeedError(
                f"{where}: skill {skill.name!r}: unknown effector {skill.effector!r} "
                f"(available: {', '.join(sorted(effectors))})"
            )
        if skill.reference not in seed.episode.object_poses:
            known = ", ".join(sorted(seed.episode.object_poses)) or "none"
            raise SeedError(f"{where}: skill {skill.name!r}: unknown object {skill.reference!r} (available: {known})")
        if skill.effector not in seed.episode.effector_poses:
            raise SeedError(f"{where}: skill {skill.name!r}: no poses of effector {skill.effector!r} were recorded")
        if not 0 <= skill.start < skill.end <= n:
            raise SeedError(
                f"{where}: skill {skill.name!r}: expected 0 <= start < end <= {n}, got start {skill.start}, "
                f"end {skill.end}"
            )
    for effector in effectors:
        ordered = sorted((s for s in seed.skills if s.effector == effector), key=lambda s: (s.start, s.end))
        for first, second in pairwise(ordered):
            if second.start < first.end:
                raise SeedError(
                    f"{where}: skills {first.name!r} ({first.start} to {first.end}) and {second.name!r} "
                    f"({second.start} to {second.end}) of effector {effector!r} overlap"
                )
    for mark in seed.marks:
        if not 0 <= mark.step <= n:
            raise SeedError(f"{where}: mark {mark.label!r}: expected a step from 0 to {n}, got {mark.step}")


def _array(array: NDArray[Any], shape: tuple[int, ...], where: str, columns: tuple[str, ...] = ()) -> None:
    if array.shape != shape:
        raise DatasetError(f"{where}: expected shape {shape}, got {array.shape}")
    finite = np.isfinite(array)
    if finite.all():
        return
    index = tuple(int(i) for i in np.argwhere(~finite)[0])
    column = f" ({columns[index[1]]})" if columns and len(index) == 2 else ""
    raise DatasetError(
        f"{where}: sample {index[0]}, index {list(index)}{column}: expected a finite number, got {array[index]}"
    )


def _stamps(stamps: NDArray[np.int64], rows: int, interval: float, where: str) -> None:
    _array(stamps, (rows,), where)
    steps = np.diff(stamps)
    if (steps <= 0).any():
        i = int(np.argmax(steps <= 0)) + 1
        raise DatasetError(
            f"{where}: sample {i}: stamps must increase strictly, got {stamps[i]} ns after {stamps[i - 1]} ns"
        )
    mean = float(stamps[-1] - stamps[0]) * 1e-9 / (rows - 1)
    if abs(mean - interval) > _STAMP_TOLERANCE * interval:
        worst = int(np.argmax(np.abs(steps * 1e-9 - interval))) + 1
        raise DatasetError(
            f"{where}: the contract says {interval:.6g} s between actions ({1.0 / interval:.4g} Hz), the stamps say "
            f"{mean:.6g} s on average ({1.0 / mean:.4g} Hz); largest departure at sample {worst}"
        )


def _observations(observations: Mapping[str, NDArray[Any]], rows: int, robot: Robot, where: str) -> None:
    _names(observations, f"{where}: observations")
    joints = len(robot.joints)
    widths = {"q": joints, "v": joints, "effort": joints} | _BASE_WIDTHS
    if missing := sorted(widths.keys() - observations.keys()):
        raise DatasetError(
            f"{where}: observations: missing {', '.join(missing)}; got {', '.join(sorted(observations))}"
        )
    for key, array in observations.items():
        if key in widths:
            columns = robot.joints.names if key in ("q", "v", "effort") else ()
            _array(array, (rows, widths[key]), f"{where}: observations/{key}", columns)
        elif array.ndim == 0 or len(array) != rows:
            raise DatasetError(f"{where}: observations/{key}: expected {rows} samples, got shape {array.shape}")
        else:
            _array(array, array.shape, f"{where}: observations/{key}")
    _quaternions(observations["base_pose"][:, 3:], f"{where}: observations/base_pose")


def _quaternions(values: NDArray[Any], where: str) -> None:
    # Slightly off the norm is how sensors and integrators are; far off it is no rotation but another layout or a blank.
    norms = np.linalg.norm(values, axis=1)
    bad = ~(np.abs(norms - 1.0) <= _NORM_TOLERANCE)
    if bad.any():
        i = int(np.argmax(bad))
        raise DatasetError(
            f"{where}: sample {i}: expected a unit quaternion (x, y, z, w), got {values[i].tolist()} "
            f"of norm {norms[i]:.3g}"
        )


def _poses(matrices: NDArray[np.float64], rows: int, where: str) -> None:
    _array(matrices, (rows, 4, 4), where)
    rotations = matrices[:, :3, :3]
    departure = np.abs(rotations @ rotations.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
    bad = (departure > _ROTATION_TOLERANCE) | (np.linalg.det(rotations) < 0.0)
    if bad.any():
        i = int(np.argmax(bad))
        raise DatasetError(
            f"{where}: sample {i}: the upper left 3x3 block is no rotation (departure {departure[i]:.3g} from "
            f"orthonormal, determinant {np.linalg.det(rotations[i]):.3g})"
        )
    bad = np.abs(matrices[:, 3] - np.array([0.0, 0.0, 0.0, 1.0])).max(axis=1) > _ROTATION_TOLERANCE
    if bad.any():
        i = int(np.argmax(bad))
        raise DatasetError(f"{where}: sample {i}: expected the last row [0, 0, 0, 1], got {matrices[i, 3].tolist()}")


def _effectors(episode: Episode, robot: Robot, where: str) -> None:
    for name in ("effector_poses", "target_poses"):
        if unknown := sorted(set(getattr(episode, name)) - set(robot.effectors)):
            known = ", ".join(sorted(robot.effectors))
            raise DatasetError(
                f"{where}: {name}: unknown effector {unknown[0]!r} of robot {robot.name!r} (available: {known})"
            )
    if lonely := sorted(set(episode.target_poses) - set(episode.effector_poses)):
        raise DatasetError(f"{where}: target_poses/{lonely[0]}: there are no effector_poses of that effector")


def _contacts(contacts: Mapping[str, NDArray[np.float64]], rows: int, where: str) -> None:
    for key, forces in contacts.items():
        parts = key.split("/")
        if len(parts) != 2 or not all(parts) or any(part in (".", "..") for part in parts):
            raise DatasetError(f"{where}: contacts: expected a pair name 'a/b', got {key!r}")
        _array(forces, (rows, 2), f"{where}: contacts/{key}")


def _names(names: Iterable[str], where: str) -> None:
    for name in names:
        if not name or "/" in name or "\0" in name or name == ".":
            raise DatasetError(f"{where}: expected a name without '/', got {name!r}")


def _numbers(values: Mapping[str, float | bool], where: str) -> None:
    for key, value in values.items():
        if not math.isfinite(value):
            raise DatasetError(f"{where}/{key}: expected a finite number, got {value}")
