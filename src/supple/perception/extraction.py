# SPDX-License-Identifier: Apache-2.0
"""From an RGB-D frame and a mask per object to a fixed number of points on each, with what they are worth."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import cv2
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.errors import FrameError, SettingError
from supple.perception.deprojection import deproject
from supple.perception.depth_repair import DepthLimits, repair
from supple.perception.frames import RgbdFrame
from supple.perception.masks import validate_masks
from supple.perception.sampling import erode, even_choice, farthest_points

__all__ = ["ObjectPoints", "ObjectQuality", "PointExtractor", "PointStatus", "TaskPointCloud"]

# How many pixels away from one that it judges `repair` still looks.
_MARGIN = 3
# Rows and columns of a 5x5 window, relative to its middle, shape (25, 1) each.
_WINDOW_ROWS, _WINDOW_COLUMNS = (offsets.reshape(25, 1) - 2 for offsets in np.indices((5, 5)))
_FEWEST_WINDOWS, _MOST_WINDOWS = 10, 300


class PointStatus(enum.StrEnum):
    """What became of an object in one frame."""

    OK = "ok"
    """As many different pixels as points were asked for."""
    SPARSE = "sparse"
    """Fewer different pixels than points were asked for, but enough: all are there, and some come more than once."""
    NOT_SEEN = "not_seen"
    """No mask, or an empty one."""
    THIN = "thin"
    """Nothing of the mask is left after erosion."""
    NO_DEPTH = "no_depth"
    """Too few pixels of the eroded mask have a depth that can be trusted."""


@dataclass(frozen=True)
class ObjectQuality:
    """What the points of one object are worth.

    Attributes:
        points: Different pixels among the points; fewer than the fixed number when the status is sparse, 0 when the
            object is left out.
        mask_area: Pixels of the mask before erosion.
        coverage: Share of the eroded mask with valid depth, 0 to 1; NaN when nothing is left of it.
        visible_fraction: Share of the object, as last seen whole, that is seen now, 0 to 1; NaN when unknown.
        depth_noise: Median deviation of depth from a local plane in [m]; NaN when it cannot be told. White noise of
            standard deviation s shows as 0.66 s.
        status: What became of the object.
    """

    points: int
    mask_area: int
    coverage: float
    visible_fraction: float
    depth_noise: float
    status: PointStatus


@dataclass(frozen=True)
class ObjectPoints:
    """Points on one object.

    Attributes:
        points: Positions in the base frame in [m], float32, shape (n, 3); n is the fixed number, or 0 when left out.
        colors: Their colours, uint8 RGB, shape (n, 3).
        pixels: (row, column) of each, int32, shape (n, 2).
        quality: What they are worth.
    """

    points: NDArray[np.float32]
    colors: NDArray[np.uint8]
    pixels: NDArray[np.int32]
    quality: ObjectQuality


@dataclass(frozen=True)
class TaskPointCloud:
    """Points on every object of a task at one moment.

    Attributes:
        stamp_ns: When the picture was taken in [ns].
        objects: By name, in the extractor's order; all of them, those left out with no points.
    """

    stamp_ns: int
    objects: Mapping[str, ObjectPoints]

    def stacked(self) -> tuple[NDArray[np.float32], NDArray[np.uint8], NDArray[np.uint32]]:
        """Return points (n, 3) in [m], colours (n, 3) and object numbers (n,) of all objects, one after the other.

        An object's number is its place in ``objects``, counted from 0, whether or not others were left out.
        """
        clouds = list(self.objects.values())
        numbers = np.repeat(np.arange(len(clouds), dtype=np.uint32), [len(cloud.points) for cloud in clouds])
        points = np.concatenate([cloud.points for cloud in clouds])
        return points, np.concatenate([cloud.colors for cloud in clouds]), numbers


class PointExtractor:
    """Extract the points of a task's objects.

    Per object: the mask is eroded, pixels without a trustworthy depth are left out, about 1000 of the rest are drawn
    evenly, and of their points the farthest from one another are kept (Point Bridge, arXiv 2601.16212). An object with
    fewer valid pixels than points asked for gives all of them, repeated in the same order up to the fixed number, and
    says ``sparse``; one with fewer than the minimum gives none. Nothing is filled in or remembered between frames.

    Args:
        objects: Names of the objects, in the order of the output.
        points_per_object: Fixed number of points on each.
        minimum_points: Fewest different pixels that an object is made of; with fewer it is left out.
        pixels_per_object: Pixels drawn evenly from the eroded mask, of which the farthest points are kept.
        erosion: Share of a mask's area to take off its edge, in [0, 1).
        limits: Which depths are trusted; the defaults without it.

    Raises:
        SettingError: No object, a name that comes twice, or a number out of range.
    """

    def __init__(
        self,
        objects: Sequence[str],
        points_per_object: int = 128,
        minimum_points: int = 32,
        pixels_per_object: int = 1000,
        erosion: float = 0.2,
        limits: DepthLimits | None = None,
    ) -> None:
        self.objects = tuple(objects)
        if not self.objects or len(set(self.objects)) != len(self.objects):
            raise SettingError(f"expected object names that differ, got {list(self.objects)}")
        if not 1 <= minimum_points <= points_per_object <= pixels_per_object:
            raise SettingError(
                "expected 1 <= minimum_points <= points_per_object <= pixels_per_object, "
                f"got {minimum_points}, {points_per_object}, {pixels_per_object}"
            )
        if not 0.0 <= erosion < 1.0:
            raise SettingError(f"expected an erosion of 0 to below 1, got {erosion}")
        self.points_per_object, self.minimum_points = points_per_object, minimum_points
        self.pixels_per_object, self.erosion = pixels_per_object, erosion
        self.limits = limits or DepthLimits()

    def extract(
        self,
        frame: RgbdFrame,
        masks: Mapping[str, NDArray[np.bool_]],
        T_base_camera: pin.SE3,
        visible_fraction: Mapping[str, float] | None = None,
    ) -> TaskPointCloud:
        """Return the points of each object in one frame.

        Args:
            frame: Colour and depth.
            masks: Pixels of each object, shape (height, width); a missing key is an object that is not seen, and keys
                that are not among ``objects`` are left alone.
            T_base_camera: Pose of the camera's optical frame in the base frame at the time of the picture.
            visible_fraction: What a tracker knows of each object's visible fraction.

        Raises:
            FrameError: A mask of another size or type than the frame's, or two that overlap; names the object. Or a
                pose that is not finite.
        """
        if not np.isfinite(T_base_camera.homogeneous).all():
            raise FrameError("tf", "transform", "the pose of the camera in the base frame is not finite")
        seen = validate_masks({name: masks[name] for name in self.objects if name in masks}, frame)
        known = visible_fraction or {}
        objects = {
            name: self._object(frame, seen.get(name), T_base_camera, float(known.get(name, math.nan)))
            for name in self.objects
        }
        return TaskPointCloud(frame.stamp_ns, MappingProxyType(objects))

    def _object(
        self, frame: RgbdFrame, mask: NDArray[np.bool_] | None, T_base_camera: pin.SE3, visible: float
    ) -> ObjectPoints:
        if mask is None:
            return _left_out(ObjectQuality(0, 0, math.nan, visible, math.nan, PointStatus.NOT_SEEN))
        area = int(np.count_nonzero(mask))
        crop = _around(mask)
        depth = frame.depth[crop]
        inside = erode(mask[crop], self.erosion)
        left = int(np.count_nonzero(inside))
        if left == 0:
            return _left_out(ObjectQuality(0, area, math.nan, visible, math.nan, PointStatus.THIN))
        trusted = repair(depth, self.limits)
        rows, columns = np.nonzero(inside & trusted)
        coverage = len(rows) / left
        if len(rows) < self.minimum_points:
            return _left_out(ObjectQuality(0, area, coverage, visible, math.nan, PointStatus.NO_DEPTH))
        top, start = crop[0].start, crop[1].start
        drawn = even_choice(rows + top, columns + start, self.pixels_per_object)
        rows, columns = rows[drawn], columns[drawn]
        noise = _depth_noise(depth, trusted, rows, columns)
        points = deproject(frame.intrinsics, rows + top, columns + start, depth[rows, columns])
        kept = farthest_points(points, self.points_per_object)
        status = PointStatus.OK if len(kept) == self.points_per_object else PointStatus.SPARSE
        quality = ObjectQuality(len(kept), area, coverage, visible, noise, status)
        kept = np.resize(kept, self.points_per_object)
        pixels = np.stack([rows[kept] + top, columns[kept] + start], axis=1).astype(np.int32)
        in_base = points[kept] @ T_base_camera.rotation.T + T_base_camera.translation
        return ObjectPoints(in_base.astype(np.float32), frame.rgb[pixels[:, 0], pixels[:, 1]], pixels, quality)


def _left_out(quality: ObjectQuality) -> ObjectPoints:
    return ObjectPoints(np.empty((0, 3), np.float32), np.empty((0, 3), np.uint8), np.empty((0, 2), np.int32), quality)


def _around(mask: NDArray[np.bool_]) -> tuple[slice, slice]:
    """Return the part of the image that holds a mask and what repairing its depth looks at."""
    column, row, width, height = cv2.boundingRect(np.ascontiguousarray(mask).view(np.uint8))
    return (
        slice(max(row - _MARGIN, 0), min(row + height + _MARGIN, mask.shape[0])),
        slice(max(column - _MARGIN, 0), min(column + width + _MARGIN, mask.shape[1])),
    )


def _depth_noise(
    depth: NDArray[np.float32],
    trusted: NDArray[np.bool_],
    rows: NDArray[np.integer],
    columns: NDArray[np.integer],
) -> float:
    """Return the median deviation of depth from the plane that fits 5x5 pixels best, in [m]; NaN with too few windows.

    On a plane inverse depth is linear in the image, and the plane that fits a window best goes through its mean in the
    middle. Windows with a pixel that is not trusted do not count.
    """
    height, width = depth.shape
    step = -(-len(rows) // _MOST_WINDOWS)
    rows, columns = rows[::step], columns[::step]
    whole = (rows >= 2) & (rows < height - 2) & (columns >= 2) & (columns < width - 2)
    at = rows[whole] + _WINDOW_ROWS, columns[whole] + _WINDOW_COLUMNS
    windows = depth[at][:, trusted[at].all(axis=0)].astype(np.float64)
    if windows.shape[1] < _FEWEST_WINDOWS:
        return math.nan
    inverse, middle = 1.0 / windows, windows[12]
    return float(np.median(np.abs(inverse[12] - inverse.mean(axis=0)) * middle**2))
