# SPDX-License-Identifier: Apache-2.0
"""Where masks come from: the one interface of all mask sources, its check, and masks read from a label image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from supple.errors import FrameError
from supple.perception.frames import RgbdFrame

__all__ = ["LabelMasks", "MaskSource", "validate_masks"]

Mask = NDArray[np.bool_]


class MaskSource(Protocol):
    """Anything that tells which pixels of a frame show which object."""

    def masks(self, frame: RgbdFrame) -> Mapping[str, Mask]:
        """Return the pixels of each object that is seen, bool, shape (height, width).

        A missing key is an object that is not seen. Masks do not overlap, and none is empty.

        Raises:
            FrameError: The source cannot work with this frame, or what it was given does not fit it.
        """
        ...


class LabelMasks:
    """Masks from a label image: the simulator's segmentation, or what any other node says of each pixel.

    Args:
        image: Labels, any integer type, shape (height, width).
        labels: Name of the object that each label stands for; several labels may stand for one object. A label that is
            not named, such as 0 for the background, shows no object.

    Raises:
        FrameError: No image of integers.
    """

    def __init__(self, image: NDArray[np.integer], labels: Mapping[int, str]) -> None:
        if not isinstance(image, np.ndarray) or image.ndim != 2 or not np.issubdtype(image.dtype, np.integer):
            got = f"{image.dtype} of shape {image.shape}" if isinstance(image, np.ndarray) else type(image).__name__
            raise FrameError("mask", "encoding", f"expected one whole number per pixel, got {got}")
        self._image, self._labels = image, dict(labels)

    def masks(self, frame: RgbdFrame) -> Mapping[str, Mask]:
        """Return the mask of each object in the image.

        Raises:
            FrameError: The image has another size than the frame.
        """
        _check_size("size", self._image, frame)
        found: dict[str, Mask] = {}
        for label, name in self._labels.items():
            mask = self._image == label
            if mask.any():
                found[name] = found[name] | mask if name in found else mask
        return found


def validate_masks(masks: Mapping[str, Mask], frame: RgbdFrame) -> dict[str, Mask]:
    """Return the masks that hold a pixel, after checking all of them against the frame.

    Args:
        masks: By object.
        frame: The frame that they belong to.

    Raises:
        FrameError: A mask of another size or type, or two that claim the same pixel; names the object.
    """
    kept: dict[str, Mask] = {}
    taken = np.zeros(frame.shape, np.bool_)
    for name, mask in masks.items():
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
            got = mask.dtype if isinstance(mask, np.ndarray) else type(mask).__name__
            raise FrameError("mask", name, f"expected bool pixels, got {got}")
        _check_size(name, mask, frame)
        if not mask.any():
            continue
        if np.any(taken & mask):
            # Whose the pixels are cannot be known here, and a point on two objects would be wrong for one of them.
            others = ", ".join(other for other in kept if np.any(kept[other] & mask))
            raise FrameError("mask", name, f"shares {int(np.sum(taken & mask))} pixels with {others}")
        taken |= mask
        kept[name] = mask
    return kept


def _check_size(field: str, image: NDArray[np.generic], frame: RgbdFrame) -> None:
    if image.shape != frame.shape:
        shape = " x ".join(str(size) for size in reversed(image.shape))
        raise FrameError("mask", field, f"{shape} pixels, but colour has {frame.shape[1]} x {frame.shape[0]}")
