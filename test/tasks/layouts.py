# SPDX-License-Identifier: Apache-2.0
"""What tests of several tasks ask of drawn layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from supple.tasks import Layout, Task

__all__ = ["assert_ranges_filled"]


def assert_ranges_filled(
    task: Task,
    distribution: str,
    drawn: Callable[[Layout], Mapping[str, float]],
    ranges: Mapping[str, tuple[float, float]],
    share: float = 0.95,
    count: int = 400,
) -> None:
    """Check that samples stay within published ranges and come near both ends of each.

    Args:
        task: The task.
        distribution: Which distribution to draw from.
        drawn: Reads the published numbers off a layout.
        ranges: Published range of each number.
        share: Share of a range that the samples must span.
        count: Number of samples.
    """
    rows = [drawn(task.sample(distribution, np.random.default_rng(i))) for i in range(count)]
    for name, (lower, upper) in ranges.items():
        values = np.array([row[name] for row in rows])
        assert values.min() >= lower - 1e-9, name
        assert values.max() <= upper + 1e-9, name
        assert np.ptp(values) >= share * (upper - lower) - 1e-9, name
