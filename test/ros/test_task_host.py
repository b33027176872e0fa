# SPDX-License-Identifier: Apache-2.0
"""A task beside the loop that commands the robot: in step, late, planning, stopped; no ROS is needed for it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

from supple.geometry import pose_from_xyyaw
from supple.nodes.task_host import TaskHost, TaskStoppedError, Wanted
from supple.robots import RobotState
from supple.tasks import Environment, task_named

LONG = 30.0


@pytest.fixture(scope="module")
def environment() -> Environment:
    task = task_named("box_lift")
    environment = Environment(task)
    environment.reset(task.nominal())
    return environment


@pytest.fixture
def state(environment) -> RobotState:
    environment.reset(environment.task.nominal())
    return environment.body.read()


@pytest.fixture
def run() -> Iterator[Callable[[Callable[[], object]], threading.Thread]]:
    """Run something in a thread, and see it end."""
    threads = []

    def begin(work: Callable[[], object]) -> threading.Thread:
        threads.append(threading.Thread(target=work, daemon=True))
        threads[-1].start()
        return threads[-1]

    yield begin
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive()


def host_of(environment: Environment, state: RobotState, patience: float = LONG) -> TaskHost:
    return TaskHost(environment, state, lambda: ({}, {}), patience)


def later(state: RobotState, tick: int) -> RobotState:
    return replace(state, stamp_ns=state.stamp_ns + tick * 20_000_000)


def test_in_step_each_wish_answers_the_state_it_was_made_for(environment, state, run):
    host, size = host_of(environment, state), state.q.size
    made_for, granted = {}, {}

    def task() -> None:
        for i in range(1, 10):
            made_for[float(i)] = host.state.stamp_ns
            host.tick(np.full(size, float(i)), velocity=np.array([0.1 * i, 0.0, 0.0]), height=0.7)
        host.stop("done")

    run(task)
    tick, wish = 0, None
    while wish is None or wish.q[0] < 9.0:
        tick += 1
        now = later(state, tick)
        wish = host.exchange(now)
        if wish is not None:
            granted[float(wish.q[0])] = now.stamp_ns
            assert wish.height == 0.7
            assert wish.velocity[0] == pytest.approx(0.1 * wish.q[0])
    host.exchange(later(state, tick + 1))
    # The first wish came before the loop knew that there was somebody to wait for.
    answered = sorted(granted)
    assert answered == list(range(int(answered[0]), 10))
    assert len(answered) >= 8
    assert {i: granted[i] for i in answered[1:]} == {i: made_for[i] for i in answered[1:]}


def test_a_task_that_plans_is_held_in_its_posture_and_a_walk_is_stopped(environment, state, run):
    host, size = host_of(environment, state, patience=0.0), state.q.size
    planned, planning = threading.Event(), threading.Event()

    def task() -> None:
        host.tick(np.full(size, 0.5), velocity=np.array([0.3, 0.0, 0.1]))
        planning.set()
        planned.wait(LONG)
        with pytest.raises(TaskStoppedError, match="cancelled"):
            host.tick(np.zeros(size))

    run(task)
    tick = 0

    def exchange() -> Wanted | None:
        nonlocal tick
        tick += 1
        return host.exchange(later(state, tick))

    while not planning.is_set():
        exchange()
    wishes = [exchange() for _ in range(20)]
    assert all(np.all(w.q == 0.5) for w in wishes)
    assert not wishes[-1].velocity.any()
    host.stop("cancelled")
    planned.set()


def test_stopped_while_it_waits_or_plans_the_task_ends_with_the_reason(environment, state, run):
    host = host_of(environment, state, patience=0.0)
    told = []

    def task() -> None:
        try:
            host.tick(state.q, velocity=np.array([0.3, 0.0, 0.0]))
        except TaskStoppedError as error:
            told.append(str(error))

    thread = run(task)
    while host.exchange(state) is None:
        pass
    host.stop("the states are gone")
    thread.join(LONG)
    # The wish may have been granted before the stop came; the next look tells at the latest.
    with pytest.raises(TaskStoppedError, match="the states are gone"):
        _ = host.state
    assert told in ([], ["the states are gone"])
    assert not host.exchange(state).velocity.any()


def test_the_copy_of_the_scene_shows_the_robot_as_measured_and_the_objects_as_told(environment, state, run):
    place = pose_from_xyyaw(1.7, 0.1, 0.4, 1.1)
    twist = np.array([0.0, 0.0, 0.2, 0.0, 0.0, 0.0])
    host = TaskHost(environment, state, lambda: ({"box": place}, {"box": twist}), 0.0)
    moved = replace(
        state, stamp_ns=later(state, 3).stamp_ns, base_position=state.base_position + np.array([0.3, 0.0, 0.0])
    )
    thread = run(lambda: host.tick(state.q))
    while host.exchange(moved) is None:
        pass
    # The one that granted the wish was the state that the task goes on with.
    host.exchange(moved)
    thread.join(LONG)
    world = environment.world
    np.testing.assert_allclose(world.object_pose("box").homogeneous, place.homogeneous, atol=1e-9)
    np.testing.assert_allclose(world.object_twist("box"), twist, atol=1e-9)
    np.testing.assert_allclose(world.robot_state().base_position, moved.base_position)
