# SPDX-License-Identifier: Apache-2.0
"""The simulated robot as a body: targets that stay, limits that are reported, time that passes."""

from __future__ import annotations

import numpy as np
import pytest

from supple.errors import StateError
from supple.geometry import pose_from_xyyaw
from supple.robots import Body, RobotCommand, g1
from supple.sim.body import SimBody
from supple.sim.g1_model import g1_spec
from supple.sim.world import World

ROBOT = g1()
JOINTS = ROBOT.joints
LEFT, RIGHT = JOINTS.group("left_arm"), JOINTS.group("right_arm")


@pytest.fixture(scope="module")
def compiled():
    return World(g1_spec(), ROBOT)


@pytest.fixture
def body(compiled):
    """The robot held high above the floor, so that only the servos count."""
    compiled.clear()
    compiled.model.opt.gravity[2] = 0.0
    compiled.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, 2.0), JOINTS.home)
    compiled.set_state(compiled.get_state())
    result = SimBody(compiled, 0.02)
    result.reset()
    yield result
    compiled.model.opt.gravity[2] = -9.81


def partial(indices, q, **fields):
    command = RobotCommand.blank(JOINTS, "test")
    command.active[indices] = True
    command.q[indices] = q
    for key, value in fields.items():
        getattr(command, key)[indices] = value
    return command


def test_it_is_a_body_whose_writes_pass_one_interval(body):
    assert isinstance(body, Body)
    stamps = [body.read().stamp_ns]
    for _ in range(3):
        body.write(partial(LEFT, JOINTS.home[LEFT]))
        stamps.append(body.read().stamp_ns)
    assert stamps == [0, 20_000_000, 40_000_000, 60_000_000]


def test_unaddressed_joints_keep_their_last_target(body):
    target = JOINTS.home[LEFT] + 0.3
    body.write(partial(LEFT, target, kp=77.0, tau=0.5))
    applied = body.write(partial(RIGHT, JOINTS.home[RIGHT] - 0.2))
    assert applied.active.all()
    np.testing.assert_array_equal(applied.q[LEFT], target)
    np.testing.assert_array_equal(applied.kp[LEFT], 77.0)
    np.testing.assert_array_equal(applied.tau[LEFT], 0.5)
    np.testing.assert_array_equal(applied.q[RIGHT], JOINTS.home[RIGHT] - 0.2)
    np.testing.assert_array_equal(applied.q[JOINTS.group("left_leg")], JOINTS.home[JOINTS.group("left_leg")])
    for _ in range(150):
        body.write(partial(RIGHT, JOINTS.home[RIGHT] - 0.2))
    q = body.read().q
    np.testing.assert_allclose(q[LEFT], target, atol=0.03)
    np.testing.assert_allclose(q[RIGHT], JOINTS.home[RIGHT] - 0.2, atol=0.03)


def test_a_reset_forgets_targets(body):
    body.write(partial(LEFT, JOINTS.home[LEFT] + 0.3))
    body.world.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, 2.0), JOINTS.home)
    body.world.set_state(body.world.get_state())
    body.reset()
    applied = body.write(partial(RIGHT, JOINTS.home[RIGHT]))
    np.testing.assert_array_equal(applied.q[LEFT], JOINTS.home[LEFT])


def test_limits_clamp_and_report(body):
    elbow = JOINTS.index("left_elbow_joint")
    applied = body.write(partial([elbow], 9.0, tau=1e3))
    assert applied.q[elbow] == JOINTS.upper[elbow]
    assert applied.tau[elbow] == JOINTS.effort[elbow]
    assert body.limiter.counts == {"left_elbow_joint": 1}
    for _ in range(30):
        body.write(partial([elbow], 9.0))
    state = body.read()
    assert state.q[elbow] < JOINTS.upper[elbow] + 0.05
    assert (np.abs(state.effort) <= JOINTS.effort + 1e-9).all()


def test_a_refused_command_passes_no_time_and_changes_nothing(body):
    before = body.world.get_state()
    with pytest.raises(StateError, match="q is not finite for left_elbow_joint"):
        body.write(partial([JOINTS.index("left_elbow_joint")], np.nan))
    np.testing.assert_array_equal(body.world.get_state(), before)


def test_servos_apply_the_stated_torque_law(body):
    rng = np.random.default_rng(0)
    command = partial(np.arange(len(JOINTS)), JOINTS.home)
    command.q[:] += rng.uniform(-0.01, 0.01, len(JOINTS))
    command.q[:] = np.clip(command.q, JOINTS.lower, JOINTS.upper)
    command.v[:] = rng.uniform(-0.1, 0.1, len(JOINTS))
    command.tau[:] = rng.uniform(-0.1, 0.1, len(JOINTS))
    state = body.read()
    body.apply(command)
    body.world.step(1)
    expected = command.kp * (command.q - state.q) + command.kd * (command.v - state.v) + command.tau
    np.testing.assert_allclose(body.read().effort, np.clip(expected, -JOINTS.effort, JOINTS.effort), atol=1e-9)


def test_closing_damps_and_may_be_done_twice(body):
    body.write(partial(LEFT, JOINTS.home[LEFT] + 0.5))
    body.close()
    body.close()
    body.world.step(1)
    state = body.read()
    damping = RobotCommand.damping(JOINTS, "close")
    before = state.v.copy()
    body.world.step(1)
    expected = np.clip(-damping.kd * before, -JOINTS.effort, JOINTS.effort)
    np.testing.assert_allclose(body.read().effort, expected, atol=1e-9)


@pytest.mark.parametrize("interval", [0.013, 0.0, -0.02, 0.001])
def test_an_interval_that_physics_cannot_pass_is_refused(compiled, interval):
    with pytest.raises(StateError, match="multiple"):
        SimBody(compiled, interval)
