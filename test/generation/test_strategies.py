# SPDX-License-Identifier: Apache-2.0
"""The baseline, and Supple without one of its parts: made of the same controllers, with less thought."""

from __future__ import annotations

import pytest

from supple.generation import GenerationSettings, Job
from supple.generation.dexmimicgen_plus import DexMimicGenPlus
from supple.generation.task_runner import TaskRunner


def made_with(seed_file, **settings) -> Job:
    return Job("box_lift", "D0", 0, seed_file, GenerationSettings(**settings), keep_rejected=False)


def test_the_strategy_decides_who_makes_the_attempts(seed_file):
    assert type(made_with(seed_file).runner().task_runner) is TaskRunner
    assert type(made_with(seed_file, strategy="dexmimicgen_plus").runner().task_runner) is DexMimicGenPlus


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
