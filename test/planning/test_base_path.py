# SPDX-License-Identifier: Apache-2.0
"""Ways over the floor: free, ending where asked, walked forward where far, the same each time; or a reason why not."""

from __future__ import annotations

import numpy as np
import pytest
from floor_scene import box, robot

from supple.errors import PlanningError, StateError
from supple.geometry import wrap_angle
from supple.planning.base_path import plan_base_path, swept
from supple.planning.base_space import BaseSpace
from supple.planning.lattice import WalkingSpeeds

SHELF = box("shelf", 1.0, 0.0, 0.4, 1.2, 0.0, 1.5)
ROOM = [
    box("wall", 1.0, 2.0, 6.0, 0.1, 0.0, 2.0),
    box("wall", 1.0, -2.0, 6.0, 0.1, 0.0, 2.0),
    box("wall", -1.5, 0.0, 0.1, 4.0, 0.0, 2.0),
    box("wall", 4.0, 0.0, 0.1, 4.0, 0.0, 2.0),
]


def require_sound(space, path, start, goal):
    np.testing.assert_allclose(path.waypoints[0], start, atol=1e-9)
    np.testing.assert_allclose(path.waypoints[-1, :2], goal[:2], atol=1e-9)
    assert abs(wrap_angle(path.waypoints[-1, 2] - goal[2])) < 1e-9
    assert path.times[0] == 0.0
    assert (np.diff(path.times) > 0.0).all()
    assert np.abs(np.diff(path.waypoints[:, 2])).max() < 0.2
    # Both ends stand free here, so that the margin, less what rounding may take, holds everywhere.
    assert space.free(swept(path.waypoints), path.margin - 0.021).all()


@pytest.mark.parametrize("goal", [(2.2, 0.0, 0.0), (1.0, 1.2, 1.5)])
def test_a_way_leads_round_a_shelf(goal):
    space = BaseSpace(robot(), [SHELF, *ROOM])
    path = plan_base_path(space, (-0.2, 0.0, 0.0), goal)
    require_sound(space, path, (-0.2, 0.0, 0.0), goal)
    assert path.margin == 0.14
    again = plan_base_path(space, (-0.2, 0.0, 0.0), goal)
    assert again.waypoints.tobytes() == path.waypoints.tobytes()


def test_far_ways_are_walked_forward():
    space = BaseSpace(robot(), [SHELF])
    path = plan_base_path(space, (-2.0, 0.0, 0.0), (4.0, 0.0, 0.0))
    moves = np.diff(path.waypoints[:, :2], axis=0)
    length = np.hypot(*moves.T)
    heading = path.waypoints[:-1, 2]
    ahead = (moves[:, 0] * np.cos(heading) + moves[:, 1] * np.sin(heading)) / np.maximum(length, 1e-9)
    forward = length[ahead > np.cos(0.5)].sum()
    assert forward > 0.8 * path.length
    # Round the shelf's corner it is 6.4 m at least; half a metre more is a way that no one would shorten by hand.
    assert path.length < 6.9


def test_a_small_step_aside_is_not_turned_for():
    path = plan_base_path(BaseSpace(robot(), []), (0.0, 0.0, 0.0), (0.0, 0.15, 0.0))
    assert np.abs(path.waypoints[:, 2]).max() < 1e-9
    assert path.length == pytest.approx(0.15)


def test_a_robot_close_to_a_table_steps_back_before_it_turns():
    table = box("table", 0.7, 0.0, 0.8, 2.0, 0.0, 1.0)
    space = BaseSpace(robot()[:2], [table])
    start, goal = (0.12, 0.0, 0.0), (-1.0, 1.0, np.pi / 2)
    path = plan_base_path(space, start, goal)
    np.testing.assert_allclose(path.waypoints[-1], goal, atol=1e-9)
    assert space.free(swept(path.waypoints)).all()
    first_turn = int(np.argmax(np.abs(path.waypoints[:, 2]) > 0.3))
    assert path.waypoints[first_turn, 0] < 0.05


def test_staying_is_a_way_too():
    path = plan_base_path(BaseSpace(robot(), [SHELF]), (0.0, 0.0, 0.5), (0.0, 0.0, 0.5))
    assert path.length == 0.0
    np.testing.assert_allclose(path.waypoints, [[0.0, 0.0, 0.5]] * len(path.waypoints))


@pytest.mark.parametrize(
    ("start", "goal", "said"),
    [
        (
            (0.9, 0.0, 0.0),
            (3.0, 0.0, 0.0),
            r"start of the walk \(0.90 m, 0.00 m, 0 deg\): \w+ would be .* inside shelf",
        ),
        ((0.0, 0.0, 0.0), (0.6, 0.0, 0.0), r"goal of the walk .*: (left|right)_arm would be 25.0 cm inside shelf"),
    ],
)
def test_an_end_that_is_blocked_is_named_with_part_obstacle_and_depth(start, goal, said):
    with pytest.raises(PlanningError, match=said):
        plan_base_path(BaseSpace(robot(), [SHELF]), start, goal)


def test_a_closed_room_has_no_way_out_and_says_what_is_in_between():
    space = BaseSpace(robot(), ROOM)
    with pytest.raises(PlanningError, match=r"no way to walk from .* to .* with 10 cm to spare; .* inside wall"):
        plan_base_path(space, (0.0, 0.0, 0.0), (6.0, 0.0, 0.0))


def test_a_gap_narrower_than_the_robot_with_its_margin_is_not_taken():
    def gap(width):
        walls = [box("wall", 1.0, side * (1.0 + 0.5 * width), 0.2, 2.0, 0.0, 2.0) for side in (-1.0, 1.0)]
        return BaseSpace(robot(), [*walls, *ROOM])

    # Arms and all the robot is 0.6 m wide.
    assert plan_base_path(gap(1.0), (0.0, 0.0, 0.0), (2.2, 0.0, 0.0)).margin == 0.14
    assert plan_base_path(gap(0.84), (0.0, 0.0, 0.0), (2.2, 0.0, 0.0)).margin == 0.1
    with pytest.raises(PlanningError, match="no way to walk"):
        plan_base_path(gap(0.76), (0.0, 0.0, 0.0), (2.2, 0.0, 0.0))


def test_an_end_that_is_no_place_is_refused():
    with pytest.raises(StateError, match="three finite numbers"):
        plan_base_path(BaseSpace(robot(), []), (0.0, 0.0, 0.0), (np.inf, 0.0, 0.0))


def test_durations_follow_the_speeds():
    speeds = WalkingSpeeds(forward=0.5, backward=0.25, sideways=0.1, turning=1.0)
    start = np.zeros(3)
    for move, seconds in (
        ((1, 0, 0), 2.0),
        ((-1, 0, 0), 4.0),
        ((0, 1, 0), 10.0),
        ((0, 0, -2), 2.0),
        ((0, 0, 6), 0.283),
    ):
        assert float(speeds.duration(start, np.array(move, dtype=float))) == pytest.approx(seconds, abs=1e-3)
