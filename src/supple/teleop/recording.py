# SPDX-License-Identifier: Apache-2.0
"""Recording of seeds: a whole session in simulation, without ROS."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from supple.episodes import Seed, save_seed
from supple.errors import SeedError, SuppleError, TeleopError
from supple.tasks import Environment, Task
from supple.teleop.device import END_LABEL, Device, OperatorView
from supple.teleop.session import TeleopSession, TeleopTick
from supple.teleop.take import Take, mark_labels, partial_path, save_take, skills_from_marks

__all__ = ["END_LABEL", "mark_labels", "record_in_simulation", "skills_from_marks"]


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """Let a first Ctrl-C (or SIGTERM) wait for the end of a tick and yield whether it came; a second one interrupts."""
    if threading.current_thread() is not threading.main_thread():
        # Signals reach the main thread only.
        yield lambda: False
        return
    caught: list[int] = []
    kinds = (signal.SIGINT, signal.SIGTERM)

    def catch(number: int, frame: FrameType | None) -> None:
        if caught:
            raise KeyboardInterrupt
        caught.append(number)

    before = {kind: signal.signal(kind, catch) for kind in kinds}
    try:
        yield lambda: bool(caught)
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


class _Recording:
    """What a session in simulation has recorded: the take in progress and the last one that was kept."""

    def __init__(self, environment: Environment, device: Device, out: Path | None) -> None:
        self._environment = environment
        self._device = device
        self._out = out
        self.take: Take | None = None
        self.kept: Seed | None = None
        self._unsaved = False

    def begin(self) -> None:
        """Begin a take in the present state, as its replay will: from a snapshot."""
        initial = self._environment.snapshot()
        self._environment.restore(initial)
        self.take = Take(self._environment.task, initial, self._device.name, "in simulation")
        self._device.tell("recording")

    def observe(self) -> None:
        """Record the present state."""
        if self.take is None:
            return
        environment = self._environment
        forces = environment.world.contact_forces(environment.task.contact_pairs)
        self.take.observe(
            environment.body.read(),
            environment.world.get_state(),
            environment.effector_poses(),
            environment.object_poses(),
            forces,
        )

    def handle(self, event: str) -> bool:
        """Do what the operator asked for and return whether a take is to begin with the next state."""
        if event == "start":
            if self.take is None:
                return True
            self._device.tell("already recording: stop or discard first")
        elif event == "stop":
            self._stop()
        elif event == "discard":
            self._discard()
        elif event.startswith("mark:"):
            self._mark(event.removeprefix("mark:"))
        return False

    def _mark(self, label: str) -> None:
        if self.take is None:
            self._device.tell(f"mark {label!r} ignored: nothing is being recorded")
            return
        try:
            self._device.tell(f"marked {label!r} at step {self.take.mark(label).step}")
        except TeleopError as error:
            self._device.tell(str(error))

    def _stop(self) -> None:
        if self.take is None or self.take.steps == 0:
            if self._unsaved:
                self._try_to_save()
            else:
                self._device.tell("nothing is being recorded")
            return
        take = self.take
        self.observe()
        self.take = None
        self.kept, problem = take.finish(self._environment.outcome())
        outcome = self.kept.episode.outcome
        verdict = "success" if outcome.success else f"no success: {outcome.reason}"
        self._device.tell(f"kept {take.duration:.1f} s: {verdict}")
        if problem:
            self._device.tell(f"it has no skills yet: {problem}; add marks with 'supple annotate'")
        if self._out is not None:
            self._unsaved = True
            self._try_to_save()

    def _try_to_save(self) -> None:
        try:
            self.save()
        except SeedError as error:
            # The demonstration is still in memory; perhaps the operator can make room for it.
            self._device.tell(f"{error}; make room and stop again, it is tried once more at the end")

    def save(self) -> None:
        """Write the last kept take to its file, if that has not been done yet.

        Raises:
            SeedError: The disk is full or cannot be written.
        """
        if not self._unsaved or self.kept is None or self._out is None:
            return
        older = save_take(self._out, self.kept)
        self._unsaved = False
        moved = f"; the one before is now {older.name}" if older else ""
        self._device.tell(f"saved to {self._out}{moved}")

    def _discard(self) -> None:
        if self.take is not None:
            self._device.tell(f"discarded {self.take.duration:.1f} s")
            self.take = None
        elif self.kept is not None and self._out is None:
            self.kept = None
            self._device.tell("discarded the last take")
        else:
            self._device.tell("nothing is being recorded; what was kept stays")

    def cut_off(self) -> str:
        """Keep a take that the end of the session cut off, if it is worth it, and say what became of it."""
        take, self.take = self.take, None
        if take is None:
            return ""
        if not take.worth_keeping:
            return f"the recording of {take.duration:.1f} s that was going on was too short to keep and is discarded"
        if self._out is None:
            return f"the recording of {take.duration:.1f} s that was going on is discarded: no file was named for it"
        path = partial_path(self._out)
        try:
            if not take.complete:
                self.take = take
                self.observe()
                self.take = None
            seed, _ = take.finish(self._environment.outcome())
            save_seed(path, seed)
        except SuppleError as error:
            return f"the recording of {take.duration:.1f} s that was going on is lost: {error}"
        return f"the recording of {take.duration:.1f} s that was going on is kept in {path}"


def record_in_simulation(
    task: Task,
    device: Device,
    *,
    out: Path | str | None = None,
    timeout: float = 180.0,
    on_tick: Callable[[TeleopTick, OperatorView, bool], None] | None = None,
) -> Seed:
    """Let an operator demonstrate a task in the simulator, without ROS, and return the last seed that was kept.

    The session runs as fast as the device answers; a keyboard can pace itself. It ends on ``quit``, after the timeout,
    or on Ctrl-C or SIGTERM. A take that is going on then is kept beside ``out`` as ``<stem>.partial.hdf5`` if it is
    longer than a second; what was kept before stays. The returned seed has no skills if its marks do not make them up.

    Args:
        task: The task, in its nominal layout.
        device: What the operator drives with; closing it is the caller's work.
        out: Seed file, written at each ``stop``; an older one is moved aside. Nothing is written if absent.
        timeout: Longest session in [s] of simulation.
        on_tick: Called after each tick with the tick, the view and whether it is being recorded.

    Raises:
        TeleopError: Nothing was kept (the message says what became of a take that was going on), or the device failed.
        SuppleError: The simulation failed or the disk is full; a note says what became of a take that was going on.
    """
    environment = Environment(task)
    environment.reset(task.nominal())
    recording = _Recording(environment, device, None if out is None else Path(out))
    try:
        with _interruptible() as interrupted:
            ended = _run(environment, device, recording, timeout, on_tick, interrupted)
    except KeyboardInterrupt:
        ended = "interrupted"
    except SuppleError as error:
        if said := recording.cut_off():
            error.add_note(said)
            device.tell(said)
        recording.save()
        raise
    if said := recording.cut_off():
        device.tell(said)
    recording.save()
    if recording.kept is None:
        raise TeleopError(f"{ended}: {said or 'nothing was recorded'}")
    return recording.kept


def _run(
    environment: Environment,
    device: Device,
    recording: _Recording,
    timeout: float,
    on_tick: Callable[[TeleopTick, OperatorView, bool], None] | None,
    interrupted: Callable[[], bool],
) -> str:
    """Run the session and return why it ended."""
    session = TeleopSession(environment.task.robot, device)
    starting, refused = False, ""
    for _ in range(round(timeout / environment.task.robot.contract.control_interval)):
        if interrupted():
            return "interrupted"
        if starting:
            recording.begin()
            session.controller.reset()
        view = OperatorView(environment.body.read(), environment.effector_poses(), environment.object_poses())
        tick = session.tick(view)
        recording.observe()
        environment.body.write(tick.command)
        # Only now, so that an action whose state never came is not part of a take that is cut off.
        if recording.take is not None:
            recording.take.act(tick.action, tick.targets)
        environment.observe_success()
        if on_tick is not None:
            on_tick(tick, view, recording.take is not None)
        if tick.refused and tick.refused != refused:
            device.tell(tick.refused)
        refused = tick.refused
        starting = False
        for event in tick.events:
            starting |= recording.handle(event)
        if "quit" in tick.events:
            return "the operator quit"
    return f"the session ended after {timeout:.0f} s"
