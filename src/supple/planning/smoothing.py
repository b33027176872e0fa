# SPDX-License-Identifier: Apache-2.0
"""Smoothing of paths that are sampled evenly in time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["moving_average"]


def moving_average(rows: NDArray[np.float64], window: int) -> NDArray[np.float64]:
    """Return rows (n, d) averaged over a window, beginning and ending in the same rows at rest.

    Both ends are held for the length of the window, so that the result begins and ends slowly; it has ``window - 1``
    rows more than what it is made of.

    Args:
        rows: Samples, even in time.
        window: Number of samples; below 2 nothing is averaged.
    """
    if window < 2 or len(rows) < 2:
        return rows.copy()
    held = np.vstack([np.repeat(rows[:1], window - 1, axis=0), rows, np.repeat(rows[-1:], window - 1, axis=0)])
    sums = np.vstack([np.zeros(rows.shape[1]), np.cumsum(held, axis=0)])
    averaged = (sums[window:] - sums[:-window]) / window
    # Sums of equal numbers differ in their last bits; the ends are to be what they were.
    averaged[0], averaged[-1] = rows[0], rows[-1]
    return averaged
