# SPDX-License-Identifier: Apache-2.0
"""Cases 23 (an operator who quits or interrupts at any moment) and 25 (hands that are not tracked)."""

from __future__ import annotations

import signal

import numpy as np
import pinocchio as pin
import pytest

from supple.episodes import load_seed
from supple.errors import TeleopError
from supple.geometry import pose_error
from supple.robots import PerfectBody
from supple.tasks import Environment, task_named
from supple.teleop.clutch import Clutch
from supple.teleop.device import OperatorInput, OperatorView
from supple.teleop.recording import record_in_simulation
from supple.teleop.scripted import ScriptedOperator
from supple.teleop.session import TeleopSession

HANDS = ("left_hand", "right_hand")


@pytest.fixture(scope="module")
def task():
    return task_named("box_lift")


class Interrupted:
    """Press Ctrl-C after some ticks of a phase of the session."""

    def __init__(self, phase, ticks):
        self.phase, self.ticks, self.was_recording = phase, ticks, False

    def __call__(self, tick, _view, recording):
        self.was_recording |= recording
        phase = "after" if self.was_recording and not recording else "engaged" if tick.engaged else "walking"
        phase = phase if self.was_recording else "before"
        if phase == self.phase:
            self.ticks -= 1
            if self.ticks == 0:
                signal.raise_signal(signal.SIGINT)


def operator(task):
    """A scripted operator and what it was told."""
    said = []
    return ScriptedOperator(task.robot, task.name, said.append), said


# -- 23: an operator who quits or interrupts at any moment ----------------------------------------------------------


class Quitter:
    """An operator who does nothing but quit."""

    name, tracked = "quitter", False

    def read(self, _view):
        return OperatorInput(events=("quit",))

    def tell(self, text):
        pass

    def close(self):
        pass


def test_quitting_before_the_start_leaves_nothing(task, tmp_path):
    with pytest.raises(TeleopError, match="the operator quit: nothing was recorded"):
        record_in_simulation(task, Quitter(), out=tmp_path / "seed.hdf5")
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_before_the_start_leaves_nothing(task, tmp_path):
    device, _ = operator(task)
    with pytest.raises(TeleopError, match="interrupted: nothing was recorded"):
        record_in_simulation(task, device, out=tmp_path / "seed.hdf5", on_tick=Interrupted("before", 3))
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_right_after_the_start_says_that_it_was_too_short(task, tmp_path):
    device, said = operator(task)
    with pytest.raises(TeleopError, match=r"interrupted: .* 0\.2 s .* too short to keep and is discarded"):
        record_in_simulation(task, device, out=tmp_path / "seed.hdf5", on_tick=Interrupted("walking", 10))
    assert list(tmp_path.iterdir()) == []
    assert any("too short" in text for text in said)


@pytest.mark.parametrize(("phase", "ticks"), [("walking", 100), ("engaged", 60)])
def test_ctrl_c_while_recording_keeps_what_there_is_beside_the_seed(task, tmp_path, phase, ticks):
    device, said = operator(task)
    out = tmp_path / "seed.hdf5"
    with pytest.raises(TeleopError, match=r"interrupted: .* is kept in .*seed\.partial\.hdf5"):
        record_in_simulation(task, device, out=out, on_tick=Interrupted(phase, ticks))
    assert [path.name for path in tmp_path.iterdir()] == ["seed.partial.hdf5"]
    partial = load_seed(tmp_path / "seed.partial.hdf5", require_skills=False)
    assert partial.episode.length >= ticks
    assert not partial.episode.outcome.success
    assert any("seed.partial.hdf5" in text for text in said)


def test_ctrl_c_after_the_stop_keeps_the_seed(task, tmp_path):
    device, _ = operator(task)
    seed = record_in_simulation(task, device, out=tmp_path / "seed.hdf5", on_tick=Interrupted("after", 1))
    assert [path.name for path in tmp_path.iterdir()] == ["seed.hdf5"]
    assert load_seed(tmp_path / "seed.hdf5").episode.differences(seed.episode) == []


def test_without_a_file_a_recording_that_is_cut_off_is_reported_as_discarded(task):
    device, _ = operator(task)
    with pytest.raises(TeleopError, match="discarded: no file was named"):
        record_in_simulation(task, device, on_tick=Interrupted("walking", 100))


class LosesTracking(ScriptedOperator):
    """An operator whose device fails in the middle of the demonstration."""

    def read(self, view):
        given = super().read(view)
        if given.clutch and given.poses:
            raise TeleopError("tracker unplugged")
        return given


def test_a_device_that_fails_loses_nothing_either(task, tmp_path):
    device = LosesTracking(task.robot, task.name)
    with pytest.raises(TeleopError, match="tracker unplugged") as caught:
        record_in_simulation(task, device, out=tmp_path / "seed.hdf5")
    assert any("seed.partial.hdf5" in note for note in caught.value.__notes__)
    assert load_seed(tmp_path / "seed.partial.hdf5", require_skills=False).episode.length > 100


class Interrupting(ScriptedOperator):
    """A device inside which Ctrl-C strikes where no handler of ours is."""

    def read(self, view):
        given = super().read(view)
        if given.clutch:
            raise KeyboardInterrupt
        return given


def test_an_interrupt_inside_the_device_keeps_the_recording_too(task, tmp_path):
    with pytest.raises(TeleopError, match="is kept in"):
        record_in_simulation(task, Interrupting(task.robot, task.name), out=tmp_path / "seed.hdf5")
    assert (tmp_path / "seed.partial.hdf5").exists()


def test_an_older_seed_is_moved_aside_and_not_lost(task, tmp_path, monkeypatch):
    out = tmp_path / "seed.hdf5"
    out.write_bytes(b"an older recording")
    device, said = operator(task)
    record_in_simulation(task, device, out=out)
    assert (tmp_path / "seed.before.hdf5").read_bytes() == b"an older recording"
    assert load_seed(out).skills
    assert any("seed.before.hdf5" in text for text in said)


class Reacher:
    """An operator who raises the left hand with the clutch in."""

    name, tracked = "reacher", False

    def __init__(self):
        self.rise = 0.0

    def read(self, view):
        self.rise += 0.004
        start = {name: pin.SE3(np.eye(3), np.array([0.2, 0.1, 1.0])) for name in HANDS}
        start["left_hand"].translation = np.array([0.2, 0.1, 1.0 + self.rise])
        return OperatorInput(poses=start, clutch=True, velocity=np.array([0.2, 0.0, 0.0]))

    def tell(self, text):
        pass

    def close(self):
        pass


def test_going_home_brings_the_arms_back_slowly_and_stops_the_base(task):
    environment = Environment(task)
    environment.reset(task.nominal())
    body, session = environment.body, TeleopSession(task.robot, Reacher())
    start = body.read().q.copy()
    for _ in range(40):
        view = OperatorView(body.read(), environment.effector_poses(), environment.object_poses())
        body.write(session.tick(view).command)
    arm = task.robot.joints.group("left_arm")
    assert np.abs(body.read().q - start)[arm].max() > 0.1
    done, targets = False, []
    while not done and len(targets) < 1000:
        command, done = session.home(body.read())
        targets.append(command.q[arm])
        body.write(command)
    assert done
    assert np.allclose(targets[-1], start[arm], atol=1e-6)
    assert np.abs(np.diff(targets, axis=0)).max() <= 0.8 * 0.02 + 1e-9
    for _ in range(200):
        body.write(session.home(body.read())[0])
    state = body.read()
    assert state.T_world_base.rotation[2, 2] > 0.99
    assert np.linalg.norm(state.base_linear_velocity) < 0.05


def test_going_home_can_be_hurried(task):
    body = PerfectBody(task.robot.joints)
    session = TeleopSession(task.robot, Reacher())
    poses = {name: pin.SE3(np.eye(3), np.array([0.3, 0.1, 0.2])) for name in HANDS}
    for _ in range(60):
        body.write(session.tick(OperatorView(body.read(), poses, {})).command)
    ticks, done = 0, False
    while not done:
        command, done = session.home(body.read(), longest=0.2)
        body.write(command)
        ticks += 1
    assert ticks == 10


# -- 25: hands that are not tracked ----------------------------------------------------------------------------------


@pytest.mark.parametrize("tracked", [True, False])
@pytest.mark.parametrize("still", [HANDS, ("left_hand",), ("right_hand",)])
def test_the_identity_pose_refuses_engagement_and_names_the_hand(tracked, still):
    clutch = Clutch(tracked, 0.02)
    for i in range(100):
        moving = pin.SE3(np.eye(3), np.array([0.3, 0.1 + 0.001 * i, 1.0]))
        clutch.update({name: pin.SE3.Identity() if name in still else moving for name in HANDS})
    with pytest.raises(TeleopError, match="identity pose") as caught:
        clutch.engage(dict.fromkeys(HANDS, pin.SE3.Random()))
    assert all((name in str(caught.value)) == (name in still) for name in HANDS)
    assert not clutch.engaged
    assert clutch.targets() == {}


@pytest.mark.parametrize("still", [HANDS, ("left_hand",), ("right_hand",)])
def test_a_frozen_pose_of_a_tracker_refuses_engagement_and_names_the_hand(still):
    clutch = Clutch(tracked=True, interval=0.02)
    for i in range(100):
        moving = pin.SE3(np.eye(3), np.array([0.3, 0.1 + 0.001 * i, 1.0]))
        frozen = pin.SE3(np.eye(3), np.array([0.3, 0.1, 1.0]))
        clutch.update({name: frozen if name in still else moving for name in HANDS})
    with pytest.raises(TeleopError, match="tracking is lost") as caught:
        clutch.engage(dict.fromkeys(HANDS, pin.SE3.Random()))
    assert all((name in str(caught.value)) == (name in still) for name in HANDS)


class Untracked:
    """A headset whose hands stay at the identity pose while the operator closes the clutch."""

    name, tracked = "headset", True

    def read(self, _view):
        return OperatorInput(poses=dict.fromkeys(HANDS, pin.SE3.Identity()), clutch=True)

    def tell(self, text):
        pass

    def close(self):
        pass


def test_a_session_with_untracked_hands_keeps_the_robot_s_hands_where_they_are(task):
    environment = Environment(task)
    environment.reset(task.nominal())
    session = TeleopSession(task.robot, Untracked())
    before = environment.effector_poses()
    for _ in range(100):
        view = OperatorView(environment.body.read(), environment.effector_poses(), environment.object_poses())
        tick = session.tick(view)
        assert not tick.engaged
        assert "identity pose" in tick.refused
        environment.body.write(tick.command)
    after = environment.effector_poses()
    assert all(pose_error(before[name], after[name])[0] < 0.05 for name in HANDS)
