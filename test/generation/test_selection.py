# SPDX-License-Identifier: Apache-2.0
"""Which demonstration a skill is taken from, and where it ends: MimicGen's strategies, drawn from the attempt's rng."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pinocchio as pin
import pytest

from supple.episodes import SkillSegment
from supple.errors import SeedError, SettingError
from supple.generation.demonstrations import Demonstration
from supple.generation.selection import SourceSelector
from supple.generation.settings import GenerationSettings, SkillSettings
from supple.geometry import pose_from_xyyaw
from supple.tasks import Skill
from supple.tasks.box_lift import BoxLift

LEFT, RIGHT = "left_hand", "right_hand"


class Apart(BoxLift):
    """Both hands grasp together and lift together; then the left one waves, and the right one for itself."""

    skills: ClassVar[tuple[Skill, ...]] = tuple(
        Skill(name, hand, "box") for name in ("grasp", "lift", "wave") for hand in (LEFT, RIGHT)
    )
    coordination: ClassVar[tuple[tuple[int, int], ...]] = ((0, 1), (2, 3))


STEPS = {"grasp": (100, 140), "lift": (140, 200), "wave": (220, 260)}
TASK = Apart()


def moved(seed, shift):
    """Return the seed with the box, and all else, shown elsewhere: by a shift (x, y, yaw) of the world."""
    T = pose_from_xyyaw(*shift).homogeneous
    episode = seed.episode
    groups = {
        name: {key: T @ poses for key, poses in getattr(episode, name).items()}
        for name in ("effector_poses", "target_poses", "object_poses")
    }
    return replace(seed, episode=replace(episode, **groups))


@pytest.fixture(scope="module")
def cut(seed):
    """The seed, with all skills of the task marked."""
    skills = tuple(SkillSegment(s.name, s.effector, s.reference, *STEPS[s.name]) for s in TASK.skills)
    return replace(seed, skills=skills)


@pytest.fixture(scope="module")
def demonstrations(cut):
    """Four demonstrations, in which the box stands farther and farther away."""
    return [Demonstration(f"d{i}", TASK, moved(cut, (0.1 * i, 0.0, 0.0))) for i in range(4)]


def box_of(seed, step=100):
    matrix = seed.episode.object_poses["box"][step]
    return pin.SE3(matrix[:3, :3], matrix[:3, 3])


def no_hand(effector):
    raise AssertionError("nobody asked where the hand is")


def choices(selector, members, box, hand=no_hand, count=200):
    """Return how often which demonstration was chosen, skill by skill."""
    rng = np.random.default_rng(0)
    found = {TASK.skills[i].signal: Counter() for i in members}
    for _ in range(count):
        selector.begin(rng)
        selector.choose(members, lambda name: box, hand, rng)
        for signal, name in selector.used.items():
            found[signal][name] += 1
    return found


def test_random_takes_any_and_coordinated_skills_the_same(demonstrations, cut):
    selector = SourceSelector(TASK, demonstrations, GenerationSettings())
    found = choices(selector, [0, 1], box_of(cut))
    assert found["grasp_left_hand"] == found["grasp_right_hand"]
    assert set(found["grasp_left_hand"]) == {"d0", "d1", "d2", "d3"}
    assert min(found["grasp_left_hand"].values()) > 25


def test_skills_that_are_not_coordinated_choose_for_themselves(demonstrations, cut):
    selector = SourceSelector(TASK, demonstrations, GenerationSettings())
    rng, pairs = np.random.default_rng(1), set()
    for _ in range(100):
        selector.begin(rng)
        selector.choose([4, 5], lambda name: box_of(cut), no_hand, rng)
        pairs.add((selector.used["wave_left_hand"], selector.used["wave_right_hand"]))
    assert len(pairs) == 16


@pytest.mark.parametrize(("top", "expected"), [(1, {"d2"}), (2, {"d2", "d3"}), (3, {"d1", "d2", "d3"}), (9, None)])
def test_nearest_object_takes_those_whose_object_lay_nearest(demonstrations, cut, top, expected):
    settings = GenerationSettings(selection="nearest_object", selection_top=top)
    box = pose_from_xyyaw(0.22, 0.0, 0.0) * box_of(cut)
    found = choices(SourceSelector(TASK, demonstrations, settings), [0, 1], box)
    assert set(found["grasp_left_hand"]) == (expected or {"d0", "d1", "d2", "d3"})


def test_as_published_a_radian_counts_as_much_as_a_metre(cut):
    """One stands 0.5 m off, the other is turned by 0.4 rad (about itself): the turned one is nearer."""
    box = box_of(cut)
    x, y = box.translation[:2]
    turn = pose_from_xyyaw(x, y, 0.4) * pose_from_xyyaw(-x, -y, 0.0)
    turned = (turn.translation[0], turn.translation[1], 0.4)
    shown = [Demonstration("far", TASK, moved(cut, (0.5, 0.0, 0.0))), Demonstration("turned", TASK, moved(cut, turned))]
    settings = GenerationSettings(selection="nearest_object", selection_top=1)
    assert set(choices(SourceSelector(TASK, shown, settings), [0, 1], box, count=3)["grasp_left_hand"]) == {"turned"}


def test_nearest_robot_takes_the_path_that_begins_nearest_to_the_hand(cut):
    """Where the box was shown makes no difference, only how the hands came to it."""
    other = cut.episode.effector_poses | {
        hand: pose_from_xyyaw(0.0, 0.0, 0.0, 0.2).homogeneous @ poses
        for hand, poses in cut.episode.effector_poses.items()
    }
    from_above = replace(cut, episode=replace(cut.episode, effector_poses=other))
    shown = [Demonstration("far, beside", TASK, moved(cut, (3.0, 0.0, 0.0))), Demonstration("above", TASK, from_above)]
    settings = GenerationSettings(selection="nearest_robot", selection_top=1)
    selector = SourceSelector(TASK, shown, settings)
    for height, expected in ((0.05, "far, beside"), (0.15, "above")):

        def hand(effector, height=height):
            matrix = cut.episode.effector_poses[effector][100]
            return pose_from_xyyaw(0.0, 0.0, 0.0, height) * pin.SE3(matrix[:3, :3], matrix[:3, 3])

        found = choices(selector, [0, 1], box_of(cut), hand, count=3)
        assert set(found["grasp_left_hand"]) == {expected}


def test_with_one_demonstration_no_number_is_drawn(demonstrations, cut):
    for selection in ("random", "nearest_object", "nearest_robot"):
        selector = SourceSelector(TASK, demonstrations[:1], GenerationSettings(selection=selection))
        rng = np.random.default_rng(5)
        selector.begin(rng)
        sources = selector.choose([1, 0], lambda name: box_of(cut), no_hand, rng)
        assert [source.skill.effector for source in sources] == [RIGHT, LEFT]
        assert rng.random() == np.random.default_rng(5).random()


# -- where skills end ------------------------------------------------------------------------------------------------


def drawn(demonstration, skills, count=40):
    """Return the lengths that each skill had, and whether each began where the one before it ended."""
    selector = SourceSelector(TASK, [demonstration], GenerationSettings(skills=skills))
    rng, lengths = np.random.default_rng(0), []
    for _ in range(count):
        selector.begin(rng)
        found = [selector.choose([i], lambda name: pin.SE3.Identity(), no_hand, rng)[0] for i in range(6)]
        lengths.append([source.steps for source in found])
    return np.array(lengths)


def offsets(skill, low, high):
    return {f"{skill}_{hand}": SkillSettings(term_offset_range=(low, high)) for hand in (LEFT, RIGHT)}


def test_ends_move_by_as_much_as_is_said_and_what_follows_at_once_begins_later(demonstrations):
    lengths = drawn(demonstrations[0], offsets("grasp", 5, 10))
    assert set(lengths[:, 0]) == {45, 46, 47, 48, 49, 50}
    np.testing.assert_array_equal(lengths[:, 0], lengths[:, 1])
    np.testing.assert_array_equal(lengths[:, 0] + lengths[:, 2], 100)
    np.testing.assert_array_equal(lengths[:, 2], lengths[:, 3])
    assert set(lengths[:, 4:].ravel()) == {40}


def test_ends_may_come_earlier(demonstrations):
    lengths = drawn(demonstrations[0], offsets("lift", -20, 0))
    assert (lengths[:, 2].min(), lengths[:, 2].max()) == (40, 60)
    assert set(lengths[:, [0, 1, 4, 5]].ravel()) == {40}


def test_a_path_that_goes_on_is_what_was_shown_after_it(cut):
    demonstration = Demonstration("d", TASK, cut)
    longer = demonstration.sources_within(demonstration.bounds() | {4: (220, 275)})[4]
    assert len(longer.T_reference_targets) == 55
    shown = cut.episode.target_poses[LEFT][274]
    carried = longer.T_world_reference * longer.T_reference_targets[-1]
    np.testing.assert_allclose(carried.homogeneous, shown, atol=1e-12)


def test_each_skill_has_the_noise_and_interpolation_of_the_settings(demonstrations, cut):
    settings = GenerationSettings(arm_noise=0.03, skills={"lift_left_hand": SkillSettings(interpolation_steps=9)})
    selector = SourceSelector(TASK, demonstrations, settings)
    rng = np.random.default_rng(0)
    selector.begin(rng)
    left, right = (s.skill for s in selector.choose([2, 3], lambda name: box_of(cut), no_hand, rng))
    assert (left.arm_noise, left.interpolation_steps) == (0.03, 9)
    assert (right.arm_noise, right.interpolation_steps) == (0.03, 5)


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("skills", "error", "said"),
    [
        (offsets("grasp", -60, 0), SeedError, "d0: with term_offset_range"),
        (offsets("grasp", 0, 60), SeedError, "skill lift_left_hand might last from step 200 to 200"),
        (offsets("wave", 0, 10**6), SeedError, "skill wave_left_hand might"),
        ({"lift_left_hand": SkillSettings(term_offset_range=(0, 3))}, SettingError, "coordinated must end alike"),
        ({"jump_left_hand": SkillSettings()}, SettingError, "unknown skill 'jump_left_hand' (available: grasp_left"),
    ],
    ids=["before it starts", "with the next one", "after the recording", "not in step", "unknown"],
)
def test_ends_that_cannot_be_are_refused_before_anything_runs(demonstrations, skills, error, said):
    with pytest.raises(error) as caught:
        SourceSelector(TASK, demonstrations[:1], GenerationSettings(skills=skills))
    assert said in str(caught.value)


def test_without_any_demonstration_there_is_nothing_to_choose():
    with pytest.raises(SeedError, match="no demonstration of box_lift"):
        SourceSelector(TASK, [], GenerationSettings())
