# SPDX-License-Identifier: Apache-2.0
"""Case 33: no trials at all, subtasks out of order, and few retained of many."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from supple.episodes import Dataset, Ledger, load_seed
from supple.errors import SeedError, TaskError
from supple.generation import GenerationSettings, Job, generate
from supple.generation.attempt import AttemptRunner
from supple.generation.demonstrations import Demonstration
from supple.generation.sources import skill_sources
from supple.tasks import Skill
from supple.tasks.box_lift import BoxLift

SEED_FILE = Path(__file__).resolve().parents[2] / "seeds/box_lift.hdf5"


class TwoSteps(BoxLift):
    """A task of two skills per hand: first grasp, then lift."""

    skills: ClassVar[tuple[Skill, ...]] = tuple(
        Skill(name, hand, "box") for hand in ("left_hand", "right_hand") for name in ("grasp", "lift")
    )
    coordination: ClassVar[tuple[tuple[int, int], ...]] = ((0, 2), (1, 3))


def two_steps(*order):
    """The recorded demonstration with each hand's segment cut in two and named in the given order."""
    seed = load_seed(SEED_FILE)
    pieces = []
    for segment in seed.skills:
        middle = (segment.start + segment.end) // 2
        pieces += [replace(segment, name=order[0], end=middle), replace(segment, name=order[1], start=middle)]
    return replace(seed, skills=tuple(pieces))


def made_by(task, seed, **settings):
    """Return what makes attempts at a task from one seed."""
    return AttemptRunner(task, [Demonstration("seed", task, seed)], GenerationSettings(**settings))


@pytest.mark.parametrize("wanted", [{"attempts": 0}, {"episodes": 0}])
def test_zero_trials_are_no_crash(tmp_path, wanted):
    job = Job("box_lift", "D0", 0, SEED_FILE, GenerationSettings(), keep_rejected=False)
    for _ in range(2):
        summary = generate(job, tmp_path / "data", **wanted)
        assert (summary.attempted, summary.retained, summary.by_origin) == (0, 0, {})
    assert len(Dataset(tmp_path / "data")) == 0
    assert Dataset(tmp_path / "data").card.counts == {"attempted": 0, "completed": 0, "rejected": 0, "retained": 0}
    assert len(Ledger(tmp_path / "data/ledger.jsonl")) == 0


def test_subtasks_in_order_are_accepted():
    sources = skill_sources(TwoSteps(), two_steps("grasp", "lift"), BoxLift().robot)
    assert [source.skill.name for source in sources] == ["grasp", "lift", "grasp", "lift"]


def test_subtasks_out_of_order_are_found_before_anything_runs():
    with pytest.raises(
        SeedError, match=r"lift \(left_hand.*\) is shown before grasp \(left_hand.*\), which it must follow"
    ):
        made_by(TwoSteps(), two_steps("lift", "grasp"))


def test_contradicting_constraints_are_found_before_anything_runs():
    class Crossed(TwoSteps):
        coordination: ClassVar[tuple[tuple[int, int], ...]] = ((0, 3), (1, 2))

    with pytest.raises(TaskError, match=r"form a cycle: .*grasp \(left_hand\)"):
        made_by(Crossed(), two_steps("grasp", "lift"))


def test_failures_are_counted_by_stage_origin_and_reason(tmp_path):
    settings = GenerationSettings(walk_timeout=0.2, settle_time=0.02)
    job = Job("box_lift", "D1", 0, SEED_FILE, settings, keep_rejected=False)
    summary = generate(job, tmp_path / "data", attempts=5)
    ledger = Ledger(tmp_path / "data/ledger.jsonl")
    assert (summary.attempted, summary.rejected, summary.retained) == (5, 5, 0)
    assert {record.stage for record in ledger.records} == {"walk"}
    assert summary.by_origin == {"actuation": 5}
    assert sum(ledger.reasons().values()) == 5
    assert all("still" in reason for reason in ledger.reasons())
    assert len(Dataset(tmp_path / "data")) == 0
