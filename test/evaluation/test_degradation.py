# SPDX-License-Identifier: Apache-2.0
"""Each condition does what its level says, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from supple.evaluation.degradation import CONDITIONS, View, degraded
from supple.geometry import pose_error

SHAPE = (120, 160)
OBJECT = np.zeros(SHAPE, np.bool_)
OBJECT[40:80, 50:110] = True


@pytest.fixture
def view() -> View:
    depth = np.where(OBJECT, np.float32(0.6), np.float32(1.0)).astype(np.float32)
    depth[:10] = np.nan
    return View(np.full((*SHAPE, 3), 90, np.uint8), depth, OBJECT.astype(np.uint16))


def by_name(view: View, name: str, level: float, index: int = 0) -> View:
    return degraded(view, name, level, OBJECT, index)


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: condition.name)
def test_nothing_changes_at_level_zero_and_all_is_repeatable(view, condition):
    before = view.depth.copy()
    assert by_name(view, condition.name, 0.0) is view
    level = condition.levels[-1]
    first, second = (by_name(view, condition.name, level, 3) for _ in range(2))
    assert np.array_equal(first.depth, second.depth, equal_nan=True)
    assert np.array_equal(view.depth, before, equal_nan=True)
    assert first.depth.dtype == np.float32


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("level", [20, 50, 80])
def test_plate_hides_that_share_of_the_object_from_before_it(view, level, index):
    seen = by_name(view, "occlusion", level, index)
    hidden = OBJECT & (seen.labels == 0)
    assert hidden.sum() / OBJECT.sum() == pytest.approx(0.01 * level, abs=0.02)
    assert np.nanmax(seen.depth[hidden]) < 0.5
    assert np.array_equal(seen.depth[~hidden & OBJECT], view.depth[~hidden & OBJECT])
    columns = np.nonzero(hidden)[1]
    assert (columns.min() == 50) == (index == 0)


def test_noise_grows_with_the_square_of_depth(view):
    noise = by_name(view, "noise", 4.0).depth - view.depth
    assert np.nanstd(noise[OBJECT]) == pytest.approx(0.004 * 0.36, rel=0.1)
    assert np.nanstd(noise[~OBJECT]) == pytest.approx(0.004, rel=0.1)
    assert np.array_equal(np.isnan(noise), np.isnan(view.depth))


def test_flying_pixels_lie_between_front_and_back_at_edges_alone(view):
    depth = by_name(view, "flying pixels", 2.0).depth
    changed = np.isfinite(depth) & (depth != view.depth)
    assert changed.sum() > 300
    assert ((depth[changed] >= 0.6) & (depth[changed] <= 1.0)).all()
    assert not changed[42:78, 52:108].any()
    assert not changed[:38].any()
    wide = by_name(view, "flying pixels", 4.0).depth
    assert (np.isfinite(wide) & (wide != view.depth)).sum() > 1.5 * changed.sum()


def test_missing_depth_is_that_share_in_blotches(view):
    depth = by_name(view, "missing depth", 40.0).depth
    gone = np.isnan(depth) & np.isfinite(view.depth)
    assert gone.sum() / np.isfinite(view.depth).sum() == pytest.approx(0.4, abs=0.05)
    # In white noise 48 % of neighbours would differ.
    assert (gone[:, 1:] != gone[:, :-1]).mean() < 0.15


def test_miscalibration_moves_the_believed_camera_alone(view):
    turned = by_name(view, "rotation", 2.0, 1)
    assert pose_error(view.T_camera_believed, turned.T_camera_believed) == pytest.approx((0.0, np.radians(2.0)))
    moved = by_name(view, "translation", 5.0, 2)
    assert pose_error(view.T_camera_believed, moved.T_camera_believed) == pytest.approx((0.005, 0.0))
    assert moved.T_camera_believed.translation == pytest.approx([0.0, 0.0, 0.005])
    assert by_name(view, "focal length", 2.0).focal == pytest.approx(1.02)
    for seen in (turned, moved):
        assert np.array_equal(seen.depth, view.depth, equal_nan=True)


def test_views_are_spoilt_along_all_axes(view):
    axes = {tuple(np.sign(by_name(view, "translation", 5.0, i).T_camera_believed.translation)) for i in range(6)}
    assert len(axes) == 6
