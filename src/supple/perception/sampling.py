# SPDX-License-Identifier: Apache-2.0
"""From a mask to a few points: erosion by a share of its area, an even choice of pixels, farthest points."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from supple.errors import SettingError

__all__ = ["erode", "even_choice", "farthest_points"]

# Multiples of the plastic number's inverse and of its square, modulo 1, cover the plane most evenly (R2 sequence). In
# units of 2^-32 the modulo is what unsigned integers do by themselves.
_R2 = (np.uint32(3242174889), np.uint32(2447445414))


def erode(mask: NDArray[np.bool_], share: float) -> NDArray[np.bool_]:
    """Take pixels off the edge of a mask until at least a share of its area is gone.

    Pixels go by their distance from the nearest pixel outside, all of one distance together, so that a mask less than
    three pixels thick disappears. The border of the image is no edge: an object that leaves the picture is not eroded
    there.

    Args:
        mask: Pixels of an object, shape (height, width).
        share: Share of the area to take off, in [0, 1).

    Returns:
        The pixels that are left, shape (height, width).

    Raises:
        SettingError: A share out of range.
    """
    if not 0.0 <= share < 1.0:
        raise SettingError(f"expected an erosion of 0 to below 1, got {share}")
    if share == 0.0 or not mask.any():
        return mask.copy()
    if mask.all():
        # Without an edge there is nothing to take off.
        return mask.copy()
    distance = cv2.distanceTransform(mask.view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    inside = distance[mask]
    last = max(int(np.ceil(share * inside.size)) - 1, 0)
    return distance > np.partition(inside, last)[last]


def even_choice(rows: NDArray[np.integer], columns: NDArray[np.integer], count: int) -> NDArray[np.intp]:
    """Choose pixels that lie evenly over all that are given, always the same ones.

    Each pixel of an image has a fixed place in a low-discrepancy sequence, and those that come first are chosen; so a
    pixel that was chosen stays chosen while the object stands still, and nothing depends on chance.

    Args:
        rows: Row of each pixel, shape (n,).
        columns: Column of each pixel, shape (n,).
        count: How many to choose.

    Returns:
        Indices of the chosen, ascending, shape (min(n, count),).
    """
    if len(rows) <= count:
        return np.arange(len(rows))
    place = rows.astype(np.uint32) * _R2[0] + columns.astype(np.uint32) * _R2[1]
    # Places fill their range evenly: the first 1.2 count / n of it nearly always hold enough, and only they are ranked.
    early = np.flatnonzero(place < min(1.2 * count / len(rows), 1.0) * 2.0**32)
    if len(early) < count:
        early = np.arange(len(rows))
    return np.sort(early[np.argpartition(place[early], count - 1)[:count]])


def farthest_points(points: NDArray[np.floating], count: int) -> NDArray[np.intp]:
    """Choose points each of which is the farthest from those chosen before.

    The first is the one farthest from the middle of all. The same points give the same choice.

    Args:
        points: Points in [m], shape (n, d), all finite.
        count: How many to choose.

    Returns:
        Indices of the chosen in the order of choice, shape (min(n, count),).
    """
    count = min(count, len(points))
    chosen = np.empty(count, np.intp)
    if count == 0:
        return chosen
    # |p - c|^2 is |p|^2 - 2 p.c + |c|^2, and taken about the middle, where the squares are small, as exact as the
    # difference; so a round costs one product of (-2 p, |p|^2) with (c, 1).
    centred = np.asarray(points, dtype=np.float64) - np.mean(points, axis=0, dtype=np.float64)
    squares = np.einsum("ij,ij->i", centred, centred)
    lifted = np.vstack([-2.0 * centred.T, squares])
    ends = np.column_stack([centred, np.ones(len(points))])
    nearest = np.full(len(points), np.inf)
    distance = np.empty(len(points))
    index = int(squares.argmax())
    for i in range(count):
        chosen[i] = index
        np.dot(ends[index], lifted, out=distance)
        distance += squares[index]
        np.minimum(nearest, distance, out=nearest)
        # Even among points that coincide none is chosen twice.
        nearest[index] = -np.inf
        index = int(nearest.argmax())
    return chosen
