# SPDX-License-Identifier: Apache-2.0
"""Masks from colour and geometry: large planes removed, what stands on them split into clusters, clusters named."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from supple.errors import FrameError, SettingError
from supple.perception.frames import RgbdFrame
from supple.perception.masks import Mask
from supple.perception.planes import Plane, find_planes

__all__ = ["GeometricMasks", "ObjectModel"]

Color = tuple[int, int, int]

_STRIDE = 2
# Darker than this a pixel's colour is noise.
_DARKEST = 24
# Noise of a pixel's channels, 0 to 255: the darker it is, the less its colour is worth.
_GRAIN = 6.0
# Neighbours belong together if they are no farther apart than so many times what a surface seen straight on would give.
_LINK = 6.0
_LEAST_LINK = 0.008
# An object seen from any side is at most as long as its diagonal, give or take what depth noise adds.
_SIZE_SLACK, _SIZE_MARGIN = 1.15, 0.02
# ... and an object in view shows at least this share of its smallest extent.
_LEAST_SHARE = 0.5
_SPECK = (5, 5)
_MOST_PARTS, _LEAST_PART = 24, 4
_SAMPLES = 300
_LEVEL = math.cos(math.radians(15.0))
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
    tolerance: float = 0.04
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


@dataclass(frozen=True)
class _Grid:
    """A frame at a coarser grid, with what clustering needs.

    Attributes:
        points: Positions in the optical frame in [m], (3, h, w).
        valid: Pixels with a depth within range.
        chroma: Red's and green's share of a pixel's colour, and the variance of each by noise, (3, h, w).
        right: Whether a pixel belongs to the same surface as its right neighbour, (h, w - 1).
        below: Whether it belongs to the same surface as the one below, (h - 1, w).
        planes: Large flat surfaces.
        on_plane: Pixels of any of them.
        pixel_area: Area in [m^2] that a pixel covers at a depth of 1 m.
    """

    points: NDArray[np.float32]
    valid: Mask
    chroma: NDArray[np.float32]
    right: Mask
    below: Mask
    planes: list[Plane]
    on_plane: Mask
    pixel_area: float


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
        if not 0.0 < near < far:
            raise SettingError(f"near: expected 0 < near < far, got {near} and {far} m")
        self.objects = dict(objects)
        self.up: NDArray[np.float64] | None = None
        self._ignored = ObjectModel(tuple(ignored)) if ignored else None
        self._near, self._far = near, far
        self._flatness, self._noise = flatness, noise
        self._least = max(4, least_pixels // _STRIDE**2)
        # What is flat and clearly larger than any face of an object is no object.
        faces = [sorted(model.size)[1:] for model in objects.values() if model.size and not model.support]
        self._least_extent = max([0.2, *(1.5 * width for width, _ in faces)]) if faces else 0.3
        self._least_area = max([0.04, *(1.3 * width * length for width, length in faces)]) if faces else 0.06

    def masks(self, frame: RgbdFrame) -> Mapping[str, Mask]:
        """Return the mask of each object that is seen.

        Raises:
            FrameError: The frame is too small to look for anything in it.
        """
        if min(frame.shape) < 4 * _STRIDE:
            raise FrameError("color", "size", f"{frame.shape[1]} x {frame.shape[0]} pixels are too few to find objects")
        grid = self._grid(frame)
        found: dict[str, Mask] = {}
        for name, model in self.objects.items():
            if model.support:
                plane = self._support(model, grid)
                if plane is not None:
                    found[name] = self._refine_support(plane, frame)
        clusters = self._clusters(grid)
        for name, cluster in clusters.items():
            mask = self._refine(cluster, self.objects[name], grid, frame)
            if mask.any():
                found[name] = mask
                for other, taken in found.items():
                    if self.objects[other].support:
                        taken &= ~mask
        return {name: found[name] for name in self.objects if name in found and found[name].any()}

    # -- the coarse image ------------------------------------------------------------------------------------------

    def _grid(self, frame: RgbdFrame) -> _Grid:
        depth, x, y = _thinned(frame)
        valid = (depth >= self._near) & (depth <= self._far)
        z = np.where(valid, depth, np.float32(0.0))
        points = np.stack((z * x, z * y, z))
        limit = _link_length(z, frame) ** 2
        right = valid[:, 1:] & valid[:, :-1] & (_square(points[:, :, 1:] - points[:, :, :-1]) < limit[:, :-1])
        below = valid[1:] & valid[:-1] & (_square(points[:, 1:] - points[:, :-1]) < limit[:-1])
        pixel_area = _STRIDE**2 / (frame.intrinsics.fx * frame.intrinsics.fy)
        planes = find_planes(
            points,
            valid,
            tolerance=self._thickness(z),
            least_extent=self._least_extent,
            least_area=self._least_area,
            pixel_area=pixel_area,
        )
        on_plane = np.zeros_like(valid)
        for plane in planes:
            on_plane |= plane.mask
        chroma = _chromaticity(frame.rgb[::_STRIDE, ::_STRIDE])
        return _Grid(points, valid, chroma, right, below, planes, on_plane, pixel_area)

    def _thickness(self, z: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return how far from a plane points at some depths may lie in [m]."""
        return np.float32(self._flatness) + np.float32(self._noise) * z * z

    def _support(self, model: ObjectModel, grid: _Grid) -> Plane | None:
        """Return the largest plane that fits what is known of a support."""
        for plane in grid.planes:
            if self.up is not None and abs(float(plane.normal @ self.up)) < _LEVEL:
                continue
            if model.size is not None:
                length, width, _ = sorted(model.size, reverse=True)
                if plane.extents[0] > _longest(math.hypot(length, width)) or plane.extents[1] > _longest(length):
                    continue
            if model.colors and _share(_alike(grid.chroma[:, plane.mask], model)) < 0.5:
                continue
            return plane
        return None

    def _refine_support(self, plane: Plane, frame: RgbdFrame) -> Mask:
        """Return a plane's pixels in the full image."""
        x, y = _rays(frame)
        a, b, c = plane.normal.astype(np.float32)
        z = frame.depth
        away = z * ((a * x + c) + b * y[:, None]) + np.float32(plane.offset)
        near: Mask = np.abs(away) < self._thickness(z)
        near &= _enlarge(plane.mask, frame.shape)
        return near | (_closed(near) & np.isnan(z))

    # -- clusters ----------------------------------------------------------------------------------------------------

    def _clusters(self, grid: _Grid) -> dict[str, Mask]:
        """Return the pixels of each object on the grid; objects with a colour choose first."""
        classes: dict[tuple[tuple[Color, ...], float], dict[str, ObjectModel]] = {}
        for name, model in sorted(self.objects.items(), key=lambda item: not item[1].colors):
            if not model.support:
                classes.setdefault((model.colors, model.tolerance), {})[name] = model
        free = grid.valid.copy()
        found: dict[str, Mask] = {}
        for models in classes.values():
            parts = _Parts(free & self._likely(next(iter(models.values())), grid), grid)
            for name, chosen in self._assign(models, parts, grid).items():
                found[name] = parts.mask(chosen)
                free &= ~found[name]
        return found

    def _likely(self, model: ObjectModel, grid: _Grid) -> Mask:
        """Return the pixels that may show an object of some colours."""
        if not model.colors:
            plain: Mask = ~grid.on_plane
            return plain if self._ignored is None else plain & ~_alike(grid.chroma, self._ignored)
        alike = _alike(grid.chroma, model)
        likely: Mask = alike & ~grid.on_plane
        # Of what lies in a plane, the lowest edge of a box or a thin cloth, only that is the object's which is clearly
        # more of its colour than of the plane's.
        for plane in grid.planes:
            doubtful = alike & plane.mask
            if doubtful.any():
                own = np.median(grid.chroma[:, plane.mask][:, ::16], axis=1)
                chroma = grid.chroma[:, doubtful]
                likely[doubtful] = 4.0 * _difference(chroma, model) < _difference_from(chroma, own[0], own[1])
        return likely

    def _assign(self, models: Mapping[str, ObjectModel], parts: _Parts, grid: _Grid) -> dict[str, list[int]]:
        """Return the parts of each object: the one that fits best, and those that an occluder separates from it."""
        # An object is known by a part of some size; smaller ones can only be added to it.
        first = [part for part in range(parts.count) if parts.pixels(part) >= self._least]
        if not first:
            return {}
        names = list(models)
        costs = np.array([[self._cost(models[name], parts, part, grid) for part in first] for name in names])
        rows, columns = linear_sum_assignment(costs)
        pairs = sorted((costs[r, c], names[r], first[c]) for r, c in zip(rows, columns, strict=True))
        chosen = {name: [part] for cost, name, part in pairs if cost < _NEVER}
        taken = {part for group in chosen.values() for part in group}
        for name, group in chosen.items():
            grown = True
            while grown:
                grown = False
                for part in range(parts.count):
                    if part not in taken and parts.belong_together(group, part, models[name], grid, self._least):
                        group.append(part)
                        taken.add(part)
                        grown = True
        return chosen

    def _cost(self, model: ObjectModel, parts: _Parts, part: int, grid: _Grid) -> float:
        """Return how badly a part fits an object."""
        length, area = parts.length([part]), parts.area(part, grid)
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
            cost += math.sqrt(float(_difference(parts.chroma(part, grid), model).mean())) / model.tolerance
        return cost

    def _refine(self, cluster: Mask, model: ObjectModel, grid: _Grid, frame: RgbdFrame) -> Mask:
        """Return a cluster's pixels in the full image: those of its colour and at its depth."""
        mask = np.zeros(frame.shape, np.bool_)
        rows, columns = np.flatnonzero(cluster.any(axis=1)), np.flatnonzero(cluster.any(axis=0))
        coarse = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        fine = np.s_[_STRIDE * rows[0] : _STRIDE * (rows[-1] + 1), _STRIDE * columns[0] : _STRIDE * (columns[-1] + 1)]
        depth = frame.depth[fine]
        shape = depth.shape
        z = _enlarge(grid.points[2][coarse], shape)
        inside = _enlarge(cluster[coarse], shape) & (np.abs(depth - z) < _link_length(z, frame))
        if model.colors:
            inside &= _alike(_chromaticity(frame.rgb[fine]), model)
        # Specks without depth or of a noisy colour are the object's as well, if nothing nearer or farther shows there.
        weight = np.maximum(cv2.blur(inside.astype(np.float32), _SPECK), np.float32(1e-6))
        around: NDArray[np.float32] = cv2.blur(np.where(inside, depth, np.float32(0.0)), _SPECK) / weight
        same = np.isnan(depth) | (np.abs(depth - around) < _link_length(around, frame))
        mask[fine] = inside | (_closed(inside) & same)
        return mask


class _Parts:
    """The connected parts of a mask on the grid.

    Args:
        likely: Pixels to split.
        grid: The frame.

    Attributes:
        count: How many there are, the largest ones first, specks left out.
    """

    def __init__(self, likely: Mask, grid: _Grid) -> None:
        labels = _components(likely, grid)
        area = np.bincount(labels.reshape(-1))
        area[0] = 0
        order = [label for label in np.argsort(-area, kind="stable")[:_MOST_PARTS] if area[label] >= _LEAST_PART]
        self.count = len(order)
        self._labels, self._order = labels, order
        self._pixels = [np.flatnonzero(labels.reshape(-1) == label) for label in order]
        # Evenly drawn points say how long a part is to within a pixel or two.
        sampled = [pixels[:: max(1, pixels.size // _SAMPLES)] for pixels in self._pixels]
        self._points = [grid.points.reshape(3, -1)[:, pixels].T for pixels in sampled]

    def pixels(self, part: int) -> int:
        """Return how many pixels a part has."""
        return self._pixels[part].size

    def area(self, part: int, grid: _Grid) -> float:
        """Return the area in [m^2] that a part covers, seen straight on."""
        return grid.pixel_area * float(np.sum(grid.points[2].reshape(-1)[self._pixels[part]] ** 2))

    def mask(self, parts: list[int]) -> Mask:
        """Return the pixels of some parts."""
        return np.isin(self._labels, [self._order[part] for part in parts])

    def chroma(self, part: int, grid: _Grid) -> NDArray[np.float32]:
        """Return the chromaticity of a part's pixels, shape (3, n)."""
        return grid.chroma.reshape(3, -1)[:, self._pixels[part]]

    def length(self, parts: list[int]) -> float:
        """Return the greatest distance in [m] between two points of some parts, by two sweeps."""
        cloud = np.concatenate([self._points[part] for part in parts])
        start = cloud[np.argmax(np.linalg.norm(cloud - cloud.mean(axis=0), axis=1))]
        return float(np.linalg.norm(cloud - start, axis=1).max())

    def belong_together(self, group: list[int], part: int, model: ObjectModel, grid: _Grid, least: int) -> bool:
        """Tell whether a part and a group are one object: they touch, or something nearer is between them.

        Together they must be no longer than the object, and no background may show between them.

        Args:
            group: Parts that are the object's.
            part: Another one.
            model: The object.
            grid: The frame.
            least: Pixels that a part must have that does not touch the group.
        """
        if self.length([*group, part]) > _longest(model.diagonal):
            return False
        if self._touch(group, part):
            return True
        if self.pixels(part) < least:
            # A speck behind an occluder may be anything.
            return False
        width = grid.valid.shape[1]
        ends = []
        for pixels in (np.concatenate([self._pixels[i] for i in group]), self._pixels[part]):
            sample = pixels[:: max(1, pixels.size // _SAMPLES)]
            ends.append(np.stack(np.divmod(sample, width), axis=1))
        nearest = np.unravel_index(np.argmin(cdist(*ends)), (len(ends[0]), len(ends[1])))
        start, end = ends[0][nearest[0]], ends[1][nearest[1]]
        steps = max(2, int(np.abs(end - start).max()))
        share = np.arange(1, steps)[:, None] / steps
        rows, columns = np.rint(start + share * (end - start)).astype(int).T
        depth = grid.points[2]
        z, share = depth[rows, columns], share[:, 0]
        straight = (1.0 - share) * depth[tuple(start)] + share * depth[tuple(end)]
        margin = np.maximum(_LEAST_LINK, 0.03 * straight)
        nearer = z < straight - margin
        beside = (z <= straight + margin) & ~grid.on_plane[rows, columns]
        return _share(nearer | beside | ~grid.valid[rows, columns]) >= 0.9

    def _touch(self, group: list[int], part: int) -> bool:
        """Tell whether a part has a pixel next to one of a group."""
        height, width = self._labels.shape
        rows, columns = np.divmod(self._pixels[part], width)
        owners = [self._order[i] for i in group]
        for down, right in ((0, 1), (0, -1), (1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)):
            beside = self._labels[np.clip(rows + down, 0, height - 1), np.clip(columns + right, 0, width - 1)]
            if np.isin(beside, owners).any():
                return True
        return False


def _components(mask: Mask, grid: _Grid) -> NDArray[np.int32]:
    """Return the connected parts of a mask, 0 outside, cut where neighbours are far apart in depth.

    Links between neighbours become pixels of their own in an image twice as large, so that ordinary connected
    components see them.
    """
    height, width = mask.shape
    links = np.zeros((2 * height - 1, 2 * width - 1), np.uint8)
    links[::2, ::2] = mask
    links[::2, 1::2] = grid.right & mask[:, 1:] & mask[:, :-1]
    links[1::2, ::2] = grid.below & mask[1:] & mask[:-1]
    _, labels = cv2.connectedComponents(links, connectivity=4)
    return np.ascontiguousarray(labels[::2, ::2])


def _link_length(z: NDArray[np.float32], frame: RgbdFrame) -> NDArray[np.float32]:
    """Return how far apart in [m] neighbours on one surface may be at some depths."""
    length: NDArray[np.float32] = np.maximum(
        np.float32(_LINK * _STRIDE / frame.intrinsics.fx) * z, np.float32(_LEAST_LINK)
    )
    return length


def _square(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the squared length of vectors of shape (3, ...)."""
    square: NDArray[np.float32] = vectors[0] ** 2 + vectors[1] ** 2 + vectors[2] ** 2
    return square


def _thinned(frame: RgbdFrame) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Return depth, x/z and y/z of every second row and column; where one has no depth, those of a pixel beside it."""
    x, y = _rays(frame)
    depth = frame.depth[::_STRIDE, ::_STRIDE].copy()
    column, row = (np.array(side) for side in np.broadcast_arrays(x[::_STRIDE], y[::_STRIDE, None]))
    for down, right in ((0, 1), (1, 0), (1, 1)):
        beside = frame.depth[down::_STRIDE, right::_STRIDE]
        here = np.s_[: beside.shape[0], : beside.shape[1]]
        hole = np.isnan(depth[here])
        np.copyto(depth[here], beside, where=hole)
        np.copyto(column[here], x[right::_STRIDE], where=hole)
        np.copyto(row[here], y[down::_STRIDE, None], where=hole)
    return depth, column, row


def _rays(frame: RgbdFrame) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return x/z of each column and y/z of each row; lens distortion moves no pixel to another object."""
    k = frame.intrinsics
    x = (np.arange(k.width, dtype=np.float32) - np.float32(k.cx)) / np.float32(k.fx)
    y = (np.arange(k.height, dtype=np.float32) - np.float32(k.cy)) / np.float32(k.fy)
    return x, y


def _chromaticity(rgb: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return red's and green's share of each pixel's colour and their variance, (3, h, w); NaN where it is too dark."""
    red, green, blue = (channel.astype(np.float32) for channel in cv2.split(np.ascontiguousarray(rgb)))
    total = red + green + blue
    total[total < 3 * _DARKEST] = np.nan
    return np.stack((red / total, green / total, (_GRAIN / total) ** 2))


def _difference_from(chroma: NDArray[np.float32], red: float, green: float) -> NDArray[np.float32]:
    """Return the squared distance of chromaticities (3, ...) from one, in all three channels' shares."""
    r, g = chroma[0] - np.float32(red), chroma[1] - np.float32(green)
    # The shares sum to 1, so blue's differs by -(r + g).
    square: NDArray[np.float32] = 2.0 * (r * r + g * g + r * g)
    return square


def _difference(chroma: NDArray[np.float32], model: ObjectModel) -> NDArray[np.float32]:
    """Return the squared distance of chromaticities (3, ...) from the nearest of a model's colours."""
    shares = [np.divide(color, sum(color)) for color in model.colors]
    nearest = _difference_from(chroma, shares[0][0], shares[0][1])
    for share in shares[1:]:
        nearest = np.minimum(nearest, _difference_from(chroma, share[0], share[1]))
    return nearest


def _alike(chroma: NDArray[np.float32], model: ObjectModel) -> Mask:
    alike: Mask = _difference(chroma, model) < model.tolerance**2 + chroma[2]
    return alike


def _closed(mask: Mask) -> Mask:
    """Return a mask without holes narrower than a few pixels."""
    closed: Mask = cv2.morphologyEx(mask.view(np.uint8), cv2.MORPH_CLOSE, np.ones(_SPECK, np.uint8)).view(np.bool_)
    return closed


def _share(mask: Mask) -> float:
    return float(np.count_nonzero(mask)) / mask.size


def _longest(length: float) -> float:
    return _SIZE_SLACK * length + _SIZE_MARGIN


def _enlarge(image: NDArray, shape: tuple[int, int]) -> NDArray:
    """Return a coarse image, or a part of one, at the size of the full one, each pixel as a square."""
    return np.repeat(np.repeat(image, _STRIDE, axis=0), _STRIDE, axis=1)[: shape[0], : shape[1]]
