# SPDX-License-Identifier: Apache-2.0
"""Timed ways: from rest to rest, along the way, within limits of speed and acceleration, no slower than need be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.errors import StateError
from supple.planning.timing import time_path


@settings(max_examples=15)
@given(st.integers(0, 2**31), st.integers(2, 6), st.integers(1, 17))
def test_limits_hold_and_the_ends_are_at_rest(seed, count, joints):
    rng = np.random.default_rng(seed)
    way = rng.uniform(-1.0, 1.0, (count, joints))
    velocity, acceleration = rng.uniform(0.5, 2.0, joints), rng.uniform(2.0, 8.0, joints)
    timed = time_path(way, velocity, acceleration)
    np.testing.assert_allclose(timed.positions[[0, -1]], way[[0, -1]], atol=1e-6)
    np.testing.assert_array_equal(timed.velocities[[0, -1]], np.zeros((2, joints)))
    np.testing.assert_allclose(np.diff(timed.times), 0.02)
    assert (np.abs(timed.velocities) <= velocity + 1e-9).all()
    assert (np.abs(timed.accelerations) <= acceleration + 1e-9).all()
    # What the numbers themselves say agrees with what is claimed of them.
    assert (np.abs(np.diff(timed.positions, axis=0)) / 0.02 <= velocity + 1e-6).all()
    middle = 0.5 * (timed.velocities[1:] + timed.velocities[:-1])
    np.testing.assert_allclose(np.diff(timed.positions, axis=0) / 0.02, middle, atol=0.05)


def test_a_long_straight_line_takes_the_time_of_a_trapezoid():
    timed = time_path([[0.0, 0.0], [3.0, 1.5]], 1.0, 4.0)
    assert timed.duration == pytest.approx(3.0 + 1.0 / 4.0, abs=0.06)


def test_the_way_is_kept_to():
    corner = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    timed = time_path(corner, 1.0, 4.0)
    off = np.minimum(np.abs(timed.positions[:, 1]), np.abs(timed.positions[:, 0] - 1.0))
    assert off.max() < 0.02


def test_repeated_positions_and_standing_still_are_ways_too():
    repeated = time_path([[0.0], [0.0], [1.0], [1.0]], 1.0, 4.0)
    np.testing.assert_allclose(repeated.positions, time_path([[0.0], [1.0]], 1.0, 4.0).positions)
    still = time_path([[0.5, 0.1], [0.5, 0.1]], 1.0, 4.0)
    assert still.duration == 0.0
    np.testing.assert_array_equal(still.positions, [[0.5, 0.1]])


@pytest.mark.parametrize(
    ("way", "velocity", "said"),
    [([[0.0], [np.nan]], 1.0, "finite"), ([], 1.0, "finite"), ([[0.0], [1.0]], 0.0, "velocity limits"),
     ([[0.0], [1.0]], np.inf, "velocity limits")],
)  # fmt: skip
def test_nonsense_is_refused(way, velocity, said):
    with pytest.raises(StateError, match=said):
        time_path(way, velocity, 4.0)
