# SPDX-License-Identifier: Apache-2.0
"""Depths that are left out: holes, range, edges, flying pixels; planes stay whole and nothing is ever filled in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from supple.errors import SettingError
from supple.perception.depth_repair import DepthLimits, repair

HEIGHT, WIDTH, F = 60, 80, 75.0


def plane(normal: np.ndarray, distance: float) -> np.ndarray:
    """Return the depth image of a plane at a distance along the optical axis; NaN behind the camera."""
    v, u = np.indices((HEIGHT, WIDTH))
    rays = np.stack([(u - 40) / F, (v - 30) / F, np.ones((HEIGHT, WIDTH))], axis=2)
    with np.errstate(divide="ignore"):
        depth = normal[2] * distance / (rays @ normal)
    return np.where(depth > 0.0, depth, np.nan).astype(np.float32)


def step(near: float, far: float, *between: float) -> np.ndarray:
    """Return a near wall on the left, a far one on the right and columns of other depths between them."""
    depth = np.full((HEIGHT, WIDTH), far, np.float32)
    depth[:, :40] = near
    for column, value in enumerate(between):
        depth[:, 40 + column] = value
    return depth


@given(st.floats(-1.4, 1.4), st.floats(0.0, np.pi), st.floats(0.3, 3.0))
def test_a_plane_stays_whole_however_steep(tilt, around, distance):
    normal = np.array([np.sin(tilt) * np.cos(around), np.sin(tilt) * np.sin(around), np.cos(tilt)])
    depth = plane(normal, distance)
    limits = DepthLimits(support=1)
    seen = (depth >= limits.nearest) & (depth <= limits.farthest)
    assume(seen.any())
    assert np.array_equal(repair(depth, limits), seen)


@pytest.mark.parametrize("between", [(), (0.75,), (0.67, 0.83), (0.6, 0.75, 0.9)])
@pytest.mark.parametrize("turned", [False, True])
def test_flying_pixels_and_the_edge_are_left_out_and_the_walls_stay(between, turned):
    depth = step(0.6, 1.0, *between)
    valid = repair(np.ascontiguousarray(depth.T), DepthLimits()).T if turned else repair(depth)
    assert not valid[:, 39 : 41 + len(between)].any()
    assert valid[:, :36].all()
    assert valid[:, 44 + len(between) :].all()
    known = np.isclose(depth, 0.6) | np.isclose(depth, 1.0)
    assert known[valid].all()


@given(st.floats(0.3, 2.0), st.floats(0.05, 1.0), st.floats(0.05, 0.95))
def test_no_depth_between_front_and_back_survives(near, gap, share):
    far = near + gap
    assume(1.0 / near - 1.0 / far > 0.05)
    mixed = near + share * gap
    valid = repair(step(near, far, mixed))
    assert not valid[:, 40].any()


def test_an_edge_is_judged_by_the_noise_at_its_distance():
    # 2 cm is an edge half a metre away, and within the noise of a stereo camera at 3 m.
    assert not repair(step(0.5, 0.52))[:, 39:41].any()
    assert repair(step(3.0, 3.02)).all()


def test_noise_of_a_depth_camera_is_no_edge():
    rng = np.random.default_rng(2)
    for distance in (0.4, 0.8, 1.6):
        depth = plane(np.array([0.3, 0.2, 0.9]), distance)
        depth += (0.002 * depth**2 * rng.standard_normal(depth.shape)).astype(np.float32)
        assert repair(depth).mean() > 0.99


@given(
    arrays.arrays(
        np.float32,
        (12, 12),
        elements=st.floats(0.0625, 8.0, width=32) | st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -1.0]),
    )
)
def test_nothing_is_invented_and_nothing_is_changed(depth):
    given_ = depth.copy()
    limits = DepthLimits()
    valid = repair(depth, limits)
    assert valid.dtype == np.bool_
    assert valid.shape == depth.shape
    assert np.array_equal(depth, given_, equal_nan=True)
    inside = (depth >= limits.nearest) & (depth <= limits.farthest)
    assert not (valid & ~inside).any()


@given(st.integers(0, 2**32 - 1))
def test_stricter_limits_never_let_more_through(seed):
    rng = np.random.default_rng(seed)
    depth = plane(np.array([0.1, 0.5, 0.8]), 0.8) + rng.normal(0.0, 0.01, (HEIGHT, WIDTH)).astype(np.float32)
    loose, strict = DepthLimits(0.2, 4.0, 0.05, 3), DepthLimits(0.4, 2.0, 0.02, 6)
    assert not (repair(depth, strict) & ~repair(depth, loose)).any()


def test_pixels_alone_are_left_out():
    depth = np.full((20, 20), np.nan, np.float32)
    depth[5, 5] = 1.0
    depth[10:16, 10:16] = 1.0
    valid = repair(depth)
    assert not valid[5, 5]
    assert valid[11:15, 11:15].all()


def test_an_image_smaller_than_its_neighbourhoods():
    assert repair(np.ones((1, 1), np.float32)).shape == (1, 1)
    assert repair(np.ones((2, 2), np.float32)).all()


@pytest.mark.parametrize(
    "wrong",
    [{"nearest": 0.0}, {"nearest": 2.0, "farthest": 1.0}, {"farthest": np.inf}, {"edge": 0.0}, {"edge": np.nan}]
    + [{"support": value} for value in (0, 10)],
)
def test_limits_that_cannot_be_meant_are_refused(wrong):
    with pytest.raises(SettingError, match=next(iter(wrong))):
        DepthLimits(**wrong)
