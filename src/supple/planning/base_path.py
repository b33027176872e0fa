# SPDX-License-Identifier: Apache-2.0
"""A way over the floor round what is in the way, shortened, smoothed and timed for a walking robot."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supple.errors import PlanningError
from supple.geometry import wrap_angle
from supple.planning.base_space import BaseSpace, Nearest, checked_pose
from supple.planning.lattice import Lattice, RequiredMargin, WalkingSpeeds
from supple.planning.smoothing import moving_average

__all__ = ["BasePath", "plan_base_path", "swept"]

Array = NDArray[np.float64]

# Ways are checked at every so much, in [m] and [rad].
_STRIDE, _TURN = 0.05, 0.1
_INTERVAL = 0.1
# Windows in [s] over which the way is averaged; the widest that stays clear is taken.
_WINDOWS = (2.4, 1.6, 0.8, 0.4)
# Rounding a corner may use up this part of the margin in [m].
_ROUNDING = 0.02
_ATTEMPTS = 30
_TRIED_SHORTCUTS = 250
# Corners kept between which shortcuts are looked for, at most so many steps of the lattice apart.
_SPACING = 3


@dataclass(frozen=True)
class BasePath:
    """A way over the floor.

    Attributes:
        waypoints: Poses (x, y, yaw) in [m, m, rad], the heading without jumps, shape (n, 3).
        times: When the robot should be at each in [s], shape (n,).
        margin: Distance kept from obstacles in [m], but near an end that is closer than that itself.
    """

    waypoints: Array
    times: Array
    margin: float

    @property
    def length(self) -> float:
        """Distance walked in [m]."""
        return float(np.hypot(*np.diff(self.waypoints[:, :2], axis=0).T).sum())

    @property
    def duration(self) -> float:
        """Time to walk it in [s]."""
        return float(self.times[-1])


def swept(keys: Array) -> Array:
    """Return poses along straight lines and even turns through given ones (k, 3), close enough to check, shape (n, 3).

    The heading goes the short way from each pose to the next and has no jumps in the result.
    """
    poses = [keys[:1]]
    for begin, end in itertools.pairwise(keys):
        move = np.array([end[0] - begin[0], end[1] - begin[1], wrap_angle(end[2] - begin[2])])
        steps = int(np.ceil(max(np.hypot(*move[:2]) / _STRIDE, abs(move[2]) / _TURN, 1.0)))
        poses.append(poses[-1][-1] + np.linspace(0.0, 1.0, steps + 1)[1:, None] * move)
    return np.vstack(poses)


def plan_base_path(
    space: BaseSpace,
    start: ArrayLike,
    goal: ArrayLike,
    speeds: WalkingSpeeds | None = None,
    margins: Sequence[float] = (0.14, 0.1),
) -> BasePath:
    """Return the quickest way from one pose on the floor to another; the same input gives the same way.

    A search over a lattice finds the way round things (:class:`~supple.planning.lattice.Lattice`): to the resolution of
    the lattice it is complete and the quickest. Straight pieces then replace what they can: walked forward where it is
    far, aside or turning where that takes less time than turning to and fro. At last corners are rounded.

    Args:
        space: What is in the way.
        start: Where the robot stands, (x, y, yaw) in [m, m, rad].
        goal: Where it is to stand.
        speeds: How fast it walks.
        margins: Distances to keep from obstacles in [m], tried in order; near an end that is closer itself, less.

    Raises:
        StateError: Start or goal is not finite.
        PlanningError: Start or goal overlaps an obstacle, says which and by how much; or there is no way.
    """
    speeds = speeds or WalkingSpeeds()
    ends = np.array([checked_pose(start), checked_pose(goal)])
    nearest = [space.nearest(end) for end in ends]
    for what, end, near in zip(("start", "goal"), ends, nearest, strict=True):
        if near.distance <= 0.0:
            raise PlanningError(f"{what} of the walk {_text(end)}: {_overlap(near)}")
    for margin in margins:
        required = RequiredMargin(margin, ends, np.array([near.distance for near in nearest]))
        keys = _straight(space, required, speeds)
        if keys is None and (found := _search(space, required, speeds)) is not None:
            keys = _shortened(space, required, speeds, found)
        if keys is not None:
            return _timed(space, required, speeds, keys)
    raise PlanningError(
        f"no way to walk from {_text(ends[0])} to {_text(ends[1])} with {100 * margins[-1]:.0f} cm to spare; straight "
        f"on, {_first_overlap(space, ends)}"
    )


def _text(pose: Array) -> str:
    return f"({pose[0]:.2f} m, {pose[1]:.2f} m, {np.degrees(pose[2]):.0f} deg)"


def _overlap(near: Nearest) -> str:
    return f"{near.part} would be {-100 * near.distance:.1f} cm inside {near.obstacle}"


def _first_overlap(space: BaseSpace, ends: Array) -> str:
    heading = np.arctan2(*(ends[1] - ends[0])[1::-1])
    poses = swept(np.array([ends[0], [*ends[0][:2], heading], [*ends[1][:2], heading], ends[1]]))
    blocked = np.flatnonzero(~space.free(poses))
    if not blocked.size:
        return "it would pass, but not with that much room"
    return _overlap(space.nearest(poses[blocked[len(blocked) // 2]]))


def _is_free(space: BaseSpace, required: RequiredMargin, keys: Array, slack: float = 0.0) -> bool:
    poses = swept(keys)
    return bool(space.free(poses, np.maximum(required.at(poses) - slack, 0.0)).all())


def _straight(space: BaseSpace, required: RequiredMargin, speeds: WalkingSpeeds) -> Array | None:
    """Return the quickest way without a corner if it is free, else None."""
    ways = sorted(_pieces(*required.ends), key=lambda keys: _duration(speeds, keys))
    return next((keys for keys in ways if _is_free(space, required, keys)), None)


def _search(space: BaseSpace, required: RequiredMargin, speeds: WalkingSpeeds) -> Array | None:
    """Return the poses of the lattice's quickest way whose every step is free, or None."""
    lattice = Lattice(space, required, speeds)
    for _ in range(_ATTEMPTS):
        way = lattice.shortest()
        if way is None:
            return None
        poses = lattice.nodes[way]
        steps = [swept(poses[i : i + 2]) for i in range(len(way) - 1)]
        places = np.vstack(steps)
        free = space.free(places, np.maximum(required.at(places) - _ROUNDING, 0.0))
        owners = np.repeat(np.arange(len(steps)), [len(step) for step in steps])
        blocked = np.unique(owners[~free])
        if not blocked.size:
            return poses
        for i in blocked.tolist():
            lattice.ban(int(way[i]), int(way[i + 1]))
    return None


def _pieces(begin: Array, end: Array) -> tuple[Array, Array]:
    """Return two ways between poses: straight, turning on the way; and facing where to go."""
    heading = float(np.arctan2(end[1] - begin[1], end[0] - begin[0]))
    return np.array([begin, end]), np.array([begin, [*begin[:2], heading], [*end[:2], heading], end])


def _duration(speeds: WalkingSpeeds, keys: Array) -> float:
    return float(speeds.duration(keys[:-1], keys[1:]).sum())


def _shortened(space: BaseSpace, required: RequiredMargin, speeds: WalkingSpeeds, poses: Array) -> Array:
    """Replace what straight pieces can replace; the quickest choice is checked first and changed where blocked."""
    moves = np.diff(poses, axis=0)
    bends = np.flatnonzero(np.abs(np.diff(moves, axis=0)).max(axis=1) > 1e-9) + 1
    kept = sorted({0, len(poses) - 1, *bends.tolist(), *range(0, len(poses), _SPACING)})
    corners = poses[kept]
    n = len(corners)
    # What each pair of corners costs by the lattice, and by a straight piece where it is quicker.
    along = np.concatenate([[0.0], np.cumsum(speeds.duration(poses[:-1], poses[1:]))])[kept]
    options: dict[tuple[int, int], list[tuple[float, Array]]] = {}
    cost = np.full((n, n), np.inf)
    for i in range(n):
        for j in range(i + 1, n):
            ways = sorted(((_duration(speeds, keys), keys) for keys in _pieces(corners[i], corners[j])), key=_first)
            options[i, j] = [(time, keys) for time, keys in ways if time < along[j] - along[i] + 1e-9]
            if j == i + 1:
                options[i, j].append((float(along[j] - along[i]), poses[kept[i] : kept[j] + 1]))
            if options[i, j]:
                cost[i, j] = options[i, j][0][0]
    known: set[tuple[int, int]] = set()
    way: list[int] = []
    for _ in range(_TRIED_SHORTCUTS):
        way = _cheapest(cost)
        unknown = [pair for pair in itertools.pairwise(way) if pair not in known]
        if not unknown:
            break
        pair = unknown[0]
        # Of neighbours the last option is the lattice's own way, found free before.
        found = len(options[pair]) == 1 and pair[1] == pair[0] + 1
        if found or _is_free(space, required, options[pair][0][1]):
            known.add(pair)
            continue
        options[pair].pop(0)
        cost[pair] = options[pair][0][0] if options[pair] else np.inf
    else:
        way = list(range(n))
        options = {(i, i + 1): options[i, i + 1][-1:] for i in way[:-1]}
    keys = np.vstack([options[i, j][0][1] for i, j in itertools.pairwise(way)])
    return _without_detours(space, required, speeds, keys)


def _first(row: tuple[float, Array]) -> float:
    return row[0]


def _cheapest(cost: Array) -> list[int]:
    """Return the cheapest way from the first to the last of some corners in order."""
    n = len(cost)
    best, before = np.full(n, np.inf), np.zeros(n, dtype=int)
    best[0] = 0.0
    for j in range(1, n):
        sums = best[:j] + cost[:j, j]
        before[j] = int(sums.argmin())
        best[j] = sums[before[j]]
    way = [n - 1]
    while way[-1]:
        way.append(int(before[way[-1]]))
    return way[::-1]


def _without_detours(space: BaseSpace, required: RequiredMargin, speeds: WalkingSpeeds, keys: Array) -> Array:
    """Drop poses between which the robot would only turn to and fro."""
    i = 1
    while i < len(keys) - 1:
        shorter = keys[[i - 1, i + 1]]
        if _duration(speeds, shorter) <= _duration(speeds, keys[i - 1 : i + 2]) + 1e-9 and _is_free(
            space, required, shorter
        ):
            keys = np.delete(keys, i, axis=0)
            i = max(1, i - 1)
        else:
            i += 1
    return keys


def _timed(space: BaseSpace, required: RequiredMargin, speeds: WalkingSpeeds, keys: Array) -> BasePath:
    """Return the way at even times, its corners rounded as far as there is room."""
    keys = keys[np.r_[True, np.abs(np.diff(keys, axis=0)).max(axis=1) > 1e-9]] if len(keys) > 1 else keys
    turns = np.concatenate([[0.0], np.cumsum([wrap_angle(turn) for turn in np.diff(keys[:, 2])])])
    unrolled = np.c_[keys[:, :2], keys[0, 2] + turns]
    corners = np.concatenate([[0.0], np.cumsum(speeds.duration(keys[:-1], keys[1:]))])
    times = np.arange(0.0, np.ceil(corners[-1] / _INTERVAL) + 1.0) * _INTERVAL
    even = np.stack([np.interp(times, corners, column) for column in unrolled.T], axis=1)
    for window in _WINDOWS:
        rounded = moving_average(even, round(window / _INTERVAL))
        if _is_free(space, required, rounded, _ROUNDING):
            even = rounded
            break
    return BasePath(even, np.arange(len(even)) * np.float64(_INTERVAL), required.margin)
