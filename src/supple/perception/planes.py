# SPDX-License-Identifier: Apache-2.0
"""Large flat surfaces in a depth image: floors, table tops, walls, found one after the other by sampling."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

__all__ = ["Plane", "find_planes"]

Mask = NDArray[np.bool_]
Points = NDArray[np.float32]

# Planes are looked for in every so many-th row and column.
_STEP = 2
_HYPOTHESES = 120
_SAMPLES = 1200
_ROUNDS = 7
_REACH = 12
_SMALLEST_SHARE = 0.02
# A part of the plane behind an arm counts if it has this share of the largest part's pixels.
_PART_SHARE = 0.1
_ALIGNED = 0.85


@dataclass(frozen=True)
class Plane:
    """One flat surface.

    Attributes:
        normal: Unit normal towards the camera, shape (3,), in the optical frame.
        offset: The plane is where ``normal @ p + offset`` is 0, in [m]; it is positive.
        mask: Pixels that lie on it and hang together, bool, shape (h, w).
        extents: Length and width in [m] of what is seen of it, the longer one first.
    """

    normal: NDArray[np.float64]
    offset: float
    mask: Mask
    extents: tuple[float, float]

    def distance(self, points: Points) -> NDArray[np.float32]:
        """Return how far points of shape (3, ...) are from it in [m], positive on the camera's side."""
        a, b, c = self.normal.astype(np.float32)
        away: NDArray[np.float32] = a * points[0] + b * points[1] + c * points[2] + np.float32(self.offset)
        return away


def find_planes(
    points: Points,
    valid: Mask,
    tolerance: NDArray[np.float32],
    least_extent: float,
    least_area: float,
    pixel_area: float,
) -> list[Plane]:
    """Return flat surfaces that are large both ways, those with most pixels first.

    Planes are guessed through three points near each other, and the one that most points lie on is fitted to them by
    least squares; its points are set aside and the search goes on. A point lies on a plane if it is near and the
    surface round it faces the same way, so that no plane is seen where one merely cuts through things. The guesses are
    the same for the same image.

    Args:
        points: Positions in the optical frame in [m], organised as the image, shape (3, h, w).
        valid: Pixels that have a depth, shape (h, w).
        tolerance: How far from a plane a point may lie in [m], shape (h, w).
        least_extent: Width in [m] that a surface must have; what is narrower may be the face of an object.
        least_area: Area in [m^2] that its largest part must have: an object's face may be in line with other things.
        pixel_area: Area of a pixel of this image at a depth of 1 m in [m^2].
    """
    rng = np.random.default_rng(0)
    thinned, left = _thinned(np.concatenate((points, tolerance[None])), valid)
    coarse, reach = thinned[:3], thinned[3]
    normals, blind = _normals(coarse), ~left
    enough = max(_SMALLEST_SHARE * np.count_nonzero(left), 12.0)
    planes = []
    for _ in range(_ROUNDS):
        found = _best_plane(coarse, left, reach, rng)
        if found is None:
            break
        aligned = np.abs(np.tensordot(found.normal.astype(np.float32), normals, 1)) > _ALIGNED
        near = left & aligned & (np.abs(found.distance(coarse)) < reach)
        parts, largest = _large_parts(near, blind)
        # Its points are not to be found again even if it is no plane that counts.
        if np.count_nonzero(parts) < enough:
            left &= ~near
            continue
        left &= ~parts
        # A pixel covers z^2 of a surface seen straight on, and z / offset times that of a slanting one.
        cubes = float(np.sum(coarse[2, largest].astype(np.float64) ** 3))
        area = _STEP**2 * pixel_area * cubes / max(found.offset, 1e-6)
        extents = _extents(coarse[:, parts].astype(np.float64), found.normal)
        if extents[1] >= least_extent and area >= least_area:
            # The rows and columns between, and the rim where the surface round a point is bent.
            grown = cv2.dilate(parts.view(np.uint8), np.ones((3, 3), np.uint8))
            fine = np.repeat(np.repeat(grown, _STEP, 0), _STEP, 1)[: valid.shape[0], : valid.shape[1]]
            mask = valid & fine.view(np.bool_) & (np.abs(found.distance(points)) < tolerance)
            planes.append(Plane(found.normal, found.offset, mask, extents))
    return sorted(planes, key=lambda plane: -int(np.count_nonzero(plane.mask)))


def _thinned(points: Points, valid: Mask) -> tuple[Points, Mask]:
    """Return every second row and column of points (k, h, w) and which are valid; for a hole, a point beside it."""
    thin, good = points[:, ::_STEP, ::_STEP].copy(), valid[::_STEP, ::_STEP].copy()
    for down, right in ((0, 1), (1, 0), (1, 1)):
        beside = valid[down::_STEP, right::_STEP]
        here = np.s_[: beside.shape[0], : beside.shape[1]]
        hole = beside & ~good[here]
        np.copyto(thin[:, *here], points[:, down::_STEP, right::_STEP], where=hole)
        good[here] |= hole
    return thin, good


def _normals(points: Points) -> Points:
    """Return the unit normal of the surface round each pixel, shape (3, h, w), from the neighbours; 0 at the rim."""
    normals = np.zeros_like(points)
    right = points[:, 1:-1, 2:] - points[:, 1:-1, :-2]
    down = points[:, 2:, 1:-1] - points[:, :-2, 1:-1]
    inner = normals[:, 1:-1, 1:-1]
    inner[0] = right[1] * down[2] - right[2] * down[1]
    inner[1] = right[2] * down[0] - right[0] * down[2]
    inner[2] = right[0] * down[1] - right[1] * down[0]
    inner /= np.maximum(np.sqrt(inner[0] ** 2 + inner[1] ** 2 + inner[2] ** 2), np.float32(1e-12))
    return normals


def _best_plane(points: Points, left: Mask, reach: NDArray[np.float32], rng: np.random.Generator) -> Plane | None:
    """Return the plane that most of the remaining points lie on, or None where there is none."""
    height, width = left.shape
    indices = np.flatnonzero(left)
    if indices.size < 3:
        return None
    flat = points.reshape(3, -1)
    sample = indices[:: max(1, indices.size // _SAMPLES)]
    cloud, near = flat[:, sample], reach.reshape(-1)[sample]
    rows, columns = np.divmod(rng.choice(indices, _HYPOTHESES), width)
    corners = [rows * width + columns]
    for _ in range(2):
        r = np.clip(rows + rng.integers(-_REACH, _REACH + 1, _HYPOTHESES), 0, height - 1)
        c = np.clip(columns + rng.integers(-_REACH, _REACH + 1, _HYPOTHESES), 0, width - 1)
        corners.append(r * width + c)
    usable = left.reshape(-1)[corners[1]] & left.reshape(-1)[corners[2]]
    first, second, third = (flat[:, corner[usable]].T.astype(np.float64) for corner in corners)
    normals = np.cross(second - first, third - first)
    length = np.linalg.norm(normals, axis=1)
    # Three points on a line, or twice the same, define no plane.
    good = length > 1e-8
    if not good.any():
        return None
    normals = normals[good] / length[good, None]
    offsets = -np.sum(normals * first[good], axis=1)
    distances = np.abs(normals.astype(np.float32) @ cloud + offsets.astype(np.float32)[:, None])
    best = int(np.argmax(np.count_nonzero(distances < near, axis=1)))
    inside = distances[best] < near
    plane = None
    for _ in range(2):
        if np.count_nonzero(inside) < 3:
            break
        plane = _fit(cloud[:, inside].astype(np.float64))
        inside = np.abs(plane.distance(cloud)) < near
    return plane


def _fit(cloud: NDArray[np.float64]) -> Plane:
    """Return the plane with the least squared distance from points (3, n)."""
    centre = cloud.mean(axis=1)
    centred = cloud - centre[:, None]
    _, axes = np.linalg.eigh(centred @ centred.T)
    normal = axes[:, 0]
    offset = -float(normal @ centre)
    if offset < 0.0:
        normal, offset = -normal, -offset
    return Plane(normal, offset, np.zeros((0, 0), np.bool_), (0.0, 0.0))


def _large_parts(mask: Mask, blind: Mask) -> tuple[Mask, Mask]:
    """Return the connected parts of a mask that are not much smaller than the largest, and the largest alone.

    Args:
        mask: Pixels.
        blind: Pixels that nothing is known of; they separate no parts.
    """
    count, labels = cv2.connectedComponents((mask | blind).view(np.uint8), connectivity=8)
    area = np.bincount(labels[mask], minlength=count)
    large = mask & (area >= _PART_SHARE * area.max())[labels]
    return large, mask & (labels == int(np.argmax(area)))


def _extents(cloud: NDArray[np.float64], normal: NDArray[np.float64]) -> tuple[float, float]:
    """Return length and width of points (3, n) on a plane along their principal axes, without the outermost 2 %."""
    sample = cloud[:, :: max(1, cloud.shape[1] // 500)]
    centred = sample - sample.mean(axis=1)[:, None]
    _, axes = np.linalg.eigh(centred @ centred.T)
    low, high = np.percentile(np.stack((axes[:, 2], np.cross(normal, axes[:, 2]))) @ centred, (2, 98), axis=1)
    width, length = sorted((high - low).tolist())
    return length, width
