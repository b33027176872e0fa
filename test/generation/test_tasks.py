# SPDX-License-Identifier: Apache-2.0
"""The seeds that Supple ships, one per task: they fit their tasks, and episodes come of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from supple.cli.places import find_seed
from supple.episodes import load_seed
from supple.episodes.validation import validate
from supple.generation import GenerationSettings, Job
from supple.generation.sources import skill_sources
from supple.geometry import pose_from_xyyaw, wrap_angle, yaw_of
from supple.tasks import Environment, task_named, task_names

SEEDS = Path(__file__).resolve().parents[2] / "seeds"


@pytest.mark.parametrize("name", [name for name in task_names() if (SEEDS / f"{name}.hdf5").is_file()])
def test_the_shipped_seed_shows_the_skills_of_its_task_with_success(name):
    task, path = task_named(name), find_seed(name, None)
    assert path.stat().st_size <= 2 * 1024**2
    seed = load_seed(path)
    assert seed.episode.outcome.success
    sources = skill_sources(task, seed, task.robot)
    assert [source.skill for source in sources] == list(task.skills)


def retained(name, most=3):
    """Return the first success of the narrow distribution; nearly all are."""
    runner = Job(name, "D0", 0, find_seed(name, None), GenerationSettings(), keep_rejected=True).runner()
    reasons = []
    for index in range(most):
        record, episode = runner.run(index, 0, "D0")
        if record.outcome == "retained":
            return record, episode
        reasons.append(record.reason)
    raise AssertionError(f"of {most} attempts at {name} none succeeded: {reasons}")


def test_one_hand_presses_while_the_other_stays_where_it_is():
    _, episode = retained("push_button")
    validate(episode, "push_button")
    offset = {name: targets - episode.effector_poses[name][:-1] for name, targets in episode.target_poses.items()}
    assert not offset["left_hand"].any()
    steered = offset["right_hand"].any(axis=(1, 2))
    assert 50 < steered.sum() < len(steered)
    left = task_named("push_button").robot.joints.group("left_arm")
    assert np.ptp(episode.observations["q"][:, left], axis=0).max() < 0.2


def test_what_was_picked_is_carried_to_the_second_group_and_put_down_there():
    record, episode = retained("drill_pick_place")
    assert {"skill:pick", "skill:place", "walk"} <= set(record.timings)
    drill, hand = (poses[:, :3, 3] for poses in (episode.object_poses["drill"], episode.effector_poses["right_hand"]))
    high = np.flatnonzero(drill[:, 2] > 0.9)
    # From one table to the other without a stop in between, always in the hand.
    assert high[-1] - high[0] == len(high) - 1
    assert np.linalg.norm(drill[high[-1]] - drill[high[0]]) > 0.8
    assert np.linalg.norm((drill - hand)[high], axis=1).max() < 0.2
    assert not episode.contacts["right_wrist_yaw_link/drill"][-50:].any()


def test_the_robot_goes_down_with_the_skill_and_rises_with_what_it_holds():
    record, episode = retained("box_lift_floor")
    assert {"walk", "stand", "skill:lift"} <= set(record.timings)
    seed = load_seed(find_seed("box_lift_floor", None)).episode
    # The last action is that of the hold, at the height at which the skill was shown to end.
    assert episode.actions[:, -1].min() == seed.actions[:, -1].min() == pytest.approx(0.40, abs=1e-3)
    assert episode.actions[-1, -1] == pytest.approx(seed.actions[-1, -1], abs=1e-3)
    base, box = episode.observations["base_pose"][:, 2], episode.object_poses["box"][:, 2, 3]
    assert base.min() == pytest.approx(0.40, abs=0.02)
    held = box > 0.1
    assert np.ptp(base[held]) > 0.03
    assert held[-100:].all()
    wanted = episode.actions[-1, -1]
    assert base[-1] == pytest.approx(wanted, abs=0.015)


def test_an_object_turned_away_is_come_at_from_another_side(placement_planner):
    task = task_named("drill_lift")
    environment = Environment(task)
    layout = task.nominal()
    place = layout.objects["drill"].translation
    # Behind the handle, where the demonstrator stood, is the table now.
    layout.objects["drill"] = pose_from_xyyaw(place[0], place[1], -1.2, place[2])
    environment.reset(layout)
    (source,) = skill_sources(task, load_seed(find_seed(task.name, None)), task.robot)
    paths = {"right_hand": source.adapted(environment.world.object_pose("drill"))}
    nominal = environment.world.object_pose("drill") * source.T_reference_base
    planner = placement_planner(environment)
    arguments = (nominal, task.robot.standing_height, layout.q, paths, source.postures, 60)
    assert planner.find(*arguments) is None
    assert "inside table" in planner.failures[0]
    found = planner.find(*arguments, sides=task.sides)
    assert found is not None
    turn = wrap_angle(yaw_of(found.T_world_base) - yaw_of(nominal))
    assert 0.5 < turn < 1.8
    # It is turned about where the hand works, so that the drill stays within the same distance.
    distance = np.linalg.norm((found.T_world_base.translation - place)[:2])
    assert distance == pytest.approx(np.linalg.norm((nominal.translation - place)[:2]), abs=0.25)


def test_a_cart_is_pushed_by_a_robot_that_walks_behind_it_with_its_hands_held_still():
    record, episode = retained("push_shelf_forward")
    assert {"walk", "skill:reach", "skill:push"} <= set(record.timings)
    cart, base = episode.object_poses["cart"][:, :2, 3], np.array(episode.observations["base_pose"])[:, :2]
    moving = np.flatnonzero(np.linalg.norm(cart - cart[0], axis=1) > 0.1)[0]
    assert np.linalg.norm(cart[-1] - cart[0]) > 1.8
    # It goes where the robot goes, at arm's length, and the hands touch it on the way.
    assert np.ptp(np.linalg.norm(cart - base, axis=1)[moving:]) < 0.4
    forces = [episode.contacts[f"{side}_wrist_yaw_link/cart"][moving:] for side in ("left", "right")]
    assert all(np.count_nonzero(np.asarray(force)[:, 0]) > 10 for force in forces)
    # The walk is that of the skill: velocity is commanded while its signal is not yet set.
    finished = np.asarray(episode.signals["push_left_hand"])[moving:]
    commanded = np.abs(episode.actions[moving:, -4:-1]).sum(axis=1) > 0.0
    assert commanded[~finished[: len(commanded)].astype(bool)].sum() > 200
