# SPDX-License-Identifier: Apache-2.0
"""From skills, precedence and coordination to groups that run one after the other (HumanoidMimicGen, constraints)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from supple.episodes import SkillSegment
from supple.errors import SeedError, TaskError
from supple.tasks import Skill

__all__ = ["check_segments", "compile_groups"]

Pairs = Iterable[tuple[int, int]]


def compile_groups(skills: Sequence[Skill], precedence: Pairs = (), coordination: Pairs = ()) -> list[list[int]]:
    """Return the groups of skills (by index) in order of execution.

    Skills of one hand keep their order. Skills that are coordinated start together, so whatever must precede one of
    them precedes the other: ``P <- P + {(a, d) | exists b: (b, d) in C, (a, b) in P}``, both ways round and until
    nothing is added, since of three skills that start together only the middle one need be paired with both others.
    A group takes every skill without an unfinished predecessor; coordinated skills have the same predecessors, and so
    the same group.

    Args:
        skills: The skills; their order is the order per hand.
        precedence: Pairs of which the first is finished before the second starts.
        coordination: Pairs that start together.

    Raises:
        TaskError: An index that is no skill, two skills of one hand that are to start together, or a cycle; names them.
    """
    names = [f"{skill.name} ({skill.effector})" for skill in skills]
    before: set[tuple[int, int]] = set()
    last: dict[str, int] = {}
    for i, skill in enumerate(skills):
        if skill.effector in last:
            before.add((last[skill.effector], i))
        last[skill.effector] = i
    together: set[tuple[int, int]] = set()
    for kind, pairs in (("precedence", precedence), ("coordination", coordination)):
        for first, second in pairs:
            if not (0 <= first < len(skills) and 0 <= second < len(skills)):
                raise TaskError(f"{kind} ({first}, {second}): there are only {len(skills)} skills: {', '.join(names)}")
            if kind == "precedence":
                before.add((first, second))
                continue
            if first == second or skills[first].effector == skills[second].effector:
                raise TaskError(f"{names[first]} and {names[second]} cannot start together: they are one hand's")
            together |= {(first, second), (second, first)}
    reduced = set(before)
    while added := {(a, d) for a, b in reduced for c, d in together if b == c} - reduced:
        reduced |= added
    groups: list[list[int]] = []
    done: set[int] = set()
    while len(done) < len(skills):
        ready = [i for i in range(len(skills)) if i not in done and all(a in done for a, b in reduced if b == i)]
        if not ready:
            raise TaskError(f"the constraints form a cycle: {_cycle(len(skills), before, together, done, names)}")
        groups.append(ready)
        done |= set(ready)
    return groups


def _cycle(
    count: int, before: set[tuple[int, int]], together: set[tuple[int, int]], done: set[int], names: list[str]
) -> str:
    """Describe one cycle among skills of which none can start, e.g. ``a (left_hand) -> b (right_hand) -> ...``."""
    starts_with = {i: {i} for i in range(count)}
    for first, second in together:
        merged = starts_with[first] | starts_with[second]
        starts_with |= dict.fromkeys(merged, merged)
    # Each of them waits for another one that cannot start; going back from one to the next must come round.
    waiting = next(i for i in range(count) if i not in done)
    seen: list[set[int]] = []
    while starts_with[waiting] not in seen:
        seen.append(starts_with[waiting])
        waiting = min(a for a, b in before if b in starts_with[waiting] and a not in done)
    round_trip = seen[seen.index(starts_with[waiting]) :]
    steps = [" with ".join(names[i] for i in sorted(skills)) for skills in reversed(round_trip)]
    return " -> ".join([*steps, steps[0]])


def check_segments(segments: Sequence[SkillSegment], coordination: Pairs = ()) -> None:
    """Refuse demonstrated parts from which the skills of a task cannot be carried out.

    Args:
        segments: Where each skill is shown, in the task's order.
        coordination: Pairs of skills (by index) that start together and then move in step.

    Raises:
        SeedError: Two skills of one hand overlap, one hand's are shown in another order than the task's, or two that
            are coordinated last unequally long; names them.
    """
    for first, second in itertools.combinations(segments, 2):
        if first.effector != second.effector:
            continue
        if first.start < second.end and second.start < first.end:
            raise SeedError(f"two skills of one hand overlap in the seed: {_shown(first)} and {_shown(second)}")
        if second.start < first.start:
            raise SeedError(f"{_shown(second)} is shown before {_shown(first)}, which it must follow")
    for i, j in coordination:
        first, second = segments[i], segments[j]
        if first.end - first.start != second.end - second.start:
            raise SeedError(
                f"{_shown(first)} and {_shown(second)} are coordinated but last {first.end - first.start} and "
                f"{second.end - second.start} steps, expected the same number"
            )


def _shown(segment: SkillSegment) -> str:
    return f"{segment.name} ({segment.effector}, steps {segment.start} to {segment.end})"
