# SPDX-License-Identifier: Apache-2.0
"""From walking to squatting and back, driven by actions: nobody falls, no foot slides, nothing waits forever."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from supple.control.standing import HandOver, LegMode, Support
from supple.control.whole_body import WholeBodyController
from supple.robots import g1
from supple.robots.g1 import LEG_GROUPS
from supple.tasks.box_lift import BoxLift
from supple.tasks.environment import Environment

ROBOT = g1()
DT = ROBOT.contract.control_interval
WALKING = ROBOT.standing_height
STILL = (0.0, 0.0, 0.0)
FEET = ("left_ankle_roll_link", "right_ankle_roll_link")


class Run:
    """An environment and its controller, with what happened."""

    def __init__(self, environment, controller):
        self.environment, self.controller = environment, controller
        layout = environment.task.nominal()
        self.q = layout.q
        environment.reset(layout)
        controller.reset()
        self.upright, self.modes, self.jump = 1.0, [], 0.0

    def act(self, seconds, height=WALKING, velocity=STILL, until=None):
        """Execute one action for some time, or until a mode is reached."""
        controller, body = self.controller, self.environment.body
        controller.command(controller.action(self.q[controller.upper_body.indices], velocity, height))
        for _ in range(round(seconds / DT)):
            body.write(controller.step(body.read(), DT))
            pose = body.read().T_world_base
            self.upright = min(self.upright, pose.rotation[2, 2])
            if not self.modes or self.modes[-1] is not controller.mode:
                self.modes.append(controller.mode)
            if controller.mode is until:
                return pose
        assert until is None, f"{until} was not reached in {seconds} s, but {self.modes}"
        return pose

    def feet(self):
        return np.array([self.environment.world.object_pose(name).translation for name in FEET])

    @property
    def height(self):
        return self.controller.standing.look(self.environment.body.read()).height


@pytest.fixture(scope="module")
def shared():
    task = BoxLift()
    return Environment(task), WholeBodyController(task.robot)


@pytest.fixture
def run(shared):
    return Run(*shared)


def test_an_action_squats_and_another_walks_on(run):
    """The whole way: stand, 0.4 m for three seconds, back up, half a metre ahead."""
    run.act(0.5)
    assert run.modes == [LegMode.WALKING]
    feet = run.feet()
    run.act(3.0, height=0.4)
    assert run.height == pytest.approx(0.4, abs=0.015)
    run.act(2.5)
    assert run.height == pytest.approx(WALKING, abs=0.01)
    assert np.linalg.norm((run.feet() - feet)[:, :2], axis=1).max() < 0.01
    before = run.environment.body.read().T_world_base
    pose = run.act(3.5, velocity=(0.3, 0.0, 0.0))
    assert pose.translation[0] - before.translation[0] > 0.5
    assert run.modes == [LegMode.WALKING, LegMode.STOPPING, LegMode.STANDING, LegMode.WALKING]
    assert run.upright > 0.8


def test_a_walking_robot_comes_to_rest_before_it_squats_and_rises_before_it_walks(run):
    run.act(2.0, velocity=(0.3, 0.1, 0.4))
    run.act(5.0, height=0.55, until=LegMode.STANDING)
    feet = run.feet()
    run.act(2.0, height=0.55)
    assert run.height == pytest.approx(0.55, abs=0.01)
    assert np.linalg.norm((run.feet() - feet)[:, :2], axis=1).max() < 0.005
    # A velocity in a squat: height is given up and said so; first up, feet where they are, then walking.
    run.act(0.02, height=0.55, velocity=(0.3, 0.0, 0.0))
    assert run.controller.limited == ["base_height"]
    assert run.controller.mode is LegMode.RISING
    run.act(4.0, height=0.55, velocity=(0.3, 0.0, 0.0), until=LegMode.WALKING)
    assert run.height > WALKING - 0.015
    assert np.linalg.norm((run.feet() - feet)[:, :2], axis=1).max() < 0.005
    before = run.environment.body.read().T_world_base.translation
    after = run.act(3.0, velocity=(0.3, 0.0, 0.0)).translation
    assert np.linalg.norm((after - before)[:2]) > 0.4
    assert run.upright > 0.9


def test_hand_overs_do_not_jerk_the_legs(run):
    """The torque that a leg's servo is asked for changes about as little as in any other tick."""
    run.act(0.5)
    legs, body, controller = ROBOT.joints.group(*LEG_GROUPS), run.environment.body, run.controller
    controller.command(controller.action(run.q[controller.upper_body.indices], STILL, 0.7))
    torques = []
    while controller.mode is not LegMode.STANDING or len(torques) < 20:
        state = body.read()
        command = controller.step(state, DT)
        torques.append((command.kp * (command.q - state.q) + command.kd * (command.v - state.v) + command.tau)[legs])
        body.write(command)
        assert len(torques) < 200
    assert np.abs(np.diff(torques, axis=0)).max() < 5.0


def test_changes_of_mind_do_not_throw_the_robot(run):
    rng = np.random.default_rng(3)
    for _ in range(10):
        squats = rng.random() < 0.6
        height = float(rng.uniform(0.4, 0.7)) if squats else WALKING
        run.act(0.9, height=height, velocity=STILL if squats else rng.uniform(-0.3, 0.3, 3))
    assert run.upright > 0.8
    run.act(6.0, height=0.6, until=LegMode.STANDING)
    run.act(2.0, height=0.6)
    assert run.height == pytest.approx(0.6, abs=0.01)


def test_a_robot_found_squatting_is_kept_up(run):
    run.act(0.3)
    run.act(2.5, height=0.5)
    run.controller.reset()
    run.act(0.5, height=0.5)
    assert run.modes[-1] is LegMode.STANDING
    assert run.height == pytest.approx(0.5, abs=0.01)
    run.act(2.5)
    assert run.height == pytest.approx(WALKING, abs=0.01)
    assert run.upright > 0.9


def test_the_same_actions_give_the_same_squat(shared):
    states = []
    for controller in (shared[1], WholeBodyController(ROBOT)):
        run = Run(shared[0], controller)
        run.act(0.2)
        run.act(1.0, height=0.6)
        states.append(run.environment.world.get_state())
    np.testing.assert_array_equal(states[0], states[1])


class Resting:
    """A robot at rest with its weight a little to the left, seen by a hand-over."""

    standing = True

    def __init__(self, aside):
        self.aside = aside

    def look(self, _state):
        com = np.array([0.0, self.aside])
        return Support(pin.SE3.Identity(), WALKING, 0.0, com, np.zeros(2), np.eye(3), 0.0, 0.0, 0.0)

    def reset(self):
        pass

    def set_height(self, _height):
        pass


@pytest.mark.parametrize(("aside", "seconds"), [(0.02, 0.1), (0.045, 1.0), (0.06, None)])
def test_weight_more_on_one_foot_is_waited_for_but_not_forever(aside, seconds):
    """A load in the hands lets the policy rest so; an unloaded sole would slide, and is not accepted at all."""
    robot = Resting(aside)
    hand_over = HandOver(ROBOT, robot, robot)
    ticks = next((i for i in range(1, 500) if hand_over.step(None, 0.6, False, DT) is LegMode.STANDING), None)
    assert ticks == (None if seconds is None else pytest.approx(seconds / DT, abs=1))
