# SPDX-License-Identifier: Apache-2.0
"""Simple solids: distances, directions and surfaces agree with each other, and shapes without a formula are named."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.errors import SceneError
from supple.kinematics.solids import Solid, Solids, surface

SIZES = st.tuples(*[st.floats(0.03, 0.3)] * 3)
POSES = st.builds(
    lambda turn, place: pin.SE3(pin.exp3(np.array(turn)), np.array(place)),
    st.tuples(*[st.floats(-3.0, 3.0)] * 3),
    st.tuples(*[st.floats(-1.0, 1.0)] * 3),
)
BODIES = st.builds(Solid, st.just("thing"), st.sampled_from(["box", "sphere", "capsule", "cylinder"]), SIZES, POSES)


@settings(max_examples=40)
@given(BODIES, st.integers(0, 2**31))
def test_the_surface_is_where_the_distance_is_nothing_and_normals_point_out_of_it(solid, seed):
    points, normals = surface(solid, 0.03)
    np.testing.assert_allclose(solid.distance(points), 0.0, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0, atol=1e-9)
    np.testing.assert_allclose(solid.distance(points + 0.01 * normals), 0.01, atol=1e-9)
    assert (solid.distance(points - 1e-3 * normals) <= 1e-9).all()
    # No point in space is farther from the solid than from its nearest surface point.
    somewhere = np.random.default_rng(seed).uniform(-1.5, 1.5, (20, 3))
    nearest = np.linalg.norm(somewhere[:, None] - points, axis=2).min(axis=1)
    distance = solid.distance(somewhere)
    assert (np.abs(distance) <= nearest + 1e-9).all()
    assert (nearest <= np.abs(distance) + 0.03).all()


@settings(max_examples=25)
@given(st.lists(BODIES, max_size=5), st.integers(0, 2**31))
def test_many_solids_are_asked_at_once_as_each_by_itself(bodies, seed):
    floor = Solid("floor", "plane", (0.0, 0.0, 0.1), pin.SE3(np.eye(3), np.array([0.0, 0.0, -0.2])))
    solids = Solids([*bodies, floor])
    points = np.random.default_rng(seed).uniform(-1.5, 1.5, (7, 3))
    distances = solids.distances(points)
    assert distances.shape == (len(solids), 7) == (len(bodies) + 1, 7)
    for row, solid in zip(distances, solids.solids, strict=True):
        np.testing.assert_allclose(row, solid.distance(points), atol=1e-12)
    np.testing.assert_allclose(distances[[s.body for s in solids.solids].index("floor")], points[:, 2] + 0.2)


@settings(max_examples=40)
@given(BODIES, st.integers(0, 2**31))
def test_going_along_the_normal_leads_straight_away(solid, seed):
    point = np.random.default_rng(seed).uniform(-1.5, 1.5, 3)
    before = float(solid.distance(point[None])[0])
    direction = Solids([solid]).normal(0, point)
    if before > 1e-3:
        assert float(solid.distance((point + 0.01 * direction)[None])[0]) == pytest.approx(before + 0.01, abs=1e-6)


def test_an_empty_scene_has_no_distances():
    assert Solids(()).distances(np.zeros((4, 3))).shape == (0, 4)


def test_shapes_without_a_formula_or_an_end_are_named():
    with pytest.raises(SceneError, match="egg: no distance for shape 'ellipsoid'"):
        Solids([Solid("egg", "ellipsoid", (0.1, 0.1, 0.2), pin.SE3.Identity())])
    with pytest.raises(SceneError, match="ground: a plane has no surface"):
        surface(Solid("ground", "plane", (0.0, 0.0, 0.0), pin.SE3.Identity()), 0.1)
