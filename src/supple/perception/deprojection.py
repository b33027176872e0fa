# SPDX-License-Identifier: Apache-2.0
"""From pixels with depth to points in the camera's optical frame (x right, y down, z forward; REP 103)."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from supple.errors import CalibrationError
from supple.perception.frames import Intrinsics

__all__ = ["deproject", "deproject_image", "pixel_rays"]

# When the iterations that undo a distortion stop; the default stops too early for the corners of a wide lens.
_UNTIL = (cv2.TERM_CRITERIA_COUNT | cv2.TERM_CRITERIA_EPS, 100, 1e-12)
# Largest error in [px] of a ray that is distorted again.
_TOLERANCE = 0.05


def pixel_rays(intrinsics: Intrinsics, rows: NDArray[np.generic], columns: NDArray[np.generic]) -> NDArray[np.float64]:
    """Return x/z and y/z of pixels, shape (n, 2).

    Args:
        intrinsics: The camera.
        rows: Row of each pixel, shape (n,); pixel centres have integer coordinates.
        columns: Column of each pixel, shape (n,).

    Raises:
        CalibrationError: The distortion cannot be undone at one of the pixels.
    """
    across, down = (np.asarray(values, dtype=np.float64) for values in (columns, rows))
    rays = np.empty((len(rows), 2))
    rays[:, 0] = (across - intrinsics.cx) / intrinsics.fx
    rays[:, 1] = (down - intrinsics.cy) / intrinsics.fy
    if not intrinsics.distortion or not len(rays):
        return rays
    coefficients = np.array(intrinsics.distortion)
    # The pixels are normalised already, so that the camera matrix is the identity.
    eye, still = np.eye(3), np.zeros(3)
    if intrinsics.distortion_model == "equidistant":
        undone = cv2.fisheye.undistortPoints(rays[:, None], eye, coefficients, criteria=_UNTIL)
        bent, _ = cv2.fisheye.projectPoints(cv2.convertPointsToHomogeneous(undone), still, still, eye, coefficients)
    else:
        undone = cv2.undistortPoints(rays[:, None], eye, coefficients, criteria=_UNTIL)
        bent, _ = cv2.projectPoints(cv2.convertPointsToHomogeneous(undone), still, still, eye, coefficients)
    wrong = ~(np.abs(bent.reshape(-1, 2) - rays).max(axis=1) * intrinsics.fx < _TOLERANCE)
    if wrong.any():
        # Beyond some angle a distortion folds back on itself: no ray belongs to the pixel.
        row, column = (int(values[wrong][0]) for values in (down, across))
        problem = f"this {intrinsics.distortion_model} cannot be undone at row {row}, column {column}"
        raise CalibrationError("d", problem)
    return np.asarray(undone, dtype=np.float64).reshape(-1, 2)


def deproject(
    intrinsics: Intrinsics,
    rows: NDArray[np.generic],
    columns: NDArray[np.generic],
    depth: NDArray[np.floating],
) -> NDArray[np.float64]:
    """Return the points seen by pixels, in the optical frame in [m], shape (n, 3).

    Args:
        intrinsics: The camera.
        rows: Row of each pixel, shape (n,).
        columns: Column of each pixel, shape (n,).
        depth: Distance along the optical axis of each in [m], shape (n,); NaN gives a point of NaN.
    """
    points = np.empty((len(rows), 3))
    points[:, 2] = depth
    points[:, :2] = pixel_rays(intrinsics, rows, columns) * points[:, 2:]
    return points


def deproject_image(intrinsics: Intrinsics, depth: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the point of every pixel of a depth image, in the optical frame in [m].

    Args:
        intrinsics: The camera.
        depth: Distance along the optical axis in [m], shape (height, width); NaN gives a point of NaN.

    Returns:
        Points, float32, shape (height, width, 3).
    """
    height, width = depth.shape
    points = np.empty((height, width, 3), np.float32)
    if intrinsics.distortion:
        rows, columns = np.indices((height, width)).reshape(2, -1)
        points[..., :2] = pixel_rays(intrinsics, rows, columns).reshape(height, width, 2)
        points[..., :2] *= depth[..., None]
    else:
        np.multiply(depth, (np.arange(width) - intrinsics.cx) / intrinsics.fx, out=points[..., 0], casting="same_kind")
        vertical = (np.arange(height) - intrinsics.cy) / intrinsics.fy
        np.multiply(depth, vertical[:, None], out=points[..., 1], casting="same_kind")
    points[..., 2] = depth
    return points
