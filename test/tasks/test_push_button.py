# SPDX-License-Identifier: Apache-2.0
"""PushButton: what is drawn, how the button behaves, and what counts as pressed."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from layouts import assert_ranges_filled

from supple.geometry import wrap_angle, xyyaw_of
from supple.sim.clearance import ClearanceChecker
from supple.tasks import Environment, task_named

TASK = task_named("push_button")
# As published: the button's tip in the world follows from panel and cabinet.
PUBLISHED = {
    "D0": {"cabinet_x": (1.0, 1.5), "cabinet_y": (0.0, 0.5), "panel_x": (-0.3, -0.3), "panel_y": (-0.42, -0.38)},
    "D1": {"cabinet_x": (1.0, 1.8), "cabinet_y": (-0.2, 0.8), "panel_x": (-0.3, -0.3), "panel_y": (-0.48, -0.38)},
}


@pytest.fixture(scope="module")
def environment():
    return Environment(TASK)


def drawn(layout):
    cabinet, panel = xyyaw_of(layout.objects["cabinet"]), xyyaw_of(layout.objects["button"])
    assert wrap_angle(cabinet[2] - np.pi / 2) == wrap_angle(panel[2] - np.pi / 2) == pytest.approx(0.0)
    offset = panel - cabinet
    return {"cabinet_x": cabinet[0], "cabinet_y": cabinet[1], "panel_x": offset[0], "panel_y": offset[1]}


def press(environment, depth):
    """Put the button so deep in [m], by hand, and return the criteria."""
    environment.reset(TASK.nominal())
    world = environment.world
    world.data.qpos[world.model.joint("button_joint").qposadr[0]] = -depth
    world.set_state(world.get_state())
    return {criterion.name: criterion for criterion in TASK.criteria(world)}


@pytest.mark.parametrize("distribution", ["D0", "D1"])
def test_samples_fill_the_published_ranges(distribution):
    assert_ranges_filled(TASK, distribution, drawn, PUBLISHED[distribution])


@pytest.mark.parametrize("distribution", ["D0", "D1"])
def test_nothing_overlaps_at_the_start_and_the_button_is_not_pressed(environment, distribution):
    checker = ClearanceChecker(environment.world)
    for index in range(8):
        layout = TASK.sample(distribution, np.random.default_rng([1, index]))
        environment.reset(layout)
        assert checker.overlaps(layout.T_world_base, layout.q) == []
        environment.world.step(20)
        assert not environment.outcome().success


def test_the_face_of_the_button_is_where_it_was_published(environment):
    layout = TASK.nominal()
    environment.reset(layout)
    face = environment.world.object_pose("button_cap").act(np.array([0.0, 0.005, 0.0]))
    cabinet = layout.objects["cabinet"].translation
    # 69 mm before the cabinet's front, which is 0.31 m before its middle, and at 0.846 m.
    np.testing.assert_allclose(face, [cabinet[0] - 0.31 - 0.069, layout.objects["button"].translation[1], 0.8455])


def test_the_button_counts_as_pressed_from_ten_of_its_fifteen_millimetres_on(environment):
    assert not press(environment, 0.0099)["button_depth"].holds
    found = press(environment, 0.0101)
    assert all(criterion.holds for criterion in found.values())
    assert "9.0 mm in, wanted at least 10 mm" in press(environment, 0.009)["button_depth"].text


def test_the_spring_wants_three_newtons_where_the_button_counts_as_pressed(environment):
    press(environment, 0.010)
    world = environment.world
    mujoco.mj_forward(world.model, world.data)
    force = world.data.qfrc_spring[world.model.joint("button_joint").dofadr[0]]
    assert force == pytest.approx(3.0)
    world.step(100)
    assert next(TASK.criteria(world)).value < 1e-3
