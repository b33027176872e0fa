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
_HYPOTHESES = 150
_SAMPLES = 600
_EXTENT_SAMPLES = 500
_ROUNDS = 7
# Guesses are drawn anew when less than this share of the pixels is left that they were drawn from.
_WORN = 0.5
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
        away = self.tilt(points)
        away += np.float32(self.offset)
        return away

    def tilt(self, normals: Points) -> NDArray[np.float32]:
        """Return the products of vectors of shape (3, ...) with its normal; of unit vectors, cosines."""
        a, b, c = self.normal.astype(np.float32)
        cosines: NDArray[np.float32] = a * normals[0]
        cosines += b * normals[1]
        cosines += c * normals[2]
        return cosines

    def holds(self, points: Points, normals: Points, reach: NDArray[np.float32]) -> Mask:
        """Tell which points of shape (3, ...) lie on it: near, and the surface round them faces the same way."""
        near: Mask = np.abs(self.distance(points)) < reach
        near &= np.abs(self.tilt(normals)) > _ALIGNED
        return near


def find_planes(
    points: Points,
    valid: Mask,
    tolerance: NDArray[np.float32],
    least_extent: float,
    least_area: float,
    pixel_area: float,
) -> list[Plane]:
    """Return flat surfaces that are large both ways, those with most pixels first.

    Planes are guessed through three points near each other, all over the image, and the one that most points lie on is
    fitted to them by least squares; its points are set aside and the search goes on. A point lies on a plane if it is
    near and the surface round it faces the same way, so that no plane is seen where one merely cuts through things. The
    guesses are the same for the same image.

    Args:
        points: Positions in the optical frame in [m], organised as the image, shape (3, h, w).
        valid: Pixels that have a depth, shape (h, w).
        tolerance: How far from a plane a point may lie in [m], shape (h, w).
        least_extent: Width in [m] that a surface must have; what is narrower may be the face of an object.
        least_area: Area in [m^2] that its largest part must have: an object's face may be in line with other things.
        pixel_area: Area of a pixel of this image at a depth of 1 m in [m^2].
    """
    coarse, reach, left = _thinned(points, tolerance, valid)
    normals, blind = _normals(coarse), ~left
    cubes = coarse[2].astype(np.float64) ** 3
    enough = max(_SMALLEST_SHARE * np.count_nonzero(left), 12.0)
    rng, guesses = np.random.default_rng(0), None
    planes = []
    for _ in range(_ROUNDS):
        if guesses is None or np.count_nonzero(left) < _WORN * guesses.size:
            guesses = _Guesses(coarse, normals, left, reach, rng)
        found = guesses.best(left)
        if found is None:
            break
        near = left & found.holds(coarse, normals, reach)
        if np.count_nonzero(near) < enough:
            # It is the best there is.
            break
        # A pixel covers z^2 of a surface seen straight on, and z / offset times that of a slanting one.
        scale = _STEP**2 * pixel_area / max(found.offset, 1e-6)
        # Its points are not to be found again even if it is no plane that counts.
        if scale * np.sum(cubes[near]) < least_area:
            left &= ~near
            continue
        parts, largest = _large_parts(near, blind)
        if np.count_nonzero(parts) < enough:
            left &= ~near
            continue
        left &= ~parts
        if scale * np.sum(cubes[largest]) < least_area:
            continue
        extents = _extents(coarse.reshape(3, -1)[:, _every(parts, _EXTENT_SAMPLES)].astype(np.float64), found.normal)
        if extents[1] >= least_extent:
            planes.append(Plane(found.normal, found.offset, _on(found, parts, points, valid, tolerance), extents))
    return sorted(planes, key=lambda plane: -int(np.count_nonzero(plane.mask)))


def _on(plane: Plane, parts: Mask, points: Points, valid: Mask, tolerance: NDArray[np.float32]) -> Mask:
    """Return the pixels on a plane of which every second row and column is known."""
    mask = np.zeros_like(valid)
    # The rows and columns between, and the rim where the surface round a point is bent.
    grown = cv2.dilate(parts.view(np.uint8), np.ones((3, 3), np.uint8))
    left, top, width, height = cv2.boundingRect(grown)
    part = np.s_[_STEP * top : _STEP * (top + height), _STEP * left : _STEP * (left + width)]
    large = cv2.resize(
        grown[top : top + height, left : left + width], (_STEP * width, _STEP * height), interpolation=cv2.INTER_NEAREST
    )
    rows, columns = mask[part].shape
    mask[part] = large[:rows, :columns].view(np.bool_) & valid[part]
    mask[part] &= np.abs(plane.distance(points[:, *part])) < tolerance[part]
    return mask


def _every(mask: Mask, count: int) -> NDArray[np.intp]:
    """Return flat indices of so many pixels of a mask, evenly drawn, or of all."""
    pixels = np.flatnonzero(mask)
    return pixels if pixels.size <= count else pixels[np.arange(count) * pixels.size // count]


def _thinned(points: Points, tolerance: NDArray[np.float32], valid: Mask) -> tuple[Points, NDArray[np.float32], Mask]:
    """Return every second row and column of all three; for a hole, a point beside it."""
    thin, reach = points[:, ::_STEP, ::_STEP].copy(), tolerance[::_STEP, ::_STEP].copy()
    good = valid[::_STEP, ::_STEP].copy()
    for down, right in ((0, 1), (1, 0), (1, 1)):
        beside = valid[down::_STEP, right::_STEP]
        here = np.s_[: beside.shape[0], : beside.shape[1]]
        hole = beside & ~good[here]
        if hole.any():
            np.copyto(thin[:, *here], points[:, down::_STEP, right::_STEP], where=hole)
            np.copyto(reach[here], tolerance[down::_STEP, right::_STEP], where=hole)
            good[here] |= hole
    return thin, reach, good


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


class _Guesses:
    """Planes through three points near each other, and which of some points all over the image lie on each.

    Args:
        points: Positions in [m], shape (3, h, w).
        normals: Unit normals of the surface round them, shape (3, h, w).
        left: Pixels to look at, shape (h, w).
        reach: How far from a plane a point may lie in [m], shape (h, w).
        rng: Draws which points make a guess.

    Attributes:
        size: How many pixels there were to look at.
    """

    def __init__(
        self, points: Points, normals: Points, left: Mask, reach: NDArray[np.float32], rng: np.random.Generator
    ) -> None:
        self.size = int(np.count_nonzero(left))
        flat = points.reshape(3, -1)
        corners = _corners(left, rng)
        first, second, third = (flat[:, corner].T for corner in corners)
        across = np.cross(second - first, third - first)
        length = np.linalg.norm(across, axis=1)
        # Three points on a line, or twice the same, define no plane.
        good = length > 1e-8
        across = across[good] / length[good, None]
        self._corners = corners[:, good]
        self._sample = _every(left, _SAMPLES)
        self._points, self._normals = flat[:, self._sample], normals.reshape(3, -1)[:, self._sample]
        self._reach = reach.reshape(-1)[self._sample]
        distances = across @ self._points
        distances -= np.sum(across * first[good], axis=1)[:, None]
        on = np.abs(distances, out=distances) < self._reach
        # New memory of this size costs more than the product.
        cosines = np.matmul(across, self._normals, out=distances)
        on &= np.abs(cosines, out=cosines) > _ALIGNED
        # One bit each: they are counted again and again.
        self._on = np.packbits(on, axis=1)

    def best(self, left: Mask) -> Plane | None:
        """Return the plane that most of the pixels left lie on, or None where there is none."""
        usable = left.reshape(-1)[self._corners].all(axis=0)
        free = left.reshape(-1)[self._sample]
        if not usable.any():
            return None
        votes = np.bitwise_count(self._on & np.packbits(free)).sum(axis=1, dtype=np.int64)
        best = int(np.argmax(np.where(usable, votes, -1)))
        on = np.unpackbits(self._on[best], count=free.size).view(np.bool_) & free
        plane = None
        for _ in range(2):
            if np.count_nonzero(on) < 3:
                break
            plane = _fit(self._points[:, on].astype(np.float64))
            on = free & plane.holds(self._points, self._normals, self._reach)
        return plane


def _corners(left: Mask, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return pixels that make a guess each, flat indices, shape (3, n): one anywhere, two near it."""
    height, width = left.shape
    rows, columns = np.divmod(_every(left, _HYPOTHESES), width)
    away = rng.integers(-_REACH, _REACH + 1, (2, 2, rows.size))
    others = np.clip(rows + away[0], 0, height - 1) * width + np.clip(columns + away[1], 0, width - 1)
    corners = np.concatenate((rows[None] * width + columns, others))
    return corners[:, left.reshape(-1)[corners].all(axis=0)]


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
    centred = cloud - cloud.mean(axis=1)[:, None]
    _, axes = np.linalg.eigh(centred @ centred.T)
    along = np.sort(np.stack((axes[:, 2], np.cross(normal, axes[:, 2]))) @ centred, axis=1)
    outermost = round(0.02 * along.shape[1])
    width, length = sorted((along[:, -1 - outermost] - along[:, outermost]).tolist())
    return length, width
