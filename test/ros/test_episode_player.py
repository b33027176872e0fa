# SPDX-License-Identifier: Apache-2.0
"""Episodes over ROS: exact in lockstep, judged by what was really applied, refused with a reason."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from node_graph import Graph
from supple_interfaces.action import ReplayEpisode
from supple_interfaces.msg import JointCommand

from supple.episodes import Seed, save_seed
from supple.nodes.conversion import joint_command, nanoseconds
from supple.replay.verdict import Verdict
from supple.robots import RobotCommand
from supple.tasks import task_named
from supple.teleop.recording import record_in_simulation
from supple.teleop.scripted import ScriptedOperator

RESULT = ReplayEpisode.Result


@pytest.fixture(scope="module")
def seed(tmp_path_factory) -> tuple[Path, Seed]:
    """A whole demonstration, recorded by the scripted operator."""
    task = task_named("box_lift")
    path = tmp_path_factory.mktemp("seed") / "box_lift.hdf5"
    return path, record_in_simulation(task, ScriptedOperator(task.robot, task.name, lambda _: None), out=path)


@pytest.fixture(scope="module")
def player(start, graph) -> Graph:
    start("sim_bridge", camera=False)
    start("episode_player")
    graph.latest("joint_states")
    return graph


def play(graph: Graph, **fields) -> RESULT:
    return graph.act(ReplayEpisode, "replay_episode", ReplayEpisode.Goal(**fields), 200.0)


def test_a_replay_repeats_the_recording_and_its_success(player, seed, tmp_path):
    path, recorded = seed
    result = play(player, dataset=str(path), verdict_path=str(tmp_path / "verdict.json"))
    assert (result.error_string, result.error_code) == ("", RESULT.SUCCESS)
    assert result.success
    assert result.frames_applied == result.frames_total == recorded.episode.length
    assert result.first_divergence_step == -1
    verdict = Verdict.model_validate_json(result.verdict)
    assert verdict.contract == "match"
    # All that differs is the single precision of what was recorded.
    assert verdict.divergence["joint_rad"] < 1e-6
    assert verdict.divergence["base_m"] < 1e-6
    assert json.loads((tmp_path / "verdict.json").read_text()) == json.loads(result.verdict)


def test_supple_replay_ros_plays_on_the_running_stack_and_ends_as_supple_replay_does(player, seed, tmp_path):
    path, recorded = seed
    verdict = tmp_path / "verdict.json"

    def replay(place: Path | str) -> subprocess.CompletedProcess[str]:
        program = (sys.executable, "-c", "from supple.cli.main import app; app()")
        command = [*program, "replay", str(place), "--ros", "--verdict", str(verdict), "--timeout", "20"]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200.0)

    done = replay(path)
    assert done.returncode == 0, done.stderr
    assert f"frames applied {recorded.episode.length} of {recorded.episode.length}" in done.stderr
    assert "success: yes" in done.stderr
    assert Verdict.model_validate_json(verdict.read_text()).success
    refused = replay(tmp_path / "nothing")
    assert refused.returncode == 1
    assert "does not exist" in refused.stderr


def test_another_contract_stops_it_before_anything_moves(player, seed, tmp_path):
    _, recorded = seed
    contract = recorded.episode.contract
    terms = (contract.terms[0].model_copy(update={"unit": "deg"}), *contract.terms[1:])
    other = replace(recorded.episode, contract=contract.model_copy(update={"terms": terms}))
    path = save_seed(tmp_path / "other.hdf5", replace(recorded, episode=other))
    traces = len(player.received["command_trace"])
    result = play(player, dataset=str(path))
    assert result.error_code == RESULT.CONTRACT_MISMATCH
    assert Verdict.model_validate_json(result.verdict).contract == ("waist_yaw_joint: unit rad here, deg there",)
    assert result.frames_applied == 0
    assert len(player.received["command_trace"]) == traces


def test_an_episode_of_another_scene_is_not_played(player, seed, tmp_path):
    _, recorded = seed
    initial = replace(recorded.episode.initial, model_hash="0123456789abcdef")
    path = save_seed(tmp_path / "scene.hdf5", replace(recorded, episode=replace(recorded.episode, initial=initial)))
    result = play(player, dataset=str(path))
    assert result.error_code == RESULT.NOT_RESET
    assert "recorded with model 0123456789abcdef" in result.error_string


@pytest.mark.parametrize("place", ["", "/nowhere/at/all"])
def test_a_dataset_that_is_not_there_is_named(player, place):
    result = play(player, dataset=place)
    assert result.error_code == RESULT.INVALID_GOAL
    assert f"dataset {place!r} does not exist" in result.error_string
    assert not result.success


def test_it_can_be_cancelled(player, seed):
    path, _ = seed
    handle = player.send_goal(ReplayEpisode, "replay_episode", ReplayEpisode.Goal(dataset=str(path)))
    player.next("command_trace", lambda m: m.source == "episode_player" and m.sequence > 10)
    player.result(handle.cancel_goal_async(), "the cancellation")
    result = player.result(handle.get_result_async(), "the result").result
    assert result.error_code == RESULT.PREEMPTED
    assert 10 < result.frames_applied < result.frames_total
    assert "cancelled" in result.error_string


def test_it_does_not_begin_while_somebody_else_commands(player, seed):
    path, _ = seed
    player.pause(False)
    player.reset()
    joints = task_named("box_lift").robot.joints

    def command() -> JointCommand:
        blank = RobotCommand.blank(joints, "somebody", nanoseconds(player.latest("joint_states").header.stamp))
        blank.active[:] = True
        return joint_command(joints, blank)

    timer = player.on_executor(lambda: player.node.create_timer(0.02, lambda: player.commands.publish(command())))
    try:
        player.next("command_trace", lambda m: m.source == "somebody" and not m.refused)
        result = play(player, dataset=str(path))
    finally:
        player.on_executor(lambda: player.node.destroy_timer(timer))
    assert result.error_code == RESULT.NOT_RESET
    assert "joints are commanded by 'somebody'" in result.error_string
    assert np.all(np.isfinite(player.latest("joint_states").position))
