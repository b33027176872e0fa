# SPDX-License-Identifier: Apache-2.0
"""Every malformed field of an episode or seed is refused by name, sample, expected and got."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import episode_examples as examples
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple.episodes import Episode, InitialState, Mark, Outcome, SkillSegment, validate, validate_seed
from supple.errors import DatasetError, SeedError
from supple.robots import robot_named

N = 12


def with_item(episode: Episode, field: str, key: str, array: Any) -> Episode:
    return replace(episode, **{field: dict(getattr(episode, field)) | {key: array}})


def changed(array: np.ndarray, index: Any, value: Any) -> np.ndarray:
    result = array.copy()
    result[index] = value
    return result


def without(episode: Episode, field: str, key: str) -> Episode:
    return replace(episode, **{field: {k: v for k, v in getattr(episode, field).items() if k != key}})


def initial(episode: Episode, **changes: Any) -> Episode:
    return replace(episode, initial=replace(episode.initial, **changes))


def slower(e: Episode) -> Episode:
    return replace(e, stamps_ns=e.stamps_ns[0] + 2 * (e.stamps_ns - e.stamps_ns[0]))


MIRROR = np.diag([1.0, 1.0, -1.0, 1.0])

CASES: list[tuple[Callable[[Episode], Episode], list[str]]] = [
    (lambda e: replace(e, actions=e.actions[:-1]), ["executed", "(11, 35)", "(12, 35)"]),
    (lambda e: replace(e, actions=np.zeros((0, 35))), ["actions", "at least one"]),
    (lambda e: replace(e, executed=e.executed[:, :-1]), ["executed", "(12, 35)", "(12, 34)"]),
    (lambda e: replace(e, actions=changed(e.actions, (3, 4), np.nan)), ["actions", "sample 3", "[3, 4]", "nan"]),
    (
        lambda e: replace(e, executed=changed(e.executed, (5, 0), np.inf)),
        ["executed", "sample 5", "waist_yaw_joint", "inf"],
    ),
    (lambda e: replace(e, states=e.states[:-1]), ["states", "(13, 30)", "(12, 30)"]),
    (lambda e: replace(e, states=changed(e.states, (12, 29), -np.inf)), ["states", "sample 12", "[12, 29]", "-inf"]),
    (lambda e: initial(e, state=e.initial.state[:-1]), ["states", "(13, 29)", "(13, 30)"]),
    (lambda e: initial(e, state=np.zeros((2, 2))), ["initial/state", "(2, 2)"]),
    (lambda e: replace(e, stamps_ns=e.stamps_ns[:-1]), ["stamps_ns", "(13,)", "(12,)"]),
    (lambda e: replace(e, stamps_ns=changed(e.stamps_ns, 4, e.stamps_ns[3])), ["stamps_ns", "sample 4", "strictly"]),
    (
        lambda e: replace(e, stamps_ns=changed(e.stamps_ns, 0, 0) + 10**18 * (np.arange(13) > 0)),
        ["stamps_ns", "sample 1"],
    ),
    (slower, ["stamps_ns", "50 Hz", "25 Hz"]),
    (lambda e: without(e, "observations", "effort"), ["observations", "missing effort"]),
    (
        lambda e: with_item(e, "observations", "q", e.observations["q"][:, :29]),
        ["observations/q", "(13, 43)", "(13, 29)"],
    ),
    (lambda e: with_item(e, "observations", "q", e.observations["q"][:-1]), ["observations/q", "(12, 43)"]),
    (
        lambda e: with_item(e, "observations", "v", changed(e.observations["v"], (7, 3), np.nan)),
        ["observations/v", "sample 7", "left_knee_joint", "nan"],
    ),
    (lambda e: with_item(e, "observations", "effort", np.full((13, 43), 1e300)), ["observations/effort", "inf"]),
    (lambda e: with_item(e, "observations", "touch", np.zeros(5)), ["observations/touch", "13 samples", "(5,)"]),
    (
        lambda e: with_item(e, "observations", "base_pose", changed(e.observations["base_pose"], (6, slice(3, 7)), 0)),
        ["observations/base_pose", "sample 6", "unit quaternion", "norm 0"],
    ),
    (
        lambda e: with_item(e, "observations", "base_pose", changed(e.observations["base_pose"], (6, 5), np.nan)),
        ["observations/base_pose", "sample 6", "nan"],
    ),
    (
        lambda e: initial(e, objects={"box": [0, 0, 0, 2, 0, 0, 0]}),
        ["initial/objects/box", "unit quaternion", "norm 2"],
    ),
    (lambda e: initial(e, objects={"box": [0, 0, 0]}), ["initial/objects/box", "(7,)", "(3,)"]),
    (lambda e: initial(e, materials={"box.mass": np.nan}), ["initial/materials/box.mass", "nan"]),
    (lambda e: initial(e, goal={"height": np.inf}), ["initial/goal/height", "inf"]),
    (lambda e: with_item(e, "object_poses", "box", e.object_poses["box"][:-1]), ["object_poses/box", "(13, 4, 4)"]),
    (
        lambda e: with_item(e, "object_poses", "box", changed(e.object_poses["box"], (2, slice(0, 3), 0), 0.0)),
        ["object_poses/box", "sample 2", "no rotation"],
    ),
    (
        lambda e: with_item(e, "effector_poses", "left_hand", e.effector_poses["left_hand"] @ MIRROR),
        ["effector_poses/left_hand", "sample 0", "determinant -1"],
    ),
    (
        lambda e: with_item(e, "target_poses", "left_hand", changed(e.target_poses["left_hand"], (9, 3, 0), 1.0)),
        ["target_poses/left_hand", "sample 9", "last row"],
    ),
    (lambda e: with_item(e, "effector_poses", "tail", e.object_poses["box"]), ["unknown effector 'tail'", "left_hand"]),
    (lambda e: without(e, "effector_poses", "left_hand"), ["target_poses/left_hand"]),
    (lambda e: with_item(e, "contacts", "box", np.zeros((13, 2))), ["contacts", "'a/b'", "'box'"]),
    (lambda e: with_item(e, "contacts", "a/b/c", np.zeros((13, 2))), ["contacts", "'a/b/c'"]),
    (lambda e: with_item(e, "contacts", "box/table", np.zeros((13, 3))), ["contacts/box/table", "(13, 2)", "(13, 3)"]),
    (lambda e: with_item(e, "signals", "lift_left", np.zeros(13, dtype=bool)), ["signals/lift_left", "(12,)", "(13,)"]),
    (
        lambda e: with_item(e, "start_signals", "lift_left", np.zeros(11, dtype=bool)),
        ["start_signals/lift_left", "(11,)"],
    ),
    (lambda e: with_item(e, "signals", "a/b", np.zeros(12, dtype=bool)), ["signals", "'a/b'"]),
    (lambda e: replace(e, outcome=Outcome(True, {"height": np.nan})), ["outcome/measures/height", "nan"]),
    (lambda e: replace(e, robot="g2"), ["unknown robot 'g2'"]),
    (lambda e: replace(e, contract=e.contract.model_copy(update={"robot": "h1"})), ["contract", "'h1'", "'g1'"]),
    (lambda e: replace(e, attempt=-1), ["attempt", "-1"]),
]


@pytest.mark.parametrize(("spoil", "words"), CASES)
def test_malformed_episodes_are_refused(spoil: Callable[[Episode], Episode], words: list[str]) -> None:
    with pytest.raises((DatasetError, KeyError)) as caught:
        validate(spoil(examples.episode()), "file.hdf5: demo_3")
    for word in words:
        assert word in str(caught.value)
    if "unknown robot" not in str(caught.value):
        assert str(caught.value).startswith("file.hdf5: demo_3: ")


def test_a_valid_episode_passes_and_is_read_only() -> None:
    episode = examples.episode()
    validate(episode, "here")
    with pytest.raises(ValueError, match="read-only"):
        episode.actions[0, 0] = 1.0
    with pytest.raises(TypeError):
        episode.observations["q"] = episode.actions  # type: ignore[index]


def test_the_makers_array_stays_writable_and_apart() -> None:
    mine = np.zeros(30)
    state = InitialState(mine, "hash")
    mine[0] = 1.0
    assert state.state[0] == 0.0


def test_a_quaternion_slightly_off_the_norm_is_fine() -> None:
    episode = examples.episode()
    pose = episode.observations["base_pose"].copy()
    pose[:, 3:] *= 1.05
    validate(with_item(episode, "observations", "base_pose", pose), "here")


def test_jitter_of_single_stamps_is_fine_while_the_rate_holds() -> None:
    episode = examples.episode(length=200)
    jitter = np.zeros(201, dtype=np.int64)
    jitter[1:-1] = np.random.default_rng(0).integers(-9_000_000, 9_000_000, 199)
    validate(replace(episode, stamps_ns=episode.stamps_ns + jitter), "here")


def test_text_in_an_array_is_named() -> None:
    with pytest.raises(DatasetError, match="observations/q"):
        with_item(examples.episode(), "observations", "q", [["fast"]])


@given(row=st.integers(0, N), column=st.integers(0, 29), value=st.sampled_from([np.nan, np.inf, -np.inf]))
def test_the_first_bad_sample_is_the_one_named(row: int, column: int, value: float) -> None:
    states = examples.episode().states.copy()
    states[row, column] = value
    states[row:, column + 1 :] = value
    with pytest.raises(DatasetError, match=rf"states: sample {row}, index \[{row}, {column}\]"):
        validate(replace(examples.episode(), states=states), "here")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"skills": ()}, ["no skill is marked", "annotate"]),
        ({"skills": (SkillSegment("a", "left_foot", "box", 0, 3),)}, ["'a'", "left_foot", "left_hand"]),
        ({"skills": (SkillSegment("a", "left_hand", "cup", 0, 3),)}, ["'a'", "cup", "box, table"]),
        ({"skills": (SkillSegment("a", "left_hand", "box", 3, 3),)}, ["'a'", "start 3", "end 3"]),
        ({"skills": (SkillSegment("a", "left_hand", "box", 3, 13),)}, ["'a'", "end 13", "12"]),
        ({"skills": (SkillSegment("a", "left_hand", "box", -1, 3),)}, ["'a'", "start -1"]),
        (
            {"skills": (SkillSegment("b", "left_hand", "box", 4, 9), SkillSegment("a", "left_hand", "box", 0, 5))},
            ["'a' (0 to 5)", "'b' (4 to 9)", "left_hand", "overlap"],
        ),
        ({"marks": (Mark("grasp", 99),)}, ["grasp", "99"]),
    ],
)
def test_malformed_seeds_are_refused(changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(SeedError) as caught:
        validate_seed(replace(examples.seed(), **changes), "seed.hdf5")
    for word in words:
        assert word in str(caught.value)


def test_skills_of_one_effector_may_touch_and_those_of_two_overlap() -> None:
    skills = (
        SkillSegment("reach", "left_hand", "box", 0, 5),
        SkillSegment("lift", "left_hand", "box", 5, 12),
        SkillSegment("hold", "right_hand", "box", 2, 12),
    )
    validate_seed(replace(examples.seed(), skills=skills), "seed.hdf5")


def test_the_names_of_actions_are_the_contracts() -> None:
    assert robot_named("g1").contract.names[0] == "waist_yaw_joint"
