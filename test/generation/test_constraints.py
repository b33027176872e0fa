# SPDX-License-Identifier: Apache-2.0
"""From constraints to groups: every skill once, order respected, coordination kept, contradictions named."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple.episodes import SkillSegment
from supple.errors import SeedError, TaskError
from supple.generation.constraints import check_segments, compile_groups
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


def test_a_cycle_names_exactly_the_skills_on_it():
    """Neither one that can start nor one that merely waits for the cycle is to blame."""
    hands = (*HANDS, "fourth_hand")
    skills = [Skill(name, hand, "a") for name, hand in zip(("reach", "grasp", "turn", "put"), hands, strict=True)]
    with pytest.raises(TaskError) as caught:
        compile_groups(skills, [(1, 2), (2, 1), (2, 3)])
    assert str(caught.value).count("grasp (right_hand)") + str(caught.value).count("turn (third_hand)") == 3
    assert "reach" not in str(caught.value)
    assert "put" not in str(caught.value)
    with pytest.raises(TaskError, match=r"cycle: reach \(left_hand\) -> reach \(left_hand\)"):
        compile_groups(skills, [(0, 0)])


def test_a_cycle_through_coordination_names_what_was_to_start_together():
    skills = [Skill("hold", "left_hand", "a"), Skill("cut", "right_hand", "b")]
    with pytest.raises(TaskError, match=r"cycle: hold \(left_hand\) with cut \(right_hand\) -> "):
        compile_groups(skills, [(0, 1)], [(0, 1)])


def test_one_application_of_the_reduction_would_part_skills_that_start_together():
    """Only b is paired with both others; c learns what precedes a in a second round."""
    skills = [Skill(name, hand, "box") for name, hand in (("x", "w"), ("c", "p"), ("b", "q"), ("a", "r"))]
    assert compile_groups(skills, [(0, 3)], [(3, 2), (2, 1)]) == [[0], [1, 2, 3]]


@given(problems(), st.data())
def test_for_pairs_the_reduction_is_the_published_one(problem, data):
    """P + {(a, d) | exists b: (b, d) in C and (a, b) in P}, applied once, where no skill is in two pairs of C."""
    skills, precedence = problem
    order = data.draw(st.permutations(range(len(skills))))
    disjoint = zip(order[::2], order[1::2], strict=False)
    coordination = [(i, j) for i, j in disjoint if skills[i].effector != skills[j].effector]
    if contradictory(skills, precedence, coordination):
        return
    before = orders(skills, precedence)
    both_ways = {*coordination, *((j, i) for i, j in coordination)}
    reduced = before | {(a, d) for a, b in before for c, d in both_ways if b == c}
    place: dict[int, int] = {}
    while len(place) < len(skills):
        step = max(place.values(), default=-1) + 1
        ready = [i for i in range(len(skills)) if i not in place and all(a in place for a, b in reduced if b == i)]
        place |= dict.fromkeys(ready, step)
    assert positions(compile_groups(skills, precedence, coordination)) == place


def test_an_order_against_a_hand_s_own_is_a_cycle():
    skills = [Skill("reach", "left_hand", "a"), Skill("grasp", "left_hand", "a")]
    with pytest.raises(TaskError, match=r"grasp \(left_hand\) -> reach \(left_hand\) -> grasp"):
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


# -- where skills are shown ------------------------------------------------------------------------------------------


def shown(name, hand, start, end):
    return SkillSegment(name, hand, "box", start, end)


@given(st.lists(st.tuples(st.sampled_from(HANDS), st.integers(0, 8), st.integers(1, 4)), max_size=5))
def test_segments_are_refused_exactly_when_a_hand_would_do_two_things_at_once_or_out_of_order(rows):
    segments = [shown(f"s{i}", hand, start, start + length) for i, (hand, start, length) in enumerate(rows)]
    busy = [(segment.effector, step) for segment in segments for step in range(segment.start, segment.end)]
    starts = {hand: [s.start for s in segments if s.effector == hand] for hand in HANDS}
    if len(set(busy)) == len(busy) and all(values == sorted(values) for values in starts.values()):
        check_segments(segments)
        return
    with pytest.raises(SeedError, match=r"s\d \(\w+_hand, steps .* s\d \(\w+_hand, steps "):
        check_segments(segments)


def test_an_overlap_names_both_skills_and_their_steps():
    segments = [
        shown("pick", "left_hand", 0, 50),
        shown("turn", "right_hand", 0, 50),
        shown("put", "left_hand", 49, 80),
    ]
    with pytest.raises(SeedError) as caught:
        check_segments(segments)
    assert "overlap" in str(caught.value)
    assert "pick (left_hand, steps 0 to 50) and put (left_hand, steps 49 to 80)" in str(caught.value)


def test_coordinated_skills_of_unequal_length_are_named_with_their_lengths():
    segments = [shown("lift", "left_hand", 10, 60), shown("hold", "right_hand", 0, 40)]
    check_segments(segments)
    with pytest.raises(SeedError) as caught:
        check_segments(segments, [(0, 1)])
    assert "lift (left_hand, steps 10 to 60) and hold (right_hand, steps 0 to 40)" in str(caught.value)
    assert "last 50 and 40 steps" in str(caught.value)
