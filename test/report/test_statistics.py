# SPDX-License-Identifier: Apache-2.0
"""Wilson intervals against published values, and quantile bins."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple.report import quantile_bins, wilson_interval


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # Newcombe, Statistics in Medicine 17 (1998) 857, table I, method 3 (score without continuity correction).
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_interval_is_the_published_one(successes, trials, low, high):
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=5e-5)


def test_wilson_interval_at_the_ends():
    assert wilson_interval(0, 0) == (0.0, 1.0)
    assert wilson_interval(7, 7)[1] == 1.0
    assert wilson_interval(0, 7)[0] == 0.0
    low, high = wilson_interval(0, 7)
    assert wilson_interval(7, 7) == pytest.approx((1.0 - high, 1.0 - low))


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_interval_holds_the_share_and_shrinks_with_trials(pair):
    successes, trials = pair
    low, high = wilson_interval(successes, trials)
    assert 0.0 <= low <= successes / trials <= high <= 1.0
    more = wilson_interval(4 * successes, 4 * trials)
    assert more[1] - more[0] < high - low


@pytest.mark.parametrize(("successes", "trials", "confidence"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0)])
def test_nonsense_is_refused(successes, trials, confidence):
    with pytest.raises(ValueError, match="expected"):
        wilson_interval(successes, trials, confidence)


def test_quantile_bins_split_evenly_and_count_successes():
    values = np.arange(20)[::-1]
    found = quantile_bins(values, values >= 12, bins=4)
    assert [(b.low, b.high, b.successes, b.trials) for b in found] == [
        (0, 4, 0, 5),
        (5, 9, 0, 5),
        (10, 14, 3, 5),
        (15, 19, 5, 5),
    ]
    assert found[2].interval == wilson_interval(3, 5)


@given(st.lists(st.tuples(st.integers(-5, 5), st.booleans()), max_size=60), st.integers(1, 7))
def test_quantile_bins_hold_everyone_once(rows, bins):
    values, success = [float(v) for v, _ in rows], [s for _, s in rows]
    found = quantile_bins(values, success, bins)
    assert len(found) <= bins
    assert sum(b.trials for b in found) == len(rows)
    assert sum(b.successes for b in found) == sum(success)
    assert all(a.high < b.low for a, b in pairwise(found))


def test_quantile_bins_of_a_constant_and_of_nothing():
    assert [b.trials for b in quantile_bins([2.0] * 9, [True] * 9)] == [9]
    assert quantile_bins([], []) == []
    with pytest.raises(ValueError, match="not finite"):
        quantile_bins([1.0, np.nan], [True, False])
    with pytest.raises(ValueError, match="one result per value"):
        quantile_bins([1.0], [True, False])
