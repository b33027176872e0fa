# SPDX-License-Identifier: Apache-2.0
"""Files in MimicGen's format: our own, and ones in which Supple's group is missing, as other tools leave them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import episode_examples as examples
import h5py
import numpy as np
import pytest

from supple.episodes import Episode
from supple.episodes.hdf5_store import write_episode
from supple.episodes.mimicgen_file import read_mimicgen_file
from supple.errors import DatasetError
from supple.robots import robot_named

G1 = robot_named("g1")
EPISODES = [examples.episode(0, 12), examples.episode(1, 15)]


def written(path: Path, change: Callable[[h5py.Group], object] = lambda data: None) -> Path:
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = json.dumps({"env_name": "box_lift"})
        # Ten comes before nine in the alphabet.
        for name, episode in zip(("demo_9", "demo_10"), EPISODES, strict=True):
            write_episode(data.create_group(name), episode)
        change(data)
    return path


def without_supple(data: h5py.Group) -> None:
    for name in data:
        del data[name]["supple"]


def test_our_own_episodes_are_read_whole(tmp_path: Path) -> None:
    found = read_mimicgen_file(written(tmp_path / "f.hdf5"), "box_lift", G1)
    assert list(found) == ["demo_9", "demo_10"]
    for episode, original in zip(found.values(), EPISODES, strict=True):
        assert episode.differences(original) == []


def same(found: Episode, original: Episode) -> None:
    n = original.length - 1
    np.testing.assert_array_equal(found.actions, original.actions[:n])
    for name in ("effector_poses", "object_poses", "observations"):
        for key, rows in getattr(original, name).items():
            np.testing.assert_array_equal(getattr(found, name)[key], rows[: n + 1])
    for name in ("target_poses", "signals", "start_signals"):
        for key, rows in getattr(original, name).items():
            np.testing.assert_array_equal(getattr(found, name)[key], rows[:n])


def test_without_our_group_all_but_the_last_action_is_read(tmp_path: Path) -> None:
    found = read_mimicgen_file(written(tmp_path / "f.hdf5", without_supple), "box_lift", G1)
    for episode, original in zip(found.values(), EPISODES, strict=True):
        assert episode.length == original.length - 1
        same(episode, original)


def test_poses_of_one_arm_belong_to_the_effector_that_is_given(tmp_path: Path) -> None:
    def one_arm(data: h5py.Group) -> None:
        without_supple(data)
        for name in data:
            for key in ("eef_pose", "target_pose"):
                poses = data[name]["datagen_info"][key]["right_hand"][()]
                del data[name]["datagen_info"][key]
                data[name]["datagen_info"][key] = poses

    path = written(tmp_path / "f.hdf5", one_arm)
    for episode, original in zip(
        read_mimicgen_file(path, "box_lift", G1, "right_hand").values(), EPISODES, strict=True
    ):
        assert set(episode.effector_poses) == set(episode.target_poses) == {"right_hand"}
        np.testing.assert_array_equal(
            episode.target_poses["right_hand"], original.target_poses["right_hand"][: original.length - 1]
        )
    with pytest.raises(
        DatasetError, match=r"demo_9: datagen_info/eef_pose: expected a group by effector.*\(12, 4, 4\)"
    ):
        read_mimicgen_file(path, "box_lift", G1)


def spoil(key: str, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[h5py.Group], None]:
    def edit(data: h5py.Group) -> None:
        without_supple(data)
        values = change(data["demo_9"][key][()])
        del data["demo_9"][key]
        data["demo_9"][key] = values

    return edit


def drop(key: str) -> Callable[[h5py.Group], None]:
    def edit(data: h5py.Group) -> None:
        without_supple(data)
        del data["demo_10"][key]

    return edit


def other_task(data: h5py.Group) -> None:
    without_supple(data)
    data["demo_9/datagen_info"].attrs["env_interface_name"] = "MG_Coffee"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (other_task, "demo_9: shows 'MG_Coffee'"),
        (drop("datagen_info/target_pose"), "demo_10: not MimicGen's format"),
        (drop("obs/base_pose"), "demo_10: observations: missing base_pose"),
        (spoil("actions", lambda rows: rows[:, :7]), "demo_9: actions: expected shape (11, 35), got (11, 7)"),
        (spoil("datagen_info/object_poses/box", lambda rows: rows * 2.0), "demo_9: object_poses/box: sample 0"),
        (spoil("obs/q", lambda rows: rows[:-1]), "demo_9: observations/q: expected shape (12, 43)"),
        (lambda data: [data.pop(name) for name in list(data)], "holds no data/demo_0"),
    ],
    ids=["task", "targets", "base", "actions", "poses", "joints", "empty"],
)
def test_what_cannot_be_used_is_refused_in_one_line(
    tmp_path: Path, change: Callable[[h5py.Group], None], said: str
) -> None:
    path = written(tmp_path / "f.hdf5", change)
    with pytest.raises(DatasetError) as caught:
        read_mimicgen_file(path, "box_lift", G1)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
