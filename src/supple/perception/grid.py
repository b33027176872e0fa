# SPDX-License-Identifier: Apache-2.0
"""A frame thinned out for clustering: its points, its planes and which neighbours share a surface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from supple.errors import FrameError, SettingError
from supple.perception.frames import RgbdFrame
from supple.perception.masks import Mask
from supple.perception.planes import Plane, find_planes

__all__ = ["LEAST_LINK", "Grid", "GridSettings", "squared"]

LEAST_LINK = 0.008
"""Neighbours at most so far apart in [m] belong to one surface at any distance."""

_STRIDE = 2
# Neighbours belong together if they are no farther apart than so many times what a surface seen straight on would give.
_LINK = 6.0
_SPECK = (5, 5)


@dataclass(frozen=True)
class GridSettings:
    """How a frame is looked at.

    Attributes:
        near: Least depth in [m] that is looked at.
        far: Greatest depth in [m] that is looked at.
        flatness: How far from a plane its points may lie in [m], at 0 distance; depth noise adds to it.
        noise: Growth of depth noise with the square of distance in [1/m].
        least_extent: Width in [m] that a plane must have: what is narrower may be the face of an object.
        least_area: Area in [m^2] that a plane must have.

    Raises:
        SettingError: A range that is empty.
    """

    near: float = 0.05
    far: float = 3.0
    flatness: float = 0.006
    noise: float = 0.004
    least_extent: float = 0.2
    least_area: float = 0.04

    def __post_init__(self) -> None:
        if not 0.0 < self.near < self.far:
            raise SettingError(f"near: expected 0 < near < far, got {self.near} and {self.far} m")

    def thickness(self, z: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return how far from a plane points at some depths may lie in [m]."""
        thickness: NDArray[np.float32] = z * z
        thickness *= np.float32(self.noise)
        thickness += np.float32(self.flatness)
        return thickness


class Grid:
    """A frame at a coarser grid, with what clustering needs.

    Args:
        frame: The frame.
        settings: How it is looked at.

    Attributes:
        points: Positions in the optical frame in [m], (3, h, w).
        valid: Pixels with a depth within range.
        right: Whether a pixel belongs to the same surface as its right neighbour, (h, w - 1).
        below: Whether it belongs to the same surface as the one below, (h - 1, w).
        planes: Large flat surfaces.
        on_plane: Pixels of any of them.
        pixel_area: Area in [m^2] that a pixel covers at a depth of 1 m.

    Raises:
        FrameError: The frame is too small to look for anything in it.
    """

    def __init__(self, frame: RgbdFrame, settings: GridSettings) -> None:
        if min(frame.shape) < 4 * _STRIDE:
            raise FrameError("color", "size", f"{frame.shape[1]} x {frame.shape[0]} pixels are too few to find objects")
        self._frame, self._settings = frame, settings
        self.points, self.valid = _thinned(frame, settings)
        limit = _link_length(self.points[2], frame)
        limit *= limit
        self.right = _linked(self.points[:, :, 1:], self.points[:, :, :-1], limit[:, :-1])
        self.right &= self.valid[:, 1:] & self.valid[:, :-1]
        self.below = _linked(self.points[:, 1:], self.points[:, :-1], limit[:-1])
        self.below &= self.valid[1:] & self.valid[:-1]
        self.pixel_area = _STRIDE**2 / (frame.intrinsics.fx * frame.intrinsics.fy)
        self.planes = find_planes(
            self.points,
            self.valid,
            tolerance=settings.thickness(self.points[2]),
            least_extent=settings.least_extent,
            least_area=settings.least_area,
            pixel_area=self.pixel_area,
        )
        self.on_plane = np.zeros_like(self.valid)
        for plane in self.planes:
            self.on_plane |= plane.mask

    @staticmethod
    def pixels(count: int) -> int:
        """Return how many pixels of a grid show as much as so many of a frame."""
        return count // _STRIDE**2

    def thin(self, image: NDArray) -> NDArray:
        """Return an image of the frame's size at the grid's."""
        return image[::_STRIDE, ::_STRIDE]

    def plane_mask(self, plane: Plane) -> Mask:
        """Return a plane's pixels in the frame."""
        mask = np.zeros(self._frame.shape, np.bool_)
        coarse, fine = _around(plane.mask, 1)
        x, y = _rays(self._frame)
        a, b, c = plane.normal.astype(np.float32)
        z = self._frame.depth[fine]
        away = (a * x[fine[1]] + c) + b * y[fine[0], None]
        away *= z
        away += np.float32(plane.offset)
        near: Mask = np.abs(away, out=away) < self._settings.thickness(z)
        near &= _enlarge(plane.mask[coarse], z.shape)
        mask[fine] = near | (_closed(near) & np.isnan(z))
        return mask

    def cluster_mask(self, cluster: Mask, fits: Callable[[NDArray[np.uint8]], Mask] | None = None) -> Mask:
        """Return a cluster's pixels in the frame: those at its depth.

        Args:
            cluster: Its pixels on the grid, shape (h, w); at least one.
            fits: Tells by their colours (h, w, 3) which pixels may be its own; any without it.
        """
        mask = np.zeros(self._frame.shape, np.bool_)
        coarse, fine = _around(cluster, 0)
        depth = self._frame.depth[fine]
        z = _enlarge(self.points[2][coarse], depth.shape)
        inside = _enlarge(cluster[coarse], depth.shape) & (np.abs(depth - z) < _link_length(z, self._frame))
        if fits is not None:
            inside &= fits(self._frame.rgb[fine])
        # Specks without depth or of a noisy colour are the object's as well, if nothing nearer or farther shows there.
        weight = np.maximum(cv2.blur(inside.astype(np.float32), _SPECK), np.float32(1e-6))
        around: NDArray[np.float32] = cv2.blur(np.where(inside, depth, np.float32(0.0)), _SPECK) / weight
        same = np.isnan(depth) | (np.abs(depth - around) < _link_length(around, self._frame))
        mask[fine] = inside | (_closed(inside) & same)
        return mask


def squared(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the squared length of vectors of shape (3, ...), which are overwritten."""
    vectors *= vectors
    square: NDArray[np.float32] = vectors[0]
    square += vectors[1]
    square += vectors[2]
    return square


def _link_length(z: NDArray[np.float32], frame: RgbdFrame) -> NDArray[np.float32]:
    """Return how far apart in [m] neighbours on one surface may be at some depths."""
    length: NDArray[np.float32] = z * np.float32(_LINK * _STRIDE / frame.intrinsics.fx)
    return np.maximum(length, np.float32(LEAST_LINK), out=length)


def _linked(points: NDArray[np.float32], others: NDArray[np.float32], limit: NDArray[np.float32]) -> Mask:
    """Tell which points (3, h, w) are closer to others than the root of a limit (h, w) in [m^2]."""
    linked: Mask = squared(points - others) < limit
    return linked


def _thinned(frame: RgbdFrame, settings: GridSettings) -> tuple[NDArray[np.float32], Mask]:
    """Return points (3, h, w) of every second row and column and which are in range.

    Where one has no depth, it is that of a pixel beside it; points out of range are 0.
    """
    x, y = _rays(frame)
    depth = frame.depth[::_STRIDE, ::_STRIDE].copy()
    holes = np.flatnonzero(np.isnan(depth))
    rows, columns = np.divmod(holes, depth.shape[1])
    down, right = np.zeros_like(rows), np.zeros_like(rows)
    for step in ((0, 1), (1, 0), (1, 1)):
        still = np.flatnonzero(np.isnan(depth.reshape(-1)[holes]))
        below = np.minimum(_STRIDE * rows[still] + step[0], frame.shape[0] - 1)
        beside = np.minimum(_STRIDE * columns[still] + step[1], frame.shape[1] - 1)
        depth.reshape(-1)[holes[still]] = frame.depth[below, beside]
        down[still], right[still] = below, beside
    valid = (depth >= settings.near) & (depth <= settings.far)
    points = np.empty((3, *depth.shape), np.float32)
    points[2] = np.where(valid, depth, np.float32(0.0))
    np.multiply(points[2], x[::_STRIDE], out=points[0])
    np.multiply(points[2], y[::_STRIDE, None], out=points[1])
    flat = points.reshape(3, -1)
    flat[0, holes], flat[1, holes] = flat[2, holes] * x[right], flat[2, holes] * y[down]
    return points, valid


def _rays(frame: RgbdFrame) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return x/z of each column and y/z of each row; lens distortion moves no pixel to another object."""
    k = frame.intrinsics
    x = (np.arange(k.width, dtype=np.float32) - np.float32(k.cx)) / np.float32(k.fx)
    y = (np.arange(k.height, dtype=np.float32) - np.float32(k.cy)) / np.float32(k.fy)
    return x, y


def _around(mask: Mask, margin: int) -> tuple[tuple[slice, slice], tuple[slice, slice]]:
    """Return the part of the grid that holds a mask and so many pixels more, and the same part of the frame."""
    left, top, width, height = cv2.boundingRect(mask.view(np.uint8))
    rows = slice(max(0, top - margin), top + height + margin)
    columns = slice(max(0, left - margin), left + width + margin)
    fine = (slice(_STRIDE * side.start, _STRIDE * side.stop) for side in (rows, columns))
    return (rows, columns), (next(fine), next(fine))


def _closed(mask: Mask) -> Mask:
    """Return a mask without holes narrower than a few pixels."""
    filled: Mask = cv2.morphologyEx(mask.view(np.uint8), cv2.MORPH_CLOSE, np.ones(_SPECK, np.uint8)).view(np.bool_)
    return filled


def _enlarge(image: NDArray, shape: tuple[int, int]) -> NDArray:
    """Return a part of the grid at the size of the frame's, each pixel as a square."""
    plain = image.view(np.uint8) if image.dtype == np.bool_ else image
    size = (_STRIDE * image.shape[1], _STRIDE * image.shape[0])
    large = cv2.resize(plain, size, interpolation=cv2.INTER_NEAREST)[: shape[0], : shape[1]]
    return large.view(np.bool_) if image.dtype == np.bool_ else large
