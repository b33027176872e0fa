# SPDX-License-Identifier: Apache-2.0
"""Seed demonstrations on disk: one small HDF5 file each, readable by MimicGen's tools, with its skills beside it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import h5py

from supple.episodes.atomic import write_atomically
from supple.episodes.episode import Mark, Seed, SkillSegment
from supple.episodes.hdf5_store import FORMAT_VERSION, opened, read_episode, read_json, write_episode, write_json
from supple.episodes.validation import validate, validate_seed
from supple.errors import DatasetError, SeedError, SuppleError, disk_is_full

__all__ = ["load_seed", "save_seed"]

_ADVICE = "record it again or restore it from version control"


def save_seed(path: Path | str, seed: Seed) -> Path:
    """Write a seed file, whole or not at all.

    Args:
        path: Where to; its folder is made if needed, an older file is replaced.
        seed: The demonstration. Skills may still be missing (they can be annotated later), but not malformed.

    Returns:
        The path.

    Raises:
        SeedError: The seed is malformed or the disk is full; an older file stays as it was.
    """
    path = Path(path)
    if seed.skills:
        validate_seed(seed, str(path))
    else:
        # A recording without marks is still worth keeping: its skills can be annotated afterwards.
        _validate_unmarked(seed, path)
    with h5py.File("seed", "w", driver="core", backing_store=False) as file:
        file.attrs["supple_format"] = FORMAT_VERSION
        data = file.create_group("data")
        data.attrs["total"] = seed.episode.length
        write_episode(data.create_group("demo_0"), seed.episode)
        meta = {
            "skills": [asdict(skill) for skill in seed.skills],
            "marks": [asdict(mark) for mark in seed.marks],
            "operator": seed.operator,
            "notes": seed.notes,
        }
        write_json(file.create_group("seed"), "meta", meta)
        file.flush()
        image = bytes(file.id.get_file_image())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, image)
    except OSError as error:
        reason = "disk full" if disk_is_full(error) else error.strerror
        raise SeedError(f"{path}: {reason}: the seed ({len(image)} bytes) was not written") from error
    return path


def load_seed(path: Path | str, robot: str | None = None, *, require_skills: bool = True) -> Seed:
    """Read and validate a seed file.

    Args:
        path: The file.
        robot: Name of the robot that it must be for; any if absent.
        require_skills: Whether a seed without skills is refused; annotation reads such a seed.

    Raises:
        SeedError: Missing, truncated, not HDF5, no seed, another robot, no skills, or malformed; one clear line.
    """
    path = Path(path)
    try:
        with opened(path, _ADVICE) as file:
            if "data/demo_0" not in file or "seed/meta" not in file:
                raise SeedError(f"{path}: an HDF5 file, but no seed demonstration: it lacks data/demo_0 or seed/meta")
            episode = read_episode(file["data/demo_0"], str(path))
            meta = read_json(file["seed"], "meta", str(path))
        seed = Seed(
            episode,
            tuple(SkillSegment(**skill) for skill in meta["skills"]),
            tuple(Mark(**mark) for mark in meta["marks"]),
            meta["operator"],
            meta["notes"],
        )
    except SeedError:
        raise
    except SuppleError as error:
        raise SeedError(str(error)) from error
    except (KeyError, TypeError) as error:
        raise SeedError(f"{path}: its skills or marks cannot be understood: {error}") from error
    if robot is not None and episode.robot != robot:
        raise SeedError(f"{path}: this seed is for robot {episode.robot!r}, expected {robot!r}")
    if seed.skills or require_skills:
        validate_seed(seed, str(path))
    return seed


def _validate_unmarked(seed: Seed, path: Path) -> None:
    try:
        validate(seed.episode, str(path))
    except DatasetError as error:
        raise SeedError(str(error)) from error
