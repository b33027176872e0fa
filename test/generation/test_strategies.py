# SPDX-License-Identifier: Apache-2.0
"""The baselines, and Supple without one of its parts: made of the same controllers, with less thought."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from supple.generation import GenerationSettings, Job
from supple.generation.attempt import AttemptRunner
from supple.generation.demonstrations import Demonstration
from supple.generation.dexmimicgen_plus import DexMimicGenPlus
from supple.generation.mimicgen import MimicGen
from supple.generation.task_runner import TaskRunner
from supple.geometry import pose_from_xyyaw, xyyaw_of
from supple.robots import ActionKind
from supple.tasks.box_lift import BoxLift


def made_with(seed_file, **settings) -> Job:
    return Job("box_lift", "D0", 0, seed_file, GenerationSettings(**settings), keep_rejected=False)


def test_the_strategy_decides_who_makes_the_attempts(seed_file):
    assert type(made_with(seed_file).runner().task_runner) is TaskRunner
    assert type(made_with(seed_file, strategy="dexmimicgen_plus").runner().task_runner) is DexMimicGenPlus
    assert type(made_with(seed_file, strategy="mimicgen").runner().task_runner) is MimicGen


def test_the_baseline_walks_and_follows_but_plans_nothing(seed_file):
    baseline = made_with(seed_file, strategy="dexmimicgen_plus")
    record, _ = baseline.run(baseline.runner(), 0)
    assert record.completed
    assert {"walk", "skill:lift"} < set(record.timings)
    assert "plan" not in record.timings


@pytest.mark.parametrize("without", ["planning", "replanning", "collision_checks"])
def test_an_attempt_goes_its_way_without_one_part(seed_file, without):
    reduced = made_with(seed_file, **{without: False})
    record, _ = reduced.run(reduced.runner(), 0)
    assert record.completed
    assert {"walk", "plan", "approach", "skill:lift"} < set(record.timings)


def test_without_replanning_the_arms_go_where_they_would_have_from_the_planned_place(seed_file):
    whole, reduced = made_with(seed_file), made_with(seed_file, replanning=False)
    walked = [one.run(one.runner(), 0)[0] for one in (whole, reduced)]
    # The walk is the same; what differs begins after it.
    assert walked[0].initial == walked[1].initial
    assert walked[0].measures != walked[1].measures


# -- MimicGen as it is: no walk --------------------------------------------------------------------------------------


class AtTheTable(BoxLift):
    """The same task from where the box was lifted, with the arms as they were before."""

    def __init__(self, seed):
        self._shown = Demonstration("seed", BoxLift(), seed).sources[0]

    def sample(self, distribution, rng):
        layout = super().sample(distribution, rng)
        x, y, yaw = xyyaw_of(layout.objects["box"] * self._shown.T_reference_base)
        return replace(layout, T_world_base=pose_from_xyyaw(x, y, yaw, layout.T_world_base.translation[2]))


def test_mimicgen_moves_the_path_rigidly_with_the_object_and_does_not_walk(seed):
    task = AtTheTable(seed)
    runner = AttemptRunner(task, [Demonstration("seed", task, seed)], GenerationSettings(strategy="mimicgen"))
    record, episode = runner.run(0, 0, "D0")
    assert record.outcome == "retained", record.reason
    assert "walk" not in record.timings
    assert not episode.actions[:, episode.contract.of_kind(ActionKind.BASE_VELOCITY)].any()
    segment = seed.skills[0]
    start = int(np.argmax(episode.start_signals["lift_left_hand"]))
    # The path is fixed when the skill is entered, a second before its first step.
    carry = episode.object_poses["box"][start] @ np.linalg.inv(seed.episode.object_poses["box"][segment.start])
    for step in (0, 50, segment.end - segment.start - 1):
        shown = seed.episode.target_poses["left_hand"][segment.start + step]
        np.testing.assert_allclose(episode.target_poses["left_hand"][start + step], carry @ shown, atol=2e-3)


def test_mimicgen_says_so_where_it_would_have_to_walk(seed_file):
    job = made_with(seed_file, strategy="mimicgen")
    record, _ = job.run(job.runner(), 0)
    assert (record.outcome, record.origin, record.stage) == ("rejected", "planning", "plan")
    assert "out of reach from where the robot stands, and MimicGen does not walk: right_hand ends" in record.reason
