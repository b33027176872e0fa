# SPDX-License-Identifier: Apache-2.0
"""The demonstrations that a dataset is made from: seeds, and files in MimicGen's format, datasets among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from supple.episodes import Episode, Seed, SkillSegment, load_seed
from supple.episodes.hdf5_store import opened
from supple.episodes.mimicgen_file import read_mimicgen_file
from supple.errors import DatasetError, SeedError
from supple.generation.sources import SkillSource, skill_sources
from supple.tasks import Task

__all__ = ["Demonstration", "load_demonstrations", "segments_of"]

Bounds = Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class Demonstration:
    """One demonstration of a task.

    Attributes:
        name: Its name, stored with what is made from it.
        task: The task.
        seed: What was shown.
    """

    name: str
    task: Task
    seed: Seed

    @cached_property
    def sources(self) -> list[SkillSource]:
        """The source of each of the task's skills, in the task's order.

        Raises:
            SeedError: The demonstration does not fit the task.
        """
        return skill_sources(self.task, self.seed, self.task.robot)

    def bounds(self) -> dict[int, tuple[int, int]]:
        """Return where each of the task's skills (by index) starts and ends, in steps, end exclusive."""
        shown = {(s.name, s.effector, s.reference): (s.start, s.end) for s in self.seed.skills}
        return {i: shown[s.name, s.effector, s.reference] for i, s in enumerate(self.task.skills)}

    def sources_within(self, bounds: Bounds) -> list[SkillSource]:
        """Return the same as :attr:`sources`, for skills (by index) that start and end elsewhere."""
        if bounds == self.bounds():
            return self.sources
        skills = tuple(
            SkillSegment(skill.name, skill.effector, skill.reference, *bounds[i])
            for i, skill in enumerate(self.task.skills)
        )
        return skill_sources(self.task, replace(self.seed, skills=skills), self.task.robot)


def load_demonstrations(task: Task, files: Sequence[Path]) -> list[Demonstration]:
    """Read demonstrations from files, in order.

    Args:
        task: What they are of.
        files: Seeds, or files in MimicGen's format, of which every demonstration is taken.

    Raises:
        SeedError: A file cannot be read, shows something else, does not say where skills end, or goes by the same name
            as another.
    """
    return [
        Demonstration(name, task, seed)
        for path, file_name in zip(files, _names(files), strict=True)
        for name, seed in _seeds(task, path, file_name)
    ]


def segments_of(task: Task, episode: Episode) -> tuple[SkillSegment, ...]:
    """Return where an episode shows each of a task's skills, as its signals say.

    A skill ends where its signal of that name, or of its name and effector, becomes true; the last one of a hand
    otherwise with the episode. It starts where its start signal becomes true, otherwise where the one before it, of the
    same hand, ends.

    Raises:
        SeedError: A signal is missing or never becomes true, or a skill ends before it starts.
    """
    last = {skill.effector: i for i, skill in enumerate(task.skills)}
    ends: dict[str, int] = {}
    found = []
    for i, skill in enumerate(task.skills):
        before = ends.get(skill.effector, 0)
        start = _rise(episode.start_signals, skill.signal, skill.name)
        end = _rise(episode.signals, skill.signal, skill.name)
        if end is None and last[skill.effector] == i:
            end = episode.length
        if end is None:
            raise SeedError(
                f"skill {skill.signal}: no signal of that name, or {skill.name!r}, becomes true to say where it ends "
                f"(signals: {', '.join(sorted(episode.signals)) or 'none'})"
            )
        start = before if start is None else start
        if not before <= start < end:
            raise SeedError(
                f"skill {skill.signal}: its signals say that it lasts from step {start} to {end}, after {before}"
            )
        found.append(SkillSegment(skill.name, skill.effector, skill.reference, start, end))
        ends[skill.effector] = end
    return tuple(found)


def _rise(signals: Mapping[str, np.ndarray], *names: str) -> int | None:
    """Return the first step at which a signal is true; None if it never is, or is not there."""
    signal = next((signals[name] for name in names if name in signals), None)
    return None if signal is None or not signal.any() else int(np.argmax(signal))


def _seeds(task: Task, path: Path, name: str) -> Iterator[tuple[str, Seed]]:
    try:
        with opened(path, "record it again or restore it from version control") as file:
            is_seed = "seed" in file or "data" not in file
        if is_seed:
            yield name, load_seed(path)
            return
        effectors = sorted({skill.effector for skill in task.skills})
        effector = effectors[0] if len(effectors) == 1 else None
        episodes = read_mimicgen_file(path, task.name, task.robot, effector)
    except DatasetError as error:
        raise SeedError(str(error)) from error
    for demo, episode in episodes.items():
        try:
            yield f"{name}:{demo}", Seed(episode, segments_of(task, episode))
        except SeedError as error:
            raise SeedError(f"{path}: {demo}: {error}") from error


def _names(files: Sequence[Path]) -> list[str]:
    """Return a name for each file: its own, or with its folder where two would be the same."""
    names = [path.name for path in files]
    longer = [f"{path.parent.name}/{path.name}" for path in files]
    names = [long if names.count(name) > 1 else name for name, long in zip(names, longer, strict=True)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SeedError(
            f"two demonstrations are called {twice[0]!r}; rename one, since episodes name where they come from"
        )
    return names
