# SPDX-License-Identifier: Apache-2.0
"""Bodies as spheres: nothing of a body is left out, and no sphere reaches far beyond it."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.kinematics.collision_spheres import INFLATION, cover, tangent_spheres
from supple.kinematics.solids import Solid, surface
from supple.robots import g1


def solid(shape, *size):
    return Solid("thing", shape, size, pin.SE3.Identity())


def outwards(count):
    """Directions spread evenly over a sphere (Fibonacci)."""
    i = np.arange(count) + 0.5
    polar, azimuth = np.arccos(1.0 - 2.0 * i / count), np.pi * (1.0 + 5.0**0.5) * i
    return np.stack([np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)], axis=1)


@settings(max_examples=15)
@given(
    st.sampled_from(["box", "sphere", "capsule", "cylinder"]),
    st.tuples(*[st.floats(0.02, 0.08)] * 3),
    st.floats(0.005, 0.02),
)
def test_a_cover_holds_every_sample_and_exceeds_the_body_by_the_inflation_at_most(shape, size, inflation):
    body = solid(shape, *size)
    points, normals = surface(body, 0.016)
    centres, radii = cover(points, normals, inflation)
    gaps = np.linalg.norm(points[:, None] - centres, axis=2) - radii
    assert (gaps.min(axis=1) <= 1e-9).all()
    # A tangent sphere is told from samples: between them it can stick out a little.
    reach = body.distance((centres[:, None] + radii[:, None, None] * outwards(40)).reshape(-1, 3))
    assert reach.max() <= inflation + 0.004
    # None is idle: each holds a sample that no other chosen before it does.
    assert len(radii) <= len(points)
    held = np.zeros(len(points), dtype=bool)
    for column in gaps.T:
        new = (column <= 1e-9) & ~held
        assert new.any()
        held |= new


def test_a_tangent_sphere_is_as_large_as_fits():
    points, normals = surface(solid("capsule", 0.05, 0.1, 0.0), 0.01)
    centres, radii = tangent_spheres(points, normals)
    np.testing.assert_allclose(radii, 0.05, atol=2e-3)
    np.testing.assert_allclose(centres[:, :2], 0.0, atol=2e-3)
    points, normals = surface(solid("box", 0.1, 0.1, 0.02), 0.01)
    _, radii = tangent_spheres(points, normals)
    middle = np.abs(points[:, :2]).max(axis=1) < 0.05
    np.testing.assert_allclose(radii[middle], 0.02, atol=1e-6)


def test_a_capsule_takes_few_spheres():
    points, normals = surface(solid("capsule", 0.05, 0.1, 0.0), 0.01)
    assert len(cover(points, normals)[1]) <= 6


def test_the_robot_lies_within_its_spheres_and_they_close_to_it(links, collisions):
    spheres = collisions.spheres
    assert set(spheres.links) == set(links)
    assert {"torso_link", "left_wrist_yaw_link", "right_hand_thumb_2_link"} <= set(links)
    assert len(spheres.radii) < 200
    for index, (link, solids) in enumerate(links.items()):
        centres, radii = spheres.centres[spheres.link == index], spheres.radii[spheres.link == index]
        points = np.vstack([surface(body, 0.004)[0] for body in solids])
        uncovered = (np.linalg.norm(points[:, None] - centres, axis=2) - radii).min(axis=1).max()
        assert uncovered < 0.003, link
        skin = (centres[:, None] + radii[:, None, None] * outwards(60)).reshape(-1, 3)
        beyond = np.min([body.distance(skin) for body in solids], axis=0).max()
        assert beyond < INFLATION + 0.004, link


def test_every_link_with_a_shape_is_one_of_the_robot_s(links):
    names = {name.removesuffix("_joint") for name in g1().joints.names}
    assert {link.removesuffix("_link") for link in links} <= {*names, "pelvis", "torso"}
