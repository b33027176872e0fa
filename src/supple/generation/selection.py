# SPDX-License-Identifier: Apache-2.0
"""Which demonstration each skill of an attempt is taken from, and where it ends (MimicGen's source selection)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pinocchio as pin

from supple.errors import SeedError, SettingError
from supple.generation.constraints import compile_groups
from supple.generation.demonstrations import Demonstration
from supple.generation.settings import GenerationSettings
from supple.generation.sources import SkillSource
from supple.geometry import pose_error
from supple.tasks import Task

__all__ = ["SourceSelector"]

Pose = Callable[[str], pin.SE3]
Bounds = dict[int, tuple[int, int]]


class SourceSelector:
    """Choose demonstrations skill by skill; skills that are coordinated are taken from the same one.

    With one demonstration, and skills that end where they were shown to end, no random number is drawn.

    Args:
        task: The task.
        demonstrations: What to choose from.
        settings: How to choose.

    Attributes:
        used: Name of the demonstration that each skill (by signal) of this attempt was taken from so far.

    Raises:
        SeedError: There is no demonstration, one does not fit the task, or a skill might end before it starts, after
            the recording, or after the next one of its hand.
        SettingError: Settings of an unknown skill, or of coordinated ones that would end differently.
        TaskError: The task's constraints contradict each other.
    """

    def __init__(self, task: Task, demonstrations: Sequence[Demonstration], settings: GenerationSettings) -> None:
        if not demonstrations:
            raise SeedError(f"no demonstration of {task.name}")
        self._demonstrations, self._settings = list(demonstrations), settings
        settings.resolved(task.skills)
        self._skills = [settings.of_skill(skill) for skill in task.skills]
        self._coordination = task.coordination
        groups = compile_groups(task.skills, task.precedence, task.coordination)
        self._order = [unit for members in groups for unit in self._units(members)]
        self._offsets = [0] * len(self._skills)
        self._sources: dict[int, list[SkillSource]] = {}
        self.used: dict[str, str] = {}
        self._check()

    def begin(self, rng: np.random.Generator) -> None:
        """Forget the attempt before and draw where each skill ends."""
        self.used, self._sources = {}, {}
        for unit in self._order:
            low, high = self._skills[unit[0]].term_offset_range
            offset = int(rng.integers(low, high + 1)) if high > low else low
            for i in unit:
                self._offsets[i] = offset

    def choose(
        self, members: Sequence[int], object_pose: Pose, hand_pose: Pose, rng: np.random.Generator
    ) -> list[SkillSource]:
        """Return the sources of a group of skills, in the order of the members.

        Args:
            members: The skills, by index.
            object_pose: Asked for the world pose of an object, by name.
            hand_pose: Asked for the world pose of an effector's frame, by the effector's name.
            rng: Random numbers of this attempt.
        """
        chosen: dict[int, SkillSource] = {}
        for unit in self._units(members):
            which = self._choose(unit, object_pose, hand_pose, rng)
            for i in unit:
                chosen[i] = self._sources_of(which)[i]
                self.used[self._skills[i].signal] = self._demonstrations[which].name
        return [chosen[i] for i in members]

    def _choose(self, unit: Sequence[int], object_pose: Pose, hand_pose: Pose, rng: np.random.Generator) -> int:
        count = len(self._demonstrations)
        if count == 1:
            return 0
        if self._settings.selection == "random":
            return int(rng.integers(count))

        def distance(source: SkillSource) -> float:
            skill = source.skill
            now = object_pose(skill.reference)
            if self._settings.selection == "nearest_object":
                return sum(pose_error(source.T_world_reference, now))
            return sum(pose_error(now * source.T_reference_hand, hand_pose(skill.effector)))

        # As published, 1 m counts as much as 1 rad.
        distances = [sum(distance(self._sources_of(k)[i]) for i in unit) for k in range(count)]
        nearest = np.argsort(distances, kind="stable")[: self._settings.selection_top]
        return int(nearest[rng.integers(len(nearest))])

    def _sources_of(self, which: int) -> list[SkillSource]:
        if which not in self._sources:
            demonstration = self._demonstrations[which]
            sources = demonstration.sources_within(self._bounds(demonstration, self._offsets))
            self._sources[which] = [replace(s, skill=self._settings.of_skill(s.skill)) for s in sources]
        return self._sources[which]

    def _units(self, members: Sequence[int]) -> Iterator[list[int]]:
        """Yield the members that start together, directly or by way of others."""
        left = list(members)
        while left:
            unit = [left.pop(0)]
            for i in unit:
                partners = {b if a == i else a for a, b in self._coordination if i in (a, b)}
                unit += [j for j in left if j in partners]
                left = [j for j in left if j not in partners]
            yield sorted(unit)

    def _bounds(self, demonstration: Demonstration, offsets: Sequence[int]) -> Bounds:
        """Return where skills start and end; one goes on where the one before it, of the same hand, ends later."""
        bounds, ends = demonstration.bounds(), dict[str, int]()
        for unit in self._order:
            hands = {i: self._skills[i].effector for i in unit}
            late = max(0, *(ends.get(hand, 0) - bounds[i][0] for i, hand in hands.items()))
            for i, hand in hands.items():
                start, end = bounds[i]
                bounds[i] = start + late, end + offsets[i]
                ends[hand] = bounds[i][1]
        return bounds

    def _check(self) -> None:
        for unit in self._order:
            if len({self._skills[i].term_offset_range for i in unit}) > 1:
                names = ", ".join(f"{self._skills[i].signal} {self._skills[i].term_offset_range}" for i in unit)
                raise SettingError(f"skills that are coordinated must end alike, got {names}")
        for demonstration in self._demonstrations:
            # What does not fit is found out now, not in the middle of an attempt.
            _ = demonstration.sources
            for i, skill in enumerate(self._skills):
                # Worst for a skill: it ends as early as may be and all others as late as may be; or it ends latest.
                worst = [other.term_offset_range[1] for other in self._skills]
                latest = self._bounds(demonstration, worst)[i][1]
                for j in next(unit for unit in self._order if i in unit):
                    worst[j] = skill.term_offset_range[0]
                start, end = self._bounds(demonstration, worst)[i]
                steps = demonstration.seed.episode.length
                if end <= start or latest > steps:
                    raise SeedError(
                        f"{demonstration.name}: with term_offset_range {skill.term_offset_range} skill {skill.signal} "
                        f"might last from step {start} to {end}, or end at {latest} of {steps}"
                    )
