# SPDX-License-Identifier: Apache-2.0
"""What a depth camera gives: intrinsics, depth in metres and one checked RGB-D frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supple.errors import CalibrationError, FrameError

__all__ = ["DEPTH_UNITS", "PLAUSIBLE_DEPTH", "Intrinsics", "RgbdFrame", "depth_in_metres"]

DEPTH_UNITS: Mapping[str, float] = MappingProxyType({"16UC1": 0.001, "32FC1": 1.0})
"""Depth encodings of REP 118 with the unit in [m] that each has by default."""

PLAUSIBLE_DEPTH = (0.035, 55.0)
"""Range in [m] in which the median of a depth image must lie; scenes of 0.06 to 30 m, off by 1000, fall outside."""

_DTYPES = {"16UC1": np.uint16, "32FC1": np.float32}
_DISTORTION_LENGTHS = {"plumb_bob": (4, 5), "rational_polynomial": (8,), "equidistant": (4,)}
# Least focal length over image size: a pinhole camera that sees 175 degrees or more was never calibrated.
_LEAST_FOCAL = 0.022


@dataclass(frozen=True)
class Intrinsics:
    """A pinhole camera; pixel centres have integer coordinates, (0, 0) is the centre of the upper left pixel.

    Attributes:
        fx: Focal length along columns in [px].
        fy: Focal length along rows in [px].
        cx: Column of the principal point in [px].
        cy: Row of the principal point in [px].
        width: Image width in [px].
        height: Image height in [px].
        distortion_model: ``"plumb_bob"``, ``"rational_polynomial"`` or ``"equidistant"``, as in CameraInfo.
        distortion: Its coefficients; empty for an image without distortion.

    Raises:
        CalibrationError: A focal length that is not positive or that no camera has, a principal point outside the
            image, or a distortion model that is not known or has another number of coefficients.
    """

    fx: float
    fy: float
    cx: float
    cy: float
    width: int
    height: int
    distortion_model: str = "plumb_bob"
    distortion: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.width < 1 or self.height < 1:
            raise CalibrationError("width", f"no image has {self.width} x {self.height} pixels")
        numbers = (self.fx, self.fy, self.cx, self.cy, *self.distortion)
        if not np.isfinite(numbers).all():
            raise CalibrationError("k", f"expected finite numbers, got {list(numbers)}")
        if self.fx <= 0.0 or self.fy <= 0.0:
            raise CalibrationError("k", f"uncalibrated: focal lengths {self.fx:g}, {self.fy:g} px")
        for name, focal, size in (("fx", self.fx, self.width), ("fy", self.fy, self.height)):
            if focal / size < _LEAST_FOCAL:
                angle = np.degrees(2.0 * np.arctan(0.5 * size / focal))
                raise CalibrationError("k", f"no camera sees {angle:.0f} deg: {name} is {focal:g} px for {size} pixels")
        if not (0.0 < self.cx < self.width and 0.0 < self.cy < self.height):
            raise CalibrationError(
                "k",
                f"principal point ({self.cx:g}, {self.cy:g}) px lies outside the image of {self.width} x {self.height};"
                " calibrated at another resolution?",
            )
        if self.distortion:
            self._check_distortion()

    def _check_distortion(self) -> None:
        lengths, got = _DISTORTION_LENGTHS.get(self.distortion_model), len(self.distortion)
        if lengths is None:
            known = ", ".join(sorted(_DISTORTION_LENGTHS))
            raise CalibrationError("distortion_model", f"unknown model {self.distortion_model!r} (available: {known})")
        if got not in lengths:
            wanted = " or ".join(map(str, lengths))
            raise CalibrationError("d", f"{self.distortion_model} has {wanted} coefficients, got {got}")

    @classmethod
    def from_camera_info(
        cls,
        k: ArrayLike,
        p: ArrayLike,
        width: int,
        height: int,
        distortion_model: str = "",
        d: Sequence[float] = (),
        rectified: bool = False,
    ) -> Intrinsics:
        """Return the intrinsics that a CameraInfo message holds.

        A raw image is described by K and D, a rectified one by P alone. Drivers often fill in only one of K and P
        (the other is all zero, or has fx = 0): then the valid one is used, and without distortion if that is P.

        Args:
            k: K, row by row, shape (9,) or (3, 3), in [px].
            p: P, row by row, shape (12,) or (3, 4), in [px].
            width: Image width in [px].
            height: Image height in [px].
            distortion_model: Name of the distortion model; without one there is no distortion.
            d: Distortion coefficients; all zero means none.
            rectified: Whether the image is a rectified one, so that P comes first.

        Raises:
            CalibrationError: Uncalibrated (neither K nor P valid), another resolution than the image's, a second
                camera of a stereo pair described by P alone, or a distortion that is not known.
        """
        K, P = _matrix(k, (3, 3), "k"), _matrix(p, (3, 4), "p")
        usable = {"k": _calibrated(K), "p": _calibrated(P)}
        order = ("p", "k") if rectified else ("k", "p")
        chosen = next((name for name in order if usable[name]), None)
        if chosen is None:
            raise CalibrationError(
                "k",
                f"uncalibrated: neither K (fx {K[0, 0]:g}, fy {K[1, 1]:g}) nor P (fx {P[0, 0]:g}, fy {P[1, 1]:g})"
                " holds focal lengths",
            )
        if chosen == "p" and (P[0, 3] != 0.0 or P[1, 3] != 0.0):
            raise CalibrationError(
                "p", f"the second camera of a stereo pair (offset {P[0, 3]:g}, {P[1, 3]:g} px); use K"
            )
        matrix = K if chosen == "k" else P
        fx, fy, cx, cy = (float(matrix[at]) for at in ((0, 0), (1, 1), (0, 2), (1, 2)))
        bent = chosen == "k" and not rectified and bool(distortion_model) and any(value != 0.0 for value in d)
        model, coefficients = (distortion_model, tuple(float(value) for value in d)) if bent else ("plumb_bob", ())
        return cls(fx, fy, cx, cy, int(width), int(height), model, coefficients)


def _matrix(values: ArrayLike, shape: tuple[int, int], field: str) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.size != shape[0] * shape[1]:
        raise CalibrationError(field, f"expected {shape[0] * shape[1]} numbers, got {array.size}")
    return array.reshape(shape)


def _calibrated(matrix: NDArray[np.float64]) -> bool:
    return bool(np.isfinite(matrix).all() and matrix[0, 0] > 0.0 and matrix[1, 1] > 0.0)


def depth_in_metres(image: NDArray[np.generic], encoding: str, unit: float | None = None) -> NDArray[np.float32]:
    """Return a depth image in metres with NaN where there is no depth.

    Args:
        image: Depths as the driver gives them, shape (height, width): 16UC1 (0 is invalid) or 32FC1 (NaN, +-Inf and
            values of 0 and below are invalid; REP 117, REP 118).
        encoding: ``"16UC1"`` or ``"32FC1"``.
        unit: Length in [m] of one unit of the image; without it 0.001 for 16UC1 and 1 for 32FC1 (REP 118).

    Returns:
        Distance along the optical axis in [m], shape (height, width), a new array.

    Raises:
        FrameError: Another encoding, type or shape, no pixel, a unit that is not positive, or depths that no scene
            has, because the unit is wrong by a factor of about 1000.
    """
    if encoding not in DEPTH_UNITS:
        raise FrameError("depth", "encoding", f"unknown {encoding!r} (available: {', '.join(sorted(DEPTH_UNITS))})")
    _check_image("depth", image, 2, np.dtype(_DTYPES[encoding]), encoding)
    scale = DEPTH_UNITS[encoding] if unit is None else float(unit)
    if not (np.isfinite(scale) and scale > 0.0):
        raise FrameError("depth", "unit", f"expected a positive length in m, got {scale:g}")
    with np.errstate(over="ignore", invalid="ignore"):
        depth = np.multiply(image, np.float32(scale), dtype=np.float32)
    # One comparison finds zero, negative and NaN; +Inf needs the other.
    depth[~((depth > 0.0) & (depth < np.inf))] = np.nan
    _check_plausible(depth, encoding, scale)
    return depth


def _check_plausible(depth: NDArray[np.float32], encoding: str, unit: float) -> None:
    # Every eighth row and column says as much about the unit as all of them; small images are looked at whole.
    step = 8 if min(depth.shape) >= 64 else 1
    sample = depth[::step, ::step]
    sample = sample[np.isfinite(sample)]
    if sample.size == 0:
        return
    median, (low, high) = float(np.median(sample)), PLAUSIBLE_DEPTH
    if not low <= median <= high:
        raise FrameError(
            "depth",
            "unit",
            f"median depth {median:.3g} m with {encoding} in units of {unit:g} m; expected {low:g} to {high:g} m:"
            " is the unit wrong by 1000?",
        )


def _check_image(source: str, image: object, ndim: int, dtype: np.dtype, what: str) -> None:
    if not isinstance(image, np.ndarray):
        raise FrameError(source, "data", f"expected an array, got {type(image).__name__}")
    if image.ndim != ndim:
        raise FrameError(source, "shape", f"expected {ndim} dimensions, got shape {image.shape}")
    if image.size == 0:
        raise FrameError(source, "size", f"an image without pixels, shape {image.shape}")
    # The byte order may differ from the machine's; the kind and width may not.
    if image.dtype.newbyteorder("=") != dtype:
        raise FrameError(source, "encoding", f"expected {dtype} for {what}, got {image.dtype}")


@dataclass(frozen=True)
class RgbdFrame:
    """Colour and depth that belong to the same pixels and the same moment.

    Attributes:
        stamp_ns: When the picture was taken in [ns], on the node clock.
        rgb: Colours, uint8, shape (height, width, 3).
        depth: Distance along the optical axis (z-depth) in [m], float32, shape (height, width); NaN where invalid.
        intrinsics: The camera that both were taken by (depth is aligned to colour).

    Raises:
        FrameError: Wrong type, no pixel, or sizes of colour, depth and calibration that differ.
    """

    stamp_ns: int
    rgb: NDArray[np.uint8]
    depth: NDArray[np.float32]
    intrinsics: Intrinsics

    def __post_init__(self) -> None:
        _check_image("color", self.rgb, 3, np.dtype(np.uint8), "rgb8")
        _check_image("depth", self.depth, 2, np.dtype(np.float32), "metres")
        height, width = self.rgb.shape[:2]
        if self.rgb.shape[2] != 3:
            raise FrameError("color", "encoding", f"expected 3 channels (rgb8), got {self.rgb.shape[2]}")
        wanted = (self.intrinsics.height, self.intrinsics.width)
        if (height, width) != wanted:
            raise CalibrationError(
                "width",
                f"calibrated for {wanted[1]} x {wanted[0]} pixels, but the colour image has {width} x {height}",
            )
        if self.depth.shape != (height, width):
            raise FrameError(
                "depth",
                "size",
                f"{self.depth.shape[1]} x {self.depth.shape[0]} pixels, but colour has {width} x {height};"
                " depth must be aligned to colour",
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width in [px]."""
        return self.intrinsics.height, self.intrinsics.width
