# SPDX-License-Identifier: Apache-2.0
"""Seed files: exact round trips, small, and one clear line for everything that makes one useless."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import episode_examples as examples
import h5py
import numpy as np
import pytest

from supple.episodes import load_seed, save_seed
from supple.errors import SeedError
from supple.robots import robot_named


def test_round_trip(tmp_path: Path) -> None:
    seed = examples.seed()
    path = save_seed(tmp_path / "new/folder/seed.hdf5", seed)
    found = load_seed(path, "g1")
    assert (found.skills, found.marks, found.operator, found.notes) == (
        seed.skills,
        seed.marks,
        seed.operator,
        seed.notes,
    )
    assert found.episode.differences(seed.episode) == []
    assert [p.name for p in path.parent.iterdir()] == ["seed.hdf5"]


def test_saving_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    first = save_seed(tmp_path / "a.hdf5", examples.seed()).read_bytes()
    assert save_seed(tmp_path / "b.hdf5", load_seed(tmp_path / "a.hdf5")).read_bytes() == first


def test_a_long_demonstration_is_small_enough_to_commit(tmp_path: Path) -> None:
    # Smooth motion with noise in the last digits, as physics gives it: the part that no compression can remove.
    n, size = 700, 125
    rng = np.random.default_rng(0)
    t = np.linspace(0, 15, n + 1)[:, np.newaxis]

    def motion(rows: int, width: int) -> np.ndarray:
        waves = np.sin(t[:rows] * rng.uniform(0.1, 3, width) + rng.uniform(0, 6, width))
        return waves * (1 + rng.normal(scale=1e-9, size=(rows, width)))

    base = examples.seed(n).episode
    contract = robot_named("g1").contract
    middle, half = (contract.lower + contract.upper) / 2, (contract.upper - contract.lower) / 2
    actions = middle + half * motion(n, contract.size)
    observations = {key: motion(n + 1, value.shape[1]) for key, value in base.observations.items()}
    observations["base_pose"] = base.observations["base_pose"]
    states = motion(n + 1, size)
    episode = replace(
        base,
        actions=actions,
        executed=actions,
        states=states,
        observations=observations,
        initial=replace(base.initial, state=states[0]),
    )
    path = save_seed(tmp_path / "seed.hdf5", replace(examples.seed(n), episode=episode))
    assert path.stat().st_size <= 2_000_000


def test_a_recording_without_marks_is_kept_but_not_generated_from(tmp_path: Path) -> None:
    path = save_seed(tmp_path / "seed.hdf5", replace(examples.seed(), skills=()))
    with pytest.raises(SeedError, match="no skill is marked"):
        load_seed(path)
    assert load_seed(path, require_skills=False).skills == ()


def test_a_malformed_seed_is_not_written(tmp_path: Path) -> None:
    seed = examples.seed()
    doubled = replace(seed, skills=(*seed.skills, seed.skills[0]))
    with pytest.raises(SeedError, match="overlap"):
        save_seed(tmp_path / "seed.hdf5", doubled)
    assert list(tmp_path.iterdir()) == []


def test_wrong_robot(tmp_path: Path) -> None:
    path = save_seed(tmp_path / "seed.hdf5", examples.seed())
    with pytest.raises(SeedError, match="for robot 'g1', expected 'h1'"):
        load_seed(path, "h1")


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(SeedError, match=r"nothing\.hdf5: there is no such file"):
        load_seed(tmp_path / "nothing.hdf5")


@pytest.mark.parametrize("keep", [0, 10, 1000, 0.5, 0.99])
def test_truncated_anywhere(tmp_path: Path, keep: float) -> None:
    path = save_seed(tmp_path / "seed.hdf5", examples.seed())
    content = path.read_bytes()
    path.write_bytes(content[: keep if isinstance(keep, int) else int(len(content) * keep)])
    with pytest.raises(SeedError, match="truncated, garbled or not an HDF5 file") as caught:
        load_seed(path)
    assert "\n" not in str(caught.value)


def test_text_instead_of_hdf5(tmp_path: Path) -> None:
    (tmp_path / "seed.hdf5").write_text("skills: []\n")
    with pytest.raises(SeedError, match="not an HDF5 file"):
        load_seed(tmp_path / "seed.hdf5")


def test_a_dataset_is_no_seed(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "demos.hdf5", "w") as file:
        file.create_group("data/demo_0")
    with pytest.raises(SeedError, match="no seed demonstration"):
        load_seed(tmp_path / "demos.hdf5")


def test_full_disk_leaves_the_older_seed(tiny_disk: Path) -> None:
    path = save_seed(tiny_disk / "seed.hdf5", examples.seed())
    before = path.read_bytes()
    with pytest.raises(SeedError, match="disk full"):
        save_seed(path, examples.seed(4000))
    assert path.read_bytes() == before
    assert [p.name for p in tiny_disk.iterdir()] == ["seed.hdf5"]
