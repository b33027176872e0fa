# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import fcntl
import os
import re
import signal
import struct
import subprocess
import sys
import termios
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from supple.errors import TeleopError
from supple.geometry import pose_from_xyyaw
from supple.tasks import Environment
from supple.teleop.device import OperatorView
from supple.teleop.keyboard import BINDINGS, KeyboardDevice, key_table
from supple.teleop.session import TeleopSession
from supple.teleop.terminal import KeyTerminal


@pytest.fixture
def view(task):
    environment = Environment(task)
    environment.reset(task.nominal())
    return OperatorView(environment.body.read(), environment.effector_poses(), environment.object_poses())


class Keyboard:
    """A keyboard device at a real terminal, with a clock that the test moves."""

    def __init__(self, task, typist, view):
        self.now, self.typist, self.view = 0.0, typist, view
        terminal = KeyTerminal(typist.terminal, typist.terminal)
        self.device = KeyboardDevice(task.robot, ("lift",), terminal=terminal, clock=lambda: self.now)

    def press(self, keys="", seconds=0.02):
        if keys:
            self.typist.type(keys)
        self.now += seconds
        return self.device.read(self.view)


@pytest.fixture
def keyboard(task, typist, view):
    keyboard = Keyboard(task, typist, view)
    yield keyboard
    keyboard.device.close()


# -- the terminal ----------------------------------------------------------------------------------------------------


def test_without_a_terminal_it_refuses_and_says_what_to_do(task):
    reading, writing = os.pipe()
    try:
        with pytest.raises(TeleopError, match=r"needs a terminal.*scripted device"):
            KeyTerminal(reading, writing)
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.parametrize("failing", [False, True])
def test_the_terminal_is_put_back_as_it_was(typist, failing):
    before = termios.tcgetattr(typist.terminal)
    try:
        with KeyTerminal(typist.terminal, typist.terminal) as terminal:
            during = termios.tcgetattr(typist.terminal)
            assert not during[3] & (termios.ICANON | termios.ECHO)
            assert during[3] & termios.ISIG
            typist.type("w")
            assert terminal.read() == b"w"
            assert terminal.read() == b""
            if failing:
                raise ArithmeticError
    except ArithmeticError:
        assert failing
    assert termios.tcgetattr(typist.terminal) == before


@pytest.mark.parametrize("how", ["interrupt", "exception", "exit"])
def test_a_program_that_ends_any_other_way_still_puts_the_terminal_back(typist, how):
    before = termios.tcgetattr(typist.terminal)
    program = f"""
import sys, time
from supple.teleop.terminal import KeyTerminal
terminal = KeyTerminal()
print("ready", flush=True)
if {how!r} == "interrupt":
    time.sleep(60)
elif {how!r} == "exception":
    raise ArithmeticError
sys.exit(3)
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=typist.terminal,
        stdout=subprocess.PIPE,
        stderr=typist.terminal,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout.readline() == b"ready\n"
    if how == "interrupt":
        process.send_signal(signal.SIGINT)
    assert process.wait(30) != 0
    process.stdout.close()
    assert termios.tcgetattr(typist.terminal) == before


def test_a_terminal_that_is_gone_is_an_error_and_no_endless_silence(task, view):
    hands, end = os.openpty()
    device = KeyboardDevice(task.robot, terminal=KeyTerminal(end, end))
    os.close(hands)
    with pytest.raises(TeleopError, match=r"terminal .* is gone"):
        device.read(view)
    device.close()
    os.close(end)


# -- the keys --------------------------------------------------------------------------------------------------------


def test_every_key_has_one_meaning_and_stands_in_the_table():
    keys = [key for binding in BINDINGS for key in binding.keys]
    assert len(keys) == len(set(keys))
    assert all(binding.text in key_table() for binding in BINDINGS)


def test_help_shows_the_table(keyboard):
    keyboard.typist.seen()
    keyboard.press("h")
    assert "walk forward" in keyboard.typist.seen()


@pytest.mark.parametrize(("key", "axis", "sign"), [(b.keys[0], *map(int, b.action.split()[1:])) for b in BINDINGS[:6]])
def test_walking_keys_move_one_axis_and_let_go_when_they_stop_coming(keyboard, key, axis, sign):
    velocity = keyboard.press(key).velocity
    assert np.sign(velocity[axis]) == sign
    assert np.count_nonzero(velocity) == 1
    held = [keyboard.press(key, 0.04).velocity[axis] for _ in range(20)]
    assert np.allclose(held, velocity[axis])
    fading = [abs(keyboard.press("", 0.05).velocity[axis]) for _ in range(7)]
    assert fading == sorted(fading, reverse=True)
    assert fading[-1] == 0.0


def hands_after(keyboard, keys, reads=60):
    keyboard.press()
    keyboard.press(" ")
    start = keyboard.press().poses
    keyboard.press(keys)
    for _ in range(reads):
        given = keyboard.press()
    end = given.poses
    return {name: (end[name].translation - start[name].translation, start[name], end[name]) for name in start}


def test_hands_start_at_the_effectors_and_are_no_identity(keyboard, view):
    given = keyboard.press(" ")
    assert given.clutch
    for name, pose in view.effectors.items():
        assert given.poses[name].isApprox(pose, 1e-9)
        assert not pose.isApprox(pin.SE3.Identity(), 1e-3)


@pytest.mark.parametrize(
    ("key", "axis", "sign"), [("i", 0, 1), ("k", 0, -1), ("j", 1, 1), ("l", 1, -1), ("u", 2, 1), ("o", 2, -1)]
)
def test_a_selected_hand_moves_along_its_axis_and_the_other_stays(keyboard, key, axis, sign):
    moved = hands_after(keyboard, "1" + 3 * key)
    expected = np.zeros(3)
    expected[axis] = sign * 0.015
    assert np.allclose(moved["left_hand"][0], expected, atol=1e-6)
    assert np.allclose(moved["right_hand"][0], 0.0, atol=1e-9)


def test_both_hands_mirror(keyboard):
    moved = hands_after(keyboard, "3\x1b[D\x1b[A\x1b[5~")
    left, right = moved["left_hand"][0], moved["right_hand"][0]
    assert np.allclose(left, [0.005, 0.005, 0.005], atol=1e-6)
    assert np.allclose(right, [0.005, -0.005, 0.005], atol=1e-6)


@pytest.mark.parametrize(("key", "axis", "mirrored"), [("U", 0, True), ("K", 1, False), ("J", 2, True)])
def test_hands_turn_about_the_robot_s_axes(keyboard, key, axis, mirrored):
    moved = hands_after(keyboard, "3" + 2 * key)
    turns = {name: pin.log3(after.rotation @ before.rotation.T) for name, (_, before, after) in moved.items()}
    expected = np.zeros(3)
    expected[axis] = 0.07
    assert np.allclose(turns["left_hand"], expected, atol=1e-6)
    assert np.allclose(turns["right_hand"], -expected if mirrored else expected, atol=1e-6)


def test_a_held_key_does_not_run_far_ahead_of_the_hand(keyboard):
    keyboard.press(" ")
    before = keyboard.press().poses["left_hand"].translation
    keyboard.press(200 * "u")
    poses = [keyboard.press().poses["left_hand"].translation for _ in range(200)]
    steps = np.linalg.norm(np.diff(poses, axis=0), axis=1)
    assert steps.max() <= 0.15 * 0.02 + 1e-9
    assert 0.0 < poses[-1][2] - before[2] < 0.05


def test_hands_hold_still_until_the_clutch_is_in(keyboard):
    keyboard.press()
    keyboard.typist.seen()
    before = keyboard.press().poses["left_hand"]
    given = keyboard.press("1uuu")
    assert not given.clutch
    assert given.poses["left_hand"].isApprox(before)
    assert "press space" in keyboard.typist.seen()


def test_hands_go_with_a_robot_that_turns(task, typist, view):
    keyboard = Keyboard(task, typist, view)
    start = keyboard.press(" ").poses["left_hand"]
    turn = pose_from_xyyaw(1.0, 2.0, 0.5 * np.pi)
    base = turn * view.state.T_world_base
    state = replace(view.state, base_position=base.translation, base_quaternion=pin.Quaternion(base.rotation).coeffs())
    keyboard.view = replace(view, state=state)
    assert keyboard.press().poses["left_hand"].isApprox(turn * start, 1e-6)
    keyboard.press("1i")
    for _ in range(20):
        after = keyboard.press().poses["left_hand"]
    # Forward is the robot's forward, which is the world's y now.
    assert np.allclose(after.translation - (turn * start).translation, [0.0, 0.005, 0.0], atol=1e-6)
    keyboard.device.close()


def test_fingers_follow_the_selection_and_stay(keyboard):
    assert keyboard.press("1c").fingers == {"left_hand": "closed"}
    assert keyboard.press("3z").fingers == {"left_hand": "open", "right_hand": "open"}
    assert keyboard.press("2x").fingers == {"left_hand": "open", "right_hand": "flat"}


def test_recording_keys_give_events_in_the_order_typed(keyboard):
    assert keyboard.press("rmn").events == ("start", "mark:lift", "mark:end")
    assert keyboard.press("m").events == ()
    assert "no skill is left" in keyboard.typist.seen()
    assert keyboard.press("\x7frm").events == ("discard", "start", "mark:lift")
    assert keyboard.press("t\x04").events == ("stop", "quit")


def test_the_status_line_names_the_next_mark(keyboard):
    keyboard.press("", 1.0)
    seen = keyboard.typist.seen()
    assert "next mark: lift" in seen
    assert re.search(r"box \+1\.[67]\d [+-]0\.00 [+-]0\.\d\d m", seen)


def test_the_status_line_fits_into_a_narrow_terminal(keyboard):
    fcntl.ioctl(keyboard.typist.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    keyboard.typist.seen()
    keyboard.press("", 1.0)
    line = keyboard.typist.seen().removeprefix("\r\x1b[K")
    assert len(line) == 39


def test_a_session_engages_with_the_keyboard_and_the_action_moves_the_arm(task, typist, view):
    keyboard = Keyboard(task, typist, view)
    session = TeleopSession(task.robot, keyboard.device)
    typist.type(" 1")
    first = session.tick(view)
    assert first.engaged
    assert not first.refused
    for _ in range(20):
        typist.type("u")
        last = session.tick(view)
    rise = last.targets["left_hand"].translation[2] - first.targets["left_hand"].translation[2]
    assert rise > 0.02
    names = task.robot.contract.names
    changed = {names[i] for i in np.flatnonzero(np.abs(last.action - first.action) > 0.01)}
    assert any(name.startswith("left_") for name in changed)
    keyboard.device.close()


def test_the_documentation_lists_every_key():
    text = (Path(__file__).parents[2] / "docs/teleoperation.md").read_text()
    for binding in BINDINGS:
        keys = " or ".join(f"`{key.replace('_', ' ')}`" for key in binding.keys)
        assert f"| {keys} | {binding.text} |" in text


def test_height_keys_lower_and_raise_the_base_until_a_key_walks(keyboard):
    assert keyboard.press().height is None
    assert keyboard.press("vvv").height == pytest.approx(0.735)
    assert keyboard.press("f").height == pytest.approx(0.745)
    assert keyboard.press("v" * 60).height == 0.35
    assert keyboard.press("w").height is None
