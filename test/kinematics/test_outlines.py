# SPDX-License-Identifier: Apache-2.0
"""Outlines: the hull from above, the heights, and the same thing seen from a base."""

from __future__ import annotations

import numpy as np
import pytest

from supple.geometry import pose_from_xyyaw
from supple.kinematics.outlines import Outline


def area(points):
    x, y = points.T
    return 0.5 * float(x @ np.roll(y, -1) - y @ np.roll(x, -1))


def test_points_within_the_hull_do_not_count_and_heights_are_the_extremes():
    cube = np.array([[x, y, z] for x in (0, 1) for y in (0, 2) for z in (0.3, 0.8)], dtype=float)
    outline = Outline.of_points("crate", np.vstack([cube, [[0.5, 0.5, 0.1]]]))
    assert len(outline.points) == 4
    assert area(outline.points) == pytest.approx(2.0)
    assert (outline.name, outline.bottom, outline.top) == ("crate", 0.1, 0.8)


def test_seen_from_a_base_it_is_turned_and_shifted():
    outline = Outline("stool", np.array([[2.0, 1.0], [3.0, 1.0], [2.0, 2.0]]), 0.0, 0.4)
    seen = outline.seen_from(pose_from_xyyaw(1.0, 1.0, np.pi / 2, 0.76))
    np.testing.assert_allclose(seen.points, [[0.0, -1.0], [0.0, -2.0], [1.0, -1.0]], atol=1e-12)
    assert (seen.bottom, seen.top) == (0.0, 0.4)
