# SPDX-License-Identifier: Apache-2.0
"""Carries a mask from one frame to the next by following what is drawn on the object (sparse optical flow)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from supple.perception.frames import RgbdFrame
from supple.perception.masks import Mask

__all__ = ["Carried", "FlowPropagator"]

_CORNERS = 80
# Coarser levels would see more of what moves beside the object.
_WINDOW, _LEVELS = (15, 15), 2
# Points that do not come back to where they started within so many pixels were lost on the way.
_RETURN = 1.0
_LEAST_POINTS = 6
# Of all points so many must have been found again (the others may be hidden), and of these so many must agree.
_LEAST_FOUND, _LEAST_AGREEING = 0.2, 0.5
# How far a point may be from where the common motion puts it: in [px], or as a share of the object's size in the image,
# because of what perspective changes.
_APART_PIXELS, _APART_SHARE = 2.0, 0.03
# Per frame an object may seem to grow or shrink by so much.
_SCALE = 1.3


@dataclass(frozen=True)
class Carried:
    """A mask in a later frame.

    Attributes:
        mask: Its pixels there, without those that something nearer hides.
        motion: How the picture of it moved in the plane: rotation, one scale and shift, shape (2, 3), pixels to pixels.
        share: Share of the points found again that agree with this motion, 0 to 1.
    """

    mask: Mask
    motion: NDArray[np.float64]
    share: float


class FlowPropagator:
    """Carries masks between two frames of one camera.

    The picture of an object is taken to turn, scale and shift as a whole. That holds for a few frames; a model or
    another source has to say anew where the object is before errors add up.

    Args:
        frame: The frame that the masks belong to.
    """

    def __init__(self, frame: RgbdFrame) -> None:
        self._frame, self._gray = frame, _gray(frame)

    def carry(self, mask: Mask, frame: RgbdFrame) -> Carried | None:
        """Return a mask in a later frame, or None if too little of the object could be followed.

        Args:
            mask: Pixels of an object in the frame that this was made with, shape (height, width).
            frame: The later frame, of the same size.
        """
        corners = cv2.goodFeaturesToTrack(
            self._gray, maxCorners=_CORNERS, qualityLevel=0.01, minDistance=4, mask=mask.astype(np.uint8)
        )
        if corners is None or len(corners) < _LEAST_POINTS:
            return None
        start, gray = corners.astype(np.float32), _gray(frame)
        end, found, _ = cv2.calcOpticalFlowPyrLK(
            self._gray, gray, start, start.copy(), winSize=_WINDOW, maxLevel=_LEVELS
        )
        back, came_back, _ = cv2.calcOpticalFlowPyrLK(
            gray, self._gray, end, end.copy(), winSize=_WINDOW, maxLevel=_LEVELS
        )
        kept = (found[:, 0] == 1) & (came_back[:, 0] == 1)
        kept &= np.linalg.norm((back - start)[:, 0], axis=1) < _RETURN
        count = int(np.count_nonzero(kept))
        if count < max(_LEAST_POINTS, _LEAST_FOUND * len(start)):
            return None
        apart = max(_APART_PIXELS, _APART_SHARE * math.sqrt(np.count_nonzero(mask)))
        motion, agreeing = cv2.estimateAffinePartial2D(
            start[kept], end[kept], method=cv2.RANSAC, ransacReprojThreshold=apart
        )
        if motion is None:
            return None
        share = float(np.count_nonzero(agreeing)) / count
        scale = math.hypot(motion[0, 0], motion[1, 0])
        if share < _LEAST_AGREEING or not 1.0 / _SCALE < scale < _SCALE:
            return None
        moved = self._move(mask, motion, frame)
        return Carried(moved, motion, share) if moved.any() else None

    def _move(self, mask: Mask, motion: NDArray[np.float64], frame: RgbdFrame) -> Mask:
        """Return the moved mask without what has come in front of it."""
        height, width = mask.shape
        moved = cv2.warpAffine(mask.astype(np.uint8), motion, (width, height), flags=cv2.INTER_NEAREST) == 1
        before = cv2.warpAffine(self._frame.depth, motion, (width, height), flags=cv2.INTER_NEAREST)
        both = moved & np.isfinite(before) & np.isfinite(frame.depth)
        if not both.any():
            return moved
        # The object itself may have come nearer; most of it tells by how much.
        change = frame.depth[both] - before[both]
        nearer = change < np.median(change) - np.maximum(0.02, 0.03 * before[both])
        moved[both] = ~nearer
        return moved


def _gray(frame: RgbdFrame) -> NDArray[np.uint8]:
    return np.asarray(cv2.cvtColor(np.ascontiguousarray(frame.rgb), cv2.COLOR_RGB2GRAY), np.uint8)
