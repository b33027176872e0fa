# SPDX-License-Identifier: Apache-2.0
"""States, commands, limits and the bodies that need no physics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from supple.errors import StateError
from supple.robots import Body, PerfectBody, ReadOnlyBody, RobotCommand, g1
from supple.robots.limits import CommandLimiter

ROBOT = g1()
JOINTS = ROBOT.joints
N = len(JOINTS)
ARM = JOINTS.group("left_arm")


def arm_command(q, **fields):
    command = RobotCommand.blank(JOINTS, "test")
    command.active[ARM] = True
    command.q[ARM] = q
    for key, value in fields.items():
        getattr(command, key)[ARM] = value
    return command


@pytest.mark.parametrize("field", ["q", "v", "tau", "kp", "kd"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_number_that_is_not_finite_names_field_source_and_joints(field, value):
    command = arm_command(0.0)
    getattr(command, field)[ARM[[3, 5]]] = value
    with pytest.raises(StateError) as caught:
        command.check(JOINTS)
    assert str(caught.value) == (
        f"command from 'test': {field} is not finite for left_elbow_joint, left_wrist_pitch_joint"
    )


def test_entries_that_are_not_addressed_carry_no_meaning():
    command = arm_command(0.1)
    command.q[JOINTS.group("right_leg")] = np.nan
    command.check(JOINTS)
    body = PerfectBody(JOINTS)
    body.write(command)
    np.testing.assert_array_equal(body.read().q[JOINTS.group("right_leg")], JOINTS.home[JOINTS.group("right_leg")])


@pytest.mark.parametrize("field", ["q", "v", "tau", "kp", "kd", "active"])
def test_a_wrong_shape_names_the_field(field):
    command = replace(arm_command(0.0), **{field: np.zeros(29, dtype=bool if field == "active" else float)})
    with pytest.raises(StateError, match=rf"{field} has shape \(29,\), expected \(43,\)"):
        command.check(JOINTS)


@given(hnp.arrays(np.float64, (5, N), elements=st.floats(-1e4, 1e4)), hnp.arrays(np.bool_, N))
def test_the_limiter_keeps_the_table_s_limits_and_reports_what_it_changed(values, active):
    limiter = CommandLimiter(JOINTS)
    requested = RobotCommand(0, "test", *values, active)
    applied = limiter.limit(requested)
    assert ((applied.q >= JOINTS.lower) & (applied.q <= JOINTS.upper)).all()
    assert (np.abs(applied.v) <= JOINTS.velocity).all()
    assert (np.abs(applied.tau) <= JOINTS.effort).all()
    assert (applied.kp >= 0.0).all()
    assert (applied.kd >= 0.0).all()
    keys = ("q", "v", "tau", "kp", "kd")
    different = np.any([getattr(applied, k) != getattr(requested, k) for k in keys], axis=0) & active
    assert limiter.changed(requested, applied) == [JOINTS.names[i] for i in np.flatnonzero(different)]
    assert set(limiter.counts) == set(limiter.changed(requested, applied))


def test_a_command_within_the_limits_passes_unchanged():
    limiter = CommandLimiter(JOINTS)
    command = arm_command(JOINTS.home[ARM])
    applied = limiter.limit(command)
    assert limiter.changed(command, applied) == []
    assert not limiter.counts
    limiter.limit(arm_command(JOINTS.home[ARM], tau=1e3))
    limiter.limit(arm_command(JOINTS.home[ARM], tau=1e3))
    assert limiter.counts["left_elbow_joint"] == 2


def test_damping_addresses_every_joint_without_stiffness():
    command = RobotCommand.damping(JOINTS, "estop")
    assert command.active.all()
    assert not command.kp.any()
    assert not command.v.any()
    assert not command.tau.any()
    assert (command.kd > 0.0).all()


def test_a_perfect_body_reaches_targets_within_its_limits_and_one_interval():
    body = PerfectBody(JOINTS, 0.02)
    assert isinstance(body, Body)
    target = JOINTS.home[ARM] + 0.1
    applied = body.write(arm_command(target))
    state = body.read()
    np.testing.assert_array_equal(state.q[ARM], target)
    np.testing.assert_allclose(state.v[ARM], 0.1 / 0.02)
    assert state.stamp_ns == 20_000_000
    np.testing.assert_array_equal(applied.q[ARM], target)
    body.write(arm_command(target))
    np.testing.assert_array_equal(body.read().v[ARM], 0.0)
    applied = body.write(arm_command(99.0))
    np.testing.assert_array_equal(body.read().q[ARM], JOINTS.upper[ARM])
    np.testing.assert_array_equal(applied.q[ARM], JOINTS.upper[ARM])
    with pytest.raises(StateError, match="left_elbow_joint"):
        body.write(arm_command(np.nan))


def test_a_read_only_body_shows_everything_and_moves_nothing():
    body = PerfectBody(JOINTS)
    watched = ReadOnlyBody(body)
    assert isinstance(watched, Body)
    assert (watched.joints, watched.control_interval) == (body.joints, body.control_interval)
    with pytest.raises(StateError, match=r"read-only.*'test'"):
        watched.write(arm_command(0.5))
    watched.close()
    assert watched.read() is body.read()
    np.testing.assert_array_equal(body.read().q, JOINTS.home)


@pytest.mark.parametrize(
    "field", ["q", "v", "effort", "base_position", "base_quaternion", "base_linear_velocity", "base_acceleration"]
)
def test_a_state_knows_whether_it_is_finite(field):
    state = PerfectBody(JOINTS).read()
    assert state.finite
    bad = getattr(state, field).copy()
    bad[-1] = np.nan
    assert not replace(state, **{field: bad}).finite


@pytest.mark.parametrize("quaternion", [[0.0, 0.0, 0.0, 0.0], [np.nan, 0.0, 0.0, 1.0]])
def test_a_base_orientation_that_is_none_is_refused(quaternion):
    state = replace(PerfectBody(JOINTS).read(), base_quaternion=np.array(quaternion))
    with pytest.raises(StateError, match="base_quaternion"):
        _ = state.T_world_base
