# SPDX-License-Identifier: Apache-2.0
"""Averaged paths begin and end where they did, slowly, and do not leave the hull of what they are made of."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from supple.planning.smoothing import moving_average


@given(
    hnp.arrays(float, st.tuples(st.integers(1, 30), st.integers(1, 4)), elements=st.floats(-3, 3)), st.integers(0, 9)
)
def test_ends_stay_and_nothing_leaves_the_range(rows, window):
    averaged = moving_average(rows, window)
    np.testing.assert_array_equal(averaged[[0, -1]], rows[[0, -1]])
    assert (averaged >= rows.min(axis=0) - 1e-9).all()
    assert (averaged <= rows.max(axis=0) + 1e-9).all()


def test_speed_grows_and_fades_over_the_window():
    averaged = moving_average(np.arange(20.0)[:, None], 5)
    speed = np.diff(averaged[:, 0])
    np.testing.assert_allclose(speed[:5], [0.2, 0.4, 0.6, 0.8, 1.0])
    np.testing.assert_allclose(speed[-5:], [1.0, 0.8, 0.6, 0.4, 0.2])
