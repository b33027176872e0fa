# SPDX-License-Identifier: Apache-2.0
"""How sure a measured share is: Wilson intervals, and shares of success over the range of a variable."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["Bin", "quantile_bins", "wilson_interval"]


@dataclass(frozen=True)
class Bin:
    """Attempts whose variable lies in one range.

    Attributes:
        low: Smallest value in it, in the variable's unit.
        high: Largest value in it, in the variable's unit.
        successes: Number of successes.
        trials: Number of attempts.
        interval: Wilson interval of the share of successes.
    """

    low: float
    high: float
    successes: int
    trials: int
    interval: tuple[float, float]


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the Wilson score interval of a share (Wilson 1927), without continuity correction.

    Args:
        successes: Number of successes.
        trials: Number of trials; with none, nothing is known and the interval is (0, 1).
        confidence: Probability that the interval covers the true share, between 0 and 1.

    Raises:
        ValueError: Negative numbers, more successes than trials, or a confidence outside (0, 1).
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"expected 0 <= successes <= trials, got {successes} of {trials}")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"expected a confidence between 0 and 1, got {confidence}")
    if trials == 0:
        return 0.0, 1.0
    z = NormalDist().inv_cdf(0.5 + 0.5 * confidence)
    share, spread = successes / trials, z * z / trials
    centre = (share + 0.5 * spread) / (1.0 + spread)
    half = z * math.sqrt(share * (1.0 - share) / trials + 0.25 * spread / trials) / (1.0 + spread)
    # At the ends the formula gives exactly 0 and 1, but rounding does not.
    return (
        0.0 if successes == 0 else max(0.0, centre - half),
        1.0 if successes == trials else min(1.0, centre + half),
    )


def quantile_bins(values: ArrayLike, success: ArrayLike, bins: int = 5) -> list[Bin]:
    """Group attempts by a variable into bins of nearly equal number and return how often each succeeded.

    Equal values stay together, so there may be fewer bins; a variable that never varies gives a single one.

    Args:
        values: The variable, one number per attempt, shape (n,).
        success: Whether each attempt succeeded, shape (n,).
        bins: Number of bins wanted.

    Raises:
        ValueError: The lengths differ, or a value is not finite.
    """
    value, won = np.asarray(values, dtype=np.float64), np.asarray(success, dtype=bool)
    if value.shape != won.shape or value.ndim != 1:
        raise ValueError(f"expected one result per value, got shapes {value.shape} and {won.shape}")
    if not np.all(np.isfinite(value)):
        raise ValueError(f"value {int(np.flatnonzero(~np.isfinite(value))[0])} is not finite")
    if value.size == 0:
        return []
    edges = np.unique(np.quantile(value, np.linspace(0.0, 1.0, bins + 1)[1:-1]))
    group = np.searchsorted(edges, value, side="left")
    found = []
    for index in np.unique(group):
        inside = group == index
        k, n = int(won[inside].sum()), int(inside.sum())
        found.append(Bin(float(value[inside].min()), float(value[inside].max()), k, n, wilson_interval(k, n)))
    return found
