# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from supple.episodes import validate_seed
from supple.errors import TeleopError
from supple.tasks import Environment
from supple.teleop.device import OperatorInput
from supple.teleop.live import LiveSession
from supple.teleop.scripted import ScriptedOperator


class Remote:
    """A simulated robot of which the session sees only measurements, objects after the state as over a network."""

    def __init__(self, task, device):
        self.environment = Environment(task)
        self.environment.reset(task.nominal())
        self.live = LiveSession(task, device, "in a test")
        self.lose_objects = 0
        self.truth = {}
        self._send_surroundings()

    def _send_surroundings(self):
        world, stamp = self.environment.world, self.environment.world.time_ns
        poses = self.environment.object_poses()
        self.live.see_objects(stamp, poses, {name: world.object_twist(name) for name in poses})
        points = [(c.body1, c.body2, c.normal_force, c.tangential_force) for c in world.contacts()]
        self.live.see_contacts(stamp, points)

    def tick(self):
        body = self.environment.body
        world = self.environment.world
        forces = world.contact_forces(self.environment.task.contact_pairs)
        self.truth[world.time_ns] = world.get_state(), forces
        tick = self.live.tick(body.read())
        if self.lose_objects:
            self.lose_objects -= 1
        else:
            self._send_surroundings()
        body.write(tick.command)
        return tick

    def run(self, ticks):
        for _ in range(ticks):
            self.tick()

    def until_finished(self):
        for _ in range(2000):
            self.tick()
            if self.live.finished:
                return self.live.finished.pop()
        raise AssertionError("the take was never finished")


class Idle:
    """An operator who leaves everything to the services, and notes what it is told."""

    name, tracked = "idle", False

    def __init__(self):
        self.said = []

    def read(self, _view):
        return OperatorInput()

    def tell(self, text):
        self.said.append(text)

    def close(self):
        pass


@pytest.fixture
def remote(task):
    return Remote(task, Idle())


def test_what_is_recorded_from_measurements_is_what_the_simulator_went_through(task, demonstration):
    remote = Remote(task, ScriptedOperator(task.robot, task.name))
    finished = remote.until_finished()
    seed, problem = finished.take.finish(finished.outcome)
    assert not problem
    assert not finished.cut_off
    assert finished.outcome.success
    validate_seed(seed, "live")
    episode = seed.episode
    assert [mark.label for mark in seed.marks] == [mark.label for mark in demonstration.marks]
    assert {s.effector for s in seed.skills} == {"left_hand", "right_hand"}
    assert episode.initial.model_hash == remote.environment.world.model_hash
    for step, stamp in enumerate(episode.stamps_ns):
        state, forces = remote.truth[int(stamp)]
        assert np.allclose(episode.states[step], state, atol=1e-9)
        for pair, force in forces.items():
            assert np.allclose(episode.contacts[pair][step], force)
    assert episode.contacts["left_wrist_yaw_link/box"].max() > 5.0


def test_nothing_is_commanded_before_every_object_was_seen(task):
    environment = Environment(task)
    environment.reset(task.nominal())
    live = LiveSession(task, Idle(), "in a test")
    assert live.tick(environment.body.read()) is None
    assert live.missing_objects == ["box", "table"]
    with pytest.raises(TeleopError, match="nothing is known of box, table"):
        live.request("start")
    poses = environment.object_poses()
    live.see_objects(0, {"box": poses["box"]}, {})
    assert live.missing_objects == ["table"]
    live.see_objects(0, poses, {})
    assert live.tick(environment.body.read()) is not None


def test_services_start_mark_and_stop(task, remote):
    remote.run(3)
    remote.live.request("start")
    remote.run(60)
    assert remote.live.recording
    remote.live.request("mark:lift")
    remote.run(30)
    remote.live.request("mark:end")
    remote.run(10)
    remote.live.request("stop")
    finished = remote.until_finished()
    seed, problem = finished.take.finish(finished.outcome)
    validate_seed(seed, "live")
    assert not problem
    assert {(s.start, s.end) for s in seed.skills} == {(59, 89)}
    assert seed.episode.length == 100
    assert not seed.episode.outcome.success
    assert not remote.live.busy


@pytest.mark.parametrize("event", ["stop", "discard", "mark:lift"])
def test_what_needs_a_recording_is_refused_without_one(remote, event):
    remote.run(3)
    with pytest.raises(TeleopError, match="nothing is being recorded"):
        remote.live.request(event)


def test_requests_that_make_no_sense_are_refused(remote):
    remote.run(3)
    remote.live.request("start")
    with pytest.raises(TeleopError, match="already recording"):
        remote.live.request("start")
    remote.run(5)
    with pytest.raises(TeleopError, match="already recording"):
        remote.live.request("start")
    with pytest.raises(TeleopError, match="'throw' is no skill"):
        remote.live.request("mark:throw")
    remote.live.request("mark:lift")
    with pytest.raises(TeleopError, match="marked already"):
        remote.live.request("mark:lift")
    remote.run(2)
    with pytest.raises(TeleopError, match="marked already"):
        remote.live.request("mark:lift")
    remote.live.request("stop")
    with pytest.raises(TeleopError, match="nothing is being recorded"):
        remote.live.request("stop")


def test_a_discarded_take_leaves_nothing_and_another_can_begin(remote):
    remote.run(3)
    remote.live.request("start")
    remote.run(80)
    remote.live.request("discard")
    remote.run(5)
    assert not remote.live.busy
    assert remote.live.finished == []
    remote.live.request("start")
    remote.run(20)
    remote.live.request("stop")
    assert remote.until_finished().take.steps == 20


def test_objects_that_got_lost_are_counted_and_the_last_ones_taken(remote):
    remote.run(3)
    remote.live.request("start")
    remote.run(30)
    remote.lose_objects = 4
    remote.run(30)
    remote.live.request("stop")
    finished = remote.until_finished()
    assert remote.live.late_objects == 4
    validate = finished.take.finish(finished.outcome)[0].episode
    assert validate.length == 60


@pytest.mark.parametrize(("ticks", "kept"), [(20, False), (80, True)])
def test_a_reset_cuts_a_take_off_and_begins_anew(remote, ticks, kept):
    remote.run(3)
    remote.live.request("start")
    remote.run(ticks)
    finished = remote.live.reset()
    assert (finished is not None) == kept
    assert not remote.live.busy
    assert remote.live.missing_objects == ["box", "table"]
    if finished is not None:
        assert finished.cut_off
        seed, problem = finished.take.finish(finished.outcome)
        assert "never" in problem
        assert seed.episode.length == ticks - 2


def test_a_stop_whose_last_state_never_came_is_no_cut_off(remote):
    remote.run(3)
    remote.live.request("start")
    remote.run(30)
    remote.live.request("stop")
    remote.run(1)
    assert remote.live.busy
    finished = remote.live.cut_off()
    assert finished is not None
    assert not finished.cut_off
    assert finished.take.finish(finished.outcome)[0].episode.length == finished.take.steps > 20
