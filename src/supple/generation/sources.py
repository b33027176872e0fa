# SPDX-License-Identifier: Apache-2.0
"""What generation takes from a seed: each skill's hand path relative to its object, with fingers and posture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.episodes import Seed, SkillSegment
from supple.errors import SeedError
from supple.generation.constraints import check_segments
from supple.geometry import pose_from_quaternion
from supple.robots import Robot
from supple.robots.g1 import UPPER_BODY_GROUPS
from supple.tasks import Skill, Task

__all__ = ["SkillSource", "skill_sources"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SkillSource:
    """One demonstrated skill.

    Attributes:
        skill: The skill.
        T_reference_targets: Hand targets relative to the object's pose at the skill's start, one per step.
        T_reference_base: Base pose at the skill's start, relative to the object.
        postures: Commanded joint positions per step in [rad], shape (steps, n); hands outside the skill included.
    """

    skill: Skill
    T_reference_targets: tuple[pin.SE3, ...]
    T_reference_base: pin.SE3
    postures: Array

    @property
    def steps(self) -> int:
        """Number of control steps."""
        return len(self.T_reference_targets)

    def adapted(self, T_world_reference: pin.SE3) -> list[pin.SE3]:
        """Return the hand's target poses for another object pose: ``a' = s' s0^-1 a``, all in the world frame."""
        return [T_world_reference * target for target in self.T_reference_targets]


def _pose(matrix: Array) -> pin.SE3:
    return pin.SE3(matrix[:3, :3], matrix[:3, 3])


def _segment(seed: Seed, skill: Skill) -> SkillSegment:
    """Return where a skill is shown."""
    wanted = (skill.name, skill.effector, skill.reference)
    matches = [s for s in seed.skills if (s.name, s.effector, s.reference) == wanted]
    if len(matches) != 1:
        shown = ", ".join(f"{s.name} ({s.effector}, {s.reference})" for s in seed.skills)
        raise SeedError(
            f"skill {skill.name!r} of {skill.effector} on {skill.reference!r} is in the seed {len(matches)} times, "
            f"expected once; the seed shows: {shown}"
        )
    return matches[0]


def skill_sources(task: Task, seed: Seed, robot: Robot) -> list[SkillSource]:
    """Return the source of each of a task's skills, in the task's order.

    Raises:
        SeedError: The seed is of another task or robot, lacks a skill, or shows skills that overlap on one hand, come
            in another order, or are coordinated and last unequally long.
    """
    episode = seed.episode
    if episode.task != task.name:
        raise SeedError(f"this seed shows {episode.task!r}, expected {task.name!r}")
    if episode.robot != robot.name:
        raise SeedError(f"this seed was recorded with robot {episode.robot!r}, expected {robot.name!r}")
    if differences := robot.contract.differences(episode.contract):
        raise SeedError("the seed's actions mean something else: " + "; ".join(differences))
    upper = robot.joints.group(*UPPER_BODY_GROUPS)
    postures = np.array(episode.observations["q"][: episode.length], dtype=np.float64)
    postures[:, upper] = episode.actions[:, : upper.size]
    segments = [_segment(seed, skill) for skill in task.skills]
    check_segments(segments, task.coordination)
    sources: list[SkillSource] = []
    for skill, segment in zip(task.skills, segments, strict=True):
        if skill.effector not in episode.target_poses:
            raise SeedError(f"the seed holds no target poses of {skill.effector}")
        start = segment.start
        to_reference = _pose(episode.object_poses[skill.reference][start]).inverse()
        base = np.array(episode.observations["base_pose"][start], dtype=np.float64)
        sources.append(
            SkillSource(
                skill=skill,
                T_reference_targets=tuple(
                    to_reference * _pose(matrix) for matrix in episode.target_poses[skill.effector][start : segment.end]
                ),
                T_reference_base=to_reference * pose_from_quaternion(base[:3], base[3:], "seed base pose"),
                postures=postures[start : segment.end],
            )
        )
    return sources
