# SPDX-License-Identifier: Apache-2.0
"""The teleoperation session: the height of the base, and hands that go on as they were sent."""

from __future__ import annotations

import numpy as np
import pytest

from supple.control.standing import LegMode
from supple.tasks import Environment
from supple.teleop.device import OperatorInput, OperatorView
from supple.teleop.session import TeleopSession


class Program:
    """A device that gives what it is told to."""

    name, tracked = "program", False

    def __init__(self):
        self.given = OperatorInput()

    def read(self, _view):
        return self.given

    def tell(self, text):
        pass

    def close(self):
        pass


class Run:
    """A session in simulation."""

    def __init__(self, task):
        self.environment, self.device = Environment(task), Program()
        self.environment.reset(task.nominal())
        self.session = TeleopSession(task.robot, self.device)

    def view(self):
        environment = self.environment
        return OperatorView(environment.body.read(), environment.effector_poses(), environment.object_poses())

    def go(self, ticks, **given):
        self.device.given = OperatorInput(**given)
        for _ in range(ticks):
            tick = self.session.tick(self.view())
            self.environment.body.write(tick.command)
        return tick

    @property
    def height(self):
        return self.environment.body.read().T_world_base.translation[2]


@pytest.fixture
def run(task):
    return Run(task)


def test_a_height_is_kept_until_a_velocity_ends_it(task, run):
    run.go(25)
    assert run.go(250, height=0.60).action[-1] == 0.60
    assert run.height == pytest.approx(0.60, abs=0.01)
    assert run.go(1).action[-1] == 0.60
    assert run.go(1, velocity=np.array([0.1, 0.0, 0.0])).action[-1] == task.robot.standing_height
    assert run.session.controller.mode is LegMode.RISING
    assert run.go(1).action[-1] == task.robot.standing_height


def test_a_reset_forgets_the_height(task, run):
    run.go(2, height=0.60)
    run.session.reset()
    assert run.go(1).action[-1] == task.robot.standing_height


def test_closing_the_clutch_changes_no_force(run):
    """The hands begin where they are sent: under a load that is not where they are."""
    run.go(25)
    world, wrist = run.environment.world, run.session.robot.effector("left_hand").frame
    body = world.body_id(world.robot.frame(wrist).link)
    world.data.xfrc_applied[body, 2] = -15.0
    before = run.go(50).action
    hands = run.environment.effector_poses()
    after = run.go(1, poses=hands, clutch=True)
    assert after.engaged
    assert np.linalg.norm(after.targets["left_hand"].translation - hands["left_hand"].translation) > 0.01
    np.testing.assert_allclose(after.action, before, atol=2e-3)
