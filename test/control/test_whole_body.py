# SPDX-License-Identifier: Apache-2.0
"""The whole-body controller on the simulated robot: velocities are reached, stops hold, arms stay where told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from supple.control.whole_body import WholeBodyController
from supple.errors import ContractError, JointError, StateError
from supple.geometry import wrap_angle, xyyaw_of
from supple.robots import PerfectBody, g1
from supple.robots.g1 import ARM_GROUPS

ROBOT = g1()
JOINTS = ROBOT.joints
HOME = JOINTS.home
DT = ROBOT.contract.control_interval


@pytest.fixture(scope="module")
def shared():
    return WholeBodyController(ROBOT)


@pytest.fixture
def controller(shared):
    shared.reset()
    return shared


def drive(body, controller, seconds, velocity=(0.0, 0.0, 0.0), q=HOME):
    """Execute one action for some time; return (x, y, yaw) per tick and the lowest uprightness on the way."""
    track, upright = [], 1.0
    controller.command(controller.action(q[controller.upper_body.indices], velocity))
    for _ in range(round(seconds / DT)):
        body.write(controller.step(body.read(), DT))
        pose = body.read().T_world_base
        track.append(xyyaw_of(pose))
        upright = min(upright, pose.rotation[2, 2])
    return np.array(track), upright


def mean_velocity(track):
    """Return the mean (vx, vy, wz) in the heading frame, the sway of each gait period averaged out."""
    period = np.ones(round(1.0 / DT)) * DT
    columns = track[:, 0], track[:, 1], np.unwrap(track[:, 2])
    x, y, yaw = (np.convolve(column, period, "valid") for column in columns)
    c, s = np.cos(yaw[:-1]), np.sin(yaw[:-1])
    dx, dy = np.diff(x), np.diff(y)
    return np.array([c * dx + s * dy, -s * dx + c * dy, np.diff(yaw)]).mean(axis=1) / DT


@pytest.mark.parametrize(
    "velocity", [(0.3, 0.0, 0.0), (0.0, 0.0, 0.5), (-0.2, 0.0, 0.0), (0.0, 0.2, 0.0), (0.5, 0.0, 0.0)]
)
def test_a_commanded_velocity_is_really_reached(body, controller, velocity):
    drive(body, controller, 2.0, velocity)
    track, upright = drive(body, controller, 7.0, velocity)
    assert upright > 0.95
    wanted, reached = np.array(velocity), mean_velocity(track)
    along = np.flatnonzero(wanted)
    np.testing.assert_allclose(reached[along], wanted[along], rtol=0.12)
    # Where nothing is wanted, at most a creep of 3.5 cm/s or 2 degrees/s is left.
    across = wanted == 0.0
    assert (np.abs(reached) < 0.035)[across].all(), reached


def test_a_curve_is_walked_in_the_wanted_sense_and_about_as_fast(body, controller):
    for turn in (0.4, -0.4):
        drive(body, controller, 2.0, (0.3, 0.0, turn))
        track, upright = drive(body, controller, 7.0, (0.3, 0.0, turn))
        assert upright > 0.95
        np.testing.assert_allclose(mean_velocity(track), (0.3, 0.0, turn), atol=0.06)


def test_after_a_stop_the_robot_stands_without_drifting(body, controller):
    drive(body, controller, 3.0, (0.3, 0.0, 0.0))
    _, upright = drive(body, controller, 4.0)
    assert controller.walking.standing
    track, still = drive(body, controller, 5.0)
    assert min(upright, still) > 0.95
    assert np.hypot(*(track[-1] - track[0])[:2]) < 0.01
    assert np.ptp(track[:, :2], axis=0).max() < 0.01
    assert abs(wrap_angle(track[-1, 2] - track[0, 2])) < 0.02


def test_standing_from_the_start_stays_on_the_spot(body, controller):
    drive(body, controller, 1.0)
    track, upright = drive(body, controller, 5.0)
    assert upright > 0.99
    assert np.hypot(*(track[-1] - track[0])[:2]) < 0.01


@pytest.mark.parametrize("velocity", [(1.0, 0.0, 0.0), (-1.0, 1.0, 1.0), (0.0, -1.0, -1.0)])
def test_the_extremes_of_the_contract_do_not_throw_the_robot(body, controller, velocity):
    _, walking = drive(body, controller, 4.0, velocity)
    _, stopping = drive(body, controller, 3.0)
    assert min(walking, stopping) > 0.8


def test_changes_of_mind_do_not_throw_the_robot(body, controller):
    rng = np.random.default_rng(0)
    for _ in range(12):
        _, upright = drive(body, controller, 0.6, rng.choice([-0.5, 0.0, 0.5], 3))
        assert upright > 0.8


def test_arms_hold_their_posture_against_gravity(body, controller):
    """Both arms out to the front and to the side, where gravity pulls hardest."""
    for pitch, roll, elbow in ((-0.9, 0.3, 1.2), (0.0, 1.1, 1.4)):
        q = HOME.copy()
        for side, sign in (("left", 1.0), ("right", -1.0)):
            q[JOINTS.index(f"{side}_shoulder_pitch_joint")] = pitch
            q[JOINTS.index(f"{side}_shoulder_roll_joint")] = sign * roll
            q[JOINTS.index(f"{side}_elbow_joint")] = elbow
        drive(body, controller, 3.0, q=q)
        held = []
        for _ in range(50):
            drive(body, controller, DT, q=q)
            held.append(body.read().q)
        free = JOINTS.group("waist", *ARM_GROUPS)
        error = np.abs(np.mean(held, axis=0) - q)[free]
        assert error.max() < 0.02, dict(zip(np.array(JOINTS.names)[free], error, strict=True))


def test_targets_are_approached_no_faster_than_allowed(controller):
    """On a body that does what it is told, the positions sent show the speed."""
    body = PerfectBody(JOINTS, DT)
    q = HOME.copy()
    q[JOINTS.group(*ARM_GROUPS)] = JOINTS.upper[JOINTS.group(*ARM_GROUPS)]
    before = body.read().q[controller.upper_body.indices]
    controller.command(controller.action(q[controller.upper_body.indices], np.zeros(3)))
    for _ in range(100):
        command = controller.step(body.read(), DT)
        now = command.q[controller.upper_body.indices]
        arms = slice(3, 17)
        assert np.abs(now - before)[arms].max() <= 4.0 * DT + 1e-12
        before = now
        body.write(command)
    np.testing.assert_allclose(
        body.read().q[controller.upper_body.indices], q[controller.upper_body.indices], atol=1e-9
    )


def test_every_joint_is_addressed_once_with_the_table_s_gains(body, controller):
    command = controller.step(body.read(), DT)
    command.check(JOINTS)
    assert command.active.all()
    assert command.source == "whole_body"
    np.testing.assert_array_equal(command.kp, JOINTS.kp)
    np.testing.assert_array_equal(command.kd, JOINTS.kd)


def test_a_reset_makes_the_controller_as_new(body, controller):
    start = body.world.get_state()

    def episode(used):
        body.world.set_state(start)
        body.reset()
        used.reset()
        drive(body, used, 0.5)
        drive(body, used, 1.0, (0.4, 0.1, -0.3))
        return body.world.get_state()

    first = episode(controller)
    drive(body, controller, 1.0, (-0.5, 0.3, 0.2))
    np.testing.assert_array_equal(episode(controller), first)
    np.testing.assert_array_equal(episode(WholeBodyController(ROBOT)), first)


# -- what is refused and what is reported -----------------------------------------------------------------------------


def test_targets_that_are_not_finite_name_their_joints(body, controller):
    action = controller.action(HOME[controller.upper_body.indices], np.zeros(3))
    action[[3, 32]] = np.nan
    with pytest.raises(ContractError, match="left_shoulder_pitch_joint, base_velocity_y"):
        controller.command(action)
    with pytest.raises(JointError, match="waist_roll_joint"):
        controller.upper_body.command(np.where(np.arange(31) == 1, np.inf, 0.0))
    with pytest.raises(JointError, match="31"):
        controller.upper_body.command(np.zeros(29))
    with pytest.raises(StateError, match="vx, vy, wz"):
        controller.walking.command([0.1, np.nan, 0.0])


def test_a_refused_action_leaves_the_last_one_in_force(body, controller):
    q = HOME.copy()
    q[JOINTS.index("left_elbow_joint")] = 1.0
    controller.command(controller.action(q[controller.upper_body.indices], [0.1, 0.0, 0.0]))
    bad = controller.action(HOME[controller.upper_body.indices], [0.0, 0.0, np.nan])
    with pytest.raises(ContractError):
        controller.command(bad)
    np.testing.assert_array_equal(controller.upper_body.target, q[controller.upper_body.indices])


@pytest.mark.parametrize("field", ["q", "base_angular_velocity", "base_position"])
def test_a_state_that_is_not_finite_is_refused(body, controller, field):
    state = body.read()
    value = getattr(state, field).copy()
    value[0] = np.nan
    with pytest.raises(StateError):
        controller.step(replace(state, **{field: value}), DT)


@pytest.mark.parametrize(("height", "served"), [(0.1, 0.35), (0.3, 0.35), (0.5, 0.5), (0.75, 0.75), (2.0, 0.78)])
def test_a_height_that_cannot_be_reached_is_brought_to_the_nearest_and_reported(controller, height, served):
    action = controller.action(HOME[controller.upper_body.indices], np.zeros(3))
    action[-1] = height
    applied = controller.command(action)
    assert controller.limited == ([] if served == height else ["base_height"])
    assert applied[-1] == served


@pytest.mark.parametrize("height", [0.3, 0.5, 0.8, 0.1, 2.0])
def test_with_a_velocity_another_height_than_standing_is_reported_once_and_not_applied(controller, height):
    action = controller.action(HOME[controller.upper_body.indices], [0.1, 0.0, 0.0])
    action[-1] = height
    applied = controller.command(action)
    assert controller.limited == ["base_height"]
    assert applied[-1] == ROBOT.standing_height


def test_limits_are_reported_by_name_until_the_next_command(controller):
    action = controller.action(HOME[controller.upper_body.indices], [3.0, 0.0, 0.0])
    action[6] = 9.0
    applied = controller.command(action)
    assert controller.limited == ["left_elbow_joint", "base_velocity_x"]
    assert applied[6] == JOINTS.upper[JOINTS.index("left_elbow_joint")]
    assert applied[31] == ROBOT.contract.upper[31] == 0.6
    controller.command(controller.action(HOME[controller.upper_body.indices], np.zeros(3)))
    assert controller.limited == []


def test_an_action_is_taken_apart_as_it_was_composed(controller):
    action = controller.action(np.arange(31) / 100.0, [0.1, 0.2, 0.3])
    assert controller.contract.check(action) is not None
    np.testing.assert_array_equal(controller.upper_body_of(action), np.arange(31) / 100.0)
    np.testing.assert_array_equal(controller.velocity_of(action), [0.1, 0.2, 0.3])
    assert action[-1] == ROBOT.standing_height
