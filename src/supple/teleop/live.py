# SPDX-License-Identifier: Apache-2.0
"""A teleoperation session on a robot that is seen only through its measurements, e.g. behind ROS topics."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.episodes import Outcome
from supple.errors import TeleopError
from supple.robots import RobotCommand, RobotState
from supple.sim.mirror import Mirror
from supple.tasks import Environment, Task
from supple.teleop.device import END_LABEL, Device, OperatorView
from supple.teleop.session import TeleopSession, TeleopTick
from supple.teleop.take import Take, mark_labels

__all__ = ["FinishedTake", "LiveSession"]

Array = NDArray[np.float64]
ContactPoint = tuple[str, str, float, float]

_REMEMBERED = 50


@dataclass(frozen=True)
class FinishedTake:
    """A take whose last state is recorded.

    Attributes:
        take: The take, to be finished and saved.
        outcome: The verdict on its last state.
        cut_off: Whether something else than the operator's stop ended it.
    """

    take: Take
    outcome: Outcome
    cut_off: bool


@dataclass
class _Recorded:
    """A tick that waits for the objects and contacts measured at its state's stamp."""

    state: RobotState
    tick: TeleopTick
    begins: bool
    ends: bool
    marks: list[str]


class LiveSession:
    """Drive a robot by its measurements and record what happens.

    Commands go out at once. What is recorded follows one tick later, when objects and contacts of the same stamp have
    arrived, and is completed by a mirror of the scene: the full physics state and the success test are computed from
    what was measured. Materials cannot be measured; those of the task's nominal layout are stored.

    Args:
        task: What is demonstrated.
        device: What the operator drives with.
        source: Where this happens, stored with the seeds.

    Attributes:
        session: The session.
        recording: Whether a take is going on.
        finished: Takes that are over and not yet fetched.
        late_objects: Number of recorded states whose objects had to be taken from an older message.
    """

    def __init__(self, task: Task, device: Device, source: str) -> None:
        self._task, self._device, self._source = task, device, source
        self._environment = Environment(task)
        self._environment.reset(task.nominal())
        self._mirror = Mirror(self._environment.world)
        self.session = TeleopSession(task.robot, device)
        self._objects: OrderedDict[int, tuple[Mapping[str, pin.SE3], Mapping[str, Array]]] = OrderedDict()
        self._contacts: OrderedDict[int, list[ContactPoint]] = OrderedDict()
        self._waiting: _Recorded | None = None
        self._requested: list[str] = []
        self._take: Take | None = None
        self._marked: list[str] = []
        self._starting = self._stopping = False
        self._refused = ""
        self.recording = False
        self.finished: list[FinishedTake] = []
        self.late_objects = 0

    @property
    def recorded(self) -> float:
        """Length in [s] of the take that is going on; 0 if none is."""
        return 0.0 if self._take is None else self._take.duration

    @property
    def busy(self) -> bool:
        """Whether a take is going on or has been stopped and waits for its last state."""
        return self.recording or self._stopping or (self._waiting is not None and self._waiting.ends)

    # -- measurements ------------------------------------------------------------------------------------------------

    def see_objects(self, stamp_ns: int, poses: Mapping[str, pin.SE3], twists: Mapping[str, Array]) -> None:
        """Take in poses and twists of objects."""
        self._objects[stamp_ns] = (dict(poses), dict(twists))
        while len(self._objects) > _REMEMBERED:
            self._objects.popitem(last=False)

    def see_contacts(self, stamp_ns: int, points: Iterable[ContactPoint]) -> None:
        """Take in all contact points of one instant: both bodies, normal and tangential force in [N]."""
        self._contacts[stamp_ns] = list(points)
        while len(self._contacts) > _REMEMBERED:
            self._contacts.popitem(last=False)

    @property
    def missing_objects(self) -> list[str]:
        """Names of the task's objects whose pose is not known yet."""
        known = next(reversed(self._objects.values()))[0] if self._objects else {}
        return [name for name in self._task.objects if name not in known]

    # -- the loop ----------------------------------------------------------------------------------------------------

    def tick(self, state: RobotState) -> TeleopTick | None:
        """Advance by one control interval.

        Args:
            state: The newest measurement.

        Returns:
            What to command and what the operator asked for; None until every object has been seen.

        Raises:
            TeleopError: The device gave something unusable.
        """
        if self.missing_objects:
            return None
        self._record_waiting()
        begins, ends = self._starting, self._stopping
        self._starting = self._stopping = False
        if begins:
            self.session.controller.reset()
        poses, twists = next(reversed(self._objects.values()))
        self._mirror.show(state, poses, twists)
        seen = {name: poses[name] for name in self._task.objects}
        tick = self.session.tick(OperatorView(state, self._environment.effector_poses(), seen))
        self._waiting = _Recorded(state, tick, begins, ends, [])
        if tick.refused and tick.refused != self._refused:
            self._device.tell(tick.refused)
        self._refused = tick.refused
        for event in (*self._requested, *tick.events):
            self._handle(event)
        self._requested.clear()
        return tick

    def request(self, event: str) -> str:
        """Ask for what a device's event would bring about, at the next tick.

        Args:
            event: ``"start"``, ``"stop"``, ``"discard"`` or ``"mark:<label>"``.

        Returns:
            What will happen, for a person.

        Raises:
            TeleopError: It makes no sense now; says why.
        """
        text = self._check(event)
        self._requested.append(event)
        return text

    def _check(self, event: str) -> str:
        kind, _, label = event.partition(":")
        begun = self._take is not None or (self._waiting is not None and self._waiting.begins)
        if kind == "start":
            if self.recording or "start" in self._requested:
                raise TeleopError("already recording: stop or discard first")
            if self.missing_objects:
                raise TeleopError(f"cannot record: nothing is known of {', '.join(self.missing_objects)} yet")
            return "recording"
        if not self.recording or {"stop", "discard"} & set(self._requested) or not (begun or kind == "discard"):
            raise TeleopError(f"{kind}: nothing is being recorded")
        if kind == "mark":
            names = mark_labels(self._task)
            if label not in (*names, END_LABEL):
                known = ", ".join((*names, END_LABEL))
                raise TeleopError(f"mark {label!r} is no skill of {self._task.name} (available: {known})")
            if label != END_LABEL and label in (*self._marked, *(e.removeprefix("mark:") for e in self._requested)):
                raise TeleopError(f"skill {label!r} was marked already; a second mark needs 'supple annotate'")
            return f"marked {label!r}"
        return {"stop": "stopped", "discard": "discarded"}.get(kind, "")

    def _handle(self, event: str) -> None:
        if event == "quit":
            return
        # What was requested has been checked when it was; the queue must not count against itself.
        requested, self._requested = self._requested, []
        try:
            text = self._check(event)
        except TeleopError as error:
            self._device.tell(str(error))
            return
        finally:
            self._requested = requested
        if event == "start":
            self._starting = self.recording = True
            self._marked = []
        elif event == "stop":
            self._stopping, self.recording = True, False
        elif event == "discard":
            self._drop()
        elif event.startswith("mark:") and self._waiting is not None:
            label = event.removeprefix("mark:")
            self._marked.append(label)
            self._waiting.marks.append(label)
        self._device.tell(text)

    def _drop(self) -> None:
        self._take = None
        self._starting = self._stopping = self.recording = False
        if self._waiting is not None:
            self._waiting.begins = self._waiting.ends = False

    # -- recording, one tick later -----------------------------------------------------------------------------------

    def _record_waiting(self) -> None:
        row, self._waiting = self._waiting, None
        if row is None or (self._take is None and not row.begins):
            return
        forces = self._show(row.state)
        if row.begins:
            initial = self._environment.snapshot()
            # The success test counts from here.
            self._environment.restore(initial)
            self._take = Take(self._task, initial, self._device.name, self._source)
        take = self._take
        if take is None:
            return
        self._observe(take, row.state, forces)
        if row.ends:
            self._take = None
            self.finished.append(FinishedTake(take, self._environment.outcome(), False))
            return
        take.act(row.tick.action, row.tick.targets)
        for label in row.marks:
            take.mark(label)

    def _observe(self, take: Take, state: RobotState, forces: Mapping[str, tuple[float, float]]) -> None:
        environment = self._environment
        if take.steps:
            environment.observe_success()
        poses = environment.object_poses()
        take.observe(state, environment.world.get_state(), environment.effector_poses(), poses, forces)

    def _show(self, state: RobotState) -> dict[str, tuple[float, float]]:
        """Mirror a state with the objects of its stamp and return the contact forces of its stamp."""
        stamp = state.stamp_ns
        if stamp not in self._objects:
            self.late_objects += 1
        stamps = [key for key in self._objects if key <= stamp] or list(self._objects)[:1]
        self._mirror.show(state, *self._objects[stamps[-1]])
        before = [key for key in self._contacts if key <= stamp]
        points = self._contacts[before[-1]] if before else []
        return self._mirror.pair_forces(points, self._task.contact_pairs)

    def cut_off(self) -> FinishedTake | None:
        """End a take that is going on and return it if it is worth keeping, or was just being stopped."""
        row, take = self._waiting, self._take
        self._waiting = None
        # Stopped, but the state after the last action has not come: the take ends one action earlier.
        stopped = self._stopping or (row is not None and row.ends)
        self._drop()
        if take is None or row is None or not (stopped or take.worth_keeping):
            return None
        self._observe(take, row.state, self._show(row.state))
        return FinishedTake(take, self._environment.outcome(), not stopped)

    def reset(self) -> FinishedTake | None:
        """Begin anew after the clock jumped or the robot was put elsewhere; return a take that was cut off by it."""
        finished = self.cut_off()
        self.session.reset()
        self._objects.clear()
        self._contacts.clear()
        self._waiting = None
        return finished

    def home(self, state: RobotState, longest: float = np.inf) -> tuple[RobotCommand, bool]:
        """Bring the arms home (``TeleopSession.home``); nothing more is recorded."""
        return self.session.home(state, longest)
