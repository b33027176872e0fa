# SPDX-License-Identifier: Apache-2.0
"""Parts of a mask: cut where depth jumps, measured in metres, joined only across what is nearer."""

from __future__ import annotations

import numpy as np
import pytest
from drawn import CAMERA, Patch, draw

from supple.perception.clusters import Parts
from supple.perception.grid import Grid, GridSettings

PLATE = Patch(60, 60, 120, 80, depth=1.0)


def grid_of(*patches: Patch) -> tuple[Grid, dict[str, np.ndarray]]:
    frame, truth = draw({str(number): patch for number, patch in enumerate(patches)})
    return Grid(frame, GridSettings(least_extent=1.0)), truth


def test_parts_are_cut_where_depth_jumps_and_measured():
    grid, truth = grid_of(PLATE, Patch(180, 60, 40, 40, depth=0.8))
    both = grid.thin(truth["0"] | truth["1"])
    parts = Parts(both, grid)
    assert parts.count == 2
    assert [parts.size(part) for part in range(2)] == [60 * 40, 20 * 20]
    assert parts.area(0) == pytest.approx(120 * 80 / CAMERA.fx**2)
    assert parts.length([0]) == pytest.approx(np.hypot(118, 78) / CAMERA.fx, rel=0.05)
    assert np.array_equal(parts.mask([0, 1]), both)
    assert np.array_equal(parts.mask([1]), grid.thin(truth["1"]))
    assert parts.within(grid.thin(truth["0"]), 1) == 0
    assert parts.within(both, 1) == parts.size(1)


@pytest.mark.parametrize(("depth", "joined"), [(0.6, True), (1.3, False)])
def test_halves_are_one_object_only_across_what_is_nearer(depth, joined):
    grid, truth = grid_of(PLATE, Patch(110, 40, 20, 120, depth=depth))
    # What lies behind the plate is drawn where the plate is cut.
    parts = Parts(grid.thin(truth["0"]), grid)
    assert parts.count == 2
    assert parts.belong_together([0], 1, longest=1.0, least=4) is joined
    assert not parts.belong_together([0], 1, longest=0.3, least=4)
    assert not parts.belong_together([0], 1, longest=1.0, least=10_000)


def test_no_pixel_makes_no_part():
    grid, truth = grid_of(PLATE)
    assert Parts(np.zeros_like(grid.thin(truth["0"])), grid).count == 0
