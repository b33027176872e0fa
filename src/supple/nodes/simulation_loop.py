# SPDX-License-Identifier: Apache-2.0
"""The simulation's thread: physics at its own pace, commands in between, resets and single steps; knows no ROS."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from supple.control.arbitration import CommandArbiter
from supple.errors import SceneError
from supple.robots import RobotCommand
from supple.robots.limits import CommandLimiter
from supple.sim.clock import SimulationClock
from supple.tasks import Environment

__all__ = ["Applied", "SimulationLoop"]

# Later than this the pace begins anew instead of running fast to catch up, in [s].
_FORGIVEN = 0.1


@dataclass(frozen=True)
class Applied:
    """What became of a command.

    Attributes:
        command: What is applied from now on.
        limited: Names of the joints that a limit changed.
        sequence: Number of commands applied from this source before.
        stamp_ns: When, in [ns] of the shown clock.
    """

    command: RobotCommand
    limited: tuple[str, ...]
    sequence: int
    stamp_ns: int


class SimulationLoop:
    """Step an environment in a thread of its own.

    Until somebody commands the legs after a reset, the robot hangs in a gantry: time passes and states are published,
    but nothing moves, because nothing would hold the robot upright. At each control tick physics waits up to
    ``answer_timeout`` for those owners that keep up to answer the present state, so that a busy machine slows the
    simulation down instead of making the robot fall; an owner that does not answer is waited for no more until it
    speaks.

    Args:
        environment: The task's world.
        real_time_factor: Simulated seconds per second; 0 goes as fast as the owners answer.
        answer_timeout: Longest wait for answers at a control tick in [s], steady clock; 0 never waits.
        gantry: Joint groups without whose owner the robot hangs; empty for none.
        arbiter: Who may command what.
        on_state: Called with the stamp in [ns], whether a control interval begins, and whether this follows a reset.
        on_failure: Called with the reason when physics breaks down; time stands still then until a reset.
    """

    def __init__(
        self,
        environment: Environment,
        real_time_factor: float,
        answer_timeout: float,
        gantry: Sequence[str],
        arbiter: CommandArbiter,
        on_state: Callable[[int, bool, bool], None],
        on_failure: Callable[[str], None],
    ) -> None:
        self.environment, self.arbiter = environment, arbiter
        world = environment.world
        self._step_ns = round(world.model.opt.timestep * 1e9)
        self._control_ns = round(environment.body.control_interval * 1e9)
        self.clock = SimulationClock(self._step_ns, self._control_ns)
        self.limiter = CommandLimiter(world.robot.joints)
        self._factor, self._answer_timeout, self._gantry = real_time_factor, answer_timeout, tuple(gantry)
        self._on_state, self._on_failure = on_state, on_failure
        self._condition = threading.Condition(threading.RLock())
        self._thread: threading.Thread | None = None
        self._running = False
        self.paused = False
        self._broken = ""
        self._hanging = bool(self._gantry)
        self._answers: dict[str, int] = {}
        self._silent: set[str] = set()
        self._sequences: Counter[str] = Counter()
        self.late = 0
        self._measured = (time.perf_counter(), self.clock.now_ns)

    # -- the thread --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to step."""
        self._running = True
        self._thread = threading.Thread(target=self._run, name="physics", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        with self._condition:
            self._running = False
            self._condition.notify_all()
        if self._thread is not None:
            self._thread.join(timeout=2.0)
            self._thread = None

    def _run(self) -> None:
        due = time.perf_counter()
        while True:
            with self._condition:
                while self._running and (self.paused or self._broken):
                    self._condition.wait(0.1)
                    due = time.perf_counter()
                if not self._running:
                    return
                self._await_answers()
                # A pause or an end may have come while waiting.
                if self._running and not self.paused and not self._broken:
                    self._advance()
            due = self._pace(due)

    def _pace(self, due: float) -> float:
        if self._factor <= 0.0 and not self._hanging:
            # Let those waiting for the lock have it.
            time.sleep(0)
            return time.perf_counter()
        due += self._step_ns * 1e-9 / (self._factor if self._factor > 0.0 else 1.0)
        wait = due - time.perf_counter()
        if wait > 0.0:
            time.sleep(wait)
        elif wait < -_FORGIVEN:
            self.late += 1
            return time.perf_counter()
        return due

    def _await_answers(self) -> None:
        if not self.clock.control_tick or self._answer_timeout <= 0.0 or self._hanging:
            return
        now = self.clock.now_ns
        owners = set(self.arbiter.owners(now).values()) - self._silent

        def answered() -> bool:
            if not self._running or self.paused or self.clock.now_ns != now:
                return True
            return all(self._answers.get(owner, -1) >= now for owner in owners)

        if not self._condition.wait_for(answered, self._answer_timeout):
            self._silent |= {owner for owner in owners if self._answers.get(owner, -1) < now}

    def _advance(self) -> None:
        world = self.environment.world
        if self._hanging:
            self._hanging = not set(self._gantry) <= set(self.arbiter.owners(self.clock.now_ns))
        if not self._hanging:
            world.apply(self.arbiter.merged(self.clock.now_ns))
            try:
                world.step(1)
            except SceneError as error:
                self._broken = str(error)
                self.arbiter.stop(self._broken)
                self._on_failure(self._broken)
                return
        stamp = self.clock.advance()
        self._on_state(stamp, self.clock.control_tick, False)

    # -- what others may ask -------------------------------------------------------------------------------------------

    def offer(self, command: RobotCommand) -> Applied:
        """Take in a command.

        Raises:
            SuppleError: It is refused; says why.
        """
        with self._condition:
            now = self.clock.now_ns
            limited = self.limiter.limit(command)
            self.arbiter.offer(limited, now)
            self._answers[command.source] = command.stamp_ns
            self._silent.discard(command.source)
            sequence = self._sequences[command.source]
            self._sequences[command.source] += 1
            self._condition.notify_all()
            return Applied(limited, tuple(self.limiter.changed(command, limited)), sequence, now)

    def reset(self, put: Callable[[], object]) -> None:
        """Put the world into another state; the clock jumps on, owners are forgotten.

        Args:
            put: Does it; if it raises, only the present state of the world is uncertain, and everything is damped.
        """
        with self._condition:
            try:
                put()
            except BaseException:
                self.arbiter.stop("the last reset failed")
                raise
            stamp = self.clock.reset()
            self.arbiter.reset(self.environment.world.robot_state().q, stamp)
            self._answers.clear()
            self._silent.clear()
            self._sequences.clear()
            self._hanging, self._broken = bool(self._gantry), ""
            self._on_state(stamp, self.clock.control_tick, True)
            self._condition.notify_all()

    def set_paused(self, paused: bool) -> None:
        """Stop or continue."""
        with self._condition:
            self.paused = paused
            self._condition.notify_all()

    def step(self, steps: int) -> None:
        """Advance a paused simulation.

        Raises:
            SceneError: It is not paused, or physics broke down.
        """
        with self._condition:
            if not self.paused:
                raise SceneError("the simulation is running; pause it before single steps")
            for _ in range(steps):
                if not self._broken:
                    self._advance()
            if self._broken:
                raise SceneError(f"{self._broken}; reset first")

    def emergency_stop(self, reason: str) -> None:
        """Damp everything until the next reset."""
        with self._condition:
            self.arbiter.stop(reason)

    def report(self) -> dict[str, str]:
        """Return how the simulation is doing since the last call."""
        with self._condition:
            now, stamp = time.perf_counter(), self.clock.now_ns
            (then, before), self._measured = self._measured, (now, stamp)
            owners = self.arbiter.owners(stamp)
            groups = {name: self.arbiter.state(name, stamp) for name in self.environment.world.robot.joints.groups}
            factor = (stamp - before) * 1e-9 / max(now - then, 1e-9)
            hanging = "hanging in the gantry" if self._hanging else "running"
            state = "broken down" if self._broken else "paused" if self.paused else hanging
            values = {"real-time factor": f"{factor:.3f}", "physics": state, "late": str(self.late)}
            for name, group in groups.items():
                values[f"group {name}"] = f"{group} {owners.get(name, '')}".strip()
            if self.arbiter.stopped:
                values["stopped"] = self.arbiter.stopped
            values["joints limited"] = ", ".join(f"{n} {c}" for n, c in self.limiter.counts.most_common(5)) or "none"
        return values
