# SPDX-License-Identifier: Apache-2.0
"""Walking to a pose: it arrives and stands there, or says why not."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from supple.control.locomotion import Locomotion, WalkOutcome
from supple.control.upper_body import UpperBodyController
from supple.control.walking import WalkingPolicy
from supple.errors import StateError
from supple.geometry import pose_from_xyyaw, wrap_angle, xyyaw_of
from supple.robots import PerfectBody, g1
from supple.robots.g1 import LEG_GROUPS

ROBOT = g1()
JOINTS = ROBOT.joints
DT = ROBOT.contract.control_interval


@pytest.fixture(scope="module")
def shared():
    return Locomotion(ROBOT), UpperBodyController(ROBOT)


@pytest.fixture
def parts(shared):
    for part in shared:
        part.reset()
    return shared


def tick(body, parts):
    legs, upper = parts
    body.apply(upper.step(body.read(), DT))
    body.write(legs.step(body.read(), DT))
    return float(body.read().T_world_base.rotation[2, 2])


@pytest.mark.parametrize(
    "goal", [(1.2, 0.0, 0.0), (0.5, 0.4, 1.2), (-0.3, -0.1, -0.4), (0.0, 0.0, 3.0), (0.05, 0.04, 0.1)]
)
def test_a_waypoint_is_reached_within_3_cm_and_2_degrees_while_standing(body, parts, goal):
    locomotion = parts[0]
    locomotion.walk_to(pose_from_xyyaw(*goal))
    assert locomotion.walking
    upright, ticks = 1.0, 0
    while locomotion.walking and ticks < 45 / DT:
        upright = min(upright, tick(body, parts))
        ticks += 1
    assert (locomotion.outcome, locomotion.reason) == (WalkOutcome.ARRIVED, "")
    for _ in range(100):
        upright = min(upright, tick(body, parts))
    assert upright > 0.95
    state = body.read()
    assert np.hypot(*state.base_linear_velocity[:2]) < 0.03
    error = xyyaw_of(state.T_world_base) - goal
    assert np.hypot(*error[:2]) <= 0.03
    assert abs(wrap_angle(error[2])) <= np.radians(2.0)


def test_a_walk_that_takes_too_long_says_how_far_it_is(body, parts):
    parts[0].walk_to(pose_from_xyyaw(5.0, 0.0, 0.0), timeout=1.0)
    for _ in range(60):
        tick(body, parts)
    assert parts[0].outcome is WalkOutcome.TIMEOUT
    assert "still 4." in parts[0].reason
    assert not parts[0].walking


def test_a_velocity_that_odometry_does_not_show_is_not_executed():
    """Case 22: accepted, but the robot does not move. A body without physics moves its joints, never its base."""
    body, locomotion = PerfectBody(JOINTS, DT), Locomotion(ROBOT)
    locomotion.walk_to(pose_from_xyyaw(2.0, 0.0, 0.0))
    for _ in range(250):
        body.write(locomotion.step(body.read(), DT))
    assert locomotion.outcome is WalkOutcome.NOT_EXECUTED
    assert "accepted, not executed" in locomotion.reason


def test_a_fall_ends_the_walk_and_damps_the_legs_until_a_reset(body, parts):
    locomotion = parts[0]
    locomotion.walk_to(pose_from_xyyaw(2.0, 0.0, 0.0))
    tick(body, parts)
    lying = pin.SE3(pin.rpy.rpyToMatrix(0.0, 1.4, 0.0), np.array([0.0, 0.0, 0.4]))
    body.world.place_robot(lying, JOINTS.home)
    body.world.set_state(body.world.get_state())
    command = locomotion.step(body.read(), DT)
    assert locomotion.outcome is WalkOutcome.FALLEN
    assert "upright" in locomotion.reason
    legs = JOINTS.group(*LEG_GROUPS)
    np.testing.assert_array_equal(np.flatnonzero(command.active), legs)
    assert not command.kp[legs].any()
    assert (command.kd[legs] > 0.0).all()
    body.world.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, ROBOT.standing_height), JOINTS.home)
    body.world.set_state(body.world.get_state())
    assert not locomotion.step(body.read(), DT).kp[legs].any()
    locomotion.reset()
    assert locomotion.step(body.read(), DT).kp[legs].all()


def test_stopping_gives_up_the_walk(body, parts):
    parts[0].walk_to(pose_from_xyyaw(5.0, 0.0, 0.0))
    for _ in range(50):
        tick(body, parts)
    parts[0].stop()
    assert not parts[0].walking
    for _ in range(200):
        assert tick(body, parts) > 0.95
    before = body.read().base_position
    for _ in range(100):
        tick(body, parts)
    assert np.hypot(*(body.read().base_position - before)[:2]) < 0.01


@pytest.mark.parametrize("velocity", [[np.nan, 0.0, 0.0], [0.0, np.inf, 0.0], [0.1, 0.2], 0.3])
def test_a_velocity_that_is_none_is_refused(parts, velocity):
    with pytest.raises(StateError, match="vx, vy, wz"):
        parts[0].command_velocity(velocity)


def test_a_goal_that_is_nowhere_is_refused_at_once(parts):
    nowhere = pin.SE3(np.eye(3), np.array([np.nan, 0.0, 0.0]))
    with pytest.raises(StateError, match="finite"):
        parts[0].walk_to(nowhere)
    assert not parts[0].walking


def test_the_policy_leaves_the_upper_body_to_others(body):
    policy = WalkingPolicy(ROBOT)
    policy.command([0.3, 0.0, 0.0])
    command = policy.step(body.read(), DT)
    np.testing.assert_array_equal(np.flatnonzero(command.active), JOINTS.group(*LEG_GROUPS))
    # Where arms and waist are makes no difference to the legs.
    other = WalkingPolicy(ROBOT)
    other.command([0.3, 0.0, 0.0])
    state = body.read()
    state.q[JOINTS.group("left_arm", "waist")] += 0.5
    legs = JOINTS.group(*LEG_GROUPS)
    np.testing.assert_array_equal(other.step(state, DT).q[legs], command.q[legs])
