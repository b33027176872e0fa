# SPDX-License-Identifier: Apache-2.0
"""Frames drawn by hand: textured patches at some depth before a wall, with the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np

from supple.perception.frames import Intrinsics, RgbdFrame

__all__ = ["CAMERA", "INTERVAL_NS", "Patch", "draw"]

CAMERA = Intrinsics(200.0, 200.0, 159.5, 119.5, 320, 240)
INTERVAL_NS = 66_666_667
_WALL = 1.5


@dataclass(frozen=True)
class Patch:
    """A rectangle.

    Attributes:
        column: Left edge in [px].
        row: Upper edge in [px].
        width: Width in [px].
        height: Height in [px].
        depth: Depth in [m].
        color: Mean colour.
    """

    column: int
    row: int
    width: int = 60
    height: int = 50
    depth: float = 1.0
    color: tuple[int, int, int] = (200, 60, 50)


def draw(patches: Mapping[str, Patch], index: int = 0) -> tuple[RgbdFrame, dict[str, np.ndarray]]:
    """Return the frame of some patches, the later ones in front, and the visible pixels of each.

    Args:
        patches: What there is.
        index: Number of the frame, which sets its stamp.
    """
    rgb = np.full((CAMERA.height, CAMERA.width, 3), 120, np.uint8)
    depth = np.full((CAMERA.height, CAMERA.width), _WALL, np.float32)
    labels = np.zeros((CAMERA.height, CAMERA.width), int)
    for number, patch in enumerate(patches.values(), start=1):
        rows = slice(max(0, patch.row), max(0, patch.row + patch.height))
        columns = slice(max(0, patch.column), max(0, patch.column + patch.width))
        depth[rows, columns], labels[rows, columns] = patch.depth, number
        texture = _texture(patch)
        cut = texture[max(0, -patch.row) :, max(0, -patch.column) :]
        height, width = depth[rows, columns].shape
        rgb[rows, columns] = cut[:height, :width]
    masks = {name: labels == number for number, name in enumerate(patches, start=1)}
    return RgbdFrame(index * INTERVAL_NS, rgb, depth, CAMERA), masks


def _texture(patch: Patch) -> np.ndarray:
    """Return a patch's own pattern: the same in every frame, whatever its size."""
    rng = np.random.default_rng(sum(patch.color))
    pattern = cv2.GaussianBlur(rng.standard_normal((64, 64)).astype(np.float32), (0, 0), 1.5)
    brightness = 1.0 + 0.8 * cv2.resize(pattern, (patch.width, patch.height), interpolation=cv2.INTER_LINEAR)
    return np.clip(np.array(patch.color) * brightness[..., None], 0, 255).astype(np.uint8)
