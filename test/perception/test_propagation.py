# SPDX-License-Identifier: Apache-2.0
"""Masks carried from frame to frame by optical flow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from drawn import Patch, draw

from supple.perception.propagation import FlowPropagator

START = Patch(100, 80, 90, 80)


def carry(before, after):
    frame, masks = draw(before)
    later, truth = draw(after, 1)
    return FlowPropagator(frame).carry(masks["a"], later), truth["a"]


def overlap(first: np.ndarray, second: np.ndarray) -> float:
    return np.sum(first & second) / np.sum(first | second)


@pytest.mark.parametrize("step", [(0, 0), (7, 0), (-5, 9), (12, -10)])
def test_a_mask_moves_with_what_is_drawn_on_the_object(step):
    moved = replace(START, column=START.column + step[0], row=START.row + step[1])
    carried, truth = carry({"a": START}, {"a": moved})
    assert overlap(carried.mask, truth) > 0.95
    assert carried.motion[:, 2] == pytest.approx(step, abs=1.0)
    assert carried.share > 0.8


def test_a_mask_grows_with_an_object_that_comes_nearer():
    near = Patch(95, 75, 100, 89, depth=0.9)
    carried, truth = carry({"a": START}, {"a": near})
    assert overlap(carried.mask, truth) > 0.93
    assert np.linalg.det(carried.motion[:, :2]) ** 0.5 == pytest.approx(100 / 90, rel=0.03)


def test_what_comes_in_front_is_cut_out():
    bar = Patch(100, 60, 30, 120, depth=0.6, color=(70, 70, 75))
    carried, truth = carry({"a": START}, {"a": START, "bar": bar})
    assert overlap(carried.mask, truth) > 0.95
    assert not np.any(carried.mask & draw({"a": START, "bar": bar})[1]["bar"])


def test_an_object_that_is_gone_or_that_nothing_is_drawn_on_is_not_followed():
    assert carry({"a": START}, {"a": replace(START, row=400)})[0] is None
    assert carry({"a": START}, {"a": replace(START, color=(40, 200, 90))})[0] is None
    frame, masks = draw({"a": START})
    plain = type(frame)(0, np.full_like(frame.rgb, 90), frame.depth, frame.intrinsics)
    assert FlowPropagator(plain).carry(masks["a"], plain) is None
    assert FlowPropagator(frame).carry(np.zeros_like(masks["a"]), frame) is None
