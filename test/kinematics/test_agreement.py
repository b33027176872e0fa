# SPDX-License-Identifier: Apache-2.0
"""Pinocchio and MuJoCo describe the same robot: frames, mass, centre of mass, gravity, order."""

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from supple.geometry import pose_error
from supple.kinematics.model import KinematicModel
from supple.robots import g1
from supple.sim.g1_model import g1_spec
from supple.sim.world import World

ROBOT = g1()
CONFIGURATIONS = 200


@pytest.fixture(scope="module")
def model():
    return KinematicModel(ROBOT)


@pytest.fixture(scope="module")
def world():
    return World(g1_spec(), ROBOT)


@pytest.fixture(scope="module")
def configurations():
    """Random base poses with all 43 joints anywhere within their limits."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(CONFIGURATIONS):
        base = pin.SE3(pin.exp3(rng.uniform(-2.0, 2.0, 3)), rng.uniform(-3.0, 3.0, 3))
        found.append((base, rng.uniform(ROBOT.joints.lower, ROBOT.joints.upper)))
    return found


def put(world, base, q):
    mujoco.mj_resetData(world.model, world.data)
    world.place_robot(base, q)
    mujoco.mj_forward(world.model, world.data)


def test_joints_and_servos_stand_in_table_order(world, model):
    names = ROBOT.joints.names
    assert set(model.model.names[2:]) == set(names)
    actuated = [world.model.actuator(i).name for i in range(world.model.nu)]
    assert set(actuated) == set(names)
    assert len(actuated) == len(names)
    for i, name in enumerate(names):
        limits = ROBOT.joints.lower[i], ROBOT.joints.upper[i]
        np.testing.assert_allclose(world.model.joint(name).range, limits, atol=1e-5)


def test_all_common_frames_agree_to_a_hundredth_of_a_millimetre(world, model, configurations):
    bodies = [world.model.body(i).name for i in range(1, world.model.nbody)]
    links = [name for name in bodies if model.model.existFrame(name)]
    assert len(links) >= 44
    ids = [model.frame_id(name) for name in links]
    worst = np.zeros(2)
    for base, q in configurations:
        put(world, base, q)
        pin.framesForwardKinematics(model.model, model.data, model.configuration(base, q))
        for name, frame in zip(links, ids, strict=True):
            worst = np.maximum(worst, pose_error(world.object_pose(name), model.data.oMf[frame]))
        for name, pose in zip(
            ROBOT.frames, model.frame_poses(model.configuration(base, q), *ROBOT.frames), strict=True
        ):
            worst = np.maximum(worst, pose_error(world.link_pose(name), pose))
    assert worst[0] <= 1e-5
    assert worst[1] <= 1e-4


def test_both_weigh_the_same(world, model):
    base = world.model.body(ROBOT.base_link).id
    assert world.model.body_subtreemass[base] == pytest.approx(pin.computeTotalMass(model.model), abs=1e-6)


def test_centre_of_mass_and_gravity_torques_agree(world, model, configurations):
    base_body = world.model.body(ROBOT.base_link).id
    dofs = [world.model.joint(name).dofadr[0] for name in ROBOT.joints.names]
    for base, q in configurations:
        put(world, base, q)
        configuration = model.configuration(base, q)
        np.testing.assert_allclose(model.center_of_mass(configuration), world.data.subtree_com[base_body], atol=1e-5)
        np.testing.assert_allclose(model.gravity_torques(configuration), world.data.qfrc_bias[dofs], atol=2e-4)


def test_gravity_is_the_slope_of_potential_energy(model, configurations):
    h = 1e-6
    for base, q in configurations[:3]:
        torques = model.gravity_torques(model.configuration(base, q))
        for i in range(len(q)):
            heights = []
            for sign in (1.0, -1.0):
                moved = q.copy()
                moved[i] += sign * h
                configuration = model.configuration(base, moved)
                heights.append(pin.computePotentialEnergy(model.model, model.data, configuration))
            assert (heights[0] - heights[1]) / (2.0 * h) == pytest.approx(torques[i], abs=1e-4)


def test_what_is_only_drawn_does_not_change_the_physics(world):
    assert World(g1_spec(visual=True), ROBOT).model_hash == world.model_hash
