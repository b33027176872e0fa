# SPDX-License-Identifier: Apache-2.0
"""Colours without their brightness: each channel's share of the three, what noise does to it, and what is alike."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

__all__ = ["Color", "alike", "chromaticity", "difference", "difference_from"]

Color = tuple[int, int, int]
"""Red, green and blue, 0 to 255."""

# Darker than this a pixel's colour is noise.
_DARKEST = 24
# Noise of a pixel's channels, 0 to 255: the darker it is, the less its colour is worth.
_GRAIN = 6.0


def chromaticity(rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return red's and green's share of each pixel's colour and the variance of each by noise.

    Args:
        rgb: Colours, shape (h, w, 3).

    Returns:
        Shape (3, h, w); NaN where it is too dark to tell.
    """
    red, green, blue = cv2.split(np.ascontiguousarray(rgb))
    total = np.add(red, green, dtype=np.float32)
    total += blue
    total[total < 3 * _DARKEST] = np.nan
    inverse = np.divide(np.float32(1.0), total, out=total)
    chroma = np.empty((3, *inverse.shape), np.float32)
    np.multiply(red, inverse, out=chroma[0])
    np.multiply(green, inverse, out=chroma[1])
    np.multiply(np.float32(_GRAIN), inverse, out=chroma[2])
    chroma[2] *= chroma[2]
    return chroma


def difference_from(chroma: NDArray[np.float32], red: float, green: float) -> NDArray[np.float32]:
    """Return the squared distance of chromaticities (3, ...) from one, in all three channels' shares."""
    r, g = chroma[0] - np.float32(red), chroma[1] - np.float32(green)
    # The shares sum to 1, so blue's differs by -(r + g).
    b: NDArray[np.float32] = r + g
    for channel in (r, g, b):
        channel *= channel
    b += r
    b += g
    return b


def difference(chroma: NDArray[np.float32], colors: Sequence[Color]) -> NDArray[np.float32]:
    """Return the squared distance of chromaticities (3, ...) from the nearest of some colours."""
    nearest, *others = (difference_from(chroma, red, green) for red, green, _ in (_shares(color) for color in colors))
    for other in others:
        np.minimum(nearest, other, out=nearest)
    return nearest


def alike(chroma: NDArray[np.float32], colors: Sequence[Color], tolerance: float) -> NDArray[np.bool_]:
    """Tell which chromaticities (3, ...) are one of some colours, as far as noise lets tell.

    Args:
        chroma: Chromaticities with their variance.
        colors: At least one.
        tolerance: How far a chromaticity without noise may be from a colour's.
    """
    apart = difference(chroma, colors)
    apart -= chroma[2]
    close: NDArray[np.bool_] = apart < np.float32(tolerance**2)
    return close


def _shares(color: Color) -> NDArray[np.float64]:
    return np.divide(color, sum(color))
