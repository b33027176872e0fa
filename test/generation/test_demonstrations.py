# SPDX-License-Identifier: Apache-2.0
"""Demonstrations from seeds and from files in MimicGen's format, and where signals say that skills start and end."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from supple.errors import SeedError
from supple.generation.demonstrations import load_demonstrations, segments_of
from supple.tasks import task_named

TASK = task_named("box_lift")
HANDS = ("left_hand", "right_hand")


@pytest.fixture(scope="module")
def signalled(seed):
    """The seed's episode with the signals that a generated one has: the skill starts and ends where it is marked."""
    n = seed.episode.length
    steps = {f"{s.name}_{s.effector}": (s.start, s.end) for s in seed.skills}
    return replace(
        seed.episode,
        start_signals={name: np.arange(n) >= start for name, (start, _) in steps.items()},
        signals={name: np.arange(n) >= end for name, (_, end) in steps.items()},
    )


def bounds(episode):
    return {segment.effector: (segment.start, segment.end) for segment in segments_of(TASK, episode)}


def test_signals_say_where_skills_start_and_end(seed, signalled):
    assert segments_of(TASK, signalled) == tuple(seed.skills)


def test_without_start_signals_a_skill_starts_where_the_one_before_it_ended(seed, signalled):
    assert bounds(replace(signalled, start_signals={})) == {s.effector: (0, s.end) for s in seed.skills}


def test_the_last_skill_of_a_hand_may_end_with_the_episode(seed, signalled):
    n = signalled.length
    assert bounds(replace(signalled, signals={})) == {s.effector: (s.start, n) for s in seed.skills}


def test_a_signal_may_be_called_by_the_skill_alone(seed, signalled):
    both = {"lift": signalled.signals["lift_left_hand"]}
    assert bounds(replace(signalled, signals=both)) == {s.effector: (s.start, s.end) for s in seed.skills}


class TwoSkills(type(TASK)):
    """Both hands take the box, then lift it."""

    skills = tuple(replace(skill, name=name) for name in ("take", "lift") for skill in TASK.skills)
    coordination = ((0, 1), (2, 3))


def test_a_skill_that_is_not_the_last_needs_a_signal(signalled):
    with pytest.raises(
        SeedError, match=r"skill take_left_hand: no signal of that name, or 'take', becomes true.*lift_"
    ):
        segments_of(TwoSkills(), signalled)


def test_skills_in_a_row_follow_each_other(signalled):
    n = signalled.length
    found = segments_of(TwoSkills(), replace(signalled, start_signals={}, signals={"take": np.arange(n) >= 40}))
    assert [(s.name, s.effector, s.start, s.end) for s in found] == [
        (name, hand, *steps) for name, steps in (("take", (0, 40)), ("lift", (40, n))) for hand in HANDS
    ]


def test_a_skill_that_ends_before_it_starts_is_refused(signalled):
    n = signalled.length
    with pytest.raises(SeedError, match=r"lift_left_hand: its signals say that it lasts from step 90 to 80"):
        segments_of(
            TASK, replace(signalled, start_signals={"lift": np.arange(n) >= 90}, signals={"lift": np.arange(n) >= 80})
        )


# -- files -----------------------------------------------------------------------------------------------------------


def test_a_seed_is_called_like_its_file(seed_file):
    (demonstration,) = load_demonstrations(TASK, [seed_file])
    assert demonstration.name == "box_lift.hdf5"
    assert demonstration.bounds() == {i: (s.start, s.end) for i, s in enumerate(demonstration.seed.skills)}


def test_of_two_files_of_one_name_the_folders_tell_them_apart(seed_file, tmp_path):
    paths = [tmp_path / folder / "box_lift.hdf5" for folder in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        shutil.copy(seed_file, path)
    assert [found.name for found in load_demonstrations(TASK, paths)] == ["a/box_lift.hdf5", "b/box_lift.hdf5"]
    with pytest.raises(SeedError, match=r"two demonstrations are called 'a/box_lift.hdf5'"):
        load_demonstrations(TASK, [paths[0], paths[0]])


def without_marks(seed_file: Path, path: Path) -> Path:
    """Return a copy of the seed as MimicGen would know it: without anything of ours, its skills said by signals."""
    shutil.copy(seed_file, path)
    with h5py.File(path, "r+") as file:
        demo = file["data/demo_0"]
        for i, skill in enumerate(TASK.skills):
            segment = load_demonstrations(TASK, [seed_file])[0].bounds()[i]
            for name, step in zip(("start", "term"), segment, strict=True):
                rows = (np.arange(len(demo["actions"])) >= step).astype(np.int8)
                demo[f"datagen_info/subtask_{name}_signals/{skill.signal}"] = rows
        del file["seed"], demo["supple"]
    return path


def test_mimicgen_s_format_gives_the_same_skills_as_the_seed(seed_file, tmp_path):
    (other,) = load_demonstrations(TASK, [without_marks(seed_file, tmp_path / "source.hdf5")])
    (own,) = load_demonstrations(TASK, [seed_file])
    assert other.name == "source.hdf5:demo_0"
    for mine, theirs in zip(own.sources, other.sources, strict=True):
        assert mine.skill == theirs.skill
        np.testing.assert_array_equal(mine.postures, theirs.postures)
        for name in ("T_reference_base", "T_reference_hand", "T_world_reference"):
            np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
        np.testing.assert_array_equal(mine.T_reference_targets, theirs.T_reference_targets)


def test_what_is_no_demonstration_is_refused_with_file_and_name(seed_file, tmp_path):
    path = without_marks(seed_file, tmp_path / "source.hdf5")
    with h5py.File(path, "r+") as file:
        file["data/demo_0/datagen_info/subtask_start_signals/lift_left_hand"][...] = 0
        file["data/demo_0/datagen_info/subtask_term_signals/lift_left_hand"][...] = 1
    with pytest.raises(SeedError, match=r"source.hdf5: demo_0: skill lift_left_hand: .* from step 0 to 0"):
        load_demonstrations(TASK, [path])
    with h5py.File(tmp_path / "other.hdf5", "w") as file:
        file["numbers"] = np.arange(3)
    with pytest.raises(SeedError, match=r"other.hdf5: an HDF5 file, but no seed"):
        load_demonstrations(TASK, [tmp_path / "other.hdf5"])
