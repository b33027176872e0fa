# SPDX-License-Identifier: Apache-2.0
"""One take of a demonstration: states, actions and marks while they happen, and the seed that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple import __version__
from supple.episodes import InitialState, Mark, Outcome, Seed, SkillSegment, save_seed
from supple.episodes.atomic import free_path
from supple.episodes.recorder import EpisodeRecorder
from supple.episodes.versions import current_versions
from supple.errors import SeedError, TeleopError
from supple.robots import RobotState
from supple.tasks import Task
from supple.teleop.device import END_LABEL

__all__ = ["Take", "mark_labels", "partial_path", "save_take", "skills_from_marks"]

Array = NDArray[np.float64]

# What is shorter than a second was a slip of a key.
_SHORTEST_PARTIAL = 50


def mark_labels(task: Task) -> tuple[str, ...]:
    """Return the names of a task's skills in the order in which they are marked."""
    return tuple(dict.fromkeys(skill.name for skill in task.skills))


def skills_from_marks(task: Task, marks: Sequence[Mark], length: int) -> tuple[SkillSegment, ...]:
    """Return the skills that an operator's marks delimit.

    A mark with the name of a skill begins it for every hand that has it; the next mark (or the end) finishes it.

    Args:
        task: The task, which says which hand does which skill on which object.
        marks: Marks in order of time.
        length: Number of actions of the demonstration.

    Raises:
        SeedError: A mark that is no skill of the task, an end before any skill, a skill marked twice or never, or one
            without length.
    """
    names = mark_labels(task)
    for mark in marks:
        if mark.label not in (*names, END_LABEL):
            known = ", ".join((*names, END_LABEL))
            raise SeedError(f"mark {mark.label!r} at step {mark.step} is no skill of {task.name} (available: {known})")
    segments = []
    for skill in task.skills:
        begun = [i for i, mark in enumerate(marks) if mark.label == skill.name]
        if len(begun) != 1:
            how = "never" if not begun else f"{len(begun)} times"
            raise SeedError(f"skill {skill.name!r} of {task.name} was marked {how}, expected once")
        start = marks[begun[0]].step
        end = marks[begun[0] + 1].step if begun[0] + 1 < len(marks) else length
        if end <= start:
            where = f"{skill.name!r} of {skill.effector}"
            raise SeedError(f"skill {where} has no length: marked from step {start} to {end}")
        segments.append(SkillSegment(skill.name, skill.effector, skill.reference, start, end))
    if marks and marks[0].label == END_LABEL:
        raise SeedError(f"mark {END_LABEL!r} at step {marks[0].step} comes before any skill; it would end nothing")
    return tuple(segments)


class Take:
    """Collect one demonstration: ``observe`` a state, ``act`` in it, ``mark``, and so on; then ``finish``.

    Args:
        task: What is demonstrated.
        initial: What a reset needs to begin again.
        operator: Who demonstrates, e.g. a device's name.
        source: Where it is recorded, stored with the notes, e.g. ``"in simulation"``.

    Attributes:
        marks: What was marked so far.
        complete: Whether the last thing recorded is a state, so that it can be finished.
    """

    def __init__(self, task: Task, initial: InitialState, operator: str, source: str) -> None:
        self._task = task
        self._operator = operator
        self._source = source
        self._recorder = EpisodeRecorder(task.robot, initial)
        self.marks: list[Mark] = []
        self.complete = False

    @property
    def steps(self) -> int:
        """Number of actions so far."""
        return self._recorder.steps

    @property
    def duration(self) -> float:
        """Time so far in [s]."""
        return self.steps * self._task.robot.contract.control_interval

    @property
    def worth_keeping(self) -> bool:
        """Whether a take that was cut off is long enough to be kept."""
        return self.steps >= _SHORTEST_PARTIAL

    def observe(
        self,
        state: RobotState,
        physics: Array,
        effectors: Mapping[str, pin.SE3],
        objects: Mapping[str, pin.SE3],
        contacts: Mapping[str, tuple[float, float]],
    ) -> None:
        """Record a state; arguments are those of ``EpisodeRecorder.observe``."""
        self._recorder.observe(state, physics, effectors, objects, contacts)
        self.complete = True

    def act(self, action: Array, targets: Mapping[str, pin.SE3]) -> None:
        """Record what is done in the last observed state."""
        self._recorder.act(action, action, targets)
        self.complete = False

    def mark(self, label: str) -> Mark:
        """Mark the present action: what the last ``act`` recorded.

        Raises:
            TeleopError: The label is no skill of the task, was marked already, or nothing is recorded yet.
        """
        names = mark_labels(self._task)
        if label not in (*names, END_LABEL):
            known = ", ".join((*names, END_LABEL))
            raise TeleopError(f"mark {label!r} is no skill of {self._task.name} (available: {known})")
        if label != END_LABEL and any(mark.label == label for mark in self.marks):
            raise TeleopError(f"skill {label!r} was marked already; a second mark needs 'supple annotate'")
        if self.steps == 0:
            raise TeleopError(f"mark {label!r} came before the first recorded action")
        mark = Mark(label, self.steps - 1)
        self.marks.append(mark)
        return mark

    def finish(self, outcome: Outcome) -> tuple[Seed, str]:
        """Return the seed, and why it has no skills (empty if it has).

        A demonstration whose marks do not make up the task's skills is kept without them, to be annotated.

        Args:
            outcome: Verdict on the last state.

        Raises:
            DatasetError: Nothing was recorded, or the state after the last action is missing.
        """
        episode = self._recorder.finish(
            task=self._task.name,
            distribution="nominal",
            attempt=0,
            seed=0,
            source="",
            outcome=outcome,
            versions=current_versions(),
        )
        notes = f"recorded {self._source} with Supple {__version__}"
        skills: tuple[SkillSegment, ...] = ()
        problem = ""
        try:
            skills = skills_from_marks(self._task, self.marks, episode.length)
        except SeedError as error:
            problem = str(error)
            notes += f"; without skills: {problem}"
        return Seed(episode, skills, tuple(self.marks), self._operator, notes), problem


def partial_path(path: Path) -> Path:
    """Return where a take that was cut off is kept: beside the seed, never over it, never over an older one."""
    return free_path(path.with_name(f"{path.stem}.partial{path.suffix}"))


def save_take(path: Path, seed: Seed) -> Path | None:
    """Write a seed file; an older one at that path is moved aside.

    Returns:
        Where the older file is now; None if there was none.

    Raises:
        SeedError: The disk is full or cannot be written; the older file stays where it was.
    """
    if not path.exists():
        save_seed(path, seed)
        return None
    # The new one is on the disk before the old one moves, so that at no moment both could be lost.
    fresh = free_path(path.with_name(f".{path.stem}.new{path.suffix}"))
    save_seed(fresh, seed)
    older = free_path(path.with_name(f"{path.stem}.before{path.suffix}"))
    path.rename(older)
    fresh.rename(path)
    return older
