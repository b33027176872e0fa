# SPDX-License-Identifier: Apache-2.0
"""One attempt: draw a scene, carry the demonstration over to it, execute it in physics and judge the end."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.control.whole_body import WholeBodyController
from supple.episodes import AttemptRecord, Episode, Origin, Outcome
from supple.episodes.recorder import EpisodeRecorder
from supple.episodes.versions import current_versions
from supple.errors import PlanningError, SceneError
from supple.generation.demonstrations import Demonstration
from supple.generation.dexmimicgen_plus import DexMimicGenPlus
from supple.generation.host import RejectionError
from supple.generation.mimicgen import MimicGen
from supple.generation.selection import SourceSelector
from supple.generation.settings import GenerationSettings
from supple.generation.task_runner import TaskRunner
from supple.geometry import yaw_of
from supple.robots import RobotState
from supple.sim.soundness import UPRIGHT, Soundness, SoundnessMonitor
from supple.tasks import Environment, Layout, Task

__all__ = ["AttemptRunner"]

Array = NDArray[np.float64]


def _initial_of(layout: Layout) -> dict[str, list[float]]:
    """Return what the ledger keeps of a layout: poses as x, y, z in [m] and yaw in [rad], and materials."""
    poses = {f"object/{name}": pose for name, pose in layout.objects.items()} | {"robot": layout.T_world_base}
    rows = {name: [*map(float, pose.translation), yaw_of(pose)] for name, pose in poses.items()}
    return rows | {f"material/{name}": [float(value)] for name, value in layout.materials.items()}


class AttemptRunner:
    """Make attempts at a task from demonstrations, one at a time, in one process.

    Args:
        task: The task.
        demonstrations: What was shown; names are stored with each episode.
        settings: How to generate.

    Attributes:
        environment: The simulated task.
        task_runner: Who does the task in it.

    Raises:
        SeedError: A demonstration does not fit the task.
        SettingError: The settings do not.
        TaskError: The task's constraints contradict each other.
    """

    _strategies: ClassVar[Mapping[str, type[TaskRunner]]] = {
        "supple": TaskRunner,
        "dexmimicgen_plus": DexMimicGenPlus,
        "mimicgen": MimicGen,
    }

    def __init__(self, task: Task, demonstrations: Sequence[Demonstration], settings: GenerationSettings) -> None:
        self._task = task
        self._names = [demonstration.name for demonstration in demonstrations]
        self._robot = task.robot
        self.environment = Environment(task)
        self._monitor = SoundnessMonitor(self.environment.world, task.contact_pairs)
        self._controller = WholeBodyController(self._robot)
        self._upper = self._controller.upper_body.indices
        self._dt = self._robot.contract.control_interval
        self.task_runner = self._strategies[settings.strategy](
            task,
            SourceSelector(task, demonstrations, settings),
            settings,
            self.environment.world,
            self._controller.stance,
            host=self,
        )

    @property
    def _source(self) -> str:
        """Names of the demonstrations of this attempt."""
        return ", ".join(dict.fromkeys(self.task_runner.sources.used.values() or self._names))

    @property
    def state(self) -> RobotState:
        """The newest state."""
        return self._state

    def run(self, attempt: int, seed: int, distribution: str) -> tuple[AttemptRecord, Episode | None]:
        """Make one attempt; the same arguments give the same episode bit for bit.

        Args:
            attempt: Its index.
            seed: Seed of the dataset; the attempt's random numbers derive from both.
            distribution: Initial distribution.

        Returns:
            The ledger's record, and the episode unless nothing happened at all.
        """
        began = time.perf_counter()
        rng = np.random.default_rng([seed, attempt])
        layout = self._task.sample(distribution, rng)
        initial = self.environment.reset(layout)
        self._controller.reset()
        self._monitor.reset()
        self._state = self.environment.body.read()
        self._recorder = EpisodeRecorder(self._robot, initial)
        self.task_runner.begin(layout.q, rng)
        origin: Origin | None = None
        reason = ""
        stable = True
        try:
            self.task_runner.execute()
            outcome = self.environment.outcome()
            if not outcome.success:
                origin, reason = self._blame(outcome), outcome.reason
        except RejectionError as rejection:
            origin, reason = rejection.origin, rejection.reason
            outcome = Outcome(False, self.environment.outcome().measures, reason)
        except PlanningError as error:
            origin, reason = Origin.PLANNING, str(error)
            outcome = Outcome(False, self.environment.outcome().measures, reason)
        except SceneError as error:
            origin, reason, outcome = Origin.CONTACT, str(error), Outcome(False, {}, str(error))
            stable = False
        soundness = self._monitor.result()
        if origin is None and (excess := soundness.excess()):
            origin, reason = self._cause(excess), "; ".join(excess.values())
            outcome = Outcome(False, outcome.measures, reason)
        # MuJoCo has reset an unstable scene: what it shows then is no state of this episode.
        episode = self._finish(attempt, seed, distribution, outcome, soundness) if stable else None
        record = AttemptRecord(
            attempt=attempt,
            seed=seed,
            source=self._source,
            sources=self.task_runner.sources.used,
            distribution=distribution,
            outcome="retained" if origin is None else "rejected",
            completed=self.task_runner.completed,
            stage=self.task_runner.stage,
            origin=origin,
            reason=reason,
            initial=_initial_of(layout),
            measures=dict(outcome.measures),
            soundness=soundness.measures,
            sim_seconds=self._recorder.steps * self._dt,
            wall_seconds=time.perf_counter() - began,
            timings=self.task_runner.timings,
        )
        return record, episode

    def tick(
        self,
        q: Array,
        targets: Mapping[str, pin.SE3] | None = None,
        velocity: Array | None = None,
        noise: Array | None = None,
        height: float | None = None,
    ) -> None:
        """Record the state, execute one action and pass one control interval; arguments as in ``Host``.

        Raises:
            RejectionError: The robot fell.
        """
        environment, state = self.environment, self._state
        effectors = environment.record(self._recorder, state)
        action = self._controller.action(q[self._upper], np.zeros(3) if velocity is None else velocity, height)
        action, _ = self._robot.contract.clamp(action)
        executed = action.copy()
        if noise is not None:
            executed[: self._upper.size] += noise
        executed = self._controller.command(executed)
        # A hand that no skill moves is sent where it is.
        sent = {**effectors, **(targets or {})}
        self._recorder.act(action, executed, sent, self.task_runner.started, self.task_runner.finished)
        environment.body.write(self._controller.step(state, self._dt))
        self._state = environment.body.read()
        environment.observe_success()
        self._monitor.observe(standing=velocity is None or not np.any(velocity))
        if self._state.T_world_base.rotation[2, 2] < UPRIGHT:
            raise RejectionError(Origin.ACTUATION, f"the robot fell during {self.task_runner.stage}")

    def _blame(self, outcome: Outcome) -> Origin:
        """Tell a lost object from a test that only just failed."""
        forces = self.environment.world.contact_forces(self._task.grasp_pairs).values()
        lost = any(normal == 0.0 for normal, _ in forces)
        return Origin.CONTACT if lost else Origin.SUCCESS_TEST

    @staticmethod
    def _cause(excess: Mapping[str, str]) -> Origin:
        """Tell bodies that went into each other from a robot that did not stand firm."""
        return Origin.CONTACT if "penetration" in excess else Origin.ACTUATION

    def _finish(
        self, attempt: int, seed: int, distribution: str, outcome: Outcome, soundness: Soundness
    ) -> Episode | None:
        if self._recorder.steps == 0:
            return None
        try:
            self.environment.record(self._recorder)
            return self._recorder.finish(
                task=self._task.name,
                distribution=distribution,
                attempt=attempt,
                seed=seed,
                source=self._source,
                sources=self.task_runner.sources.used,
                outcome=outcome,
                soundness=soundness.measures,
                versions=current_versions(),
            )
        except SceneError:
            return None
