# SPDX-License-Identifier: Apache-2.0
"""Masks that keep their names from frame to frame, with how much of each object is hidden."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from supple.errors import SettingError
from supple.perception.frames import RgbdFrame
from supple.perception.masks import Mask, MaskSource, validate_masks

__all__ = ["MaskTracker", "Track", "TrackedMasks", "Visibility"]

_BINS = 12
_SAMPLES = 800
# Weight of a wrong name against distance (1 at the end of the gate) and looks (1 when nothing is alike).
_OTHER_NAME = 0.15
_LEAST_LIKENESS = 0.4
_LOOKS_RATE = 0.1
_RING = (9, 9)
_NEVER = 1e6


class Visibility(enum.StrEnum):
    """Whether an object can be seen."""

    SEEN = "seen"
    """Its mask is as large as when it was last seen whole, or it never was seen whole."""
    OCCLUDED = "occluded"
    """A part of it, or all of it for a short time, is hidden behind something or outside the picture."""
    LOST = "lost"
    """It has not been seen for so long that it may be anywhere, or it has never been seen."""


@dataclass(frozen=True)
class Track:
    """What is known of one object in one frame.

    Attributes:
        visibility: Whether it can be seen.
        visible_fraction: Share of it, as last seen whole, that is seen now: 0 to 1, 0 without a mask, NaN when it was
            never seen whole.
        mask: Its pixels, shape (height, width); None when it is not seen. Hidden pixels are not filled in.
        position: Middle of what was last seen of it in the optical frame in [m], shape (3,); None before that.
        seen_ns: When it was last seen in [ns]; None before that.
    """

    visibility: Visibility
    visible_fraction: float
    mask: Mask | None
    position: NDArray[np.float64] | None
    seen_ns: int | None


@dataclass(frozen=True)
class _View:
    """One mask, measured.

    Attributes:
        name: The name that the source gave it.
        mask: Its pixels.
        position: Middle of its points in [m], shape (3,).
        area: Area in [m^2] that its pixels cover at their depth, seen straight on.
        looks: Distribution of its chromaticity, shape (bins,), sum 1.
        whole: Whether nothing nearer and no edge of the picture cuts it off.
    """

    name: str
    mask: Mask
    position: NDArray[np.float64]
    area: float
    looks: NDArray[np.float64]
    whole: bool


@dataclass
class _Memory:
    position: NDArray[np.float64]
    seen_ns: int
    looks: NDArray[np.float64]
    whole_area: float | None


class MaskTracker:
    """Keeps a name on one object.

    A source may give one object's name to another for a frame: two cups of one colour, a hand over a box. Here a mask
    belongs to the object that was last seen near it and looks like it, whatever the source calls it; a mask too far
    away for the time since is given to none. An object that no mask fits is occluded, and lost after a while; only then
    may its name turn up anywhere, if it looks alike.

    Args:
        max_speed: How fast an object may move against the camera in [m/s]; a turning head counts.
        margin: How far the middle of its mask may move in [m] on top of that, e.g. when a part of it gets hidden.
        reach: The farthest in [m] that it may be found from where it was last seen, unless it is lost.
        lost_after: Time in [s] without being seen after which it is lost.
        whole: Visible fraction below which it counts as occluded.

    Attributes:
        rejected: Masks given to no object so far, because none was there or alike.
        renamed: Masks given to another object than the source said.
        resets: Times that the clock went back and everything was forgotten.

    Raises:
        SettingError: A setting out of range.
    """

    def __init__(
        self,
        max_speed: float = 2.0,
        margin: float = 0.05,
        reach: float = 0.4,
        lost_after: float = 1.0,
        whole: float = 0.9,
    ) -> None:
        settings = {"max_speed": max_speed, "margin": margin, "reach": reach, "lost_after": lost_after, "whole": whole}
        for name, value in settings.items():
            if not (math.isfinite(value) and value > 0.0):
                raise SettingError(f"{name}: expected a positive number, got {value}")
        self._max_speed, self._margin, self._reach = max_speed, margin, reach
        self._lost_after_ns, self._whole = round(1e9 * lost_after), whole
        self._memory: dict[str, _Memory] = {}
        self._stamp_ns: int | None = None
        self.rejected = self.renamed = self.resets = 0

    def reset(self) -> None:
        """Forget every object."""
        self._memory.clear()
        self._stamp_ns = None

    def update(self, frame: RgbdFrame, masks: Mapping[str, Mask]) -> dict[str, Track]:
        """Return every object that was ever seen, with what is known of it in this frame.

        Args:
            frame: The frame; if it is older than the last one (the clock went back), everything is forgotten first.
            masks: What a source sees in it, by the source's names.

        Raises:
            FrameError: Masks that do not fit the frame or overlap.
        """
        if self._stamp_ns is not None and frame.stamp_ns < self._stamp_ns:
            self.reset()
            self.resets += 1
        self._stamp_ns = frame.stamp_ns
        views = [view for name, mask in validate_masks(masks, frame).items() if (view := _measure(name, mask, frame))]
        matched = self._match(views, frame.stamp_ns)
        tracks = {name: self._remember(name, view, frame.stamp_ns) for name, view in matched.items()}
        return tracks | {name: self._unseen(name, frame.stamp_ns) for name in self._memory if name not in matched}

    def _match(self, views: list[_View], now: int) -> dict[str, _View]:
        """Return which view shows which object."""
        known = [name for name, memory in self._memory.items() if now - memory.seen_ns <= self._lost_after_ns]
        matched: dict[str, _View] = {}
        if known and views:
            costs = np.array([[self._cost(name, view, now) for view in views] for name in known])
            for row, column in zip(*linear_sum_assignment(costs), strict=True):
                if costs[row, column] < _NEVER:
                    matched[known[row]] = views[column]
        taken = {id(view) for view in matched.values()}
        self.renamed += sum(view.name != name for name, view in matched.items())
        for view in views:
            if id(view) in taken:
                continue
            memory = self._memory.get(view.name)
            # A name is free if it is new, or if its object may be anywhere by now and this one looks like it.
            free = memory is None or view.name not in known
            alike = memory is None or _likeness(memory.looks, view.looks) > _LEAST_LIKENESS
            if view.name not in matched and free and alike:
                matched[view.name] = view
            else:
                self.rejected += 1
        return matched

    def _cost(self, name: str, view: _View, now: int) -> float:
        memory = self._memory[name]
        elapsed = 1e-9 * (now - memory.seen_ns)
        gate = min(self._margin + self._max_speed * elapsed, self._reach)
        distance = float(np.linalg.norm(view.position - memory.position))
        likeness = _likeness(memory.looks, view.looks)
        if distance > gate or likeness < _LEAST_LIKENESS:
            return _NEVER
        return distance / gate + (1.0 - likeness) + _OTHER_NAME * (view.name != name)

    def _remember(self, name: str, view: _View, now: int) -> Track:
        memory = self._memory.get(name)
        if memory is None:
            memory = self._memory[name] = _Memory(view.position, now, view.looks, None)
        memory.position, memory.seen_ns = view.position, now
        memory.looks = (1.0 - _LOOKS_RATE) * memory.looks + _LOOKS_RATE * view.looks
        if view.whole:
            memory.whole_area = view.area
        fraction = math.nan if memory.whole_area is None else min(1.0, view.area / memory.whole_area)
        visibility = Visibility.OCCLUDED if fraction < self._whole else Visibility.SEEN
        return Track(visibility, fraction, view.mask, view.position, now)

    def _unseen(self, name: str, now: int) -> Track:
        memory = self._memory[name]
        lost = now - memory.seen_ns > self._lost_after_ns
        visibility = Visibility.LOST if lost else Visibility.OCCLUDED
        return Track(visibility, 0.0, None, memory.position, memory.seen_ns)


class TrackedMasks:
    """A mask source whose names stay on their objects.

    Args:
        source: Where the masks come from.
        tracker: Keeps the names; one with default settings if absent.

    Attributes:
        tracks: What is known of every object since the last frame.
    """

    def __init__(self, source: MaskSource, tracker: MaskTracker | None = None) -> None:
        self.source, self.tracker = source, tracker or MaskTracker()
        self.tracks: dict[str, Track] = {}

    def masks(self, frame: RgbdFrame) -> Mapping[str, Mask]:
        """Return the mask of each object that is seen.

        Raises:
            FrameError: The source's masks do not fit the frame.
        """
        self.tracks = self.tracker.update(frame, self.source.masks(frame))
        return {name: track.mask for name, track in self.tracks.items() if track.mask is not None}


def _measure(name: str, mask: Mask, frame: RgbdFrame) -> _View | None:
    """Return what a mask shows; None without any depth, since it cannot be said where that is."""
    k = frame.intrinsics
    left, top, width, height = cv2.boundingRect(np.ascontiguousarray(mask).view(np.uint8))
    # Flat indices within the part that holds the mask: much quicker than pairs of indices in the whole picture.
    inside = np.flatnonzero(mask[top : top + height, left : left + width])
    area = inside.size
    step = max(1, area // _SAMPLES)
    rows, columns = np.divmod(inside[::step], width)
    rows, columns = rows + top, columns + left
    z = frame.depth[rows, columns].astype(np.float64)
    good = np.isfinite(z) & (z > 0.0)
    if not good.any():
        return None
    z, u, v = z[good], columns[good], rows[good]
    # The median is not drawn aside by a few pixels that look past the object's edge.
    position = np.array([np.median(z * (u - k.cx) / k.fx), np.median(z * (v - k.cy) / k.fy), np.median(z)])
    metric = area * float(np.median(z)) ** 2 / (k.fx * k.fy)
    return _View(name, mask, position, metric, _looks(frame.rgb[rows, columns]), _is_whole(mask, frame.depth))


def _looks(colors: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the distribution of chromaticity of colours (n, 3), smoothed so that neighbours in colour overlap."""
    value = colors.astype(np.float64)
    shares = value / np.maximum(value.sum(axis=1), 1.0)[:, None]
    cells = np.minimum((shares[:, :2] * _BINS).astype(int), _BINS - 1)
    counts = np.bincount(cells[:, 0] * _BINS + cells[:, 1], minlength=_BINS**2).astype(np.float32)
    smooth = cv2.GaussianBlur(counts.reshape(_BINS, _BINS), (3, 3), 0).reshape(-1).astype(np.float64)
    return smooth / max(float(smooth.sum()), 1e-12)


def _likeness(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Return the overlap of two distributions, 0 to 1 (Bhattacharyya)."""
    return float(np.sum(np.sqrt(first * second)))


def _is_whole(mask: Mask, depth: NDArray[np.float32]) -> bool:
    """Tell whether nothing hides a part of what a mask shows: neither the picture's edge nor anything nearer beside it.

    Args:
        mask: Its pixels.
        depth: Depth in [m].
    """
    if mask[0].any() or mask[-1].any() or mask[:, 0].any() or mask[:, -1].any():
        return False
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    pad = _RING[0]
    box = np.s_[max(0, rows[0] - pad) : rows[-1] + pad + 1, max(0, columns[0] - pad) : columns[-1] + pad + 1]
    inside, near = mask[box], depth[box]
    seen = inside & np.isfinite(near)
    weight = cv2.blur(seen.astype(np.float32), _RING)
    own = cv2.blur(np.where(seen, near, np.float32(0.0)), _RING) / np.maximum(weight, np.float32(1e-6))
    # The ring round it as far as depth of its own is near to compare with.
    ring = ~inside & (weight > 1e-3)
    nearer = ring & (near < own - np.maximum(np.float32(0.015), np.float32(0.03) * own))
    return bool(np.count_nonzero(nearer) <= 0.02 * np.count_nonzero(ring))
