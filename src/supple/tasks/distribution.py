# SPDX-License-Identifier: Apache-2.0
"""Uniform distributions given as a table of named ranges."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from supple.errors import TaskError

__all__ = ["Ranges", "draw", "draw_accepted", "middle"]

Ranges = Mapping[str, tuple[float, float]]

_MOST_DRAWS = 1000


def draw(ranges: Ranges, rng: np.random.Generator) -> dict[str, float]:
    """Draw one number from each range, in the order of the table."""
    return {name: float(rng.uniform(*interval)) for name, interval in ranges.items()}


def draw_accepted(
    ranges: Ranges, rng: np.random.Generator, accept: Callable[[Mapping[str, float]], bool]
) -> dict[str, float]:
    """Draw from each range, all anew until what was drawn is accepted.

    Raises:
        TaskError: A thousand draws in a row were refused: the ranges leave no room.
    """
    for _ in range(_MOST_DRAWS):
        drawn = draw(ranges, rng)
        if accept(drawn):
            return drawn
    raise TaskError(f"{_MOST_DRAWS} draws in a row were refused; expected ranges of which some are acceptable")


def middle(ranges: Ranges) -> dict[str, float]:
    """Return the middle of each range."""
    return {name: 0.5 * (low + high) for name, (low, high) in ranges.items()}
