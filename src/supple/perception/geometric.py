# SPDX-License-Identifier: Apache-2.0
"""Masks from colour and geometry: large planes removed, what stands on them split into clusters, clusters named."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from supple.errors import SettingError
from supple.perception.chromaticity import Color, alike, chromaticity, difference, difference_from
from supple.perception.clusters import Parts
from supple.perception.frames import RgbdFrame
from supple.perception.grid import Grid, GridSettings
from supple.perception.masks import Mask
from supple.perception.planes import Plane

__all__ = ["GeometricMasks", "ObjectModel"]

# An object seen from any side is at most as long as its diagonal, give or take what depth noise adds.
_SIZE_SLACK, _SIZE_MARGIN = 1.15, 0.02
# ... and an object in view shows at least this share of its smallest extent.
_LEAST_SHARE = 0.5
_LEVEL = math.cos(math.radians(15.0))
# Of a plane's pixels every so many-th says what colour it has.
_PLANE_STEP = 16
# How far a pixel's chromaticity may be from a colour's, unless an object says otherwise.
_TOLERANCE = 0.04
_NEVER = 1e6


@dataclass(frozen=True)
class ObjectModel:
    """What is known of an object's looks.

    Attributes:
        colors: Its colours as the camera sees them, 0 to 255, (red, green, blue); only their hue and saturation count,
            so that light and shadow do not matter. Empty: unknown.
        size: Its full extents in [m], in any order. None: unknown.
        tolerance: How far a pixel's chromaticity (each channel's share of the three) may be from a colour's.
        support: Whether it is the flat thing that the others stand on; its mask is then the flat surface alone.

    Raises:
        SettingError: Neither colour nor size is known of something that is no support, or a number out of range.
    """

    colors: tuple[Color, ...] = ()
    size: tuple[float, float, float] | None = None
    tolerance: float = _TOLERANCE
    support: bool = False

    def __post_init__(self) -> None:
        if not (self.colors or self.size or self.support):
            raise SettingError("objects: an object needs a colour or a size to be told from others")
        if self.size is not None and (len(self.size) != 3 or not all(0.0 < value < 10.0 for value in self.size)):
            raise SettingError(f"size: expected three extents of 0 to 10 m, got {self.size}")
        if not 0.0 < self.tolerance < 1.0:
            raise SettingError(f"tolerance: expected a chromaticity between 0 and 1, got {self.tolerance}")
        for color in self.colors:
            if len(color) != 3 or not all(0 <= value <= 255 for value in color) or sum(color) == 0:
                raise SettingError(f"colors: expected (red, green, blue) of 0 to 255, not black, got {color}")

    @property
    def diagonal(self) -> float:
        """Greatest length in [m] that can be seen of it; infinite when its size is unknown."""
        return math.inf if self.size is None else math.hypot(*self.size)


class GeometricMasks:
    """The mask source that needs neither a simulator nor a learned model.

    Large flat surfaces (floor, table top, screen) are found and removed. What is left is split by colour and by gaps in
    depth, and each object is given the cluster whose colour and size fit it best. An object behind a finger may be in
    several pieces: they are joined if what lies between them is nearer to the camera, never across the background. What
    is hidden stays missing. The robot's own arms are left out because their colours are no object's; for objects that
    are known by size alone, name the robot's colours in ``ignored``.

    Args:
        objects: What each object looks like. Objects of the same looks are told apart by nothing here: give the masks
            to a tracker.
        ignored: Colours that belong to no object without a colour of its own, (red, green, blue).
        near: Least depth in [m] that is looked at.
        far: Greatest depth in [m] that is looked at.
        flatness: How far from a plane its points may lie in [m], at 0 distance; depth noise adds to it.
        noise: Growth of depth noise with the square of distance in [1/m].
        least_pixels: Pixels of the full image that a cluster must have.

    Attributes:
        up: Direction against gravity in the optical frame, shape (3,), if known (set it before each frame): a support
            is then a level plane. Without it, it is the largest plane whose colour and size fit.

    Raises:
        SettingError: No object, or a range that is empty.
    """

    def __init__(
        self,
        objects: Mapping[str, ObjectModel],
        ignored: tuple[Color, ...] = (),
        near: float = 0.05,
        far: float = 3.0,
        flatness: float = 0.006,
        noise: float = 0.004,
        least_pixels: int = 80,
    ) -> None:
        if not objects:
            raise SettingError("objects: no object to look for")
        self.objects = dict(objects)
        self.up: NDArray[np.float64] | None = None
        self._ignored = tuple(ignored)
        self._least = max(4, Grid.pixels(least_pixels))
        # What is flat and clearly larger than any face of an object is no object.
        faces = [sorted(model.size)[1:] for model in objects.values() if model.size and not model.support]
        extent = max([0.2, *(1.5 * width for width, _ in faces)]) if faces else 0.3
        area = max([0.04, *(1.3 * width * length for width, length in faces)]) if faces else 0.06
        self._settings = GridSettings(near, far, flatness, noise, extent, area)

    def masks(self, frame: RgbdFrame) -> Mapping[str, Mask]:
        """Return the mask of each object that is seen.

        Raises:
            FrameError: The frame is too small to look for anything in it.
        """
        grid = Grid(frame, self._settings)
        chroma = chromaticity(grid.thin(frame.rgb))
        colors = [_color_of(plane, chroma) for plane in grid.planes]
        found: dict[str, Mask] = {}
        for name, model in self.objects.items():
            if model.support:
                plane = self._support(model, grid.planes, colors)
                if plane is not None:
                    found[name] = grid.plane_mask(plane)
        supports = list(found.values())
        for name, cluster in self._clusters(grid, chroma, colors).items():
            mask = grid.cluster_mask(cluster, _like(self.objects[name]))
            if mask.any():
                found[name] = mask
                for taken in supports:
                    taken &= ~mask
        return {name: found[name] for name in self.objects if name in found and found[name].any()}

    def _support(
        self, model: ObjectModel, planes: Sequence[Plane], colors: Sequence[NDArray[np.float32]]
    ) -> Plane | None:
        """Return the largest plane that fits what is known of a support."""
        for plane, chroma in zip(planes, colors, strict=True):
            if self.up is not None and abs(float(plane.normal @ self.up)) < _LEVEL:
                continue
            if model.size is not None:
                length, width, _ = sorted(model.size, reverse=True)
                if plane.extents[0] > _longest(math.hypot(length, width)) or plane.extents[1] > _longest(length):
                    continue
            if model.colors and np.mean(alike(chroma, model.colors, model.tolerance)) < 0.5:
                continue
            return plane
        return None

    def _clusters(
        self, grid: Grid, chroma: NDArray[np.float32], colors: Sequence[NDArray[np.float32]]
    ) -> dict[str, Mask]:
        """Return the pixels of each object on the grid; objects with a colour choose first."""
        classes: dict[tuple[tuple[Color, ...], float], dict[str, ObjectModel]] = {}
        for name, model in sorted(self.objects.items(), key=lambda item: not item[1].colors):
            if not model.support:
                classes.setdefault((model.colors, model.tolerance), {})[name] = model
        free = grid.valid.copy()
        found: dict[str, Mask] = {}
        for models in classes.values():
            parts = Parts(free & self._likely(next(iter(models.values())), grid, chroma, colors), grid)
            for name, chosen in self._assign(models, parts, chroma).items():
                found[name] = parts.mask(chosen)
                free &= ~found[name]
        return found

    def _likely(
        self, model: ObjectModel, grid: Grid, chroma: NDArray[np.float32], colors: Sequence[NDArray[np.float32]]
    ) -> Mask:
        """Return the pixels that may show an object of some colours."""
        plain: Mask = ~grid.on_plane
        if not model.colors:
            if self._ignored:
                plain &= ~alike(chroma, self._ignored, _TOLERANCE)
            return plain
        like = alike(chroma, model.colors, model.tolerance)
        likely: Mask = like & plain
        # Of what lies in a plane, the lowest edge of a box or a thin cloth, only that is the object's which is clearly
        # more of its colour than of the plane's.
        for plane, color in zip(grid.planes, colors, strict=True):
            doubtful = np.flatnonzero(like & plane.mask)
            if doubtful.size:
                red, green, _ = np.median(color, axis=1)
                own = chroma.reshape(3, -1)[:, doubtful]
                clearly = 4.0 * difference(own, model.colors) < difference_from(own, red, green)
                likely.reshape(-1)[doubtful] = clearly
        return likely

    def _assign(
        self, models: Mapping[str, ObjectModel], parts: Parts, chroma: NDArray[np.float32]
    ) -> dict[str, list[int]]:
        """Return the parts of each object: the one that fits best, and those that an occluder separates from it."""
        # An object is known by a part of some size; smaller ones can only be added to it.
        first = [part for part in range(parts.count) if parts.size(part) >= self._least]
        if not first:
            return {}
        names = list(models)
        costs = np.array([[_cost(models[name], parts, part, chroma) for part in first] for name in names])
        rows, columns = linear_sum_assignment(costs)
        pairs = sorted((costs[r, c], names[r], first[c]) for r, c in zip(rows, columns, strict=True))
        chosen = {name: [part] for cost, name, part in pairs if cost < _NEVER}
        taken = {part for group in chosen.values() for part in group}
        for name, group in chosen.items():
            longest, grown = _longest(models[name].diagonal), True
            while grown:
                grown = False
                for part in range(parts.count):
                    if part not in taken and parts.belong_together(group, part, longest, self._least):
                        group.append(part)
                        taken.add(part)
                        grown = True
        return chosen


def _cost(model: ObjectModel, parts: Parts, part: int, chroma: NDArray[np.float32]) -> float:
    """Return how badly a part fits an object."""
    length, area = parts.length([part]), parts.area(part)
    if model.size is None:
        # Of an unknown size the largest cluster is taken.
        cost = 1.0 / math.sqrt(area)
    else:
        shortest, middle, _ = sorted(model.size)
        if length > _longest(model.diagonal) or length < _LEAST_SHARE * shortest:
            return _NEVER
        # Whole, it is about as long as its diagonal and shows no less than its smallest face.
        cost = abs(math.log(length / model.diagonal)) + max(0.0, math.log(shortest * middle / area))
    if model.colors:
        own = chroma.reshape(3, -1)[:, parts.sample(part)]
        cost += math.sqrt(float(difference(own, model.colors).mean())) / model.tolerance
    return cost


def _like(model: ObjectModel) -> Callable[[NDArray[np.uint8]], Mask] | None:
    """Return what tells by its colour whether a pixel may be an object's; None of an object without a colour."""
    if not model.colors:
        return None
    return lambda rgb: alike(chromaticity(rgb), model.colors, model.tolerance)


def _color_of(plane: Plane, chroma: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the chromaticity of some of a plane's pixels, evenly drawn, shape (3, n)."""
    return chroma.reshape(3, -1)[:, np.flatnonzero(plane.mask)[::_PLANE_STEP]]


def _longest(length: float) -> float:
    return _SIZE_SLACK * length + _SIZE_MARGIN
