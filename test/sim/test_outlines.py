# SPDX-License-Identifier: Apache-2.0
"""Outlines of a scene and of the robot in it, against MuJoCo's own collision detection."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from supple.geometry import pose_from_xyyaw
from supple.planning.base_space import BaseSpace
from supple.robots import g1
from supple.sim.clearance import ClearanceChecker
from supple.sim.g1_model import g1_spec
from supple.sim.outlines import robot_outlines, scene_outlines
from supple.sim.world import World

ROBOT = g1()
_GEOM = mujoco.mjtGeom


@pytest.fixture(scope="module")
def world():
    """A robot among one of each shape, a plate without collision and a carried box."""
    spec = g1_spec()
    rows = {
        "crate": (_GEOM.mjGEOM_BOX, [0.2, 0.3, 0.4], [1.0, 0.0, 0.4]),
        "post": (_GEOM.mjGEOM_CYLINDER, [0.1, 0.6, 0.0], [0.0, 1.0, 0.6]),
        "ball": (_GEOM.mjGEOM_SPHERE, [0.2, 0.0, 0.0], [-1.0, 0.0, 0.2]),
        "rail": (_GEOM.mjGEOM_CAPSULE, [0.05, 0.5, 0.0], [0.0, -1.0, 1.0]),
        "egg": (_GEOM.mjGEOM_ELLIPSOID, [0.1, 0.2, 0.3], [2.0, 2.0, 0.3]),
    }
    for name, (kind, size, pos) in rows.items():
        body = spec.worldbody.add_body(name=name, pos=pos)
        body.add_geom(type=kind, size=size)
    spec.body("rail").quat = [np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0]  # along y
    spec.worldbody.add_geom(name="kerb", type=_GEOM.mjGEOM_BOX, size=[0.1, 0.1, 0.1], pos=[-2.0, -2.0, 0.1])
    plate = spec.worldbody.add_body(name="plate")
    plate.add_geom(type=_GEOM.mjGEOM_BOX, size=[1.0, 1.0, 0.001], contype=0, conaffinity=0)
    parcel = spec.worldbody.add_body(name="parcel", pos=[0.35, 0.0, 1.0])
    parcel.add_freejoint()
    parcel.add_geom(type=_GEOM.mjGEOM_BOX, size=[0.1, 0.1, 0.1], mass=1.0)
    world = World(spec, ROBOT)
    world.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, ROBOT.standing_height), ROBOT.joints.home)
    world.set_state(world.get_state())
    return world


def test_shapes_have_their_outline_and_heights(world):
    found = {outline.name: outline for outline in scene_outlines(world)}
    assert set(found) == {"crate", "post", "ball", "rail", "egg", "kerb", "parcel"}
    np.testing.assert_allclose(np.ptp(found["crate"].points, axis=0), [0.4, 0.6])
    assert (found["crate"].bottom, found["crate"].top) == pytest.approx((0.0, 0.8))
    for name, width in (("post", 0.2), ("ball", 0.4)):
        extent = np.ptp(found[name].points, axis=0)
        assert (extent >= width - 1e-9).all()
        assert (extent <= 1.03 * width).all()
    assert (found["ball"].bottom, found["ball"].top) == pytest.approx((0.0, 0.4))
    assert np.ptp(found["rail"].points, axis=0) == pytest.approx([0.1, 1.1], rel=0.03)
    assert (found["rail"].bottom, found["rail"].top) == pytest.approx((0.95, 1.05))
    assert (found["egg"].bottom, found["egg"].top) == pytest.approx((0.0, 0.6))


def test_a_carried_body_belongs_to_the_robot(world):
    robot = robot_outlines(world, ROBOT.joints.home, carried=["parcel"])
    parcel = robot[-1]
    assert parcel.name == "parcel"
    np.testing.assert_allclose(parcel.points.mean(axis=0), [0.35, 0.0], atol=1e-6)
    assert "parcel" not in {outline.name for outline in scene_outlines(world, ignore=["parcel"])}


def test_the_robot_is_drawn_link_by_link_with_each_hand_in_one(world):
    robot = robot_outlines(world, ROBOT.joints.home)
    names = [outline.name for outline in robot]
    assert len(set(names)) == len(names)
    assert not any("index" in name or "thumb" in name for name in names)
    assert {"torso_link", "left_wrist_yaw_link", "right_ankle_roll_link"} <= set(names)
    assert min(outline.bottom for outline in robot) == pytest.approx(0.0, abs=0.03)
    assert 1.2 < max(outline.top for outline in robot) < 1.4


def test_what_mujoco_finds_in_collision_is_never_free_on_the_plan(world):
    space = BaseSpace(robot_outlines(world, ROBOT.joints.home), scene_outlines(world, ignore=["parcel"]))
    checker = ClearanceChecker(world)
    rng = np.random.default_rng(0)
    poses = np.c_[rng.uniform(-1.5, 1.5, (120, 2)), rng.uniform(-np.pi, np.pi, 120)]
    free = space.free(poses)
    hits = []
    for pose in poses:
        overlaps = checker.overlaps(pose_from_xyyaw(*pose, ROBOT.standing_height), ROBOT.joints.home)
        hits.append(any(overlap.other not in {"parcel"} for overlap in overlaps))
    hits = np.array(hits)
    assert not (free & hits).any()
    assert 20 < hits.sum() < 100
    # Outlines and heights are a little larger than the solids, not much.
    assert (~free & ~hits).sum() < 25
