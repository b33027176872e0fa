# SPDX-License-Identifier: Apache-2.0
"""The simulation's thread without ROS: gantry, answers, resets while it runs, failure of physics."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from supple.control.arbitration import ArbitrationTimes, CommandArbiter
from supple.errors import SceneError
from supple.nodes.simulation_loop import SimulationLoop
from supple.robots import RobotCommand
from supple.robots.g1 import LEG_GROUPS
from supple.sim.clock import RESET_GAP_NS
from supple.tasks import Environment, task_named


class Bench:
    def __init__(self, **options) -> None:
        task = task_named("box_lift")
        self.environment = Environment(task)
        self.environment.reset(task.nominal())
        self.joints = task.robot.joints
        arbiter = CommandArbiter(self.joints, ArbitrationTimes())
        arbiter.reset(self.environment.body.read().q, 0)
        self.stamps: list[tuple[int, bool]] = []
        self.failures: list[str] = []
        self.seen = threading.Condition()
        values = {"real_time_factor": 0.0, "answer_timeout": 0.0, "gantry": LEG_GROUPS} | options
        self.loop = SimulationLoop(
            self.environment, arbiter=arbiter, on_state=self._state, on_failure=self.failures.append, **values
        )

    def _state(self, stamp: int, _tick: bool, after_reset: bool) -> None:
        with self.seen:
            self.stamps.append((stamp, after_reset))
            self.seen.notify_all()

    def until(self, count: int) -> None:
        with self.seen:
            assert self.seen.wait_for(lambda: len(self.stamps) >= count, 20.0)

    def command(self, source: str = "tester") -> RobotCommand:
        blank = RobotCommand.blank(self.joints, source, self.loop.clock.now_ns)
        blank.active[:] = True
        return blank


@pytest.fixture
def bench():
    made = []

    def make(**options):
        made.append(Bench(**options))
        return made[-1]

    yield make
    for entry in made:
        entry.loop.stop()


def test_in_the_gantry_time_passes_and_nothing_moves(bench):
    b = bench(real_time_factor=10.0)
    before = b.environment.world.get_state()
    b.loop.start()
    b.until(20)
    np.testing.assert_array_equal(b.environment.world.get_state(), before)
    b.loop.offer(b.command())
    with b.seen:
        count = len(b.stamps)
    b.until(count + 20)
    assert not np.array_equal(b.environment.world.get_state(), before)


def test_physics_waits_for_the_owners_answer(bench):
    """As fast as possible means: as fast as whoever balances the robot answers."""
    b = bench(answer_timeout=60.0)
    b.loop.offer(b.command())
    b.loop.start()
    for k in range(1, 6):
        # Four steps to the next control tick, at which it waits.
        b.until(4 * k)
        assert len(b.stamps) == 4 * k
        b.loop.offer(b.command())


def test_who_does_not_answer_is_waited_for_once(bench):
    b = bench(answer_timeout=0.05)
    b.loop.offer(b.command())
    b.loop.start()
    b.until(400)
    assert not b.failures


def test_resets_in_the_middle_never_turn_the_clock_back(bench):
    b = bench()
    b.loop.start()
    task = b.environment.task
    for count in range(1, 6):
        b.until(10 * count)
        b.loop.reset(lambda: b.environment.reset(task.nominal()))
    b.until(len(b.stamps) + 5)
    b.loop.stop()
    stamps = np.array([stamp for stamp, _ in b.stamps])
    assert (np.diff(stamps) > 0).all()
    resets = np.array([reset for _, reset in b.stamps])
    assert resets.sum() == 5
    assert (np.diff(stamps)[resets[1:]] >= RESET_GAP_NS).all()


def test_single_steps_need_a_pause(bench):
    b = bench()
    with pytest.raises(SceneError, match="pause it before single steps"):
        b.loop.step(1)
    b.loop.set_paused(True)
    b.loop.step(3)
    assert len(b.stamps) == 3


def test_when_physics_breaks_down_everything_stops_and_is_said(bench):
    b = bench()
    b.loop.set_paused(True)
    b.loop.offer(b.command())
    b.environment.world.data.qvel[0] = 1e12
    with pytest.raises(SceneError, match=r"unstable.*reset first"):
        b.loop.step(4)
    assert len(b.failures) == 1
    assert b.stamps == []
    assert "unstable" in b.loop.arbiter.stopped
    b.loop.reset(lambda: b.environment.reset(b.environment.task.nominal()))
    b.loop.step(4)
    assert len(b.stamps) == 5


def test_a_reset_that_fails_leaves_everything_damped(bench):
    b = bench()

    def fail() -> None:
        raise SceneError("no such scene")

    with pytest.raises(SceneError, match="no such scene"):
        b.loop.reset(fail)
    assert b.loop.arbiter.stopped == "the last reset failed"
