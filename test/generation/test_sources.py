# SPDX-License-Identifier: Apache-2.0
"""What is taken from a seed: paths that move with the object, and seeds that do not fit."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.errors import SeedError
from supple.generation.sources import skill_sources
from supple.geometry import pose_from_quaternion
from supple.robots import ActionContract, ActionKind
from supple.robots.g1 import ARM_GROUPS
from supple.tasks import task_named

TASK = task_named("box_lift")


@pytest.fixture(scope="module")
def sources(seed):
    return skill_sources(TASK, seed, TASK.robot)


def with_episode(seed, **changes):
    return replace(seed, episode=replace(seed.episode, **changes))


def test_there_is_one_source_per_skill_in_the_task_s_order(seed, sources):
    assert [source.skill for source in sources] == list(TASK.skills)
    for source, segment in zip(sources, seed.skills, strict=True):
        assert source.steps == segment.end - segment.start == len(source.postures)


def test_where_the_object_is_as_in_the_seed_the_path_is_the_seed_s(seed, sources):
    for source, segment in zip(sources, seed.skills, strict=True):
        shown = seed.episode.object_poses[segment.reference][segment.start]
        path = source.adapted(pin.SE3(shown[:3, :3], shown[:3, 3]))
        recorded = seed.episode.target_poses[segment.effector][segment.start : segment.end]
        np.testing.assert_allclose([pose.homogeneous for pose in path], recorded, atol=1e-9)


@settings(max_examples=25)
@given(st.lists(st.floats(-2.0, 2.0), min_size=6, max_size=6))
def test_the_path_is_carried_over_by_the_object_s_displacement(seed, sources, numbers):
    """a' = s' s0^-1 a, computed here with plain matrices."""
    new = pin.SE3(pin.exp3(np.array(numbers[:3])), np.array(numbers[3:]))
    for source, segment in zip(sources, seed.skills, strict=True):
        s0 = seed.episode.object_poses[segment.reference][segment.start]
        carry = new.homogeneous @ np.linalg.inv(s0)
        path = source.adapted(new)
        for step in (0, source.steps // 2, source.steps - 1):
            a = seed.episode.target_poses[segment.effector][segment.start + step]
            np.testing.assert_allclose(path[step].homogeneous, carry @ a, atol=1e-9)


def test_postures_are_the_commanded_ones(seed, sources):
    joints = TASK.robot.joints
    upper = joints.group("waist", *ARM_GROUPS, "left_hand", "right_hand")
    for source, segment in zip(sources, seed.skills, strict=True):
        np.testing.assert_allclose(
            source.postures[:, upper], seed.episode.actions[segment.start : segment.end, :31], atol=1e-12
        )


# -- seeds that do not fit -------------------------------------------------------------------------------------------


def test_a_seed_without_marks_is_refused(seed):
    with pytest.raises(SeedError, match=r"'lift' of left_hand on 'box' is in the seed 0 times"):
        skill_sources(TASK, replace(seed, skills=()), TASK.robot)


def test_a_missing_skill_is_named_with_what_the_seed_shows(seed):
    left = tuple(segment for segment in seed.skills if segment.effector == "left_hand")
    with pytest.raises(SeedError) as caught:
        skill_sources(TASK, replace(seed, skills=left), TASK.robot)
    assert "'lift' of right_hand on 'box' is in the seed 0 times" in str(caught.value)
    assert "shows: lift (left_hand, box)" in str(caught.value)


def test_a_skill_shown_twice_is_refused(seed):
    first = seed.skills[0]
    half = (first.start + first.end) // 2
    twice = (replace(first, end=half), replace(first, start=half), seed.skills[1])
    with pytest.raises(SeedError, match="2 times, expected once"):
        skill_sources(TASK, replace(seed, skills=twice), TASK.robot)


def test_a_seed_in_which_coordinated_hands_do_not_keep_step_is_refused(seed):
    left, right = seed.skills
    with pytest.raises(SeedError) as caught:
        skill_sources(TASK, replace(seed, skills=(left, replace(right, end=right.end - 7))), TASK.robot)
    assert "lift (left_hand, steps" in str(caught.value)
    assert f"last {left.end - left.start} and {left.end - left.start - 7} steps" in str(caught.value)


def test_a_seed_of_another_task_or_robot_is_refused(seed):
    with pytest.raises(SeedError, match="shows 'drill_lift', expected 'box_lift'"):
        skill_sources(TASK, with_episode(seed, task="drill_lift"), TASK.robot)
    with pytest.raises(SeedError, match="robot 'h1', expected 'g1'"):
        skill_sources(TASK, with_episode(seed, robot="h1"), TASK.robot)


def test_a_seed_whose_actions_mean_something_else_is_refused(seed):
    contract = seed.episode.contract
    terms = (contract.terms[0].model_copy(update={"unit": "deg"}), *contract.terms[1:])
    other = ActionContract(robot="g1", control_interval=0.05, terms=terms)
    with pytest.raises(SeedError) as caught:
        skill_sources(TASK, with_episode(seed, contract=other), TASK.robot)
    assert "control interval" in str(caught.value)
    assert "waist_yaw_joint: unit" in str(caught.value)


def test_a_seed_without_hand_targets_is_refused(seed):
    targets = {k: v for k, v in seed.episode.target_poses.items() if k != "right_hand"}
    with pytest.raises(SeedError, match="no target poses of right_hand"):
        skill_sources(TASK, with_episode(seed, target_poses=MappingProxyType(targets)), TASK.robot)


# -- squats ----------------------------------------------------------------------------------------------------------


def squatting(seed, heights):
    """Return the seed with commanded heights, one per action, and the base as high at once."""
    episode = seed.episode
    entry = TASK.robot.contract.of_kind(ActionKind.BASE_HEIGHT)[0]
    actions, poses = np.array(episode.actions), np.array(episode.observations["base_pose"])
    actions[:, entry], poses[:-1, 2] = heights, heights
    return with_episode(seed, actions=actions, observations={**episode.observations, "base_pose": poses})


def test_a_skill_at_walking_height_has_no_squat(sources):
    assert all(source.squat is None for source in sources)


def test_a_skill_in_a_squat_has_its_heights_and_stands_where_the_base_went_down(seed):
    start, end = seed.skills[0].start, seed.skills[0].end
    heights = np.full(seed.episode.length, TASK.robot.standing_height)
    heights[start - 20 :] = np.linspace(0.6, 0.5, seed.episode.length - start + 20)
    lowered = squatting(seed, heights)
    base = [pose_from_quaternion(b[:3], b[3:], "") for b in lowered.episode.observations["base_pose"].astype(float)]
    for source in skill_sources(TASK, lowered, TASK.robot):
        np.testing.assert_array_equal(source.squat.heights, heights[start:end])
        shown = lowered.episode.object_poses["box"][start]
        stood = pin.SE3(shown[:3, :3], shown[:3, 3]) * source.T_reference_base
        np.testing.assert_allclose(stood.homogeneous, base[start - 21].homogeneous, atol=1e-6)
        for i in (0, source.steps - 1):
            np.testing.assert_allclose((stood * source.squat.T_stand_bases[i]).homogeneous, base[start + i], atol=1e-6)


def test_a_squat_that_began_before_the_recording_is_refused(seed):
    with pytest.raises(SeedError, match=r"never stood before.*0\.765 m"):
        skill_sources(TASK, squatting(seed, np.full(seed.episode.length, 0.6)), TASK.robot)
