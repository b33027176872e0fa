# SPDX-License-Identifier: Apache-2.0
"""One episode in HDF5: exact round trips, the layout others read, and joint order by name."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from typing import Any

import episode_examples as examples
import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from supple.episodes import Episode, Outcome
from supple.episodes.hdf5_store import episode_image, read_episode
from supple.errors import DatasetError
from supple.robots import robot_named

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
TEXT = st.text(st.characters(exclude_characters="/", exclude_categories=("Cs", "Cc")), min_size=1, max_size=12).filter(
    lambda name: name not in (".", "..")
)


def spoilt(episode: Episode) -> h5py.File:
    """Return an episode as a file that may be changed."""
    return h5py.File(io.BytesIO(episode_image(episode)), "r+")


def rewrite_meta(group: h5py.Group, **changes: Any) -> None:
    meta = json.loads(group["supple/meta"][()]) | changes
    del group["supple/meta"]
    group["supple/meta"] = np.bytes_(json.dumps(meta))


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    length=st.integers(1, 300),
    size=st.integers(1, 60),
    seed=st.integers(0, 2**31),
    success=st.booleans(),
    data=st.data(),
)
def test_round_trip_is_exact(length: int, size: int, seed: int, success: bool, data: st.DataObject) -> None:
    state = data.draw(hnp.arrays(np.float64, size, elements=FINITE))
    words = data.draw(st.lists(TEXT, min_size=4, max_size=4))
    numbers = st.dictionaries(TEXT, FINITE, max_size=3)
    base = examples.episode(3, length, size, success=success, seed=seed)
    states = base.states.copy()
    states[-1] = state
    episode = replace(
        base,
        states=states,
        source=words[0],
        outcome=Outcome(success, data.draw(numbers) | {"flag": success}, words[1]),
        initial=replace(
            base.initial, state=state, materials=data.draw(numbers), goal=data.draw(numbers), model_hash=words[2]
        ),
        object_poses=dict(base.object_poses) | {words[3]: base.object_poses["box"]},
        versions={words[1]: words[2]},
        soundness=data.draw(numbers),
    )
    with spoilt(episode) as file:
        found = read_episode(file["episode"], "here")
    assert found.differences(episode) == []
    assert found.outcome.measures["flag"] is success
    assert found.states.dtype == np.float64
    assert found.observations["q"].dtype == np.float32


def test_same_episode_same_bytes() -> None:
    assert episode_image(examples.episode(1)) == episode_image(examples.episode(1))
    assert episode_image(examples.episode(1)) != episode_image(examples.episode(2))


def test_without_noise_executed_and_clean_share_one_place() -> None:
    noisy = examples.episode(length=200)
    episode = replace(noisy, executed=noisy.actions)
    assert len(episode_image(episode)) < len(episode_image(noisy)) - noisy.actions.nbytes // 2
    with spoilt(episode) as file:
        assert read_episode(file["episode"], "here").differences(episode) == []


def test_differences_name_what_differs() -> None:
    episode = examples.episode()
    other = replace(episode, seed=5, observations=dict(episode.observations) | {"q": episode.observations["v"]})
    assert episode.differences(other) == ["seed", "observations/q"]


def test_layout_is_that_of_mimicgen() -> None:
    episode = examples.episode()
    n = episode.length
    with spoilt(episode) as file:
        demo = file["episode"]
        assert demo.attrs["num_samples"] == n
        np.testing.assert_array_equal(demo["actions"], episode.actions)
        np.testing.assert_array_equal(demo["states"], episode.states[:n])
        assert {len(demo["obs"][key]) for key in demo["obs"]} == {n}
        info = demo["datagen_info"]
        signals = {"subtask_start_signals", "subtask_term_signals"}
        assert set(info) == {"eef_pose", "target_pose", "gripper_action", "object_poses"} | signals
        np.testing.assert_array_equal(info["object_poses/box"], episode.object_poses["box"][:n])
        np.testing.assert_array_equal(info["target_pose/left_hand"], episode.target_poses["left_hand"])
        assert int(info["subtask_start_signals/lift_left"][()].argmax()) == n // 3 + 1
        # MimicGen finds the end of a subtask as the first change of its signal.
        signal = info["subtask_term_signals/lift_left"][()]
        assert int((signal[1:] - signal[:-1]).nonzero()[0][0]) + 1 == n // 2 + 1
        # The fingers' columns are those that the contract names so.
        names = robot_named("g1").contract.names
        columns = [i for i, name in enumerate(names) if name.startswith("right_hand_")]
        assert len(columns) == 7
        np.testing.assert_array_equal(info["gripper_action/right_hand"], episode.actions[:, columns])
        assert demo["rewards"][-1] == 1.0
        assert demo["dones"][()].sum() == 1


def test_a_file_from_before_start_signals_sources_and_soundness_is_read() -> None:
    episode = examples.episode()
    with spoilt(episode) as file:
        del file["episode/datagen_info/subtask_start_signals"]
        meta = json.loads(file["episode/supple/meta"][()])
        del meta["sources"], meta["soundness"], file["episode/supple/meta"]
        file["episode/supple/meta"] = np.bytes_(json.dumps(meta))
        older = replace(episode, start_signals={}, sources={}, soundness={})
        assert read_episode(file["episode"], "f").differences(older) == []


def test_joints_in_another_order_are_mapped_by_name() -> None:
    episode = examples.episode()
    names = list(robot_named("g1").joints.names)
    order = np.random.default_rng(0).permutation(len(names))
    with spoilt(episode) as file:
        demo = file["episode"]
        for place, rows in (("obs", np.s_[:]), ("supple/final/obs", None)):
            for key in ("q", "v", "effort"):
                array = demo[place][key][()]
                demo[place][key][...] = array[:, order] if rows is not None else array[order]
        rewrite_meta(demo, joint_names=[names[i] for i in order])
        assert read_episode(demo, "here").differences(episode) == []


def test_missing_and_foreign_joints_are_listed() -> None:
    names = list(robot_named("g1").joints.names)
    with spoilt(examples.episode()) as file:
        rewrite_meta(file["episode"], joint_names=["tail_joint", *names[1:]])
        with pytest.raises(DatasetError, match=f"missing {names[0]}; not in the robot's table: tail_joint"):
            read_episode(file["episode"], "here")
        rewrite_meta(file["episode"], joint_names=names[:29])
        with pytest.raises(DatasetError, match="29 joint names but values of shape"):
            read_episode(file["episode"], "here")


@pytest.mark.parametrize(
    "path",
    [
        "actions",
        "states",
        "obs",
        "obs/q",
        "supple",
        "supple/executed",
        "supple/meta",
        "supple/final/state",
        "datagen_info",
    ],
)
def test_a_missing_part_is_named(path: str) -> None:
    with spoilt(examples.episode()) as file:
        del file["episode"][path]
        with pytest.raises(DatasetError, match="here: ") as caught:
            read_episode(file["episode"], "here")
    assert path.split("/")[-1] in str(caught.value)


def test_a_shortened_array_is_not_cut_to_fit() -> None:
    with spoilt(examples.episode()) as file:
        actions = file["episode/actions"][:-1]
        del file["episode/actions"]
        file["episode/actions"] = actions
        with pytest.raises(DatasetError, match=r"executed: expected shape \(11, 35\), got \(12, 35\)"):
            read_episode(file["episode"], "here")


def test_a_bad_number_on_disk_is_named() -> None:
    with spoilt(examples.episode()) as file:
        file["episode/obs/q"][4, 2] = np.nan
        with pytest.raises(DatasetError, match=r"observations/q: sample 4, index \[4, 2\] \(left_hip_yaw_joint\)"):
            read_episode(file["episode"], "here")


def test_a_file_of_someone_else_is_no_traceback() -> None:
    with h5py.File(io.BytesIO(), "w") as file:
        file["episode/actions"] = np.zeros((3, 7))
        with pytest.raises(DatasetError, match="not an episode that Supple wrote"):
            read_episode(file["episode"], "here")
