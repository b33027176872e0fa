# SPDX-License-Identifier: Apache-2.0
"""One simulated G1 on an empty floor for all tests of controllers."""

from __future__ import annotations

import pytest

from supple.geometry import pose_from_xyyaw
from supple.robots import g1
from supple.sim.body import SimBody
from supple.sim.g1_model import g1_spec
from supple.sim.world import World


@pytest.fixture(scope="session")
def empty_floor():
    return World(g1_spec(), g1())


@pytest.fixture
def body(empty_floor):
    """The robot standing at the origin in its home posture, at rest."""
    robot = empty_floor.robot
    empty_floor.clear()
    empty_floor.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, robot.standing_height + 0.015), robot.joints.home)
    empty_floor.set_state(empty_floor.get_state())
    result = SimBody(empty_floor, robot.contract.control_interval)
    result.reset()
    return result
