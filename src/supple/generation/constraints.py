# SPDX-License-Identifier: Apache-2.0
"""From skills, precedence and coordination to groups that run one after the other (HumanoidMimicGen, constraints)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from supple.errors import TaskError
from supple.tasks import Skill

__all__ = ["compile_groups"]


def compile_groups(
    skills: Sequence[Skill], precedence: Iterable[tuple[int, int]] = (), coordination: Iterable[tuple[int, int]] = ()
) -> list[list[int]]:
    """Return the groups of skills (by index) in order of execution.

    Skills of one hand keep their order. Skills that are coordinated start together, so whatever must precede one of
    them precedes the other. A group takes every skill without an unfinished predecessor.

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
    while added := {(a, d) for a, b in before for c, d in together if b == c} - before:
        before |= added
    groups: list[list[int]] = []
    done: set[int] = set()
    while len(done) < len(skills):
        ready = [i for i in range(len(skills)) if i not in done and all(a in done for a, b in before if b == i)]
        if not ready:
            stuck = ", ".join(names[i] for i in range(len(skills)) if i not in done)
            raise TaskError(f"the constraints form a cycle among: {stuck}")
        groups.append(ready)
        done |= set(ready)
    return groups
