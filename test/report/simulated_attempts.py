# SPDX-License-Identifier: Apache-2.0
"""Attempts made with the real simulation and controller: the robot walks towards the table."""

from __future__ import annotations

import time

import mujoco
import numpy as np

from supple.control.whole_body import WholeBodyController
from supple.episodes import AttemptRecord, DatasetCard, Episode, Origin, Outcome
from supple.episodes.recorder import EpisodeRecorder
from supple.geometry import yaw_of
from supple.robots import robot_named
from supple.robots.g1 import UPPER_BODY_GROUPS
from supple.tasks import Environment, task_named

REASON = "box at 0.800 m, wanted above 0.90 m"


class Runner:
    """Walks in one environment, again and again."""

    def __init__(self, distribution: str) -> None:
        self.distribution = distribution
        self.environment = Environment(task_named("box_lift"))
        self.robot = self.environment.task.robot
        self.controller = WholeBodyController(self.robot)

    def episode(self, attempt: int, steps: int, speed: float = 0.5) -> Episode:
        """Return an episode of that many actions; every third attempt counts as failed."""
        environment, world = self.environment, self.environment.world
        initial = environment.reset(environment.task.sample(self.distribution, np.random.default_rng(attempt)))
        self.controller.reset()
        recorder = EpisodeRecorder(self.robot, initial)
        joints, interval = self.robot.joints, environment.body.control_interval
        upper_body = world.robot_state().q[joints.group(*UPPER_BODY_GROUPS)]
        environment.record(recorder)
        for _ in range(steps):
            action = self.controller.command(self.controller.action(upper_body, [speed, 0.0, 0.0]))
            environment.body.write(self.controller.step(environment.body.read(), interval))
            recorder.act(action, action, environment.effector_poses())
            environment.record(recorder)
        success = attempt % 3 != 2
        return recorder.finish(
            task="box_lift",
            distribution=self.distribution,
            attempt=attempt,
            seed=attempt,
            source="box_lift.hdf5",
            outcome=Outcome(success, {"box_height": 0.8}, "" if success else REASON),
            versions={"mujoco": mujoco.__version__},
        )


def card(distribution: str) -> DatasetCard:
    return DatasetCard(
        name=f"box_lift_{distribution}",
        task="box_lift",
        distribution=distribution,
        robot="g1",
        seed=0,
        source="seeds/box_lift.hdf5",
        source_sha256="ab" * 32,
        settings={"noise": 0.003, "interpolation": {"steps": 5}},
        contract=robot_named("g1").contract,
        versions={"mujoco": mujoco.__version__},
        created="2026-01-31",
        supple="0.1.0",
    )


def initial_of(distribution: str, attempt: int) -> dict[str, list[float]]:
    layout = task_named("box_lift").sample(distribution, np.random.default_rng(attempt))
    poses = {f"object/{name}": [*pose.translation, yaw_of(pose)] for name, pose in layout.objects.items()}
    poses["robot"] = [*layout.T_world_base.translation, yaw_of(layout.T_world_base)]
    materials = {f"material/{name}": [value] for name, value in layout.materials.items()}
    return {name: [float(x) for x in values] for name, values in (poses | materials).items()}


def record(episode: Episode, started: float | None = None) -> AttemptRecord:
    retained = episode.outcome.success
    return AttemptRecord(
        attempt=episode.attempt,
        seed=episode.seed,
        source=episode.source,
        distribution=episode.distribution,
        outcome="retained" if retained else "rejected",
        completed=True,
        stage="success_test",
        origin=None if retained else Origin.SUCCESS_TEST,
        reason=episode.outcome.reason,
        initial=initial_of(episode.distribution, episode.attempt),
        measures=dict(episode.outcome.measures),
        sim_seconds=episode.duration,
        wall_seconds=time.perf_counter() - started if started else 0.1,
        timings={"plan": 0.03, "walk": 0.05, "lift": 0.02},
    )


def unplanned(attempt: int, distribution: str = "D1") -> AttemptRecord:
    """Return an attempt that was given up before anything moved."""
    return AttemptRecord(
        attempt=attempt,
        seed=attempt,
        source="box_lift.hdf5",
        distribution=distribution,
        outcome="rejected",
        completed=False,
        stage="plan",
        origin=Origin.PLANNING,
        reason="the left hand cannot reach <box> & co. from x = 1.20 m",
        initial=initial_of(distribution, attempt),
        wall_seconds=0.02,
        timings={"plan": 0.02},
    )
