# SPDX-License-Identifier: Apache-2.0
"""Colours without their brightness."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple.perception.chromaticity import alike, chromaticity, difference

WOOD, RED = (199, 161, 115), (204, 38, 31)


def pixels(*colors: tuple[int, int, int]) -> np.ndarray:
    return chromaticity(np.array([colors], np.uint8))


@pytest.mark.parametrize("shade", [1.0, 0.7, 0.4])
def test_a_shaded_side_is_as_red_as_a_lit_one(shade):
    shaded = pixels(tuple(round(shade * channel) for channel in RED))
    assert alike(shaded, [RED], 0.02).all()
    assert not alike(shaded, [WOOD], 0.02).any()
    assert alike(shaded, [WOOD, RED], 0.02).all()


def test_the_darker_a_pixel_the_less_its_colour_is_worth():
    bright, dim, dark = chromaticity(np.array([[[200, 100, 50], [40, 20, 20], [20, 30, 10]]], np.uint8))[2, 0]
    assert bright < dim
    assert np.isnan(dark)
    assert not alike(pixels((20, 30, 10)), [(20, 30, 10)], 0.5).any()


@given(first=st.tuples(*3 * [st.integers(24, 255)]), second=st.tuples(*3 * [st.integers(24, 255)]))
def test_difference_is_the_squared_distance_of_all_three_shares(first, second):
    shares = np.array(first) / sum(first), np.array(second) / sum(second)
    got = difference(pixels(first), [second])[0, 0]
    assert got == pytest.approx(float(np.sum((shares[0] - shares[1]) ** 2)), abs=1e-6)
