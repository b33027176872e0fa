# SPDX-License-Identifier: Apache-2.0
"""Where to stand: clear of the furniture, and such that the whole path can be followed, not only its ends."""

from __future__ import annotations

import re

import numpy as np
import pinocchio as pin
import pytest

from supple.generation.sources import skill_sources
from supple.geometry import pose_from_xyyaw
from supple.tasks import Environment, task_named


@pytest.fixture(scope="module")
def scene(seed, placement_planner):
    task = task_named("box_lift")
    environment = Environment(task)
    environment.reset(task.nominal())
    planner = placement_planner(environment)
    sources = skill_sources(task, seed, task.robot)
    paths = {s.skill.effector: s.adapted(environment.world.object_pose("box")) for s in sources}
    nominal = environment.world.object_pose("box") * sources[0].T_reference_base
    return planner, task, paths, sources[0].postures, nominal


def test_the_demonstrated_place_serves_the_demonstrated_scene(scene):
    planner, task, paths, postures, nominal = scene
    found = planner.find(nominal, task.robot.standing_height, task.start_posture(), paths, postures, 60)
    assert found is not None
    assert np.linalg.norm((found.T_world_base.translation - nominal.translation)[:2]) < 0.1


def test_standing_in_the_table_is_refused_and_names_what_overlaps(scene):
    planner, task, *_ = scene
    planner.failures = []
    assert not planner.clear(pose_from_xyyaw(1.9, 0.0, 0.0, task.robot.standing_height), task.start_posture())
    assert "inside table" in planner.failures[-1]


def test_a_place_too_far_away_is_out_of_reach(scene):
    planner, task, paths, postures, nominal = scene
    planner.failures = []
    back = nominal * pin.SE3(np.eye(3), np.array([-0.6, 0.0, 0.0]))
    assert planner.reach(back, task.start_posture(), paths, postures) is None
    assert "_hand ends" in planner.failures[-1]
    assert "beyond its tolerance at step 0 of" in planner.failures[-1]


def test_skills_that_begin_in_the_table_are_refused_and_say_how_deep(scene):
    planner, task, paths, postures, nominal = scene
    planner.failures = []
    down = {
        name: [pin.SE3(pose.rotation, pose.translation - np.array([0.0, 0.0, 0.1])) for pose in path]
        for name, path in paths.items()
    }
    start = pose_from_xyyaw(*nominal.translation[:2], 0.0, task.robot.standing_height)
    assert planner.reach(start, task.start_posture(), down, postures) is None
    assert re.search(r"table overlap by \d+\.\d cm at step 0 of", planner.failures[-1])


def test_a_path_that_leads_out_of_reach_halfway_is_refused_although_both_ends_are_near(scene):
    planner, task, paths, postures, nominal = scene
    planner.failures = []
    steps = len(postures)
    bulge = [np.array([0.0, 0.0, 0.9 * np.sin(np.pi * i / (steps - 1))]) for i in range(steps)]
    detour = {
        name: [pin.SE3(pose.rotation, pose.translation + out) for pose, out in zip(path, bulge, strict=True)]
        for name, path in paths.items()
    }
    start = pose_from_xyyaw(*nominal.translation[:2], 0.0, task.robot.standing_height)
    assert planner.reach(start, task.start_posture(), paths, postures) is not None
    assert planner.reach(start, task.start_posture(), detour, postures) is None
    assert "from their targets at step" in planner.failures[-1] or "rad/s" in planner.failures[-1]


def test_nowhere_to_stand_gives_nothing_and_says_why(scene):
    planner, task, paths, postures, nominal = scene
    buried = nominal * pin.SE3(np.eye(3), np.array([1.0, 0.0, 0.0]))
    assert planner.find(buried, task.robot.standing_height, task.start_posture(), paths, postures, 60) is None
    assert planner.failures
