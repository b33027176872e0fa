# SPDX-License-Identifier: Apache-2.0
"""What spoils a depth camera's points: noise, flying pixels, missing depth, something in front, a wrong calibration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import cv2
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

__all__ = ["CONDITIONS", "Condition", "View", "degraded"]

_PLATE_RGB = (120, 120, 124)
# The plate stands at this share of the way to the object.
_PLATE_AT = 0.6
_BLOTCH = 6.0
_AXES = ((1, 0, 0), (0, 1, 0), (0, 0, 1), (-1, 0, 0), (0, -1, 0), (0, 0, -1))


@dataclass(frozen=True, eq=False)
class View:
    """What a camera gives, and what it is believed to be.

    Attributes:
        rgb: Colours, uint8, shape (height, width, 3).
        depth: Distance along the optical axis in [m], float32, shape (height, width); NaN where there is none.
        labels: Which object each pixel shows, uint16, shape (height, width).
        focal: Factor on the focal length that the camera is believed to have.
        T_camera_believed: Pose of the believed camera in the true one.
    """

    rgb: NDArray[np.uint8]
    depth: NDArray[np.float32]
    labels: NDArray[np.uint16]
    focal: float = 1.0
    T_camera_believed: pin.SE3 = field(default_factory=pin.SE3.Identity)


@dataclass(frozen=True)
class Condition:
    """One thing that is varied, alone.

    Attributes:
        name: What it is.
        unit: Unit of its levels.
        levels: Values that it takes, from harmless on.
        note: What its levels are, a sentence.
    """

    name: str
    unit: str
    levels: tuple[float, ...]
    note: str


CONDITIONS = (
    Condition("distance", "m", (0.4, 0.6, 0.8, 1.0, 1.5, 2.0), "From the camera to the middle of the first object."),
    Condition("occlusion", "%", (0, 20, 40, 60, 80), "Share of the object's pixels that a plate held before it hides."),
    Condition("noise", "mm at 1 m", (0, 1, 2, 4, 8), "Standard deviation of depth; it grows with the square of depth."),
    Condition("flying pixels", "px", (0, 1, 2, 4), "Width of the band at edges in which front and back are mixed."),
    Condition("missing depth", "%", (0, 20, 40, 60, 80), "Share of all pixels that have no depth, in blotches."),
    Condition(
        "rotation",
        "deg",
        (0, 0.25, 0.5, 1, 2),
        "Error of the camera's orientation, about another axis in each view.",
    ),
    Condition(
        "translation",
        "mm",
        (0, 2, 5, 10, 20),
        "Error of the camera's position, along another axis in each view.",
    ),
    Condition("focal length", "%", (0, 1, 2, 5), "How much too long the focal length is believed to be."),
)
"""Everything that points are measured under."""


def degraded(view: View, condition: str, level: float, mask: NDArray[np.bool_], index: int) -> View:
    """Return a view under one condition; as it was for a condition that the picture itself shows (distance).

    Args:
        view: What a perfect camera gives.
        condition: Name of the condition.
        level: Its level.
        mask: Pixels of the object that is looked at, shape (height, width).
        index: Number of the view: seed of what is random, and the axis of what has one.
    """
    change = _CHANGES.get(condition)
    if change is None or level == 0.0:
        return view
    return change(view, float(level), mask, index)


def _occluded(view: View, level: float, mask: NDArray[np.bool_], index: int) -> View:
    """Hold a plate, square to the camera, before the left or the right part of the object."""
    columns = np.nonzero(mask)[1]
    if not columns.size:
        return view
    left = index % 2 == 0
    edge = np.quantile(columns, 0.01 * level if left else 1.0 - 0.01 * level)
    across = np.arange(mask.shape[1])[None, :]
    plate = np.broadcast_to(across < edge if left else across > edge, mask.shape)
    distance = np.float32(_PLATE_AT * float(np.nanmin(view.depth[mask])))
    hidden = plate & ~(view.depth < distance)
    rgb, depth, labels = view.rgb.copy(), view.depth.copy(), view.labels.copy()
    rgb[hidden], depth[hidden], labels[hidden] = _PLATE_RGB, distance, 0
    return replace(view, rgb=rgb, depth=depth, labels=labels)


def _noisy(view: View, level: float, mask: NDArray[np.bool_], index: int) -> View:
    # The error of a disparity is the same everywhere, so that of a depth grows with its square.
    noise = np.random.default_rng(index).standard_normal(view.depth.shape, np.float32)
    return replace(view, depth=view.depth + np.float32(1e-3 * level) * view.depth**2 * noise)


def _flying(view: View, level: float, mask: NDArray[np.bool_], index: int) -> View:
    """Mix front and back in a band about each edge of depth."""
    depth = np.nan_to_num(view.depth, nan=0.0)
    # A band of w pixels reaches half as far to each side, and at least one.
    kernel = np.ones((3, 3), np.uint8)
    reach = max(1, round(0.5 * level))
    near = np.asarray(cv2.erode(depth, kernel, iterations=reach), np.float32)
    far = np.asarray(cv2.dilate(depth, kernel, iterations=reach), np.float32)
    band = (far - near > 0.05) & np.isfinite(view.depth)
    share = np.random.default_rng(index).random(depth.shape, np.float32)
    mixed = near + share * (far - near)
    return replace(view, depth=np.where(band & (near > 0.0), mixed, view.depth).astype(np.float32))


def _missing(view: View, level: float, mask: NDArray[np.bool_], index: int) -> View:
    white = np.random.default_rng(index).standard_normal(view.depth.shape, np.float32)
    soft = np.asarray(cv2.GaussianBlur(white, (0, 0), _BLOTCH), np.float32)
    return replace(view, depth=np.where(soft < np.quantile(soft, 0.01 * level), np.float32(np.nan), view.depth))


def _turned(view: View, level: float, mask: NDArray[np.bool_], index: int) -> View:
    axis = np.array(_AXES[index % len(_AXES)], np.float64)
    return replace(view, T_camera_believed=pin.SE3(pin.exp3(np.radians(level) * axis), np.zeros(3)))


def _moved(view: View, level: float, mask: NDArray[np.bool_], index: int) -> View:
    axis = np.array(_AXES[index % len(_AXES)], np.float64)
    return replace(view, T_camera_believed=pin.SE3(np.eye(3), 1e-3 * level * axis))


def _focal(view: View, level: float, mask: NDArray[np.bool_], index: int) -> View:
    return replace(view, focal=1.0 + 0.01 * level)


_CHANGES: Mapping[str, Callable[[View, float, NDArray[np.bool_], int], View]] = {
    "occlusion": _occluded,
    "noise": _noisy,
    "flying pixels": _flying,
    "missing depth": _missing,
    "rotation": _turned,
    "translation": _moved,
    "focal length": _focal,
}
