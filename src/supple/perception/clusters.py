# SPDX-License-Identifier: Apache-2.0
"""Connected parts of a mask: cut where depth jumps, measured, and put together again across what hides them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from supple.perception.grid import LEAST_LINK, Grid, squared
from supple.perception.masks import Mask

__all__ = ["Parts"]

_MOST_PARTS, _LEAST_PART = 24, 4
_SAMPLES = 300


class Parts:
    """The connected parts of a mask on the grid.

    Args:
        likely: Pixels to split.
        grid: The frame.

    Attributes:
        count: How many there are, the largest ones first, specks left out.
    """

    def __init__(self, likely: Mask, grid: Grid) -> None:
        self._grid, self._labels = grid, _components(likely, grid)
        inside = np.flatnonzero(likely)
        owners = self._labels.reshape(-1)[inside]
        area = np.bincount(owners, minlength=1)
        self._order = [label for label in np.argsort(-area, kind="stable")[:_MOST_PARTS] if area[label] >= _LEAST_PART]
        self._most = len(area)
        self.count = len(self._order)
        # Sorted by owner the pixels of one part are a slice.
        by_owner = inside[np.argsort(owners, kind="stable")]
        ends = np.cumsum(area)
        self._pixels = [by_owner[ends[label] - area[label] : ends[label]] for label in self._order]
        # Evenly drawn points say how long a part is to within a pixel or two.
        flat = grid.points.reshape(3, -1)
        self._points = [flat[:, _sample(pixels)] for pixels in self._pixels]

    def size(self, part: int) -> int:
        """Return how many pixels a part has."""
        return self._pixels[part].size

    def within(self, mask: Mask, part: int) -> int:
        """Return how many pixels of a part are those of a mask."""
        return int(np.count_nonzero(mask.reshape(-1)[self._pixels[part]]))

    def sample(self, part: int) -> NDArray[np.intp]:
        """Return some of a part's pixels, evenly drawn, as flat indices into the grid, shape (n,)."""
        return _sample(self._pixels[part])

    def area(self, part: int) -> float:
        """Return the area in [m^2] that a part covers, seen straight on."""
        z = self._grid.points[2].reshape(-1)[self._pixels[part]]
        return self._grid.pixel_area * float(z @ z)

    def mask(self, parts: Sequence[int]) -> Mask:
        """Return the pixels of some parts."""
        owned = np.zeros(self._most, np.bool_)
        owned[[self._order[part] for part in parts]] = True
        return owned[self._labels]

    def length(self, parts: Sequence[int]) -> float:
        """Return the greatest distance in [m] between two points of some parts, by two sweeps."""
        cloud = np.concatenate([self._points[part] for part in parts], axis=1)
        start = int(np.argmax(squared(cloud - cloud.mean(axis=1, keepdims=True))))
        return math.sqrt(float(squared(cloud - cloud[:, start, None]).max()))

    def belong_together(self, group: Sequence[int], part: int, longest: float, least: int) -> bool:
        """Tell whether a part and a group are one object: they touch, or something nearer is between them.

        Together they must be no longer than the object, and no background may show between them.

        Args:
            group: Parts that are the object's.
            part: Another one.
            longest: Length in [m] of what is seen of the object at most.
            least: Pixels that a part must have that does not touch the group.
        """
        touching = bool(self._touching[part, group].any())
        if not touching and self._pixels[part].size < least:
            # A speck behind an occluder may be anything.
            return False
        return self.length([*group, part]) <= longest and (touching or self._hidden_between(group, part))

    def _hidden_between(self, group: Sequence[int], part: int) -> bool:
        """Tell whether what shows between a part and a group hides what is behind."""
        grid, ends = self._grid, []
        for pixels in (np.concatenate([self._pixels[i] for i in group]), self._pixels[part]):
            ends.append(np.stack(np.divmod(_sample(pixels), grid.valid.shape[1]), axis=1))
        nearest = np.unravel_index(np.argmin(cdist(*ends)), (len(ends[0]), len(ends[1])))
        start, end = ends[0][nearest[0]], ends[1][nearest[1]]
        steps = max(2, int(np.abs(end - start).max()))
        share = np.arange(1, steps)[:, None] / steps
        rows, columns = np.rint(start + share * (end - start)).astype(int).T
        depth = grid.points[2]
        z, share = depth[rows, columns], share[:, 0]
        straight = (1.0 - share) * depth[tuple(start)] + share * depth[tuple(end)]
        margin = np.maximum(LEAST_LINK, 0.03 * straight)
        nearer = z < straight - margin
        beside = (z <= straight + margin) & ~grid.on_plane[rows, columns]
        return float(np.mean(nearer | beside | ~grid.valid[rows, columns])) >= 0.9

    @functools.cached_property
    def _touching(self) -> Mask:
        """Which parts have a pixel next to one of which others, shape (count, count)."""
        number = np.full(self._most, -1, np.int8)
        number[self._order] = np.arange(self.count)
        left, top, width, height = cv2.boundingRect((self._labels > 0).view(np.uint8))
        numbers = number[self._labels[top : top + height, left : left + width]]
        touching = np.zeros((self.count, self.count), np.bool_)
        for one, other in (
            (numbers[:, 1:], numbers[:, :-1]),
            (numbers[1:], numbers[:-1]),
            (numbers[1:, 1:], numbers[:-1, :-1]),
            (numbers[1:, :-1], numbers[:-1, 1:]),
        ):
            at = (one != other) & (np.minimum(one, other) >= 0)
            touching[one[at], other[at]] = True
        return touching | touching.T


def _sample(pixels: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return some of the pixels, evenly drawn."""
    return pixels[:: max(1, pixels.size // _SAMPLES)]


def _components(mask: Mask, grid: Grid) -> NDArray[np.int32]:
    """Return the connected parts of a mask, 0 outside, cut where neighbours are far apart in depth.

    Links between neighbours become pixels of their own in an image twice as large, so that ordinary connected
    components see them.
    """
    labels = np.zeros(mask.shape, np.int32)
    left, top, width, height = cv2.boundingRect(mask.view(np.uint8))
    if not width:
        return labels
    part = np.s_[top : top + height, left : left + width]
    inside = mask[part]
    links = np.zeros((2 * height - 1, 2 * width - 1), np.uint8)
    links[::2, ::2] = inside
    links[::2, 1::2] = grid.right[part[0], left : left + width - 1] & inside[:, 1:] & inside[:, :-1]
    links[1::2, ::2] = grid.below[top : top + height - 1, part[1]] & inside[1:] & inside[:-1]
    _, found = cv2.connectedComponents(links, connectivity=4)
    labels[part] = found[::2, ::2]
    return labels
