# SPDX-License-Identifier: Apache-2.0
"""From constraints to groups: every skill once, order respected, coordination kept, contradictions named."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple.errors import TaskError
from supple.generation.constraints import compile_groups
from supple.tasks import Skill

HANDS = ("left_hand", "right_hand", "third_hand")


@st.composite
def problems(draw):
    """Skills of up to three hands with precedence that runs forward in a hidden order, so that it is never circular."""
    count = draw(st.integers(0, 8))
    skills = [Skill(f"s{i}", draw(st.sampled_from(HANDS)), "box") for i in range(count)]
    pairs = list(itertools.combinations(range(count), 2))
    precedence = draw(st.lists(st.sampled_from(pairs), max_size=12)) if pairs else []
    return skills, precedence


def positions(groups):
    return {i: place for place, group in enumerate(groups) for i in group}


def orders(skills, precedence):
    """Every pair of which the first must be over before the second starts."""
    per_hand = [
        (i, j) for i, j in itertools.combinations(range(len(skills)), 2) if skills[i].effector == skills[j].effector
    ]
    return {*precedence, *per_hand}


@given(problems())
def test_every_skill_runs_once_and_after_what_precedes_it(problem):
    skills, precedence = problem
    groups = compile_groups(skills, precedence)
    assert sorted(itertools.chain(*groups)) == list(range(len(skills)))
    assert all(groups)
    place = positions(groups)
    assert all(place[first] < place[second] for first, second in orders(skills, precedence))
    for group in groups:
        hands = [skills[i].effector for i in group]
        assert len(set(hands)) == len(hands), "a hand does one thing at a time"


@given(problems())
def test_no_skill_waits_longer_than_its_predecessors_need(problem):
    skills, precedence = problem
    place = positions(compile_groups(skills, precedence))
    for i in range(len(skills)):
        before = [place[first] for first, second in orders(skills, precedence) if second == i]
        assert place[i] == max(before, default=-1) + 1


@given(problems(), st.data())
def test_coordinated_skills_start_together_or_the_contradiction_is_named(problem, data):
    skills, precedence = problem
    pairs = [
        (i, j) for i, j in itertools.combinations(range(len(skills)), 2) if skills[i].effector != skills[j].effector
    ]
    coordination = data.draw(st.lists(st.sampled_from(pairs), max_size=4)) if pairs else []
    if contradictory(skills, precedence, coordination):
        with pytest.raises(TaskError, match="cycle"):
            compile_groups(skills, precedence, coordination)
        return
    groups = compile_groups(skills, precedence, coordination)
    place = positions(groups)
    assert sorted(place) == list(range(len(skills)))
    assert all(place[first] == place[second] for first, second in coordination)
    assert all(place[first] < place[second] for first, second in orders(skills, precedence))


def contradictory(skills, precedence, coordination):
    """Merge coordinated skills into one node each; a contradiction is a cycle among the merged nodes."""
    label = list(range(len(skills)))
    for first, second in coordination:
        old, new = label[second], label[first]
        label = [new if value == old else value for value in label]
    edges = {(label[a], label[b]) for a, b in orders(skills, precedence)}
    left = set(label)
    while True:
        free = {node for node in left if not any(b == node and a in left for a, b in edges)}
        if not free:
            return bool(left)
        left -= free


def test_both_hands_lifting_are_one_group():
    both = [Skill("lift", "left_hand", "box"), Skill("lift", "right_hand", "box")]
    assert compile_groups(both, (), [(0, 1)]) == [[0, 1]]
    assert compile_groups(both, [(1, 0)]) == [[1], [0]]
    assert compile_groups([]) == []


def test_a_cycle_names_exactly_the_skills_that_cannot_start():
    skills = [Skill("reach", "left_hand", "a"), Skill("grasp", "right_hand", "b"), Skill("turn", "third_hand", "c")]
    with pytest.raises(TaskError) as caught:
        compile_groups(skills, [(1, 2), (2, 1)])
    assert "grasp (right_hand), turn (third_hand)" in str(caught.value)
    assert "reach" not in str(caught.value)
    with pytest.raises(TaskError, match="cycle"):
        compile_groups(skills, [(0, 0)])


def test_an_order_against_a_hand_s_own_is_a_cycle():
    skills = [Skill("reach", "left_hand", "a"), Skill("grasp", "left_hand", "a")]
    with pytest.raises(TaskError, match=r"reach \(left_hand\), grasp \(left_hand\)"):
        compile_groups(skills, [(1, 0)])


def test_two_skills_of_one_hand_cannot_start_together():
    skills = [Skill("reach", "left_hand", "a"), Skill("grasp", "left_hand", "a")]
    with pytest.raises(TaskError, match="one hand's"):
        compile_groups(skills, (), [(0, 1)])


@pytest.mark.parametrize("kind", ["precedence", "coordination"])
@pytest.mark.parametrize("pair", [(0, 2), (-1, 0), (5, 1)])
def test_an_index_that_is_no_skill_is_named(kind, pair):
    skills = [Skill("lift", "left_hand", "box"), Skill("lift", "right_hand", "box")]
    with pytest.raises(TaskError) as caught:
        compile_groups(skills, **{kind: [pair]})
    assert f"{kind} ({pair[0]}, {pair[1]})" in str(caught.value)
    assert "only 2 skills: lift (left_hand), lift (right_hand)" in str(caught.value)
