# SPDX-License-Identifier: Apache-2.0
"""Tactile pads: their taxels lie on the shapes that touch things, cover what they should, and face what is gripped."""

from __future__ import annotations

import math

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.contact.readings import PadLayout
from supple.errors import SensorError
from supple.geometry import pose_from_xyyaw
from supple.kinematics.model import KinematicModel
from supple.robots import g1
from supple.robots.dex3 import PALM_CENTRE, PALM_HALF_SIZE, finger_capsule
from supple.robots.touch import Capsule, FingerPatch, PlatePatch

ROBOT = g1()
PADS = ROBOT.pads
FINGERS = [name for name in PADS if "palm" not in name]
PALMS = [name for name in PADS if "palm" in name]
counts = st.integers(1, 7)


def test_each_hand_has_the_nine_arrays_of_the_data_sheet() -> None:
    assert len(PADS) == 18
    for side in ("left", "right"):
        mine = [pad for name, pad in PADS.items() if name.startswith(side)]
        assert len(mine) == 9
        assert sum("palm" in pad.name for pad in mine) == 3
        assert all((pad.rows, pad.columns) == (4, 3) for pad in mine)


@pytest.mark.parametrize("name", PADS)
def test_taxels_make_a_valid_layout_on_a_link_of_the_urdf(name) -> None:
    pad = PADS[name]
    grid = pad.taxels()
    assert len(PadLayout(name, pad.link, grid.position, grid.normal, grid.area)) == 12
    assert KinematicModel(ROBOT).model.existFrame(pad.link)


@pytest.mark.parametrize("name", FINGERS)
def test_taxels_of_a_finger_lie_on_its_capsule_and_face_outwards(name) -> None:
    side, short = name.split("_", 1)
    capsule, grid = finger_capsule(side, short), PADS[name].taxels()
    start, end = np.array(capsule.start), np.array(capsule.end)
    axis = end - start
    share = np.clip((grid.position - start) @ axis / (axis @ axis), 0.0, 1.0)
    outwards = grid.position - (start + share[:, None] * axis)
    np.testing.assert_allclose(np.linalg.norm(outwards, axis=1), capsule.radius, rtol=1e-12)
    np.testing.assert_allclose(outwards / capsule.radius, grid.normal, atol=1e-12)


@pytest.mark.parametrize("name", PALMS)
def test_taxels_of_a_palm_lie_inside_the_face_that_is_turned_to_the_other_hand(name) -> None:
    sign = 1.0 if name.startswith("left") else -1.0
    grid = PADS[name].taxels()
    centre = np.array(PALM_CENTRE) * [1.0, sign, 1.0]
    offset = grid.position - centre
    np.testing.assert_allclose(offset[:, 1], -sign * PALM_HALF_SIZE[1], rtol=1e-12)
    assert (np.abs(offset[:, [0, 2]]) < np.array(PALM_HALF_SIZE)[[0, 2]]).all()
    np.testing.assert_array_equal(grid.normal, np.tile([0.0, -sign, 0.0], (12, 1)))


def test_no_two_palm_pads_overlap() -> None:
    grids = [PADS[f"left_palm_{i}"].taxels() for i in range(3)]
    reach = [(grid.position[:, 2].min(), grid.position[:, 2].max()) for grid in grids]
    assert reach[0][1] < reach[1][0] < reach[1][1] < reach[2][0]


@pytest.mark.parametrize("name", FINGERS)
def test_closing_a_finger_moves_its_taxels_the_way_they_face(name) -> None:
    side, short = name.split("_", 1)
    joint = f"{side}_hand_{short}_joint"
    row = ROBOT.joints.joints[ROBOT.joints.index(joint)]
    closing = row.upper if abs(row.upper) > abs(row.lower) else row.lower
    model, grid, moved = KinematicModel(ROBOT), PADS[name].taxels(), []
    for q in (0.0, 1e-6 * np.sign(closing)):
        positions = np.zeros(len(ROBOT.joints))
        positions[ROBOT.joints.index(joint)] = q
        configuration = model.configuration(pose_from_xyyaw(0.0, 0.0, 0.0), positions)
        (pose,) = model.frame_poses(configuration, PADS[name].link)
        moved.append((pose, np.array([pose.act(p) for p in grid.position])))
    (pose, before), (_, after) = moved
    along = np.einsum("ij,ij->i", (after - before) * 1e6, grid.normal @ pose.rotation.T)
    middle = np.arange(12) % 3 == 1
    assert (along[middle] > 0.0).all()


@pytest.mark.parametrize("name", [n for n in PADS if n.startswith("left")])
def test_the_right_hand_is_the_left_one_mirrored(name) -> None:
    left, right = PADS[name].taxels(), PADS[name.replace("left", "right")].taxels()
    for field in ("position", "normal"):
        mirrored = getattr(left, field) * [1.0, -1.0, 1.0]
        mine = getattr(right, field)
        # Columns run round the axis, and so the other way round on the other hand.
        found = [np.abs(mine - row).max(axis=1).min() for row in mirrored]
        np.testing.assert_allclose(found, 0.0, atol=1e-12)


@pytest.mark.parametrize("name", PADS)
@given(per_side=st.integers(1, 5))
@settings(max_examples=5, deadline=None)
def test_samples_of_a_taxel_cover_exactly_its_area(name, per_side) -> None:
    pad = PADS[name]
    grid, taxel = pad.samples(per_side)
    assert np.bincount(taxel).tolist() == [per_side**2] * 12
    np.testing.assert_allclose(np.bincount(taxel, grid.area), pad.taxels().area, rtol=1e-12)
    # Each lies nearer to its own taxel's middle than a taxel's diagonal.
    away = np.linalg.norm(grid.position - pad.taxels().position[taxel], axis=1)
    assert (away < np.sqrt(2.0 * pad.taxels().area.max()) * 2.0).all()


def test_no_samples_at_all_are_refused() -> None:
    with pytest.raises(SensorError, match="at least one sample per side"):
        PADS["left_palm_0"].samples(0)


@given(rows=counts, columns=counts, width=st.floats(0.1, math.pi), tip=st.floats(0.0, 1.5))
def test_a_finger_patch_has_the_area_of_its_surface_however_it_is_cut(rows, columns, width, tip) -> None:
    radius, length = 0.01, 0.03
    patch = FingerPatch(Capsule((0.0, 0.0, 0.0), (length, 0.0, 0.0), radius), (0.0, 0.0, 1.0), width, tip)
    grid = patch.grid(rows, columns)
    exact = width * radius * length + width * radius**2 * math.sin(tip)
    assert grid.area.sum() == pytest.approx(exact, rel=1e-12)
    assert (grid.area > 0.0).all()
    np.testing.assert_allclose(np.linalg.norm(grid.normal, axis=1), 1.0, rtol=1e-12)


@given(rows=counts, columns=counts, yaw=st.floats(-3.0, 3.0))
def test_a_plate_is_cut_into_equal_rectangles_about_its_middle(rows, columns, yaw) -> None:
    along = tuple(pin.rpy.rpyToMatrix(0.0, 0.0, yaw)[:, 0])
    grid = PlatePatch((1.0, 2.0, 3.0), along, (0.0, 0.0, 1.0), 0.04, 0.03).grid(rows, columns)
    np.testing.assert_allclose(grid.area, 0.0012 / (rows * columns))
    np.testing.assert_allclose(grid.position.mean(axis=0), [1.0, 2.0, 3.0])
    offset = grid.position - [1.0, 2.0, 3.0]
    np.testing.assert_allclose(np.ptp(offset @ np.array(along)), 0.04 * (1.0 - 1.0 / rows), atol=1e-12)
    np.testing.assert_allclose(np.ptp(offset @ np.cross([0.0, 0.0, 1.0], along)), 0.03 * (1 - 1 / columns), atol=1e-12)
