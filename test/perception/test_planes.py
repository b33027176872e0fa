# SPDX-License-Identifier: Apache-2.0
"""Planes in a depth image: where they are, how large, and that nothing smaller or bent is taken for one."""

from __future__ import annotations

import numpy as np
import pytest

from supple.perception.planes import Plane, find_planes

HEIGHT, WIDTH, FOCAL = 120, 160, 140.0
RAYS = np.stack(
    np.broadcast_arrays(
        (np.arange(WIDTH) - 79.5) / FOCAL, ((np.arange(HEIGHT) - 59.5) / FOCAL)[:, None], np.ones((HEIGHT, WIDTH))
    )
)


def seen(*planes: tuple[np.ndarray, float], noise: float = 0.0) -> np.ndarray:
    """Return the points of what is nearest of some planes, with noise along the optical axis in [m]."""
    depths = [np.where((d := np.tensordot(n, RAYS, 1)) < -1e-3, -offset / d, np.inf) for n, offset in planes]
    z = np.min(depths, axis=0) + noise * np.random.default_rng(0).standard_normal((HEIGHT, WIDTH))
    return (RAYS * np.where(z < 4.0, z, np.nan)).astype(np.float32)


def unit(*vector: float) -> np.ndarray:
    return np.array(vector) / np.linalg.norm(vector)


def planes_of(points: np.ndarray, least_extent: float = 0.2, least_area: float = 0.05) -> list[Plane]:
    valid = np.isfinite(points[2])
    tolerance = np.full(valid.shape, 0.01, np.float32)
    return find_planes(np.nan_to_num(points), valid, tolerance, least_extent, least_area, 1.0 / FOCAL**2)


@pytest.mark.parametrize("noise", [0.0, 0.003])
def test_floor_and_wall_are_found_where_they_are(noise):
    floor, wall = (unit(0.0, -1.0, -0.4), 0.8), (unit(0.3, 0.0, -1.0), 2.0)
    points = seen(floor, wall, noise=noise)
    found = planes_of(points)
    assert len(found) == 2
    for normal, offset in (floor, wall):
        plane = max(found, key=lambda plane: plane.normal @ normal)
        assert plane.normal @ normal > np.cos(np.radians(0.5))
        assert plane.offset == pytest.approx(offset, abs=0.005)
        away = np.abs(np.tensordot(normal, points.astype(np.float64), 1) + offset)
        assert np.mean(away[plane.mask] < 0.015) > 0.99
    assert np.mean(found[0].mask | found[1].mask) > 0.9
    assert np.count_nonzero(found[0].mask) >= np.count_nonzero(found[1].mask)


def test_extents_are_those_of_what_is_seen():
    points = seen((unit(0.0, 0.0, -1.0), 1.0))
    # Of a wall 1 m away a strip is seen.
    points[:, :40], points[:, 80:] = np.nan, np.nan
    (plane,) = planes_of(points)
    # The outermost 2 % do not count, nor does the rim, round which the surface is not known.
    assert plane.extents == pytest.approx((0.96 * (WIDTH - 4) / FOCAL, 0.96 * (40 - 4) / FOCAL), rel=0.05)


def test_what_is_narrow_or_small_is_no_plane():
    points = seen((unit(0.0, 0.0, -1.0), 1.0))
    points[:, :40], points[:, 80:] = np.nan, np.nan
    assert planes_of(points, least_extent=0.4) == []
    assert planes_of(points, least_area=0.5) == []


def test_a_ball_is_no_plane():
    sideways = np.hypot(RAYS[0], RAYS[1])
    z = 1.0 - np.sqrt(np.maximum(0.3**2 - sideways**2, 0.0))
    points = (RAYS * np.where(sideways < 0.28, z, np.nan)).astype(np.float32)
    assert planes_of(points, least_extent=0.3) == []


def test_without_points_there_is_no_plane():
    assert planes_of(np.full((3, HEIGHT, WIDTH), np.nan, np.float32)) == []


def test_the_same_image_gives_the_same_planes():
    points = seen((unit(0.0, -1.0, -0.4), 0.8), (unit(0.3, 0.0, -1.0), 2.0), noise=0.004)
    one, two = planes_of(points), planes_of(points)
    assert [plane.offset for plane in one] == [plane.offset for plane in two]
    assert all(np.array_equal(a.mask, b.mask) for a, b in zip(one, two, strict=True))
