# SPDX-License-Identifier: Apache-2.0
"""Run processes together: show their output under their names, stop them together, report how each ended."""

from __future__ import annotations

import ctypes
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from supple.launching.document import LaunchError
from supple.launching.environment import ros_environment
from supple.launching.process import NodeProcess

__all__ = ["run"]

_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green", "bright_magenta")
_STAGES = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
# Option of prctl(2): the signal that a process gets when the thread that started it ends.
_PR_SET_PDEATHSIG = 1


def run(
    processes: Sequence[NodeProcess],
    environment: Mapping[str, str] | None = None,
    console: Console | None = None,
    grace: float = 5.0,
) -> int:
    """Start processes and stay until all have ended.

    SIGINT or SIGTERM to this process, and the end of a process with ``shutdown_on_exit``, stop all: SIGINT first,
    SIGTERM to those still there after the grace time, SIGKILL after another; a process may ask for longer ones. A
    second SIGINT goes to the next stage.
    If this process is killed, each process gets a SIGINT from the system (on Linux), so that nothing moves on alone.
    Must be called from the main thread: it alone receives signals, and its end is what the processes hear of.

    Args:
        processes: What to start.
        environment: Environment of the processes; `ros_environment` when not given.
        console: Where output goes; standard output when not given.
        grace: Time between the stages in [s], for processes that do not ask for another.

    Returns:
        The exit code: of the process that stopped all; else of the first that failed by itself; 1 if all was well until
        one had to be killed; else 0. A death by signal counts 128 plus its number.

    Raises:
        LaunchError: A process cannot be started; those that were are stopped first.
    """
    session = _Session(console or Console(highlight=False), grace)
    with session.signals():
        try:
            for index, process in enumerate(processes):
                session.start(process, ros_environment() if environment is None else environment, index)
        except OSError as error:
            session.stop()
            session.wait()
            raise LaunchError(f"{process.source}: cannot start {process.command[0]}: {error.strerror}") from error
        return session.wait()


@dataclass
class _Child:
    """One running process: how far its stopping has come (-1: not begun), and when it goes on (steady clock, [s])."""

    process: NodeProcess
    handle: subprocess.Popen[bytes]
    stage: int = -1
    deadline: float = math.inf
    waited: float = 0.0


class _Session:
    """The running processes. Signals and ends of processes arrive in one queue, handled by one thread."""

    def __init__(self, console: Console, grace: float) -> None:
        self.console = console
        self.grace = grace
        self.events: queue.SimpleQueue[tuple[int, int] | int] = queue.SimpleQueue()
        self.running: dict[int, _Child] = {}
        self.stopping = False
        self.code: int | None = None
        self.killed = False
        self.lock = threading.Lock()
        self.tie = _tie_to_this_process()

    @contextmanager
    def signals(self) -> Iterator[None]:
        """Receive SIGINT and SIGTERM as events."""

        def note(number: int, _frame: object) -> None:
            self.events.put(number)

        before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def say(self, message: str, style: str = "bold") -> None:
        with self.lock:
            self.console.print(Text(f"[supple up] {message}", style), soft_wrap=True)

    def start(self, process: NodeProcess, environment: Mapping[str, str], index: int) -> None:
        """Start one process in a session of its own, so that a Ctrl-C reaches it once, through us."""
        child = subprocess.Popen(
            process.command,
            env=dict(environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=self.tie,
        )
        self.running[child.pid] = _Child(process, child)
        self.say(f"{process.name} started (process {child.pid})", "dim")
        colour = _COLOURS[index % len(_COLOURS)]
        threading.Thread(target=self.follow, args=(process, child, colour), daemon=True).start()

    def follow(self, process: NodeProcess, child: subprocess.Popen[bytes], colour: str) -> None:
        """Show the output of a process line by line until it ends."""

        def show() -> None:
            for raw in child.stdout or ():
                line = Text.from_ansi(raw.decode(errors="replace").rstrip("\n"))
                with self.lock:
                    self.console.print(Text.assemble((f"[{process.name}] ", colour), line), soft_wrap=True)

        reader = threading.Thread(target=show, daemon=True)
        reader.start()
        code = child.wait()
        # What is left in the pipe is shown; a grandchild that holds the pipe open is not waited for.
        reader.join(timeout=1.0)
        self.events.put((child.pid, code))

    def stop(self) -> None:
        """Go to the next stage of stopping: tell every process that is still there."""
        self.stopping = True
        for child in self.running.values():
            self.advance(child)

    def advance(self, child: _Child) -> None:
        """Go to the next stage of stopping one process."""
        now = time.monotonic()
        child.stage = min(child.stage + 1, len(_STAGES) - 1)
        number = _STAGES[child.stage]
        if child.stage > 0:
            before = _STAGES[child.stage - 1].name
            late = now >= child.deadline
            why = f"did not end within {child.waited:g} s of {before}" if late else f"has not ended since {before}"
            self.say(f"{child.process.name} {why}; sending {number.name}", "bold yellow")
        child.waited = (child.process.sigterm_timeout, child.process.sigkill_timeout, None)[child.stage] or self.grace
        child.deadline = now + child.waited
        self.killed |= number == signal.SIGKILL
        try:
            # The whole group: a killed interpreter must not leave helpers behind.
            pid = child.handle.pid
            os.killpg(pid, number) if number == signal.SIGKILL else child.handle.send_signal(number)
        except ProcessLookupError:
            # It ended just now; its event is on the way.
            return

    def wait(self) -> int:
        """Handle events until nothing runs; return the exit code."""
        while self.running:
            try:
                due = min(child.deadline for child in self.running.values())
                timeout = max(0.0, due - time.monotonic())
                event = self.events.get(timeout=None if math.isinf(timeout) else timeout)
            except queue.Empty:
                for child in self.running.values():
                    if time.monotonic() >= child.deadline:
                        self.advance(child)
                continue
            if isinstance(event, int):
                if not self.stopping:
                    self.say(f"{signal.Signals(event).name}: stopping {len(self.running)} processes")
                self.stop()
            else:
                self.ended(*event)
        return self.code if self.code is not None else int(self.killed)

    def ended(self, number: int, code: int) -> None:
        """Note the end of a process, and stop the others if it was one that they cannot do without."""
        process, stopping = self.running.pop(number).process, self.stopping
        code = 128 - code if code < 0 else code
        by_us = stopping and code in {128 + stage for stage in _STAGES}
        if code and not by_us:
            self.say(f"{process.name} ended with exit code {code} ({process.source})", "bold red")
        else:
            self.say(f"{process.name} ended", "dim")
        if process.shutdown_on_exit and not stopping:
            self.code = code
            if self.running:
                self.say(f'{process.name} has on_exit="shutdown": stopping {len(self.running)} processes')
                self.stop()
        elif code and not by_us and self.code is None:
            self.code = code


def _tie_to_this_process() -> Callable[[], None] | None:
    """Return what a child calls before it becomes its program, so that a SIGINT comes when this process dies."""
    if sys.platform != "linux":
        return None
    # Everything is looked up here: between fork and exec a child of a process with threads must do little.
    prctl, parent = ctypes.CDLL(None, use_errno=True).prctl, os.getpid()

    def tie() -> None:
        if prctl(_PR_SET_PDEATHSIG, int(signal.SIGINT), 0, 0, 0) != 0 or os.getppid() != parent:
            # The parent died before the tie was there.
            os._exit(1)

    return tie
