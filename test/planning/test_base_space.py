# SPDX-License-Identifier: Apache-2.0
"""Free and blocked places: which part meets which obstacle, at which height, and by how much."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from floor_scene import box, robot
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.errors import StateError
from supple.planning.base_space import BaseSpace


def test_hands_pass_above_a_table_that_the_trunk_must_keep_from():
    table = box("table", 1.0, 0.0, 0.8, 2.0, 0.0, 0.8)
    space = BaseSpace(robot(), [table])
    # The trunk ends 10 cm ahead, the feet 15 cm, the arms 45 cm; the table begins at 0.6.
    assert space.free([[0.4, 0.0, 0.0]])[0]
    nearest = space.nearest([0.4, 0.0, 0.0])
    assert (nearest.part, nearest.obstacle) == ("feet", "table")
    assert nearest.distance == pytest.approx(0.05)
    assert not space.free([[0.5, 0.0, 0.0]])[0]
    # The same table raised to the hands.
    higher = BaseSpace(robot(), [box("table", 1.0, 0.0, 0.8, 2.0, 0.0, 1.0)])
    nearest = higher.nearest([0.4, 0.0, 0.0])
    assert nearest.part in {"left_arm", "right_arm"}
    assert nearest.distance == pytest.approx(-0.25)


def test_margin_is_measured_and_may_differ_by_pose():
    space = BaseSpace(robot(), [box("wall", 1.0, 0.0, 0.1, 4.0)])
    poses = np.array([[0.4, 0.0, 0.0], [0.4, 0.0, 0.0]])
    np.testing.assert_array_equal(space.free(poses, [0.09, 0.11]), [True, False])
    np.testing.assert_array_equal(space.free(poses, 0.09), [True, True])


def test_an_obstacle_above_or_below_every_part_is_none():
    lamp, mat = box("lamp", 0.0, 0.0, 1.0, 1.0, 1.5, 2.0), box("pit", 0.0, 0.0, 1.0, 1.0, -1.0, -0.1)
    space = BaseSpace(robot(), [lamp, mat])
    assert space.free([[0.0, 0.0, 0.3]])[0]
    assert space.nearest([0.0, 0.0, 0.3]).obstacle == ""


def test_a_pole_within_the_outline_blocks_although_it_touches_no_edge():
    space = BaseSpace(robot(), [box("pole", 0.0, 0.0, 0.02, 0.02)])
    assert not space.free([[0.0, 0.0, 0.0]])[0]
    assert space.nearest([0.0, 0.0, 0.0]).distance < -0.1


@settings(max_examples=40)
@given(
    st.floats(-0.9, 0.9), st.floats(-0.9, 0.9), st.floats(-4.0, 4.0), st.floats(-3.2, 3.2), st.sampled_from([0.0, 0.1])
)
def test_three_ways_to_ask_give_one_answer(x, y, yaw, turn, margin):
    obstacles = [box("crate", 0.3, 0.2, 0.5, 0.2, 0.0, 1.3, turn), box("stool", -0.6, -0.4, 0.2, 0.2, 0.0, 0.4)]
    space = BaseSpace(robot(), obstacles)
    pose = np.array([x, y, yaw])
    distance = space.nearest(pose).distance
    if abs(distance - margin) < 1e-6:
        return
    expected = distance > margin
    assert space.free(pose[None], margin)[0] == expected
    assert shapely.dwithin(space.forbidden(yaw), shapely.points(x, y), margin) != expected


def test_a_place_that_is_none_is_refused():
    with pytest.raises(StateError, match="three finite numbers"):
        BaseSpace(robot(), []).nearest([0.0, np.nan, 0.0])
