# SPDX-License-Identifier: Apache-2.0
"""A frame thinned out: points in metres, holes filled from beside, and masks back at full size."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import CAMERA, Patch, draw

from supple.errors import FrameError, SettingError
from supple.perception.frames import Intrinsics, RgbdFrame
from supple.perception.grid import Grid, GridSettings

PLATE = Patch(60, 60, 120, 80, depth=1.0)


def test_the_grid_holds_every_second_pixel_in_metres():
    grid = Grid(draw({"plate": PLATE})[0], GridSettings(least_extent=1.0))
    assert grid.points.shape == (3, CAMERA.height // 2, CAMERA.width // 2)
    row, column = 40, 50
    wanted = [(2 * column - CAMERA.cx) / CAMERA.fx, (2 * row - CAMERA.cy) / CAMERA.fy, 1.0]
    np.testing.assert_allclose(grid.points[:, row, column], wanted, rtol=1e-6)
    assert [plane.offset for plane in grid.planes] == pytest.approx([1.5])


def test_for_a_hole_the_pixel_beside_it_counts():
    frame, _ = draw({"plate": PLATE})
    depth = frame.depth.copy()
    depth[80, 100] = depth[90, 100:102] = depth[100:102, 120:122] = np.nan
    grid = Grid(RgbdFrame(0, frame.rgb, depth, frame.intrinsics), GridSettings())
    x, y = (np.array([101, 80]) - [CAMERA.cx, CAMERA.cy]) / CAMERA.fx
    np.testing.assert_allclose(grid.points[:, 40, 50], (x, y, 1.0), rtol=1e-6)
    x, y = (np.array([100, 91]) - [CAMERA.cx, CAMERA.cy]) / CAMERA.fx
    np.testing.assert_allclose(grid.points[:, 45, 50], (x, y, 1.0), rtol=1e-6)
    assert not grid.valid[50, 60]


def test_a_cluster_keeps_its_edge_in_the_full_picture():
    frame, truth = draw({"plate": PLATE})
    grid = Grid(frame, GridSettings(least_extent=1.0))
    assert np.array_equal(grid.cluster_mask(grid.thin(truth["plate"])), truth["plate"])
    assert not grid.cluster_mask(grid.thin(truth["plate"]), lambda rgb: np.zeros(rgb.shape[:2], np.bool_)).any()


def test_a_range_that_is_empty_and_a_frame_too_small_are_refused():
    with pytest.raises(SettingError, match="near"):
        GridSettings(near=1.0, far=0.5)
    tiny = RgbdFrame(0, np.zeros((4, 4, 3), np.uint8), np.ones((4, 4), np.float32), Intrinsics(9, 9, 2, 2, 4, 4))
    with pytest.raises(FrameError, match="too few"):
        Grid(tiny, GridSettings())
