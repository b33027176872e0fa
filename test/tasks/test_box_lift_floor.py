# SPDX-License-Identifier: Apache-2.0
"""BoxLiftFloor: what is drawn, how the scene starts, and what counts as lifted."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from layouts import assert_ranges_filled

from supple.geometry import pose_from_xyyaw, wrap_angle, xyyaw_of
from supple.sim.clearance import ClearanceChecker
from supple.tasks import Environment, task_named

TASK = task_named("box_lift_floor")
# As published, about (1, 0, pi).
PUBLISHED = {
    "D0": {"x": (-0.02, 0.02), "y": (-0.02, 0.02), "yaw": (-0.063, 0.063)},
    "D1": {"x": (-0.16, 0.16), "y": (-0.16, 0.16), "yaw": (-0.50, 0.50)},
}


@pytest.fixture(scope="module")
def environment():
    return Environment(TASK)


def drawn(layout):
    x, y, yaw = xyyaw_of(layout.objects["box"])
    return {"x": x - 1.0, "y": y, "yaw": wrap_angle(yaw - np.pi)}


def found(environment, height, tilt=0.0):
    """Put the box at a height and lean the robot by an angle, by hand, and return the criteria."""
    layout = TASK.nominal()
    environment.reset(layout)
    world = environment.world
    world.write_object(world.data, "box", pose_from_xyyaw(1.0, 0.0, np.pi, height))
    lean = pin.SE3(pin.utils.rotate("y", tilt), np.zeros(3))
    world.write_robot(world.data, layout.T_world_base * lean, layout.q)
    world.set_state(world.get_state())
    return {criterion.name: criterion for criterion in TASK.criteria(world)}


@pytest.mark.parametrize("distribution", ["D0", "D1"])
def test_samples_fill_the_published_ranges(distribution):
    assert_ranges_filled(TASK, distribution, drawn, PUBLISHED[distribution])
    masses = [TASK.sample(distribution, np.random.default_rng(i)).materials["box.mass"] for i in range(100)]
    assert min(masses) >= 0.5
    assert max(masses) <= 1.0
    assert np.ptp(masses) > 0.4


@pytest.mark.parametrize("distribution", ["D0", "D1"])
def test_nothing_overlaps_at_the_start_and_the_box_stays_on_the_floor(environment, distribution):
    checker = ClearanceChecker(environment.world)
    for index in range(8):
        layout = TASK.sample(distribution, np.random.default_rng([1, index]))
        environment.reset(layout)
        assert checker.overlaps(layout.T_world_base, layout.q) == []
        environment.world.step(20)
        assert environment.world.object_pose("box").translation[2] == pytest.approx(0.0, abs=1e-3)
        assert not environment.outcome().success


def test_the_box_weighs_what_was_drawn(environment):
    environment.reset(TASK.sample("D1", np.random.default_rng(3)))
    world = environment.world
    assert world.model.body("box").mass[0] == TASK.sample("D1", np.random.default_rng(3)).materials["box.mass"]


@pytest.mark.parametrize(("height", "tilt", "failing"), [(0.101, 0.0, []), (0.099, 0.0, ["box_height"]),
                                                         (0.2, 0.6, []), (0.2, 0.7, ["upright"])])  # fmt: skip
def test_each_condition_can_fail_alone(environment, height, tilt, failing):
    criteria = found(environment, height, tilt)
    assert [name for name, criterion in criteria.items() if not criterion.holds] == failing
