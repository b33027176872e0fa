# SPDX-License-Identifier: Apache-2.0
"""Replay on a body that is seen only through its measurements."""

from __future__ import annotations

from dataclasses import replace

import pytest

from supple.episodes import Episode
from supple.errors import ReplayError, StateError
from supple.replay.on_body import contract_verdict, replay_on_body
from supple.replay.verdict import DivergenceWatch
from supple.robots import PerfectBody
from supple.tasks import Environment, task_named
from supple.teleop.recording import record_in_simulation
from supple.teleop.scripted import ScriptedOperator


@pytest.fixture(scope="module")
def episode() -> Episode:
    task = task_named("box_lift")
    return record_in_simulation(task, ScriptedOperator(task.robot, task.name, lambda _: None)).episode


def play(episode: Episode, **options):
    environment = Environment(task_named(episode.task))
    environment.restore(episode.initial)
    return replay_on_body(episode, environment.body, lambda _: environment.object_poses(), **options)


def test_what_was_executed_repeats_with_its_success(episode):
    verdict = play(episode, watch=DivergenceWatch(1e-6, 1e-6))
    assert verdict.frames_applied == verdict.frames_total == episode.length
    assert verdict.first_divergence_step is None
    assert verdict.success, verdict.reason


def test_a_body_that_only_tracks_diverges_and_does_not_succeed(episode):
    """On a body without physics the arms follow, but nobody walks and the box stays where it is."""
    joints = task_named(episode.task).robot.joints
    objects = Environment(task_named(episode.task))
    objects.restore(episode.initial)
    verdict = replay_on_body(episode, PerfectBody(joints), lambda _: objects.object_poses())
    assert verdict.frames_applied == episode.length
    assert verdict.first_divergence_step is not None
    assert not verdict.success
    assert "box at" in verdict.reason


def test_frames_count_only_when_they_were_confirmed(episode):
    environment = Environment(task_named(episode.task))
    environment.restore(episode.initial)
    body, write, count = environment.body, environment.body.write, 0

    def failing(command):
        nonlocal count
        count += 1
        if count > 5:
            raise StateError("the link is gone")
        return write(command)

    body.write = failing
    verdict = replay_on_body(episode, body, lambda _: environment.object_poses())
    assert verdict.frames_applied == 5
    assert not verdict.success
    assert verdict.reason == f"stopped after 5 of {episode.length} frames: the link is gone"


def test_a_contract_that_differs_gives_a_verdict_before_anything_moves(episode):
    assert contract_verdict(episode) is None
    other = replace(episode, contract=episode.contract.model_copy(update={"robot": "panda"}))
    verdict = contract_verdict(other)
    assert verdict.contract == ("robot: 'g1' here, 'panda' there",)
    assert (verdict.frames_applied, verdict.frames_total) == (0, episode.length)


def test_an_episode_of_another_scene_is_refused(episode):
    other = replace(episode, initial=replace(episode.initial, model_hash="0123"))
    environment = Environment(task_named(episode.task))
    environment.restore(episode.initial)
    with pytest.raises(ReplayError, match="recorded in scene 0123"):
        replay_on_body(other, environment.body, lambda _: environment.object_poses())
