# SPDX-License-Identifier: Apache-2.0
"""A task made ready to run: resets and restores that repeat, drawings that do not change the physics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from supple.control.whole_body import WholeBodyController
from supple.episodes.episode import InitialState
from supple.errors import StateError
from supple.geometry import pose_error
from supple.tasks import Environment, task_named

TASK = task_named("box_lift")


def run(environment, ticks=40, seed=0):
    """Walk and wave arbitrarily but repeatably; return every state."""
    controller, rng = WholeBodyController(TASK.robot), np.random.default_rng(seed)
    states = []
    for i in range(ticks):
        if i % 10 == 0:
            q = TASK.start_posture()[controller.upper_body.indices] + rng.uniform(-0.2, 0.2, 31)
            controller.command(controller.action(q, rng.uniform(-0.5, 0.5, 3)))
        environment.body.write(controller.step(environment.body.read(), environment.body.control_interval))
        states.append(environment.world.get_state())
    return np.array(states)


def same(first: InitialState, second: InitialState) -> None:
    np.testing.assert_array_equal(first.state, second.state)
    assert first.model_hash == second.model_hash
    assert dict(first.materials) == dict(second.materials)
    assert dict(first.goal) == dict(second.goal)
    assert set(first.objects) == set(second.objects)
    for name, row in first.objects.items():
        np.testing.assert_array_equal(row, second.objects[name])


@pytest.mark.parametrize("distribution", ["D0", "D1"])
def test_a_reset_puts_everything_where_the_layout_says(environment, distribution):
    layout = TASK.sample(distribution, np.random.default_rng(3))
    initial = environment.reset(layout)
    state = environment.body.read()
    assert state.stamp_ns == 0
    np.testing.assert_array_equal(state.q, layout.q)
    assert not state.v.any()
    np.testing.assert_allclose(state.T_world_base.homogeneous, layout.T_world_base.homogeneous, atol=1e-12)
    for name, pose in layout.objects.items():
        assert pose_error(environment.world.object_pose(name), pose) == pytest.approx((0.0, 0.0), abs=1e-7)
    assert environment.world.model.body("box").mass[0] == layout.materials["box.mass"]
    assert dict(initial.materials) == layout.materials


def test_reset_and_restore_begin_the_same_episode_to_the_last_bit(environment):
    layout = TASK.sample("D1", np.random.default_rng(4))
    initial = environment.reset(layout)
    first = run(environment)
    environment.reset(TASK.sample("D1", np.random.default_rng(5)))
    run(environment, seed=1)
    same(environment.reset(layout), initial)
    np.testing.assert_array_equal(run(environment), first)
    environment.restore(initial)
    same(environment.snapshot(), initial)
    np.testing.assert_array_equal(run(environment), first)


def test_a_fresh_world_and_one_with_pictures_continue_identically(environment):
    layout = TASK.sample("D1", np.random.default_rng(6))
    initial = environment.reset(layout)
    first = run(environment)
    for other in (Environment(task_named("box_lift")), Environment(task_named("box_lift"), visual=True)):
        assert other.world.model_hash == environment.world.model_hash
        other.restore(initial)
        same(other.snapshot(), initial)
        np.testing.assert_array_equal(run(other), first)


def test_an_initial_state_of_another_scene_is_refused(environment):
    initial = environment.reset(TASK.nominal())
    with pytest.raises(StateError, match="0123456789abcdef"):
        environment.restore(replace(initial, model_hash="0123456789abcdef"))
    with pytest.raises(StateError):
        environment.restore(replace(initial, state=initial.state[:-1]))


def test_a_moved_robot_carries_no_speed_into_the_next_episode(environment):
    layout = TASK.nominal()
    environment.reset(layout)
    run(environment)
    assert np.abs(environment.body.read().v).max() > 0.01
    environment.reset(layout)
    assert not environment.world.data.qvel.any()
