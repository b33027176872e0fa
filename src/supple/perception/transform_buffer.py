# SPDX-License-Identifier: Apache-2.0
"""Poses of frames over a short past: looked up at the very time of a measurement, never extrapolated."""

from __future__ import annotations

import bisect
import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field

import pinocchio as pin

from supple.errors import SuppleError
from supple.geometry import interpolate_pose

__all__ = ["Looked", "TransformBuffer", "TransformError"]

_MS = 1e-6


class TransformError(SuppleError, LookupError):
    """A transform that is not known at the time asked for.

    Args:
        message: What is missing.
        pending: Whether it may become known when newer samples arrive.
    """

    def __init__(self, message: str, pending: bool = False) -> None:
        self.pending = pending
        super().__init__(message)


@dataclass(frozen=True)
class Looked:
    """A pose that was looked up.

    Attributes:
        pose: Pose of the source frame in the target frame.
        oldest_ns: Stamp in [ns] of the oldest sample it was made from, or the time asked for if it never changes.
    """

    pose: pin.SE3
    oldest_ns: int


@dataclass
class _Edge:
    """Where a frame is in its parent, in order of time."""

    parent: str
    stamps: list[int] = field(default_factory=list)
    poses: list[pin.SE3] = field(default_factory=list)
    fixed: pin.SE3 | None = None


class TransformBuffer:
    """A tree of frames, each with the samples of its pose in its parent.

    Between two samples a pose is interpolated (position linearly, orientation along the geodesic). Before the first
    and after the last sample there is no answer, and none across a gap: what lies between two samples that are far
    apart, as round a reset of a simulation, is not known.

    Args:
        duration: How much of the past is kept in [s].
        longest_gap: Two samples this far apart or farther are not interpolated, in [s].
        jump: A sample this much older than the newest of its frame means that time began anew, in [s].

    Attributes:
        resets: How often time began anew.
    """

    def __init__(self, duration: float = 10.0, longest_gap: float = 1.0, jump: float = 1.0) -> None:
        self._duration_ns, self._gap_ns, self._jump_ns = (round(s * 1e9) for s in (duration, longest_gap, jump))
        self._edges: dict[str, _Edge] = {}
        self.resets = 0

    # -- in ------------------------------------------------------------------------------------------------------------

    def set_fixed(self, parent: str, child: str, pose: pin.SE3) -> None:
        """Take in the pose of a frame in its parent that holds at any time; it outlives every reset."""
        self._edges[self._checked(parent, child)] = _Edge(parent, fixed=pose)

    def add(self, parent: str, child: str, stamp_ns: int, pose: pin.SE3) -> None:
        """Take in the pose of a frame in its parent at a time.

        A sample that is a little older than the newest is put where it belongs, one of the same time replaces the
        former. One that is older by a jump clears every moving frame: time began anew.

        Args:
            parent: Name of the parent frame.
            child: Name of the frame.
            stamp_ns: When, in [ns].
            pose: Pose of the child in the parent.

        Raises:
            TransformError: A name is empty, or a frame would be its own parent.
        """
        child = self._checked(parent, child)
        edge = self._edges.get(child)
        if edge is not None and edge.stamps and stamp_ns <= edge.stamps[-1] - self._jump_ns:
            self.clear()
            self.resets += 1
            edge = None
        if edge is None or edge.parent != parent or edge.fixed is not None:
            edge = self._edges[child] = _Edge(parent)
        if not edge.stamps or stamp_ns > edge.stamps[-1]:
            edge.stamps.append(stamp_ns)
            edge.poses.append(pose)
        else:
            at = bisect.bisect_left(edge.stamps, stamp_ns)
            if edge.stamps[at] == stamp_ns:
                edge.poses[at] = pose
            else:
                edge.stamps.insert(at, stamp_ns)
                edge.poses.insert(at, pose)
        # One sample before the kept past stays, so that its beginning can be interpolated.
        stale = bisect.bisect_right(edge.stamps, edge.stamps[-1] - self._duration_ns) - 1
        if stale > 0:
            del edge.stamps[:stale], edge.poses[:stale]

    def clear(self) -> None:
        """Forget every moving frame; fixed ones stay."""
        self._edges = {child: edge for child, edge in self._edges.items() if edge.fixed is not None}

    @staticmethod
    def _checked(parent: str, child: str) -> str:
        if not parent or not child or parent == child:
            raise TransformError(f"tf: a frame cannot be named {child!r} below {parent!r}")
        return child

    # -- out -----------------------------------------------------------------------------------------------------------

    def lookup(self, target: str, source: str, stamp_ns: int) -> Looked:
        """Return the pose of a source frame in a target frame at a time.

        Args:
            target: Frame in which the pose is given.
            source: Frame whose pose it is.
            stamp_ns: When, in [ns].

        Raises:
            TransformError: A frame is unknown, the two are not connected, or a frame between them has no sample on
                both sides of that time; names the frame.
        """
        return self.lookup_all(target, (source,), stamp_ns)[source]

    def lookup_all(self, target: str, sources: Iterable[str], stamp_ns: int) -> dict[str, Looked]:
        """Return the poses of several frames at one time; what they have in common is worked out once.

        Raises:
            TransformError: As ``lookup``, for the first frame that fails.
        """
        steps: dict[str, Looked] = {}
        return {source: self._relative(target, source, stamp_ns, steps) for source in sources}

    def _relative(self, target: str, source: str, stamp_ns: int, steps: dict[str, Looked]) -> Looked:
        up, down = self._ancestors(target), self._ancestors(source)
        below = set(up)
        common = next((frame for frame in down if frame in below), None)
        if common is None:
            raise TransformError(
                f"tf: frames {target!r} and {source!r} are not connected (their roots are {up[-1]!r} and {down[-1]!r})",
                pending=True,
            )
        first = self._climb(up[: up.index(common)], stamp_ns, steps)
        second = self._climb(down[: down.index(common)], stamp_ns, steps)
        return Looked(first.pose.actInv(second.pose), min(first.oldest_ns, second.oldest_ns))

    def _ancestors(self, frame: str) -> list[str]:
        """Return a frame and those above it, up to its root."""
        if frame not in self._edges and not any(edge.parent == frame for edge in self._edges.values()):
            known = {*self._edges, *(edge.parent for edge in self._edges.values())}
            raise TransformError(
                f"tf: frame {frame!r} is unknown ({len(known)} frames known{_nearest(frame, known)})", pending=True
            )
        found = [frame]
        while (edge := self._edges.get(found[-1])) is not None:
            if edge.parent in found:
                raise TransformError(f"tf: frames go in a circle: {' -> '.join([*found, edge.parent])}")
            found.append(edge.parent)
        return found

    def _climb(self, frames: list[str], stamp_ns: int, steps: dict[str, Looked]) -> Looked:
        """Return the pose of the first frame in the parent of the last, each being the parent of the one before."""
        pose, oldest = pin.SE3.Identity(), stamp_ns
        for frame in reversed(frames):
            if frame not in steps:
                steps[frame] = self._sample(frame, stamp_ns)
            pose, oldest = pose * steps[frame].pose, min(oldest, steps[frame].oldest_ns)
        return Looked(pose, oldest)

    def _sample(self, frame: str, stamp_ns: int) -> Looked:
        edge = self._edges[frame]
        if edge.fixed is not None:
            return Looked(edge.fixed, stamp_ns)
        at = bisect.bisect_left(edge.stamps, stamp_ns)
        if at < len(edge.stamps) and edge.stamps[at] == stamp_ns:
            return Looked(edge.poses[at], stamp_ns)
        where = f"tf: frame {frame!r} in {edge.parent!r}"
        if at == len(edge.stamps):
            behind = (stamp_ns - edge.stamps[-1]) * _MS
            raise TransformError(f"{where}: the newest sample is {behind:.1f} ms before the time asked for", True)
        if at == 0:
            ahead = (edge.stamps[0] - stamp_ns) * _MS
            raise TransformError(f"{where}: the oldest sample is {ahead:.1f} ms after the time asked for")
        before, after = edge.stamps[at - 1], edge.stamps[at]
        if after - before >= self._gap_ns:
            raise TransformError(f"{where}: no sample for {(after - before) * _MS:.0f} ms round the time asked for")
        pose = interpolate_pose(edge.poses[at - 1], edge.poses[at], (stamp_ns - before) / (after - before))
        return Looked(pose, before)


def _nearest(frame: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(frame, sorted(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
