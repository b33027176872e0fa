# SPDX-License-Identifier: Apache-2.0
"""From hanging arms to where a skill begins: round the table's edge, not through it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from supple.generation import GenerationSettings
from supple.generation.attempt import AttemptRunner
from supple.generation.demonstrations import Demonstration
from supple.generation.sources import skill_sources
from supple.geometry import pose_from_xyyaw, xyyaw_of
from supple.robots import g1
from supple.robots.g1 import ARM_GROUPS
from supple.tasks.box_lift import BoxLift

ROBOT = g1()
NAMES = ROBOT.joints.names


class HandsDown(BoxLift):
    """The same task from the place where the box was lifted, with arms that hang beside the thighs."""

    place = (0.0, 0.0, 0.0)

    def sample(self, distribution, rng):
        layout = super().sample(distribution, rng)
        q = layout.q.copy()
        q[ROBOT.joints.group(*ARM_GROUPS)] = ROBOT.joints.home[ROBOT.joints.group(*ARM_GROUPS)]
        for side in ("left", "right"):
            q[NAMES.index(f"{side}_elbow_joint")] = 0.95
            q[NAMES.index(f"{side}_shoulder_pitch_joint")] = 0.35
        base = pose_from_xyyaw(*self.place, layout.T_world_base.translation[2])
        return dataclasses.replace(layout, T_world_base=base, q=q)


@pytest.fixture(scope="module")
def runner(seed):
    task = HandsDown()
    source = skill_sources(task, seed, ROBOT)[0]
    task.place = tuple(xyyaw_of(task.nominal().objects["box"] * source.T_reference_base))
    return AttemptRunner(task, [Demonstration("seed", task, seed)], GenerationSettings(settle_time=0.2, hold_time=0.1))


def test_hands_below_a_table_come_up_round_its_edge(runner, monkeypatch):
    found, deepest = [], [0.0]
    plan, tick, world = runner.task_runner._approaches.way, runner.tick, runner.environment.world

    def watched_plan(*arguments):
        found.append(plan(*arguments))
        return found[-1]

    def watched_tick(*arguments, **keywords):
        tick(*arguments, **keywords)
        if runner.task_runner.stage == "approach":
            contacts = world.contacts(ignore=[("table", "box")])
            deepest.extend(contact.depth for contact in contacts if "table" in (contact.body1, contact.body2))

    monkeypatch.setattr(runner.task_runner._approaches, "way", watched_plan)
    monkeypatch.setattr(runner, "tick", watched_tick)
    record, _ = runner.run(0, 0, "D0")
    assert record.stage in {"success_test", "hold", "skill:lift"}, record.reason
    assert "walk" not in record.timings
    # The straight way leads through the table; the one taken may brush it, no more.
    assert len(found) == 1
    assert len(found[0]) > 2
    assert max(deepest) < 0.005


def test_the_way_is_free_and_moves_nothing_but_waist_and_arms(runner):
    layout = runner.task_runner._task.sample("D0", np.random.default_rng(0))
    runner.environment.reset(layout)
    base = runner.environment.body.read().T_world_base
    goal = BoxLift().start_posture()
    way = runner.task_runner._approaches.way(base, layout.q, goal, np.random.default_rng(1))
    assert len(way) > 2
    np.testing.assert_array_equal(way[0], layout.q)
    moving = ROBOT.joints.group("waist", *ARM_GROUPS)
    np.testing.assert_array_equal(way[-1][moving], goal[moving])
    still = np.setdiff1d(np.arange(len(NAMES)), moving)
    np.testing.assert_array_equal(way[:, still], np.repeat(layout.q[None, still], len(way), axis=0))
    for q in way:
        assert not runner.task_runner._clearance.overlaps(base, q, 0.004)
    # Straight on, the hands would pass through the table.
    half = 0.5 * (layout.q + goal)
    assert any(overlap.other == "table" for overlap in runner.task_runner._clearance.overlaps(base, half, 0.004))
