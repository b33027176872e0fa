# SPDX-License-Identifier: Apache-2.0
"""Verdicts: what was compared, where it diverged first, what is written."""

from __future__ import annotations

import json

import numpy as np
import pytest

from supple.errors import ReplayError
from supple.replay.verdict import DivergenceWatch, Verdict, compare_contracts
from supple.robots import g1


def test_the_first_divergence_stays_the_first():
    watch = DivergenceWatch(joint_tolerance=0.05, base_tolerance=0.05)
    q, base = np.zeros(3), np.zeros(3)
    watch.observe(0, q, base, q, base)
    watch.observe(1, np.array([0.0, 0.04, 0.0]), base, q, base)
    assert watch.first_step is None
    assert watch.size == {"joint_rad": 0.04, "base_m": 0.0}
    watch.observe(2, q, np.array([0.03, 0.04, 0.0]), q, base)
    watch.observe(3, q, np.array([0.06, 0.08, 0.0]), q, base)
    watch.observe(4, q + 9.0, base, q, base)
    assert watch.first_step == 3
    assert watch.size["base_m"] == pytest.approx(0.1)
    assert watch.size["joint_rad"] == 0.0
    assert watch.compared == 5


def test_what_is_not_a_number_diverges():
    watch = DivergenceWatch()
    watch.observe(0, [np.nan], np.zeros(3), [0.0], np.zeros(3))
    assert watch.first_step == 0


def test_different_shapes_are_refused_by_step():
    with pytest.raises(ReplayError, match=r"step 7: joint_rad has shape \(2,\) here, \(3,\) in the recording"):
        DivergenceWatch().observe(7, np.zeros(2), np.zeros(3), np.zeros(3), np.zeros(3))


def test_contracts_are_compared_by_name():
    contract = g1().contract
    assert compare_contracts(contract, contract) == "match"
    slower = contract.model_copy(update={"control_interval": 0.05})
    assert compare_contracts(slower, contract) == ("control interval: 0.02 s here, 0.05 s there",)


def test_it_is_written_as_json_and_read_back(tmp_path):
    verdict = Verdict(
        contract=("robot: 'g1' here, 'panda' there",),
        frames_applied=3,
        frames_total=9,
        first_divergence_step=2,
        divergence={"joint_rad": 0.1, "base_m": 0.0},
        success=False,
        reason="fell",
    )
    verdict.write(tmp_path / "verdict.json")
    text = (tmp_path / "verdict.json").read_text()
    assert Verdict.model_validate_json(text) == verdict
    assert json.loads(text)["contract"] == ["robot: 'g1' here, 'panda' there"]
