# SPDX-License-Identifier: Apache-2.0
"""Annotation of seeds: list, set, move and remove marks, derive skills from them, and suggest where marks may go."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from supple.episodes import Episode, Mark, Seed, load_seed, save_seed, validate_seed
from supple.episodes.atomic import write_atomically
from supple.errors import SeedError, disk_is_full
from supple.robots import robot_named
from supple.tasks import Task, task_named
from supple.teleop.device import END_LABEL
from supple.teleop.take import mark_labels, skills_from_marks

__all__ = ["AnnotationRow", "Suggestion", "annotate", "annotation_rows", "edit_marks", "suggest_marks"]

Array = NDArray[np.float64]

_PLACE = re.compile(r"(?P<sign>[+-]?)(?P<number>\d+(\.\d*)?|\.\d+)(?P<unit>s?)")

# What counts as contact in [N], and for how many samples in a row, so that a graze does not.
_CONTACT_FORCE = 2.0
_CONTACT_SAMPLES = 5
# A skill begins where the hand pauses at least this far before the contact in [m]: it is reached through free space.
_CLEARANCE = 0.05
# An object counts as moved after this distance in [m], and as at rest again below this share of its highest speed.
_MOVED = 0.02
_REST_SHARE = 0.15
_ARRIVED_SHARE = 0.95
_SMOOTHING = 7


@dataclass(frozen=True)
class AnnotationRow:
    """One line of what a seed is annotated with.

    Attributes:
        kind: ``"mark"`` or ``"skill"``.
        label: Label of the mark, or name of the skill.
        effector: Hand of a skill; empty for a mark.
        reference: Object of a skill; empty for a mark.
        start: Step of the mark, or first step of the skill.
        end: Step after the skill's last; that of the mark itself for a mark.
        start_time: Time of ``start`` from the beginning in [s].
        end_time: Time of ``end`` from the beginning in [s].
    """

    kind: str
    label: str
    effector: str
    reference: str
    start: int
    end: int
    start_time: float
    end_time: float


@dataclass(frozen=True)
class Suggestion:
    """A mark that a program proposes; whether it is right is for a person to say.

    Attributes:
        label: Label of the mark.
        step: Where it would be.
        reason: What was seen there.
    """

    label: str
    step: int
    reason: str


def _time_of(episode: Episode, step: int) -> float:
    return float(episode.stamps_ns[step] - episode.stamps_ns[0]) * 1e-9


def annotation_rows(seed: Seed) -> list[AnnotationRow]:
    """Return the marks of a seed in order of time, then its skills, for a table."""
    episode = seed.episode
    rows = [
        AnnotationRow("mark", mark.label, "", "", mark.step, mark.step, *[_time_of(episode, mark.step)] * 2)
        for mark in sorted(seed.marks, key=lambda mark: mark.step)
    ]
    for skill in seed.skills:
        times = _time_of(episode, skill.start), _time_of(episode, skill.end)
        rows.append(AnnotationRow("skill", skill.name, skill.effector, skill.reference, skill.start, skill.end, *times))
    return rows


def annotate(
    path: Path | str,
    out: Path | str | None = None,
    set: Mapping[str, int | str] | None = None,  # noqa: A002 - the word of the command line
    remove: Sequence[str] = (),
    suggest: bool = False,
) -> Seed:
    """Edit the marks of a seed file and derive its skills anew; without an edit, just read it.

    Args:
        path: The seed file; one without skills is fine.
        out: Where to write the result; the file itself if absent, whose old content is then kept as ``<name>.bak``.
        set: Marks to add or to move, by label: a step (``640``, ``"640"``), a time from the beginning (``"12.8s"``), or
            a shift of an existing mark (``"+5"``, ``"-0.2s"``). Where a label occurs several times (only ``end``
            does), ``"end:2"`` is the second.
        remove: Marks to remove, by label; done first.
        suggest: Begin from suggested marks (``suggest_marks``) in place of those of the file.

    Returns:
        The seed with its marks and skills.

    Raises:
        SeedError: Unreadable, a label that is no skill of the task, a place outside the episode, or marks that do not
            make up the task's skills; nothing is written then.
    """
    path = Path(path)
    seed = load_seed(path, require_skills=False)
    if not (set or remove or suggest or out):
        return seed
    task = task_named(seed.episode.task)
    marks, notes = seed.marks, seed.notes
    if suggest:
        suggestions = suggest_marks(seed)
        if not suggestions:
            raise SeedError(f"{path}: no mark can be suggested: no hand ever touches or moves an object of {task.name}")
        marks = tuple(Mark(suggestion.label, suggestion.step) for suggestion in suggestions)
        notes = "; ".join(part for part in (notes, "marks suggested from contact and hand speed") if part)
    marks = edit_marks(task, seed.episode, marks, set or {}, remove)
    skills = skills_from_marks(task, marks, seed.episode.length)
    seed = replace(seed, marks=marks, skills=skills, notes=re.sub(r"; without skills: [^;]*", "", notes))
    validate_seed(seed, str(path))
    target = path if out is None else Path(out)
    if target.exists():
        _back_up(target)
    save_seed(target, seed)
    return seed


def _back_up(path: Path) -> None:
    backup = path.with_name(f"{path.name}.bak")
    try:
        write_atomically(backup, path.read_bytes())
    except OSError as error:
        reason = "disk full" if disk_is_full(error) else error.strerror
        raise SeedError(f"{backup}: {reason}: nothing was changed") from error


def edit_marks(
    task: Task,
    episode: Episode,
    marks: Sequence[Mark],
    set: Mapping[str, int | str],  # noqa: A002 - as in annotate
    remove: Sequence[str],
) -> tuple[Mark, ...]:
    """Return marks with some removed and some added or moved, in order of time; arguments are those of ``annotate``.

    Raises:
        SeedError: An unknown label, an ambiguous one, or a place outside the episode.
    """
    result = sorted(marks, key=lambda mark: mark.step)
    # Addresses count within what there was before, whatever the order of the edits.
    doomed = [_find(task, result, address, must_exist=True) for address in remove]
    moved = [(address, place, _find(task, result, address, must_exist=False)) for address, place in set.items()]
    changed = list(result)
    for address, place, old in moved:
        label = address.partition(":")[0]
        mark = Mark(label, _step(episode, address, place, old))
        if old is None:
            changed.append(mark)
        else:
            changed[next(i for i, other in enumerate(changed) if other is old)] = mark
    kept = [mark for mark in changed if not any(mark is gone for gone in doomed)]
    return tuple(sorted(kept, key=lambda mark: mark.step))


def _find(task: Task, marks: Sequence[Mark], address: str, must_exist: bool) -> Mark | None:
    label, _, number = address.partition(":")
    known = (*mark_labels(task), END_LABEL)
    if label not in known:
        raise SeedError(f"mark {label!r} is no skill of {task.name} (available: {', '.join(known)})")
    found = [mark for mark in marks if mark.label == label]
    if number and not (number.isdecimal() and 1 <= int(number) <= len(found) + 1):
        raise SeedError(f"mark {address!r}: there are {len(found)} marks {label!r}; count them from 1")
    if not number and len(found) > 1:
        where = ", ".join(f"{label}:{i} at step {mark.step}" for i, mark in enumerate(found, 1))
        raise SeedError(f"mark {label!r} occurs {len(found)} times; say which ({where})")
    index = int(number) - 1 if number else 0
    if index < len(found):
        return found[index]
    if must_exist:
        have = ", ".join(f"{mark.label} at step {mark.step}" for mark in marks) or "none"
        raise SeedError(f"there is no mark {address!r} to remove (marks: {have})")
    return None


def _step(episode: Episode, address: str, place: int | str, old: Mark | None) -> int:
    match = _PLACE.fullmatch(str(place).strip())
    if match is None or ("." in match["number"] and not match["unit"]):
        raise SeedError(
            f"mark {address!r}: expected a step (640), a time (12.8s) or a shift (+5, -0.2s), got {place!r}"
        )
    number, sign = float(match["number"]), {"-": -1, "+": 1, "": 0}[match["sign"]]
    if sign and old is None:
        raise SeedError(f"mark {address!r}: a shift ({place}) needs a mark that is there already")
    if match["unit"]:
        seconds = number if not sign or old is None else _time_of(episode, old.step) + sign * number
        step = int(np.argmin(np.abs((episode.stamps_ns - episode.stamps_ns[0]) * 1e-9 - seconds)))
        outside = not -1e-9 <= seconds <= episode.duration + 1e-9
    else:
        step = int(number) if not sign or old is None else old.step + sign * int(number)
        outside = not 0 <= step <= episode.length
    if outside:
        whole = f"0 to {episode.length} steps, {episode.duration:.2f} s"
        raise SeedError(f"mark {address!r}: {place} is outside the demonstration ({whole})")
    return step


# -- suggestions -----------------------------------------------------------------------------------------------------


def suggest_marks(seed: Seed) -> list[Suggestion]:
    """Propose where the skills of a seed begin and end; a person should look at them before relying on them.

    A skill's hands touch its object (or, where no contact was recorded, set it in motion). It is proposed to begin
    where its hands last paused clear of the object before that, and to end where the object has come to rest after it
    moved (or, if it never rests, where it is nearly as far as it gets).

    Args:
        seed: The demonstration; its own marks do not count.

    Returns:
        Suggestions in order of time; a skill that cannot be found has none.
    """
    episode, task = seed.episode, task_named(seed.episode.task)
    suggestions: list[Suggestion] = []
    earliest = 0
    for name in mark_labels(task):
        hands = [(skill.effector, skill.reference) for skill in task.skills if skill.name == name]
        onset = _onset(episode, hands, earliest)
        if onset is None:
            continue
        touched, seen = onset
        start, pause = _start(episode, hands, touched, earliest)
        end, rest = _end(episode, hands[0][1], touched)
        suggestions.append(Suggestion(name, start, f"{pause} before {seen} at step {touched}"))
        if end < episode.length:
            suggestions.append(Suggestion(END_LABEL, end, rest))
        earliest = end
    # The mark that begins a skill ends the one before it.
    return [
        suggestion
        for i, suggestion in enumerate(suggestions)
        if suggestion.label != END_LABEL or i + 1 == len(suggestions) or suggestions[i + 1].step > suggestion.step
    ]


def _onset(episode: Episode, hands: Sequence[tuple[str, str]], earliest: int) -> tuple[int, str] | None:
    """Return the first step at which a hand acts on its object, and how that was seen."""
    robot = robot_named(episode.robot)
    found: list[tuple[int, str]] = []
    for effector, reference in hands:
        link = robot.frame(robot.effector(effector).frame).link
        forces = episode.contacts.get(f"{link}/{reference}", episode.contacts.get(f"{reference}/{link}"))
        if forces is not None:
            pressed = (forces[:, 0] > _CONTACT_FORCE).astype(float)
            lasting = np.convolve(pressed, np.ones(_CONTACT_SAMPLES), "valid") >= _CONTACT_SAMPLES
            steps = np.flatnonzero(lasting[earliest:])
            if steps.size:
                found.append((earliest + int(steps[0]), f"{effector} touches {reference}"))
    if not found and (reference := hands[0][1]) in episode.object_poses:
        positions = episode.object_poses[reference][:, :3, 3]
        steps = np.flatnonzero(np.linalg.norm(positions[earliest:] - positions[earliest], axis=1) > _MOVED)
        if steps.size:
            found.append((earliest + int(steps[0]), f"{reference} moves"))
    return min(found, default=None)


def _smooth(values: Array) -> Array:
    padded = np.pad(values, _SMOOTHING // 2, mode="edge")
    return np.convolve(padded, np.full(_SMOOTHING, 1.0 / _SMOOTHING), "valid")


def _speed(positions: Array, episode: Episode) -> Array:
    seconds = (episode.stamps_ns - episode.stamps_ns[0]) * 1e-9
    return _smooth(np.linalg.norm(np.gradient(positions, seconds, axis=0), axis=1))


def _start(episode: Episode, hands: Sequence[tuple[str, str]], touched: int, earliest: int) -> tuple[int, str]:
    offsets = [episode.effector_poses[e][:, :3, 3] - episode.object_poses[r][:, :3, 3] for e, r in hands]
    speed = np.max([_speed(offset, episode) for offset in offsets], axis=0)
    clear = np.min([np.linalg.norm(offset - offset[touched], axis=1) for offset in offsets], axis=0) >= _CLEARANCE
    before = np.arange(earliest, touched)
    inner = before[(before > earliest) & (before < touched - 1)]
    pauses = [i for i in inner if clear[i] and speed[i] <= speed[i - 1] and speed[i] < speed[i + 1]]
    if pauses:
        return int(pauses[-1]), f"hands pause ({speed[pauses[-1]]:.2f} m/s)"
    free = before[clear[before]]
    return (int(free[-1]), "hands are clear") if free.size else (earliest, "nothing but the beginning")


def _end(episode: Episode, reference: str, touched: int) -> tuple[int, str]:
    positions = episode.object_poses[reference][:, :3, 3]
    speed = _speed(positions, episode)
    moved = np.flatnonzero(np.linalg.norm(positions[touched:] - positions[touched], axis=1) > _MOVED)
    if moved.size:
        begun = touched + int(moved[0])
        fastest = begun + int(np.argmax(speed[begun:]))
        resting = np.flatnonzero(speed[fastest:] < _REST_SHARE * speed[fastest])
        if resting.size:
            end = min(fastest + int(resting[0]), episode.length)
            return end, f"{reference} has come to rest after it moved"
        # A box in swaying hands never rests; it has been brought where it was to go all the same.
        far = np.linalg.norm(positions - positions[touched], axis=1)
        end = begun + int(np.argmax(far[begun:] >= _ARRIVED_SHARE * far[begun:].max()))
        return min(end, episode.length), f"{reference} is nearly as far as it gets"
    return episode.length, "the demonstration ends"
