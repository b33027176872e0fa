# SPDX-License-Identifier: Apache-2.0
"""The balance QP by its equations: dynamics hold, wrenches are ones that soles can give, references are followed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from supple.control.standing import BalanceQP, BalanceReference
from supple.errors import StateError
from supple.geometry import quaternion_of
from supple.kinematics.model import KinematicModel
from supple.robots import PerfectBody, g1
from supple.robots.g1 import LEG_GROUPS

ROBOT = g1()
MODEL = KinematicModel(ROBOT)
N = len(ROBOT.joints)


@pytest.fixture(scope="module")
def qp():
    return BalanceQP(ROBOT)


def standing(rng=None):
    """Return a state with both soles flat on the floor, bent by chance and moving a little if asked."""
    state = PerfectBody(ROBOT.joints).read()
    q, v = ROBOT.joints.home.copy(), np.zeros(N)
    if rng is not None:
        upper = np.setdiff1d(np.arange(N), ROBOT.joints.group(*LEG_GROUPS))
        q[upper] += rng.uniform(-0.3, 0.3, upper.size)
        q = np.clip(q, ROBOT.joints.lower, ROBOT.joints.upper)
        v[upper] = rng.uniform(-0.5, 0.5, upper.size)
    sole = MODEL.frame_poses(MODEL.configuration(pin.SE3.Identity(), q), "l_sole")[0]
    base = pin.SE3(sole.rotation.T, np.zeros(3))
    base.translation = np.array([0.3, -0.2, -(base * sole).translation[2]])
    return replace(state, q=q, v=v, base_position=base.translation, base_quaternion=quaternion_of(base))


def reference_at(support, state, qp):
    """Return the reference that asks for nothing but what is."""
    return BalanceReference(
        np.array([support.height, 0.0, 0.0]), np.stack([support.com, np.zeros(2), np.zeros(2)]), support.base_rotation,
        state.q[qp.table],
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(5))
def test_the_motion_it_plans_is_what_its_torques_and_wrenches_bring_about(qp, seed):
    """Checked with the full robot, fingers included, by Pinocchio's recursive algorithms."""
    state = standing(np.random.default_rng(seed))
    fingers = np.setdiff1d(np.arange(N), qp.table)
    state.q[fingers] = 0.0
    state.v[fingers] = 0.0
    support = qp.update(state)
    solution = qp.solve(reference_at(support, state, qp), {})
    model, data = MODEL.model, MODEL.model.createData()
    q = MODEL.configuration(state.T_world_base, state.q)
    v = np.zeros(model.nv)
    v[MODEL.iv] = state.v
    # Momentum of the whole robot: what the soles push is what it gains, gravity aside.
    tau_free = np.zeros(model.nv)
    feet = [f"{side}_ankle_roll_link" for side in ("left", "right")]
    pin.forwardKinematics(model, data, q, v)
    pin.updateFramePlacements(model, data)
    pin.computeJointJacobians(model, data, q)
    for name, wrench in zip(feet, solution.wrenches, strict=True):
        tau_free += pin.getFrameJacobian(model, data, model.getFrameId(name), pin.LOCAL).T @ wrench
    # The base's six equations hold no motor: with its acceleration free, the joints' accelerations must come out.
    armature = np.zeros(model.nv)
    armature[MODEL.iv] = ROBOT.joints.armature
    M = pin.crba(model, data, q)
    M = np.triu(M) + np.triu(M, 1).T + np.diag(armature)
    bias = pin.nonLinearEffects(model, data, q, v)
    a = np.zeros(model.nv)
    a[MODEL.iv[qp.table]] = solution.acceleration
    a[:6] = np.linalg.solve(M[:6, :6], tau_free[:6] - bias[:6] - M[:6, 6:] @ a[6:])
    torque = (M @ a + bias - tau_free)[MODEL.iv[qp.table]]
    np.testing.assert_allclose(torque, solution.torque, atol=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_wrenches_are_what_a_sole_can_give_and_torques_what_motors_can(qp, seed):
    rng = np.random.default_rng(seed)
    state = standing(rng)
    support = qp.update(state)
    reference = reference_at(support, state, qp)
    # More than can be: the plan has to give way, never the limits.
    far = replace(reference, com=reference.com + np.array([[0.3, 0.2], [0, 0], [0, 0]]) * rng.uniform(-1.0, 1.0))
    solution = qp.solve(far, {})
    assert (np.abs(solution.torque) <= ROBOT.joints.effort[qp.table] + 1e-6).all()
    for force_x, force_y, force_z, moment_x, moment_y, _ in solution.wrenches:
        assert force_z >= 10.0 - 1e-6
        assert max(abs(force_x), abs(force_y)) <= 0.4 * force_z
        assert -0.0441 <= -(moment_y + 0.035 * force_x) / force_z <= 0.1221
        assert abs((moment_x - 0.035 * force_y) / force_z) <= 0.0201


def test_standing_still_takes_the_robot_s_weight_and_no_motion(qp):
    state = standing()
    support = qp.update(state)
    reference = reference_at(support, state, qp)
    solution = qp.solve(reference, {})
    assert solution.wrenches[:, 2].sum() == pytest.approx(qp.mass * 9.81, rel=0.01)
    assert np.abs(solution.acceleration).max() < 0.5
    assert support.foot_tilt < 1e-6
    assert support.capture_point == pytest.approx(support.com)


def test_the_support_frame_moves_with_the_robot(qp):
    here = standing()
    moved = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, 1.0), np.array([3.0, -2.0, 0.4]))
    base = moved * here.T_world_base
    there = replace(here, base_position=base.translation, base_quaternion=quaternion_of(base))
    first, second = qp.update(here), qp.update(there)
    np.testing.assert_allclose(second.com, first.com, atol=1e-9)
    np.testing.assert_allclose(second.base_rotation, first.base_rotation, atol=1e-9)
    assert second.height == pytest.approx(first.height)
    np.testing.assert_allclose(
        second.T_world_support.homogeneous, (moved * first.T_world_support).homogeneous, atol=1e-9
    )


def test_a_load_in_front_asks_for_a_centre_of_mass_behind(qp):
    state = standing()
    support = qp.update(state)
    wrist = support.T_world_support.actInv(qp.pose_of("l_wrist"))
    weight = np.array([0.0, 0.0, -20.0, 0.0, 0.0, 0.0])
    com = qp.com_for({"l_wrist": weight})
    # Moments about the middle cancel: 20 N at the wrist, m g at the centre of mass.
    np.testing.assert_allclose(com * qp.mass * 9.81, -20.0 * wrist.translation[:2], atol=1e-6)
    reference = replace(reference_at(support, state, qp), com=np.stack([support.com, np.zeros(2), np.zeros(2)]))
    forces = [qp.solve(reference, load).wrenches[:, 2].sum() for load in ({}, {"l_wrist": weight})]
    assert forces[1] - forces[0] == pytest.approx(20.0, rel=0.1)


def test_a_state_that_is_not_finite_is_refused(qp):
    state = standing()
    broken = replace(state, v=np.where(np.arange(N) == 3, np.nan, state.v))
    with pytest.raises(StateError, match="not finite"):
        qp.update(broken)
