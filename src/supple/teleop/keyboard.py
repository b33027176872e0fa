# SPDX-License-Identifier: Apache-2.0
"""The keyboard as a teleoperation device: keys move virtual wrists, walk the robot, and say what is recorded."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.control.stance import StanceEstimator
from supple.control.standing import HEIGHT_RANGE
from supple.errors import TeleopError
from supple.geometry import pose_error, pose_from_xyyaw
from supple.robots import Robot
from supple.teleop.device import END_LABEL, OperatorInput, OperatorView
from supple.teleop.keys import KeyParser
from supple.teleop.terminal import KeyTerminal

__all__ = ["BINDINGS", "KeyBinding", "KeyboardDevice", "VirtualHands", "key_table"]

Array = NDArray[np.float64]

# A key that is held arrives about 30 times a second, after a first pause of up to half a second.
_DEAD_MAN = 0.3
_FADE = 0.15
_WALK = np.array([0.35, 0.2, 0.5])
# What one press asks of a hand, how fast the virtual hand follows, and how far a held key may run ahead of it.
_STEP, _TURN = 0.005, 0.035
_HEIGHT_STEP = 0.01
_SPEED, _TURN_SPEED = 0.15, 0.8
_LEAD, _TURN_LEAD = 0.03, 0.2
# Faster than a person reads, slow enough for a remote terminal.
_STATUS_PERIOD = 0.2
# The bytes of one escape sequence arrive together; an escape byte that stays alone this long was the escape key.
_ESCAPE_WAIT = 0.1


@dataclass(frozen=True)
class KeyBinding:
    """What a key does.

    Attributes:
        keys: Names of the keys that do it (``KeyParser``).
        action: Name of the action; the first word says what kind.
        text: What it does, for a person.
    """

    keys: tuple[str, ...]
    action: str
    text: str


BINDINGS = (
    KeyBinding(("w",), "walk 0 1", "walk forward"),
    KeyBinding(("s",), "walk 0 -1", "walk backward"),
    KeyBinding(("a",), "walk 1 1", "walk to the left"),
    KeyBinding(("d",), "walk 1 -1", "walk to the right"),
    KeyBinding(("q",), "walk 2 1", "turn left"),
    KeyBinding(("e",), "walk 2 -1", "turn right"),
    KeyBinding(("v",), "height -1", "squat lower"),
    KeyBinding(("f",), "height 1", "rise"),
    KeyBinding(("space",), "clutch", "hands follow the keys / hold still (clutch)"),
    KeyBinding(("1",), "hand left_hand", "move the left hand"),
    KeyBinding(("2",), "hand right_hand", "move the right hand"),
    KeyBinding(("3",), "hand", "move both hands: the right mirrors the left"),
    KeyBinding(("up", "i"), "shift 0 1", "hand forward"),
    KeyBinding(("down", "k"), "shift 0 -1", "hand back"),
    KeyBinding(("left", "j"), "shift 1 1", "hand to the left (both: apart)"),
    KeyBinding(("right", "l"), "shift 1 -1", "hand to the right (both: together)"),
    KeyBinding(("page_up", "u"), "shift 2 1", "hand up"),
    KeyBinding(("page_down", "o"), "shift 2 -1", "hand down"),
    KeyBinding(("shift_up", "I"), "turn 1 -1", "fingers up"),
    KeyBinding(("shift_down", "K"), "turn 1 1", "fingers down"),
    KeyBinding(("shift_left", "J"), "turn 2 1", "fingers to the left (both: apart)"),
    KeyBinding(("shift_right", "L"), "turn 2 -1", "fingers to the right (both: together)"),
    KeyBinding(("U",), "turn 0 1", "roll the hand clockwise, as seen from behind"),
    KeyBinding(("O",), "turn 0 -1", "roll the hand counter-clockwise, as seen from behind"),
    KeyBinding(("z",), "fingers open", "open the hand"),
    KeyBinding(("x",), "fingers flat", "flatten the hand, thumb folded"),
    KeyBinding(("c",), "fingers closed", "close the hand"),
    KeyBinding(("r",), "event start", "start recording"),
    KeyBinding(("t",), "event stop", "stop recording and keep it"),
    KeyBinding(("backspace",), "event discard", "discard the recording"),
    KeyBinding(("m",), "mark", "mark where the next skill begins"),
    KeyBinding(("n",), "end", "mark where the skill ends"),
    KeyBinding(("h", "?"), "help", "show this table"),
    KeyBinding(("ctrl_d",), "event quit", "quit"),
)
"""Every key that does something; help, documentation and behaviour all come from here."""


def key_table() -> str:
    """Return what the keys do, one line each."""
    rows = [(" or ".join(key.replace("_", " ") for key in binding.keys), binding.text) for binding in BINDINGS]
    width = max(len(keys) for keys, _ in rows)
    return "\n".join(f"  {keys:<{width}}  {text}" for keys, text in rows)


class VirtualHands:
    """Hand poses that key presses move, carried along by the robot's base.

    They live in the base's heading frame, so that "forward" is the robot's own and walking takes the hands with it. A
    press moves a goal by one step; the pose follows the goal at a hand's speed, so that it never jumps.

    Args:
        names: Names of the hands; those that begin with ``right`` mirror the others.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._poses: dict[str, pin.SE3] = {}
        self._goals: dict[str, pin.SE3] = {}

    def place(self, heading: pin.SE3, world_poses: dict[str, pin.SE3]) -> None:
        """Put the hands at world poses; ``heading`` is the upright frame of the base in the world."""
        self._poses = {name: heading.actInv(world_poses[name]) for name in self.names}
        self._goals = {name: pose.copy() for name, pose in self._poses.items()}

    def shift(self, selected: Sequence[str], axis: int, sign: float) -> None:
        """Move the goals of hands by one step along an axis (0 forward, 1 left, 2 up) of the heading frame."""
        for name in selected:
            step = np.zeros(3)
            step[axis] = sign * _STEP * (self._mirror(name, selected) if axis == 1 else 1.0)
            self._goals[name].translation = self._goals[name].translation + step
            ahead = self._goals[name].translation - self._poses[name].translation
            excess = float(np.linalg.norm(ahead)) / _LEAD
            if excess > 1.0:
                self._goals[name].translation = self._poses[name].translation + ahead / excess

    def turn(self, selected: Sequence[str], axis: int, sign: float) -> None:
        """Turn the goals of hands by one step about an axis (0 forward, 1 left, 2 up) of the heading frame."""
        for name in selected:
            step = np.zeros(3)
            step[axis] = sign * _TURN * (1.0 if axis == 1 else self._mirror(name, selected))
            goal = pin.exp3(step) @ self._goals[name].rotation
            ahead = pin.log3(self._poses[name].rotation.T @ goal)
            excess = float(np.linalg.norm(ahead)) / _TURN_LEAD
            if excess > 1.0:
                goal = self._poses[name].rotation @ pin.exp3(ahead / excess)
            self._goals[name].rotation = goal

    @staticmethod
    def _mirror(name: str, selected: Sequence[str]) -> float:
        return -1.0 if len(selected) > 1 and name.startswith("right") else 1.0

    def advance(self, dt: float) -> None:
        """Let the poses follow their goals for a time in [s]."""
        for name, goal in self._goals.items():
            pose = self._poses[name]
            distance, angle = pose_error(pose, goal)
            along = min(1.0, _SPEED * dt / max(distance, 1e-9))
            about = min(1.0, _TURN_SPEED * dt / max(angle, 1e-9))
            rotation = pose.rotation @ pin.exp3(about * pin.log3(pose.rotation.T @ goal.rotation))
            self._poses[name] = pin.SE3(rotation, pose.translation + along * (goal.translation - pose.translation))

    def world_poses(self, heading: pin.SE3) -> dict[str, pin.SE3]:
        """Return the poses in the world."""
        return {name: heading * pose for name, pose in self._poses.items()}


class KeyboardDevice:
    """Drive the robot from a terminal.

    The hands' virtual poses start where the robot's hands are whenever the clutch engages. The base walks while its
    keys keep coming; without one it slows down and stands after 0.3 s.

    Args:
        robot: The robot.
        labels: Names of the skills to mark, in order (``mark_labels(task)``).
        pace: Let ``read`` wait until the next control interval is due, for a simulation that would outrun the operator.
        terminal: Where keys come from; the program's own terminal if absent.
        clock: Steady time in [s].

    Raises:
        TeleopError: There is no terminal.
    """

    name = "keyboard"
    tracked = False

    def __init__(
        self,
        robot: Robot,
        labels: Sequence[str] = (),
        *,
        pace: bool = False,
        terminal: KeyTerminal | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._robot = robot
        self._labels = tuple(labels)
        self._pace = pace
        self._clock = clock
        self._interval = robot.contract.control_interval
        self._actions = {key: binding.action for binding in BINDINGS for key in binding.keys}
        self._stance = StanceEstimator(robot)
        self._hands = VirtualHands(tuple(robot.effectors))
        self._selected = self._hands.names
        self._parser = KeyParser()
        self._clutch = False
        self._fingers: dict[str, str] = {}
        self._pressed: dict[int, tuple[float, float]] = {}
        self._height: float | None = None
        self._marked = 0
        self._due: float | None = None
        self._typed = self._shown = -np.inf
        self._terminal = terminal or KeyTerminal()
        self.tell("Keys:\n" + key_table())

    # -- the device interface ----------------------------------------------------------------------------------------

    def read(self, view: OperatorView) -> OperatorInput:
        """Return what the keys ask for now."""
        if self._pace:
            self._wait()
        now = self._clock()
        heading = pose_from_xyyaw(*self._stance.pose(view.state))
        if not self._clutch:
            self._hands.place(heading, dict(view.effectors))
        events: list[str] = []
        for key in self._keys(now):
            events += self._press(key, now)
        if self._clutch:
            self._hands.advance(self._interval)
        self._show_status(view, heading, now)
        poses = self._hands.world_poses(heading)
        return OperatorInput(poses, dict(self._fingers), self._velocity(now), self._clutch, tuple(events), self._height)

    def tell(self, text: str) -> None:
        """Show the operator a message above the status line."""
        self._terminal.write(f"\r\x1b[K{text}\n")
        self._shown = -np.inf

    def close(self) -> None:
        """Give the terminal back."""
        self._terminal.write("\r\x1b[K")
        self._terminal.close()

    # -- keys --------------------------------------------------------------------------------------------------------

    def _wait(self) -> None:
        now = self._clock()
        # After a long halt the rhythm begins anew; catching up would make the robot race.
        if self._due is None or now - self._due > 5 * self._interval:
            self._due = now
        if self._due > now:
            time.sleep(self._due - now)
        self._due += self._interval

    def _keys(self, now: float) -> list[str]:
        data = self._terminal.read()
        if data:
            self._typed = now
            return self._parser.feed(data)
        if self._terminal.ended:
            raise TeleopError("the terminal of the keyboard device is gone")
        return self._parser.flush() if now - self._typed > _ESCAPE_WAIT else []

    def _press(self, key: str, now: float) -> list[str]:
        kind, _, rest = self._actions.get(key, "").partition(" ")
        if kind == "walk":
            axis, sign = rest.split()
            self._pressed[int(axis)] = (float(sign), now)
            # Walking needs the height of walking.
            self._height = None
        elif kind == "height":
            height = self._robot.standing_height if self._height is None else self._height
            self._height = float(np.clip(height + float(rest) * _HEIGHT_STEP, *HEIGHT_RANGE))
        elif kind in ("shift", "turn"):
            axis, sign = rest.split()
            if self._clutch:
                getattr(self._hands, kind)(self._selected, int(axis), float(sign))
            else:
                self.tell("the hands hold still: press space first")
        elif kind == "hand":
            self._selected = (rest,) if rest else self._hands.names
        elif kind == "fingers":
            self._fingers |= dict.fromkeys(self._selected, rest)
        elif kind == "clutch":
            self._clutch = not self._clutch
        elif kind == "event":
            self._marked = 0 if rest in ("start", "discard") else self._marked
            return [rest]
        elif kind == "mark":
            return self._mark()
        elif kind == "end":
            return [f"mark:{END_LABEL}"]
        elif kind == "help":
            self.tell("Keys:\n" + key_table())
        return []

    def _mark(self) -> list[str]:
        if self._marked >= len(self._labels):
            known = ", ".join(self._labels) or "none"
            self.tell(f"no skill is left to mark (skills of this task: {known}); n marks the end of the last")
            return []
        self._marked += 1
        return [f"mark:{self._labels[self._marked - 1]}"]

    def _velocity(self, now: float) -> Array:
        velocity = np.zeros(3)
        for axis, (sign, since) in self._pressed.items():
            velocity[axis] = sign * _WALK[axis] * float(np.clip((_DEAD_MAN - (now - since)) / _FADE, 0.0, 1.0))
        return velocity

    def _show_status(self, view: OperatorView, heading: pin.SE3, now: float) -> None:
        if now - self._shown < _STATUS_PERIOD:
            return
        self._shown = now
        hands = "both hands" if len(self._selected) > 1 else self._selected[0].replace("_", " ")
        clutch = "follow" if self._clutch else "hold"
        label = self._labels[self._marked] if self._marked < len(self._labels) else "-"
        vx, vy, wz = self._velocity(now)
        parts = [
            f"{view.state.stamp_ns * 1e-9:7.1f} s",
            f"{hands} {clutch}",
            f"next mark: {label}",
            f"v {vx:+.2f} {vy:+.2f} {wz:+.2f}",
            "h: keys",
        ]
        if self._height is not None:
            parts.insert(4, f"height {self._height:.2f} m")
        if view.objects:
            # What the operator works on, as seen from the robot: ahead, to the left, up.
            name, pose = next(iter(view.objects.items()))
            ahead, left, up = heading.actInv(pose).translation
            parts.insert(4, f"{name} {ahead:+.2f} {left:+.2f} {up:+.2f} m")
        line = " | ".join(parts)
        # A line that wraps could not be written over.
        width = self._terminal.columns - 1
        self._terminal.write(f"\r\x1b[K{line[:width] if width > 0 else line}")
