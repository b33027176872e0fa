# SPDX-License-Identifier: Apache-2.0
"""Jobs, one runner and a few finished attempts, made once for all tests of generation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from supple.episodes import load_seed
from supple.generation import GenerationSettings, Job
from supple.generation.placement import PlacementPlanner
from supple.kinematics.collision import CollisionModel
from supple.kinematics.collision_spheres import link_spheres
from supple.kinematics.hand_tracking import HandTracking
from supple.kinematics.ik_batch import IkBatchSolver
from supple.kinematics.model import KinematicModel
from supple.sim.clearance import ClearanceChecker
from supple.sim.collision_geometry import robot_solids

SEED_FILE = Path(__file__).resolve().parents[2] / "seeds/box_lift.hdf5"


@pytest.fixture(scope="session")
def seed_file():
    return SEED_FILE


@pytest.fixture(scope="session")
def seed():
    return load_seed(SEED_FILE)


@pytest.fixture(scope="session")
def job():
    return Job("box_lift", "D1", 0, SEED_FILE, GenerationSettings(), keep_rejected=True)


@pytest.fixture(scope="session")
def quick_job():
    """Attempts that end in the walk after a fraction of a second: for everything that is not about the episodes."""
    settings = GenerationSettings(walk_timeout=0.2, settle_time=0.02)
    return Job("box_lift", "D1", 0, SEED_FILE, settings, keep_rejected=True)


@pytest.fixture(scope="session")
def runner(job):
    return job.runner()


@pytest.fixture(scope="session")
def attempts(job, runner):
    """The first two attempts of the job, however they ended, with their ledger records."""
    return [job.run(runner, index) for index in range(2)]


@pytest.fixture(scope="session")
def retained(runner, job):
    """Two attempts of the narrow distribution that succeeded; most do."""
    found = []
    for index in range(5):
        record, episode = runner.run(index, job.seed, "D0")
        if record.outcome == "retained":
            found.append((record, episode))
        if len(found) == 2:
            return found
    raise AssertionError(f"of five attempts in the narrow distribution only {len(found)} succeeded")


@pytest.fixture(scope="session")
def placement_planner():
    """Return what makes a planner of places to stand in an environment."""

    def planner(environment):
        robot, world = environment.task.robot, environment.world
        starts = IkBatchSolver(robot, CollisionModel(robot, link_spheres(robot_solids(world))))
        return PlacementPlanner(
            HandTracking(robot), starts, KinematicModel(robot), ClearanceChecker(world), np.random.default_rng(0)
        )

    return planner
