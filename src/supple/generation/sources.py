# SPDX-License-Identifier: Apache-2.0
"""What generation takes from a seed: each skill's hand path relative to its object, with fingers and posture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.control.standing import WALKING_HEIGHT_TOLERANCE
from supple.episodes import Episode, Seed, SkillSegment
from supple.errors import SeedError
from supple.generation.constraints import check_segments
from supple.generation.walking_skill import Walk, walk_shown
from supple.geometry import pose_from_quaternion
from supple.robots import ActionKind, Robot
from supple.robots.g1 import UPPER_BODY_GROUPS
from supple.tasks import Skill, Task

__all__ = ["SkillSource", "Squat", "skill_sources"]

Array = NDArray[np.float64]

# A base this far below walking height in [m] is on its way down.
_DOWN = 0.03


@dataclass(frozen=True)
class Squat:
    """How the base moved in a skill that was not shown at walking height.

    Attributes:
        heights: Commanded height of the base per step in [m], shape (steps,).
        T_stand_bases: Where the base was, one per step, relative to where it stood before it went down.
    """

    heights: Array
    T_stand_bases: tuple[pin.SE3, ...]


@dataclass(frozen=True)
class SkillSource:
    """One demonstrated skill.

    Attributes:
        skill: The skill.
        T_reference_targets: Hand targets relative to the object's pose at the skill's start, one per step.
        T_reference_base: Where the robot stood, relative to the object: base pose at the skill's start, or before the
            base went down for it.
        postures: Commanded joint positions per step in [rad], shape (steps, n); hands outside the skill included, legs
            as measured.
        T_world_reference: Pose of the object at the skill's start.
        T_reference_hand: Measured pose of the hand at the skill's start, relative to the object.
        squat: How the base moved; none if it stayed at walking height.
        walk: How the robot walked; none if it stood.
    """

    skill: Skill
    T_reference_targets: tuple[pin.SE3, ...]
    T_reference_base: pin.SE3
    postures: Array
    T_world_reference: pin.SE3
    T_reference_hand: pin.SE3
    squat: Squat | None = None
    walk: Walk | None = None

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


def _squat(episode: Episode, segment: SkillSegment, robot: Robot) -> tuple[int, Squat | None]:
    """Return the step at which the robot stood where a skill is done, and how its base moved in the skill."""
    heights = episode.actions[:, robot.contract.of_kind(ActionKind.BASE_HEIGHT)[0]]
    shown = slice(segment.start, segment.end)
    if np.all(np.abs(heights[shown] - robot.standing_height) <= WALKING_HEIGHT_TOLERANCE):
        return segment.start, None
    poses = episode.observations["base_pose"]
    up = np.flatnonzero(poses[: segment.start + 1, 2] > robot.standing_height - _DOWN)
    if up.size == 0:
        raise SeedError(
            f"skill {segment.name!r} is shown by a robot that never stood before: expected one that goes down from "
            f"walking height ({robot.standing_height:.3f} m) in the recording"
        )
    stood = int(up[-1])
    to_stand = _base(episode, stood).inverse()
    bases = tuple(to_stand * _base(episode, step) for step in range(segment.start, segment.end))
    return stood, Squat(np.array(heights[shown], dtype=np.float64), bases)


def _base(episode: Episode, step: int) -> pin.SE3:
    base = np.array(episode.observations["base_pose"][step], dtype=np.float64)
    return pose_from_quaternion(base[:3], base[3:], "seed base pose")


def skill_sources(task: Task, seed: Seed, robot: Robot) -> list[SkillSource]:
    """Return the source of each of a task's skills, in the task's order.

    Raises:
        SeedError: The seed is of another task or robot, lacks a skill, or shows skills that overlap on one hand, come
            in another order, or are coordinated and last unequally long; or a squat begins before the recording.
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
        T_world_reference = _pose(episode.object_poses[skill.reference][start])
        to_reference = T_world_reference.inverse()
        stood, squat = _squat(episode, segment, robot)
        sources.append(
            SkillSource(
                skill=skill,
                T_reference_targets=tuple(
                    to_reference * _pose(matrix) for matrix in episode.target_poses[skill.effector][start : segment.end]
                ),
                T_reference_base=to_reference * _base(episode, stood),
                postures=postures[start : segment.end],
                T_world_reference=T_world_reference,
                T_reference_hand=to_reference * _pose(episode.effector_poses[skill.effector][start]),
                squat=squat,
                walk=walk_shown(
                    [to_reference * _base(episode, step) for step in range(start, segment.end)],
                    postures[start : segment.end],
                    robot,
                    robot.effector(skill.effector).frame,
                ),
            )
        )
    return sources
