# SPDX-License-Identifier: Apache-2.0
"""Soundness: feet that slide, bodies inside each other and tilts are measured; what is intended is told apart."""

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from supple.geometry import pose_from_xyyaw
from supple.robots import g1
from supple.sim.g1_model import g1_spec
from supple.sim.soundness import LIMITS, Soundness, SoundnessMonitor
from supple.sim.world import World

ROBOT = g1()
DEPTH = 0.001


@pytest.fixture(scope="module")
def world():
    spec = g1_spec()
    block = spec.worldbody.add_body(name="block", pos=[5.0, 0.0, 0.5])
    block.add_freejoint()
    block.add_geom(name="block", type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.05, 0.0, 0.0], mass=0.1)
    return World(spec, ROBOT)


@pytest.fixture
def height(world):
    """Height of the base with which the soles are a millimetre inside the floor."""
    world.clear()
    world.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, 1.0), ROBOT.joints.home)
    mujoco.mj_kinematics(world.model, world.data)
    return 1.0 - world.link_pose("l_sole").translation[2] - DEPTH


def watched(world, poses, standing=True, intended=()) -> Soundness:
    """Put the robot from pose to pose; ``standing`` is one for all or one for each."""
    monitor = SoundnessMonitor(world, intended)
    told = [standing] * len(poses) if isinstance(standing, bool) else standing
    for pose, stands in zip(poses, told, strict=True):
        world.place_robot(pose, ROBOT.joints.home)
        mujoco.mj_forward(world.model, world.data)
        monitor.observe(stands)
    return monitor.result()


def test_nothing_watched_is_sound(world) -> None:
    found = SoundnessMonitor(world, ()).result()
    assert found.excess() == {}
    assert set(found.measures.values()) == {0.0}


def test_a_robot_that_stands_still_is_sound_and_its_soles_are_intended(world, height) -> None:
    found = watched(world, [pose_from_xyyaw(0.3, 0.2, 0.5, height)] * 3)
    assert found.excess() == {}
    assert (found.tilt, found.foot_slide, found.penetration) == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)
    # The right foot's capsules differ by 2 mm in radius from the left one's, and so in depth.
    assert DEPTH / 2 < found.intended_penetration < 4 * DEPTH


@pytest.mark.parametrize("direction", [0.0, 1.0, 2.5])
def test_a_slide_is_measured_along_the_floor_from_where_the_foot_came_down(world, height, direction) -> None:
    steps = np.linspace(0.0, 0.03, 7)
    poses = [pose_from_xyyaw(d * np.cos(direction), d * np.sin(direction), 0.4, height) for d in (*steps, 0.01)]
    found = watched(world, poses)
    assert found.foot_slide == pytest.approx(0.03, abs=1e-9)
    assert list(found.excess()) == ["foot_slide"]
    assert "slid 3.0 cm" in found.excess()["foot_slide"]


def test_feet_that_turn_on_the_spot_slide(world, height) -> None:
    found = watched(world, [pose_from_xyyaw(0.0, 0.0, yaw, height) for yaw in (0.0, 0.05, 0.1)])
    assert 0.01 < found.foot_slide < 0.03


def test_a_step_is_no_slide(world, height) -> None:
    path = [(0.0, 0.0), (0.0, 0.01), (0.1, 0.01), (0.1, 0.0), (0.105, 0.0)]
    found = watched(world, [pose_from_xyyaw(x, 0.0, 0.0, height + up) for x, up in path])
    assert found.foot_slide == pytest.approx(0.005, abs=1e-9)


def test_a_foot_that_is_hardly_lifted_still_slides(world, height) -> None:
    path = [(0.0, 0.0), (0.01, 1.5 * DEPTH), (0.02, 0.0), (0.03, 1.5 * DEPTH)]
    found = watched(world, [pose_from_xyyaw(x, 0.0, 0.0, height + up) for x, up in path])
    assert found.foot_slide == pytest.approx(0.03, abs=1e-9)


def test_feet_of_a_robot_that_walks_are_free(world, height) -> None:
    poses = [pose_from_xyyaw(x, 0.0, 0.0, height) for x in (0.0, 0.005, 0.2, 0.4, 0.401)]
    assert watched(world, poses, standing=[True, True, False, True, True]).foot_slide == pytest.approx(0.005, abs=1e-9)


def test_the_largest_tilt_counts(world) -> None:
    poses = [pin.SE3(pin.rpy.rpyToMatrix(0.0, pitch, 0.3), np.array([0.0, 0.0, 1.5])) for pitch in (0.1, -1.0, 0.2)]
    found = watched(world, poses)
    assert found.tilt == pytest.approx(1.0)
    assert "tilted by 57 deg" in found.excess()["tilt"]


def test_depth_is_told_apart_by_intention_and_names_the_bodies(world, height) -> None:
    standing = pose_from_xyyaw(0.0, 0.0, 0.0, height)
    world.place_robot(standing, ROBOT.joints.home)
    mujoco.mj_forward(world.model, world.data)
    palm = world.model.geom("left_palm")
    outward = world.data.geom_xmat[palm.id].reshape(3, 3)[:, 1]
    deep = 0.008
    for sign in (-1.0, 1.0):
        place = world.data.geom_xpos[palm.id] + sign * outward * (palm.size[1] + 0.05 - deep)
        world.place_object("block", pin.SE3(np.eye(3), place))
        found = watched(world, [standing])
        if set(found.deepest) == {"left_wrist_yaw_link", "block"}:
            break
    assert found.penetration == pytest.approx(deep, abs=1e-6)
    assert "8.0 mm inside each other" in found.excess()["penetration"]
    assert "block" in found.excess()["penetration"]
    held = watched(world, [standing], intended=[("left_wrist_yaw_link", "block")])
    assert held.intended_penetration == pytest.approx(deep, abs=1e-6)
    assert held.penetration < LIMITS["penetration"]
    assert held.excess() == {}


def test_a_reset_forgets(world, height) -> None:
    monitor = SoundnessMonitor(world, ())
    for x in (0.0, 0.05):
        world.place_robot(pose_from_xyyaw(x, 0.0, 0.0, height), ROBOT.joints.home)
        mujoco.mj_forward(world.model, world.data)
        monitor.observe(standing=True)
    monitor.reset()
    monitor.observe(standing=True)
    assert monitor.result().foot_slide == 0.0
