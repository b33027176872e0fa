# SPDX-License-Identifier: Apache-2.0
"""Erosion by area, the even choice of pixels, and farthest-point sampling against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.ndimage import distance_transform_edt

from supple.errors import SettingError
from supple.perception.sampling import erode, even_choice, farthest_points

CLOUDS = st.integers(1, 60).flatmap(
    lambda n: arrays.arrays(np.float64, (n, 3), elements=st.floats(-1.0, 1.0, allow_subnormal=False))
)


def disc(radius: int, size: int = 201) -> np.ndarray:
    v, u = np.indices((size, size)) - size // 2
    return v**2 + u**2 <= radius**2


@pytest.mark.parametrize("share", [0.1, 0.2, 0.5])
@pytest.mark.parametrize("radius", [30, 60, 90])
def test_a_disc_loses_that_share_of_its_area_evenly(radius, share):
    mask = disc(radius)
    left = erode(mask, share)
    assert left.sum() == pytest.approx((1.0 - share) * mask.sum(), rel=0.05)
    assert left.sum() <= (1.0 - share) * mask.sum()
    # What is left is the disc with the smaller radius.
    smaller = np.sqrt(left.sum() / np.pi)
    assert not (left & ~disc(int(np.ceil(smaller + 1.5)))).any()


@given(arrays.arrays(np.bool_, (15, 17)), st.floats(0.0, 0.95))
def test_erosion_only_takes_away_and_takes_enough(mask, share):
    before = mask.copy()
    left = erode(mask, share)
    assert np.array_equal(mask, before)
    assert not (left & ~mask).any()
    if mask.all() or share == 0.0:
        assert np.array_equal(left, mask)
    else:
        assert left.sum() <= (1.0 - share) * mask.sum() + 1e-9


@given(arrays.arrays(np.bool_, (15, 17)))
def test_the_pixels_nearest_to_the_edge_go_first(mask):
    left = erode(mask, 0.3)
    if left.any() and (mask & ~left).any():
        distance = distance_transform_edt(mask)
        # OpenCV's distances are within 5 % of the true ones.
        assert distance[mask & ~left].max() <= 1.1 * distance[left].min()


def test_the_border_of_the_image_is_no_edge():
    mask = np.zeros((60, 60), bool)
    mask[:, :30] = True
    left = erode(mask, 0.2)
    assert left[:, :20].all()
    assert not left[:, 29:].any()


def test_a_thin_mask_disappears_and_an_empty_one_stays_empty():
    line = np.zeros((20, 20), bool)
    line[10:12] = True
    assert not erode(line, 0.2).any()
    assert not erode(np.zeros((5, 5), bool), 0.2).any()


@pytest.mark.parametrize("share", [-0.1, 1.0, np.nan])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(SettingError, match="0 to below 1"):
        erode(np.ones((3, 3), bool), share)


@given(st.integers(0, 2000), st.integers(1, 300), st.integers(0, 2**32 - 1))
def test_the_choice_has_the_wanted_size_and_no_pixel_twice(count, wanted, seed):
    pixels = np.random.default_rng(seed).choice(480 * 640, count, replace=False)
    chosen = even_choice(pixels // 640, pixels % 640, wanted)
    assert len(chosen) == min(count, wanted)
    assert (np.diff(chosen) > 0).all()


def test_the_choice_lies_evenly_over_the_mask():
    rows, columns = np.nonzero(disc(90))
    chosen = even_choice(rows, columns, 1000)
    # As many in each cell of a grid as its share of the area; chance would be off by a fifth and more.
    cells = lambda r, c: np.histogram2d(r, c, bins=5, range=[[10, 191], [10, 191]])[0]  # noqa: E731
    expected = 1000 * cells(rows, columns) / len(rows)
    full = expected > 40
    assert full.sum() > 8
    assert np.abs(cells(rows[chosen], columns[chosen]) / np.maximum(expected, 1.0) - 1.0)[full].max() < 0.12


def test_pixels_that_all_come_late_are_chosen_from_as_well():
    rows, columns = np.indices((100, 100)).reshape(2, -1)
    late = np.setdiff1d(np.arange(10000), even_choice(rows, columns, 5000))
    chosen = even_choice(rows[late], columns[late], 100)
    assert len(np.unique(chosen)) == 100


def test_pixels_stay_chosen_while_the_mask_changes_a_little():
    before, after = disc(60), disc(60)
    after[:45] = False
    chosen = []
    for mask in (before, after):
        rows, columns = np.nonzero(mask)
        index = even_choice(rows, columns, 500)
        chosen.append(set(zip(rows[index].tolist(), columns[index].tolist(), strict=True)))
    still = {pixel for pixel in chosen[0] if after[pixel]}
    assert still <= chosen[1]


def by_definition(points: np.ndarray, count: int) -> list[int]:
    """Return farthest points by the definition alone, distances computed one by one."""
    first = int(np.argmax(np.linalg.norm(points - points.mean(axis=0), axis=1)))
    chosen = [first]
    while len(chosen) < min(count, len(points)):
        distance = np.min([np.linalg.norm(points - points[i], axis=1) for i in chosen], axis=0)
        distance[chosen] = -1.0
        chosen.append(int(np.argmax(distance)))
    return chosen


@given(st.integers(0, 2**32 - 1), st.integers(1, 80), st.integers(3, 100))
def test_farthest_points_are_those_of_the_definition(seed, count, size):
    points = np.random.default_rng(seed).normal(0.7, 0.2, (size, 3))
    assert farthest_points(points, count).tolist() == by_definition(points, count)


@given(CLOUDS, st.integers(0, 80))
def test_no_point_is_chosen_twice_even_where_points_coincide(points, count):
    chosen = farthest_points(points, count)
    assert len(set(chosen.tolist())) == min(count, len(points))


@given(CLOUDS, st.integers(1, 80))
def test_the_chosen_cover_the_rest(points, count):
    chosen = farthest_points(points, count)
    if len(chosen) < 2:
        return
    far = np.linalg.norm(points[:, None] - points[chosen][None], axis=2).min(axis=1).max()
    apart = np.linalg.norm(points[chosen][:, None] - points[chosen][None], axis=2)
    # Whatever is left is nearer to a chosen point than the chosen are to one another.
    assert far <= apart[~np.eye(len(chosen), dtype=bool)].min() + 1e-7


def test_farthest_points_far_from_the_origin():
    points = np.random.default_rng(3).normal(0.0, 0.05, (300, 3))
    assert np.array_equal(farthest_points(points + 1000.0, 50), farthest_points(points, 50))


def test_two_dimensions_and_single_precision():
    points = np.random.default_rng(4).normal(size=(100, 2)).astype(np.float32)
    assert farthest_points(points, 20).tolist() == by_definition(points.astype(np.float64), 20)
