# SPDX-License-Identifier: Apache-2.0
"""Skills shown walking: the way begins where the robot is and ends where it was shown, seen from the object."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.generation.walking_skill import walk_shown
from supple.geometry import pose_from_xyyaw, xyyaw_of
from supple.kinematics.model import KinematicModel
from supple.robots import g1

ROBOT, STEPS, INTERVAL = g1(), 300, 0.02
FRAME = ROBOT.effector("left_hand").frame
finite = st.floats(-2.0, 2.0)


def shown(length, sway=0.0):
    """Walk straight to the object from behind, the base swaying from side to side once in 0.8 s."""
    times = INTERVAL * np.arange(STEPS)
    lateral = sway * np.sin(2.0 * np.pi * times / 0.8)
    bases = [pose_from_xyyaw(x, y, 0.0, 0.76) for x, y in zip(np.linspace(-length, 0.0, STEPS), lateral, strict=True)]
    return walk_shown(bases, np.tile(ROBOT.joints.home, (STEPS, 1)), ROBOT, FRAME)


def test_a_robot_that_stands_or_shifts_its_weight_does_not_walk():
    assert shown(0.0, sway=0.05) is None
    assert shown(0.2) is None
    assert shown(0.4) is not None


def test_the_way_is_free_of_sway_and_the_hand_is_where_it_was_commanded_to_be_seen_from_the_base():
    walk = shown(2.0, sway=0.05)
    assert np.abs(walk.places[50:-50, 1]).max() < 0.005
    model = KinematicModel(ROBOT)
    (expected,) = model.frame_poses(model.configuration(pin.SE3.Identity(), ROBOT.joints.home), FRAME)
    np.testing.assert_allclose(walk.T_base_targets[7].homogeneous, expected.homogeneous)


@pytest.fixture(scope="module")
def walk():
    return shown(2.0)


@settings(max_examples=40, deadline=None)
@given(st.tuples(finite, finite, st.floats(-3.0, 3.0)), st.tuples(finite, finite, st.floats(-3.0, 3.0)))
def test_the_way_begins_where_the_robot_is_and_ends_where_it_was_shown(walk, reference, off):
    T_world_reference = pose_from_xyyaw(*reference)
    here = xyyaw_of(T_world_reference * pose_from_xyyaw(-2.0, 0.0, 0.0)) + 0.3 * np.array(off)
    path = walk.path(T_world_reference, here, INTERVAL)
    np.testing.assert_allclose(path.at(0.0), here, atol=1e-9)
    end = T_world_reference * pose_from_xyyaw(*walk.places[-1])
    np.testing.assert_allclose(path.at(path.times[-1])[:2], end.translation[:2], atol=1e-9)
    assert np.cos(path.at(path.times[-1])[2] - xyyaw_of(end)[2]) == pytest.approx(1.0)
    assert path.times[-1] == pytest.approx(INTERVAL * (STEPS - 1))
    # The shift fades evenly: half way it is half of what it was.
    shift = here - xyyaw_of(T_world_reference * pose_from_xyyaw(*walk.places[0]))
    middle = xyyaw_of(T_world_reference * pose_from_xyyaw(*(walk.places[149] + walk.places[150]) / 2))
    np.testing.assert_allclose((path.at(0.5 * path.times[-1]) - middle)[:2], 0.5 * shift[:2], atol=0.01)
    assert np.abs(np.diff(path.waypoints[:, 2])).max() < 0.1
