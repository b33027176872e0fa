# SPDX-License-Identifier: Apache-2.0
"""Poses and rotations: group axioms, round trips, interpolation, and what is refused."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple import geometry
from supple.errors import StateError

metres = st.floats(-20.0, 20.0)
angles = st.floats(-3.1, 3.1)
fractions = st.floats(0.0, 1.0)


@st.composite
def poses(draw):
    axis = np.array([draw(st.floats(-1.0, 1.0)) for _ in range(3)])
    norm = np.linalg.norm(axis)
    axis = axis / norm if norm > 1e-3 else np.array([0.0, 0.0, 1.0])
    return pin.SE3(pin.exp3(draw(angles) * axis), np.array([draw(metres) for _ in range(3)]))


def assert_same(a: pin.SE3, b: pin.SE3, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(a.homogeneous, b.homogeneous, atol=tolerance)


@given(poses(), poses(), poses())
def test_poses_form_a_group(a, b, c):
    assert_same((a * b) * c, a * (b * c), 1e-8)
    assert_same(a * pin.SE3.Identity(), a)
    assert_same(a * a.inverse(), pin.SE3.Identity(), 1e-8)
    assert_same((a * b).inverse(), b.inverse() * a.inverse(), 1e-8)


@given(poses())
def test_a_pose_survives_the_way_through_its_quaternion_and_its_matrix(pose):
    quaternion = geometry.quaternion_of(pose)
    assert quaternion[3] >= 0.0
    assert np.linalg.norm(quaternion) == pytest.approx(1.0)
    assert_same(geometry.pose_from_quaternion(pose.translation, quaternion), pose)
    assert_same(geometry.pose_from_quaternion(pose.translation, -quaternion), pose)
    assert_same(geometry.pose_from_matrix(pose.homogeneous), pose)


@given(poses(), st.floats(0.01, 100.0))
def test_a_quaternion_of_any_norm_is_the_same_rotation(pose, scale):
    quaternion = geometry.quaternion_of(pose)
    np.testing.assert_allclose(geometry.unit_quaternion(scale * quaternion), quaternion, atol=1e-12)


@given(metres, metres, angles, metres)
def test_upright_poses_give_back_their_place_and_heading(x, y, yaw, z):
    pose = geometry.pose_from_xyyaw(x, y, yaw, z)
    np.testing.assert_allclose(geometry.xyyaw_of(pose), [x, y, yaw], atol=1e-12)
    assert pose.translation[2] == z
    np.testing.assert_allclose(pose.rotation[:, 2], [0.0, 0.0, 1.0], atol=1e-12)


@given(angles, st.floats(-0.5, 0.5), st.floats(-0.5, 0.5))
def test_heading_is_that_of_the_x_axis_whatever_the_tilt(yaw, roll, pitch):
    pose = pin.SE3(pin.rpy.rpyToMatrix(roll, pitch, yaw), np.zeros(3))
    assert geometry.wrap_angle(geometry.yaw_of(pose) - yaw) == pytest.approx(0.0, abs=1e-9)


@given(st.floats(-1e3, 1e3))
def test_wrapped_angles_lie_in_the_half_open_turn_and_mean_the_same(angle):
    wrapped = geometry.wrap_angle(angle)
    assert -np.pi <= wrapped < np.pi
    assert np.cos(wrapped) == pytest.approx(np.cos(angle), abs=1e-9)
    assert np.sin(wrapped) == pytest.approx(np.sin(angle), abs=1e-9)


@pytest.mark.parametrize("angle", [-np.pi, np.pi, -np.pi - 4.4e-16, np.nextafter(-np.pi, -4.0), 3.0 * np.pi, -1e-300])
def test_angles_at_the_seam_stay_below_pi(angle):
    assert -np.pi <= geometry.wrap_angle(angle) < np.pi


@given(poses(), poses())
def test_interpolation_begins_and_ends_where_it_should(start, end):
    assert_same(geometry.interpolate_pose(start, end, 0.0), start, 1e-8)
    assert_same(geometry.interpolate_pose(start, end, 1.0), end, 1e-6)


@given(poses(), poses(), fractions)
def test_interpolation_advances_distance_and_angle_in_proportion(start, end, fraction):
    distance, angle = geometry.pose_error(start, end)
    middle = geometry.interpolate_pose(start, end, fraction)
    assert np.abs(middle.rotation @ middle.rotation.T - np.eye(3)).max() < 1e-9
    done = geometry.pose_error(start, middle)
    assert done[0] == pytest.approx(fraction * distance, abs=1e-9)
    assert done[1] == pytest.approx(fraction * angle, abs=1e-5)


@given(poses(), poses())
def test_the_error_between_poses_is_a_distance(a, b):
    there, back = geometry.pose_error(a, b), geometry.pose_error(b, a)
    np.testing.assert_allclose(there, back, atol=1e-7)
    assert geometry.pose_error(a, a) == (0.0, pytest.approx(0.0, abs=1e-7))
    assert 0.0 <= there[1] <= np.pi + 1e-9


@given(fractions, fractions)
def test_minimum_jerk_rises_from_zero_to_one(a, b):
    low, high = sorted((a, b))
    assert geometry.minimum_jerk(low) <= geometry.minimum_jerk(high) + 1e-12
    assert geometry.minimum_jerk(a) + geometry.minimum_jerk(1.0 - a) == pytest.approx(1.0)
    assert (geometry.minimum_jerk(-1.0), geometry.minimum_jerk(0.0)) == (0.0, 0.0)
    assert (geometry.minimum_jerk(1.0), geometry.minimum_jerk(2.0)) == (1.0, 1.0)


def test_minimum_jerk_starts_and_stops_at_rest():
    h = 1e-5
    for end in (0.0, 1.0):
        inside = abs(end - h)
        assert abs(geometry.minimum_jerk(inside) - geometry.minimum_jerk(end)) < 1e-12


def test_a_position_that_is_no_place_is_refused_by_name():
    for position in ([np.nan, 0.0, 0.0], [0.0, np.inf, 0.0], [0.0, 0.0], [[0.0, 0.0, 0.0]]):
        with pytest.raises(StateError, match="object box"):
            geometry.pose_from_quaternion(position, [0.0, 0.0, 0.0, 1.0], "object box")


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        (np.eye(3), "shape"),
        (np.full((4, 4), np.nan), "finite"),
        (np.diag([1.0, 1.0, -1.0, 1.0]), "not a rotation"),
        (np.diag([1.1, 1.0, 1.0, 1.0]), "not a rotation"),
        (geometry.pose_from_xyyaw(1.0, 2.0, 0.5).homogeneous.T, "last row"),
    ],
)
def test_a_matrix_that_is_no_pose_is_refused(matrix, said):
    with pytest.raises(StateError, match=said):
        geometry.pose_from_matrix(matrix, "sample 3")
