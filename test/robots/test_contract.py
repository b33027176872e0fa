# SPDX-License-Identifier: Apache-2.0
"""The action contract: every difference is named, and actions that break it are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pydantic import ValidationError

from supple.errors import ContractError
from supple.robots import ActionContract, g1

CONTRACT = g1().contract


def changed(**update):
    return CONTRACT.model_copy(update=update)


def with_term(index, **update):
    terms = list(CONTRACT.terms)
    terms[index] = terms[index].model_copy(update=update)
    return changed(terms=tuple(terms))


def test_a_contract_equals_itself_also_after_a_round_trip():
    again = ActionContract.from_mapping(json.loads(CONTRACT.model_dump_json()))
    assert CONTRACT.differences(again) == []
    assert again == CONTRACT
    CONTRACT.require(again, "episode 3")


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (changed(robot="h1"), ["robot: 'g1' here, 'h1' there"]),
        (changed(control_interval=0.05), ["control interval: 0.02 s here, 0.05 s there"]),
        (with_term(0, unit="deg"), ["waist_yaw_joint: unit rad here, deg there"]),
        (with_term(31, frame="odom"), ["base_velocity_x: frame base_footprint here, odom there"]),
        (with_term(34, kind="gripper"), ["base_height: kind base_height here, gripper there"]),
        (with_term(3, lower=-1.0), ["left_shoulder_pitch_joint: lower -3.0892 here, -1.0 there"]),
        (with_term(3, upper=1.0), ["left_shoulder_pitch_joint: upper 2.6704 here, 1.0 there"]),
        (changed(terms=CONTRACT.terms[:-1]), ["base_height: only here"]),
        (with_term(34, name="base_altitude"), ["base_height: only here", "base_altitude: only there"]),
        (
            changed(terms=(CONTRACT.terms[1], CONTRACT.terms[0], *CONTRACT.terms[2:])),
            ["order: 'waist_yaw_joint' here, 'waist_roll_joint' there, at position 0"],
        ),
    ],
)
def test_each_difference_is_named(other, said):
    assert CONTRACT.differences(other) == said
    with pytest.raises(ContractError) as caught:
        CONTRACT.require(other, "episode 3")
    assert all(line in str(caught.value) for line in said)
    assert "episode 3" in str(caught.value)
    assert other.differences(CONTRACT)


def test_several_differences_are_all_named():
    other = with_term(5, unit="deg").model_copy(update={"robot": "h1", "control_interval": 0.1})
    assert len(CONTRACT.differences(other)) == 3


def test_an_entry_named_twice_is_no_contract():
    with pytest.raises(ValidationError, match="waist_yaw_joint"):
        ActionContract(robot="g1", control_interval=0.02, terms=(CONTRACT.terms[0], CONTRACT.terms[0]))


def test_unknown_fields_are_refused():
    with pytest.raises(ValidationError, match="rate"):
        ActionContract.from_mapping(json.loads(CONTRACT.model_dump_json()) | {"rate": 50})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_name_their_entries(value):
    action = CONTRACT.lower.copy()
    action[[4, 33]] = value
    with pytest.raises(ContractError, match="left_shoulder_roll_joint, base_velocity_yaw"):
        CONTRACT.check(action)


@pytest.mark.parametrize("shape", [(34,), (36,), (1, 35), ()])
def test_a_wrong_size_is_never_cut_or_filled(shape):
    with pytest.raises(ContractError, match="expected 35 numbers"):
        CONTRACT.check(np.zeros(shape))


@given(hnp.arrays(np.float64, CONTRACT.size, elements=st.floats(-1e6, 1e6)))
def test_clamping_keeps_limits_names_what_it_changed_and_is_idempotent(action):
    clamped, names = CONTRACT.clamp(action)
    assert (clamped >= CONTRACT.lower).all()
    assert (clamped <= CONTRACT.upper).all()
    assert names == [CONTRACT.names[i] for i in np.flatnonzero(clamped != action)]
    assert CONTRACT.clamp(clamped)[1] == []
