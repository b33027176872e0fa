# SPDX-License-Identifier: Apache-2.0
"""Which depths can be trusted: range, flying pixels at edges, pixels alone; depths are left out, never changed."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from supple.errors import SettingError

__all__ = ["DepthLimits", "repair"]

_NEIGHBOURHOOD = np.ones((3, 3), np.uint8)


@dataclass(frozen=True)
class DepthLimits:
    """What a trustworthy depth looks like.

    Attributes:
        nearest: Smallest depth in [m].
        farthest: Largest depth in [m].
        edge: Jump of inverse depth between neighbouring pixels, beyond what a plane has, from which on it is an edge,
            in [1/m]: 0.02 is 2 cm at 1 m, 5 mm at 0.5 m and 8 cm at 2 m, as the noise of a stereo camera grows.
        support: Fewest valid pixels in a 3x3 neighbourhood, the pixel itself included.

    Raises:
        SettingError: A range that is empty or reaches zero, an edge that is not positive, or a support out of 1 to 9.
    """

    nearest: float = 0.1
    farthest: float = 5.0
    edge: float = 0.02
    support: int = 5

    def __post_init__(self) -> None:
        if not 0.0 < self.nearest < self.farthest < np.inf:
            raise SettingError(
                f"expected 0 < nearest < farthest, got nearest {self.nearest}, farthest {self.farthest} m"
            )
        if not self.edge > 0.0:
            raise SettingError(f"expected a positive edge in 1/m, got {self.edge}")
        if not 1 <= self.support <= 9:
            raise SettingError(f"expected a support of 1 to 9 pixels, got {self.support}")


def repair(depth: NDArray[np.float32], limits: DepthLimits | None = None) -> NDArray[np.bool_]:
    """Return which pixels of a depth image can be trusted.

    Along a plane inverse depth is linear in the image, however steeply it is seen, so its second difference is zero;
    at the edge of an object it is not. Pixels on both sides of an edge and the flying pixels between them, which mix
    the depths of the two, are left out. Nothing is filled in, and no depth is changed.

    Args:
        depth: Distance along the optical axis in [m], float32, shape (height, width); anything that is not a positive
            number is invalid.
        limits: What a trustworthy depth looks like; the defaults without it.

    Returns:
        The valid pixels, shape (height, width).
    """
    limits = limits or DepthLimits()
    # Comparisons with NaN are false: it falls out here.
    valid = (depth >= limits.nearest) & (depth <= limits.farthest)
    inverse = np.full(depth.shape, np.nan, np.float32)
    np.divide(np.float32(1.0), depth, out=inverse, where=valid)
    edges = np.zeros(depth.shape, np.uint8)
    bend = np.float32(limits.edge)
    edges[:, 1:-1] = _bends(inverse[:, :-2], inverse[:, 1:-1], inverse[:, 2:], bend)
    edges[1:-1] |= _bends(inverse[:-2], inverse[1:-1], inverse[2:], bend)
    # Where a flying pixel lies on the line between front and back only its neighbours bend.
    valid &= cv2.dilate(edges, _NEIGHBOURHOOD) == 0
    neighbours = cv2.boxFilter(valid.view(np.uint8), -1, (3, 3), normalize=False, borderType=cv2.BORDER_REPLICATE)
    return valid & (neighbours >= limits.support)


def _bends(
    before: NDArray[np.float32], here: NDArray[np.float32], after: NDArray[np.float32], bend: np.float32
) -> NDArray[np.bool_]:
    return np.abs(before + after - 2.0 * here) > bend
