# SPDX-License-Identifier: Apache-2.0
"""Masks from a detector's boxes: of what is in a box the cluster of depth in its middle, never the box itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from supple.errors import FrameError
from supple.perception.clusters import Parts
from supple.perception.frames import RgbdFrame
from supple.perception.grid import Grid, GridSettings
from supple.perception.masks import Mask

__all__ = ["Detection", "DetectionMasks"]

_EDGES = ("left", "top", "right", "bottom")
# A plane with this share of its pixels in a box is a face of what is in it, not what that stands on.
_OWN_FACE = 0.5
# Of a box's width and height, the middle that tells which cluster it was drawn round.
_MIDDLE = 0.5


@dataclass(frozen=True)
class Detection:
    """What a detector says of one object.

    Attributes:
        name: The object.
        score: How certain it is, 0 to 1.
        box: Left, top, right and bottom edge in [px]; the centre of the upper left pixel is (0, 0).
    """

    name: str
    score: float
    box: tuple[float, float, float, float]

    def problem(self, shape: tuple[int, int]) -> tuple[str, str] | None:
        """Return the field that cannot be right for a picture of some (height, width), and why; None if all can be."""
        if not 0.0 <= self.score <= 1.0:
            return "score", f"{self.score:g} of {self.name!r}, expected 0 to 1"
        for edge, value in zip(_EDGES, self.box, strict=True):
            if not math.isfinite(value):
                return edge, f"{value:g} px of {self.name!r}, expected a finite number"
        left, top, right, bottom = self.box
        if left >= right:
            return "right", f"the box of {self.name!r} from column {left:g} to {right:g} px has no width"
        if top >= bottom:
            return "bottom", f"the box of {self.name!r} from row {top:g} to {bottom:g} px has no height"
        height, width = shape
        for edge, outside in zip(_EDGES, (left > width - 1, top > height - 1, right < 0, bottom < 0), strict=True):
            if outside:
                return edge, f"the box of {self.name!r} is outside the picture of {width} x {height} px"
        return None


class DetectionMasks:
    """The mask source that is fed by boxes.

    In each box, planes that go on beyond it (the table, the wall) are taken away, what is left is split where depth
    jumps, and the part with most pixels in the middle of the box is the object. Boxes are served from the most certain
    one on, each pixel once; of several boxes of one name the most certain counts. What reaches out of its box is cut
    off there. A thing as flat as what it lies on, and one without depth, has no mask.

    Args:
        detections: What a detector says of a frame.
        size: Width and height in [px] of the picture that the boxes are measured in.
        settings: How the frame is looked at; the defaults without it.
        least_pixels: Pixels of the full image that an object must have.

    Attributes:
        refused: What could not be used in the last frame: boxes that make no sense, and boxes without an object.
    """

    def __init__(
        self,
        detections: Sequence[Detection],
        size: tuple[int, int],
        settings: GridSettings | None = None,
        least_pixels: int = 80,
    ) -> None:
        self._detections, self._size = list(detections), size
        self._settings = settings or GridSettings()
        self._least = max(4, Grid.pixels(least_pixels))
        self.refused: list[FrameError] = []

    def masks(self, frame: RgbdFrame) -> Mapping[str, Mask]:
        """Return the mask of each object that is seen.

        Raises:
            FrameError: The boxes belong to a picture of another size, or the frame is too small to look at.
        """
        height, width = frame.shape
        if self._size != (width, height):
            got = " x ".join(map(str, self._size))
            raise FrameError("detections", "width", f"boxes in {got} px, but colour has {width} x {height}")
        problems = [(detection, detection.problem(frame.shape)) for detection in self._detections]
        self.refused = [FrameError("detections", *problem) for _, problem in problems if problem is not None]
        usable = sorted((row for row, problem in problems if problem is None), key=lambda row: row.score)
        # The last one of a name stays.
        best = {detection.name: detection for detection in usable}
        if not best:
            return {}
        grid = Grid(frame, self._settings)
        free = grid.valid.copy()
        found: dict[str, Mask] = {}
        for name, detection in sorted(best.items(), key=lambda item: -item[1].score):
            inside = _inside(detection, frame.shape)
            cluster = self._cluster(grid, free, inside)
            if cluster is None:
                what = f"nothing stands out in the middle of the box of {name!r}"
                self.refused.append(FrameError("detections", "name", what))
                continue
            free &= ~cluster
            mask = grid.cluster_mask(cluster) & inside
            for other in found.values():
                mask &= ~other
            if mask.any():
                found[name] = mask
        return found

    def _cluster(self, grid: Grid, free: Mask, inside: Mask) -> Mask | None:
        """Return the pixels of the grid that show what a box was drawn round; None if nothing does."""
        box = grid.thin(inside)
        likely = free & box
        for plane in grid.planes:
            if np.count_nonzero(plane.mask & box) < _OWN_FACE * np.count_nonzero(plane.mask):
                likely &= ~plane.mask
        parts = Parts(likely, grid)
        middle = _middle(box)
        central = [parts.within(middle, part) if parts.size(part) >= self._least else 0 for part in range(parts.count)]
        return parts.mask([int(np.argmax(central))]) if any(central) else None


def _inside(detection: Detection, shape: tuple[int, int]) -> Mask:
    """Return the pixels of a picture whose centres lie in a box."""
    left, top, right, bottom = detection.box
    inside = np.zeros(shape, np.bool_)
    inside[max(0, math.ceil(top)) : math.floor(bottom) + 1, max(0, math.ceil(left)) : math.floor(right) + 1] = True
    return inside


def _middle(box: Mask) -> Mask:
    """Return the middle part of a rectangle of pixels."""
    middle = np.zeros_like(box)
    rows, columns = np.flatnonzero(box.any(axis=1)), np.flatnonzero(box.any(axis=0))
    kept = []
    for side in (rows, columns):
        cut = round(0.5 * (1.0 - _MIDDLE) * side.size)
        kept.append(side[cut : side.size - cut])
    middle[np.ix_(*kept)] = True
    return middle
