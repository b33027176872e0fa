# SPDX-License-Identifier: Apache-2.0
"""Markers: each shape covers what the scene has, where it is; contacts, wrenches and taxels show what is felt."""

from __future__ import annotations

import colorsys

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from supple.contact.readings import TaxelStatus
from supple.episodes.marker import MarkerShape
from supple.geometry import pose_from_quaternion
from supple.robots import robot_named
from supple.sim.g1_model import g1_spec
from supple.sim.markers import (
    FORCE_SCALE,
    TAXEL_FULL_SCALE,
    contact_markers,
    scene_markers,
    taxel_marker,
    wrench_marker,
)
from supple.sim.world import Contact, World

TURN = [0.5, 0.5, 0.5, 0.5]  # x to y, y to z, z to x
AT = [2.0, 3.0, 1.0]
TYPE = mujoco.mjtGeom


@pytest.fixture(scope="module")
def markers():
    spec = g1_spec()
    body = spec.worldbody.add_body(name="thing", pos=AT, quat=TURN)
    colour = {"rgba": [0.1, 0.2, 0.3, 0.5], "pos": [0.0, 0.0, 0.5]}
    body.add_geom(type=TYPE.mjGEOM_BOX, size=[0.1, 0.2, 0.3], **colour)
    body.add_geom(type=TYPE.mjGEOM_SPHERE, size=[0.1, 0, 0], **colour)
    body.add_geom(type=TYPE.mjGEOM_ELLIPSOID, size=[0.1, 0.2, 0.3], **colour)
    body.add_geom(type=TYPE.mjGEOM_CYLINDER, size=[0.1, 0.4, 0], **colour)
    body.add_geom(type=TYPE.mjGEOM_CAPSULE, size=[0.1, 0.4, 0], **colour)
    body.add_geom(type=TYPE.mjGEOM_BOX, size=[1, 1, 1], group=3)
    corners = [0, 0, 0, 0.3, 0, 0, 0, 0.3, 0, 0, 0, 0.3]
    spec.add_mesh(name="wedge", uservert=corners)
    spec.worldbody.add_body(name="wedge", pos=AT).add_geom(type=TYPE.mjGEOM_MESH, meshname="wedge", mass=1.0)
    world = World(spec, robot_named("g1"))
    mujoco.mj_kinematics(world.model, world.data)
    return scene_markers(world)


def test_shapes_have_full_extents_and_world_poses(markers) -> None:
    thing = [m for m in markers if m.group == "thing"]
    assert [m.shape for m in thing] == [
        MarkerShape.CUBE, MarkerShape.SPHERE, MarkerShape.SPHERE, MarkerShape.CYLINDER,
        MarkerShape.CYLINDER, MarkerShape.SPHERE, MarkerShape.SPHERE,
    ]  # fmt: skip
    sizes = [[0.2, 0.4, 0.6], [0.2] * 3, [0.2, 0.4, 0.6], [0.2, 0.2, 0.8], [0.2, 0.2, 0.8], [0.2] * 3, [0.2] * 3]
    for marker, size in zip(thing, sizes, strict=True):
        np.testing.assert_allclose(marker.scale, size, atol=1e-12)
        np.testing.assert_allclose(marker.rgba, [0.1, 0.2, 0.3, 0.5], atol=1e-6)
        rotation = pose_from_quaternion(marker.position, marker.quaternion).rotation
        np.testing.assert_allclose(rotation[:, 2], [1.0, 0.0, 0.0], atol=1e-12)
    for marker in thing[:5]:
        np.testing.assert_allclose(marker.position, [2.5, 3.0, 1.0], atol=1e-12)
    ends = sorted(m.position[0] for m in thing[5:])
    np.testing.assert_allclose(ends, [2.1, 2.9], atol=1e-12)


def test_a_mesh_is_its_triangles(markers) -> None:
    (wedge,) = (m for m in markers if m.group == "wedge")
    assert wedge.shape == MarkerShape.TRIANGLE_LIST
    assert len(wedge.points) == 4 * 3
    pose = pose_from_quaternion(wedge.position, wedge.quaternion)
    corners = {tuple(np.round(pose.act(point), 6) + 0.0) for point in wedge.points}
    assert corners == {(2.0, 3.0, 1.0), (2.3, 3.0, 1.0), (2.0, 3.3, 1.0), (2.0, 3.0, 1.3)}


def test_the_floor_lies_below_zero_and_the_robot_is_left_out(markers) -> None:
    (floor,) = (m for m in markers if m.group == "world")
    top = floor.position[2] + 0.5 * floor.scale[2]
    assert -0.01 < top < 0.0
    assert min(floor.scale[:2]) > 4.0
    assert {m.group for m in markers} == {"world", "thing", "wedge"}


def test_contacts_are_points_and_arrows_along_the_force() -> None:
    down = np.array([0.0, 0.0, -1.0])
    contacts = [
        Contact("hand", "box", np.array([0.1, 0.2, 0.3]), down, 20.0, 1.0, 0.001),
        Contact("table", "box", np.array([0.4, 0.5, 0.6]), -down, 0.0, 0.0, 0.0),
    ]
    points, arrow = contact_markers(contacts)
    np.testing.assert_array_equal(points.points, [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    assert arrow.shape == MarkerShape.ARROW
    np.testing.assert_allclose(arrow.position + arrow.points[0], [0.1, 0.2, 0.3])
    np.testing.assert_allclose(arrow.position + arrow.points[1], [0.1, 0.2, 0.3 - 20.0 * FORCE_SCALE])
    assert contact_markers([]) == []


def test_taxels_get_hotter_with_pressure_and_show_their_faults() -> None:
    points = np.arange(15.0).reshape(5, 3)
    status = np.array([TaxelStatus.OK, TaxelStatus.OK, TaxelStatus.OK, TaxelStatus.DEAD, TaxelStatus.SATURATED])
    pressure = np.array([0.0, 0.2 * TAXEL_FULL_SCALE, 2.0 * TAXEL_FULL_SCALE, np.nan, 1.0])
    marker = taxel_marker(points, pressure, status)
    np.testing.assert_array_equal(marker.position + marker.points, points)
    cold, warm, hot, dead, saturated = marker.point_rgba
    assert len({tuple(colour) for colour in (cold, warm, hot)}) == 3
    # From blue to red, as on a weather map.
    assert 0.6 > colorsys.rgb_to_hsv(*warm[:3])[0] > colorsys.rgb_to_hsv(*hot[:3])[0]
    np.testing.assert_array_equal(dead[:3], 0.0)
    np.testing.assert_array_equal(saturated[:3], [1.0, 0.0, 1.0])


def test_noise_does_not_flicker() -> None:
    noise = np.array([500.0, -500.0, 0.0, 1000.0, -1500.0])
    assert len(np.unique(taxel_marker(np.zeros((5, 3)), noise, np.zeros(5)).point_rgba, axis=0)) == 1


def test_a_wrench_is_an_arrow_that_ends_where_the_force_acts() -> None:
    pose, force = pose_from_quaternion(AT, TURN), np.array([0.0, 0.0, 100.0])
    arrow = wrench_marker(np.r_[force, 1.0, 2.0, 3.0], pose)
    shown = pose_from_quaternion(arrow.position, arrow.quaternion)
    start, end = (shown.act(point) for point in arrow.points)
    np.testing.assert_allclose(end, AT, atol=1e-12)
    np.testing.assert_allclose(end - start, FORCE_SCALE * pose.rotation @ force, atol=1e-12)
    assert wrench_marker(np.zeros(6), pin.SE3.Identity()) is None
