# SPDX-License-Identifier: Apache-2.0
"""Joint-space ways: free at every step, within limits, the same for the same generator; or a reason why not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.errors import PlanningError, StateError
from supple.planning.arm_path import plan_arm_path

LIMIT = np.full(7, 2.0)


def wall(q):
    """Block the middle of the first joint's range unless the second is lifted."""
    return "hand would be inside wall" if abs(q[0]) < 0.3 and q[1] < 0.8 else None


def ends(n=7):
    start, goal = np.zeros(n), np.zeros(n)
    start[0], goal[0] = -1.0, 1.0
    return start, goal


def checked(way, blocked, resolution=0.04):
    for begin, end in itertools.pairwise(way):
        steps = int(np.ceil(np.abs(end - begin).max() / resolution)) + 1
        for s in np.linspace(0.0, 1.0, steps):
            if blocked(begin + s * (end - begin)) is not None:
                return False
    return True


def test_a_free_line_is_the_way_and_draws_nothing():
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    start, goal = ends()
    way = plan_arm_path(start, goal, -LIMIT, LIMIT, lambda q: None, rng)
    np.testing.assert_array_equal(way, [start, goal])
    assert rng.bit_generator.state == before


@settings(max_examples=10)
@given(st.integers(0, 2**31))
def test_a_way_leads_over_a_wall_within_limits(seed):
    start, goal = ends()
    # What counts as free here is a little wider than what is planned with: lines are checked at steps.
    way = plan_arm_path(start, goal, -LIMIT, LIMIT, wall, np.random.default_rng(seed))
    np.testing.assert_array_equal(way[[0, -1]], [start, goal])
    assert (np.abs(way) <= LIMIT).all()
    assert checked(way, lambda q: "in" if abs(q[0]) < 0.25 and q[1] < 0.75 else None)
    # At the least the second joint goes up to 0.8 and down again; ways ten times as long would be useless.
    assert np.abs(np.diff(way, axis=0)).max(axis=1).sum() < 5.0


def test_the_same_generator_gives_the_same_way_bit_for_bit():
    start, goal = ends()
    first, second = (plan_arm_path(start, goal, -LIMIT, LIMIT, wall, np.random.default_rng(3)) for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize(("end", "said"), [(0, "start of the arms' way: hand"), (1, "goal of the arms' way: hand")])
def test_a_blocked_end_says_by_what(end, said):
    rows = list(ends())
    rows[end] = np.zeros(7)
    with pytest.raises(PlanningError, match=said):
        plan_arm_path(*rows, -LIMIT, LIMIT, wall, np.random.default_rng(0))


def test_a_wall_without_a_way_round_says_what_blocked_most():
    start, goal = ends()

    def blocked(q):
        return "left_wrist would be inside shelf" if abs(q[0]) < 0.3 else None

    with pytest.raises(PlanningError, match=r"found in 40 samples; most often \(\d+ of \d+\) left_wrist would be"):
        plan_arm_path(start, goal, -LIMIT, LIMIT, blocked, np.random.default_rng(0), samples=40)


def test_an_end_out_of_limits_is_named():
    start, goal = ends()
    goal[4] = 2.1
    with pytest.raises(
        PlanningError, match=r"goal of the arms' way: joint 4 at 2.100 rad is outside -2.000 to 2.000 rad"
    ):
        plan_arm_path(start, goal, -LIMIT, LIMIT, wall, np.random.default_rng(0))


@pytest.mark.parametrize("goal", [np.zeros(6), np.full(7, np.nan)])
def test_ends_that_are_none_are_refused(goal):
    with pytest.raises(StateError, match="goal"):
        plan_arm_path(np.zeros(7), goal, -LIMIT, LIMIT, wall, np.random.default_rng(0))
