# SPDX-License-Identifier: Apache-2.0
"""Cases 32 and 34: a replay begins with the same goal, materials and state, and says where physics went elsewhere."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from supple.episodes import Dataset
from supple.errors import DatasetError, ReplayError
from supple.generation import GenerationSettings, Job, generate
from supple.replay.player import replay_in_simulation
from supple.tasks import Environment, task_named

SEED_FILE = Path(__file__).resolve().parents[2] / "seeds/box_lift.hdf5"


@pytest.fixture(scope="module")
def job():
    """Attempts that break off after a moment of walking: long enough to diverge in."""
    settings = GenerationSettings(walk_timeout=1.0, settle_time=0.02)
    return Job("box_lift", "D1", 0, SEED_FILE, settings, keep_rejected=True)


@pytest.fixture(scope="module")
def folder(job, tmp_path_factory):
    folder = tmp_path_factory.mktemp("case") / "data"
    generate(job, folder, attempts=2)
    return folder


@pytest.fixture(scope="module")
def episode(folder):
    return Dataset(folder, rejected=True).episode("demo_1")


def test_goal_materials_objects_and_seed_come_back_with_the_episode(episode):
    environment = Environment(task_named(episode.task))
    environment.reset(environment.task.sample("D1", np.random.default_rng(99)))
    environment.restore(episode.initial)
    again = environment.snapshot()
    np.testing.assert_array_equal(again.state, episode.initial.state)
    assert dict(again.goal) == dict(episode.initial.goal)
    assert dict(again.materials) == dict(episode.initial.materials)
    assert set(again.objects) == set(episode.initial.objects)
    for name, row in again.objects.items():
        np.testing.assert_array_equal(row, episode.initial.objects[name])
    # The random numbers are drawn from seed and attempt, which are stored too: drawing anew gives the same scene.
    layout = environment.task.sample(episode.distribution, np.random.default_rng([episode.seed, episode.attempt]))
    np.testing.assert_array_equal(environment.reset(layout).state, episode.initial.state)


def test_a_goal_survives_reset_snapshot_and_restore():
    environment = Environment(task_named("box_lift"))
    layout = replace(environment.task.nominal(), goal={"target.x": 4.0, "target.y": -0.05})
    initial = environment.reset(layout)
    assert dict(initial.goal) == dict(layout.goal)
    environment.reset(environment.task.nominal())
    assert dict(environment.snapshot().goal) == {}
    environment.restore(initial)
    assert dict(environment.snapshot().goal) == dict(layout.goal)


def test_the_same_physics_does_not_diverge(episode):
    verdict = replay_in_simulation(episode)
    assert (verdict.first_divergence_step, verdict.frames_applied) == (None, episode.length)


def test_other_physics_is_told_by_the_diverging_step_and_not_called_finished(episode):
    """A recording whose states belong to slightly other physics, as another version of the simulator would give."""
    states = episode.states.copy()
    states[20:] *= 1.0 + 1e-12
    other = replace(episode, states=states, versions={**episode.versions, "mujoco": "3.1.0"})
    verdict = replay_in_simulation(other)
    assert verdict.first_divergence_step == 20
    assert verdict.frames_applied == verdict.frames_total == episode.length
    assert not verdict.success
    assert "finished" not in verdict.reason


def test_another_scene_is_refused_and_the_versions_are_named(episode):
    other = replace(
        episode, initial=replace(episode.initial, model_hash="0" * 16), versions={**episode.versions, "mujoco": "3.1.0"}
    )
    with pytest.raises(ReplayError, match=r"mujoco.*3\.1\.0"):
        replay_in_simulation(other)


def test_a_dataset_made_with_another_simulator_is_not_added_to(job, folder):
    card = folder / "dataset.yaml"
    kept = card.read_text()
    content = yaml.safe_load(kept)
    assert content["versions"]["mujoco"]
    content["versions"]["mujoco"] = "3.1.0"
    card.write_text(yaml.safe_dump(content))
    try:
        with pytest.raises(DatasetError, match=r"versions\.mujoco: .* '3\.1\.0' there"):
            generate(job, folder, attempts=3)
    finally:
        card.write_text(kept)
