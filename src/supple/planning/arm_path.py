# SPDX-License-Identifier: Apache-2.0
"""Joint-space ways round what is in the way: RRT-Connect, shortcuts and rounded corners."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supple.errors import PlanningError, StateError
from supple.planning.smoothing import moving_average

__all__ = ["Blocked", "is_straight_free", "plan_arm_path"]

Array = NDArray[np.float64]
Blocked = Callable[[Array], str | None]
"""Tells what is wrong with joint positions (n,) in [rad], or None if nothing is."""

# Largest joint motion between two checks in [rad].
_RESOLUTION = 0.04
# Longest step of a tree in [rad].
_STEP = 0.4
# Numbers of checked positions that a corner is rounded over; the widest that stays free is taken.
_WINDOWS = (13, 7, 3)
# Every so many samples one is drawn anywhere within the limits; the others stay near what lies between start and goal.
_WIDE_EVERY = 4
_SPREAD = 0.5


class _Tree:
    """Joint positions, each reached from an earlier one by a free straight line."""

    def __init__(self, root: Array, capacity: int) -> None:
        self._rows = np.empty((capacity, root.size))
        self._rows[0] = root
        self._parents = [-1]

    def nearest(self, q: Array) -> int:
        return int(np.abs(self._rows[: len(self._parents)] - q).max(axis=1).argmin())

    def row(self, index: int) -> Array:
        return self._rows[index]

    def add(self, q: Array, parent: int) -> int:
        if len(self._parents) == len(self._rows):
            self._rows = np.vstack([self._rows, np.empty_like(self._rows)])
        self._rows[len(self._parents)] = q
        self._parents.append(parent)
        return len(self._parents) - 1

    def way(self, index: int) -> list[Array]:
        """Return the rows from the root to an index."""
        rows = []
        while index >= 0:
            rows.append(self._rows[index].copy())
            index = self._parents[index]
        return rows[::-1]


@dataclass
class _Checker:
    """Straight lines in joint space, checked at even steps; counts what blocked them."""

    blocked: Blocked
    resolution: float

    def __post_init__(self) -> None:
        self.reasons: Counter[str] = Counter()

    def at(self, q: Array) -> str | None:
        reason = self.blocked(q)
        if reason is not None:
            self.reasons[reason] += 1
        return reason

    def line(self, begin: Array, end: Array) -> bool:
        """Tell whether a line is free after its begin; the middle is looked at first, where it most often is not."""
        steps = int(np.ceil(max(float(np.abs(end - begin).max()) / self.resolution, 1.0)))
        return all(self.at(begin + (i / steps) * (end - begin)) is None for i in _bisected(steps))

    def way(self, rows: Array) -> bool:
        return all(self.line(begin, end) for begin, end in itertools.pairwise(rows))


def _bisected(steps: int) -> list[int]:
    """Return 1 ... steps, ends of halves of halves first."""
    order, spans = [steps], [(0, steps)]
    for low, high in spans:
        middle = (low + high) // 2
        if middle > low:
            order.append(middle)
            spans += [(low, middle), (middle, high)]
    return order


def is_straight_free(start: Array, goal: Array, blocked: Blocked, resolution: float = _RESOLUTION) -> bool:
    """Tell whether the straight line between joint positions (n,) in [rad] is free, its end included."""
    return _Checker(blocked, resolution).line(start, goal)


def plan_arm_path(
    start: ArrayLike,
    goal: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    blocked: Blocked,
    rng: np.random.Generator,
    samples: int = 1500,
    resolution: float = _RESOLUTION,
) -> Array:
    """Return joint positions (k, n) from start to goal whose straight lines are free; the same generator, the same way.

    Two trees grow from both ends towards random positions and each other (RRT-Connect, Kuffner and LaValle 2000); what
    they find is shortened, and its corners are rounded where there is room.

    Args:
        start: Joint positions in [rad], shape (n,).
        goal: Joint positions in [rad], shape (n,).
        lower: Lower limits of the joints in [rad], shape (n,).
        upper: Upper limits in [rad], shape (n,).
        blocked: Tells what is wrong with joint positions; asked a few thousand times.
        rng: Source of the random positions; not drawn from where the straight line is free.
        samples: Give up after so many.
        resolution: Largest joint motion between two checks in [rad].

    Raises:
        StateError: Wrong shapes, or not finite.
        PlanningError: Start or goal is blocked or out of limits, or no way was found; says by what.
    """
    a, b, low, high = _checked(start, goal, lower, upper)
    checker = _Checker(blocked, resolution)
    for what, q in (("start", a), ("goal", b)):
        if (reason := checker.at(q)) is not None:
            raise PlanningError(f"{what} of the arms' way: {reason}")
    if checker.line(a, b):
        return np.array([a, b])
    way = _connect(a, b, low, high, checker, rng, samples)
    if way is None:
        reason, count = checker.reasons.most_common(1)[0]
        often = f"most often ({count} of {checker.reasons.total()}) {reason}"
        raise PlanningError(f"no way for the arms found in {samples} samples; {often}")
    return _rounded(_shortened(way, checker, rng), checker)


def _checked(start: ArrayLike, goal: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> tuple[Array, ...]:
    rows = tuple(np.asarray(row, dtype=np.float64) for row in (start, goal, lower, upper))
    for what, row in zip(("start", "goal", "lower", "upper"), rows, strict=True):
        if row.ndim != 1 or row.shape != rows[0].shape or np.isnan(row).any():
            raise StateError(f"arms' way: expected {what} as numbers of shape {rows[0].shape}, got shape {row.shape}")
    for what, row in zip(("start", "goal"), rows[:2], strict=True):
        outside = np.flatnonzero((row < rows[2] - 1e-6) | (row > rows[3] + 1e-6))
        if outside.size:
            i = int(outside[0])
            limits = f"{rows[2][i]:.3f} to {rows[3][i]:.3f} rad"
            raise PlanningError(f"{what} of the arms' way: joint {i} at {row[i]:.3f} rad is outside {limits}")
    return rows


def _connect(
    start: Array, goal: Array, lower: Array, upper: Array, checker: _Checker, rng: np.random.Generator, samples: int
) -> Array | None:
    trees = [_Tree(start, samples), _Tree(goal, samples)]
    for count in range(samples):
        if count % _WIDE_EVERY == _WIDE_EVERY - 1:
            target = rng.uniform(lower, upper)
        else:
            between = start + rng.uniform() * (goal - start)
            target = np.clip(between + rng.normal(0.0, _SPREAD, start.size), lower, upper)
        first, second = trees
        begin = first.nearest(target)
        reached = _extend(first, begin, target, checker)
        if reached != begin:
            meeting = first.row(reached).copy()
            last = _grow(second, meeting, checker)
            if np.array_equal(second.row(last), meeting):
                halves = [first.way(reached), second.way(last)[::-1][1:]]
                way = np.array([*halves[0], *halves[1]])
                return way if np.array_equal(way[0], start) else way[::-1]
        trees.reverse()
    return None


def _extend(tree: _Tree, parent: int, target: Array, checker: _Checker) -> int:
    """Take one step from a row towards a target; return its index, or the parent's if it is blocked."""
    begin = tree.row(parent)
    distance = float(np.abs(target - begin).max())
    q = target if distance <= _STEP else begin + (_STEP / distance) * (target - begin)
    return tree.add(q, parent) if checker.line(begin, q) else parent


def _grow(tree: _Tree, target: Array, checker: _Checker) -> int:
    """Step towards a target until it is reached or the way is blocked; return the last index."""
    last = tree.nearest(target)
    while not np.array_equal(tree.row(last), target):
        reached = _extend(tree, last, target, checker)
        if reached == last:
            break
        last = reached
    return last


def _shortened(way: Array, checker: _Checker, rng: np.random.Generator, tries: int = 60) -> Array:
    """Replace pieces between random points of the way by straight lines where these are free."""
    for _ in range(tries):
        if len(way) < 3:
            break
        lengths = np.abs(np.diff(way, axis=0)).max(axis=1)
        marks = np.concatenate([[0.0], np.cumsum(lengths)])
        first, second = np.sort(rng.uniform(0.0, marks[-1], 2))
        i, j = (int(np.searchsorted(marks, mark, side="right")) - 1 for mark in (first, second))
        if i == j:
            continue
        p, q = (
            way[k] + (mark - marks[k]) / max(lengths[k], 1e-12) * (way[k + 1] - way[k])
            for k, mark in ((i, first), (min(j, len(way) - 2), second))
        )
        if checker.line(p, q):
            way = np.vstack([way[: i + 1], p, q, way[j + 1 :]])
    # What random points left over: corners that are not needed.
    i = 0
    while i < len(way) - 2:
        j = next(j for j in range(len(way) - 1, i, -1) if j == i + 1 or checker.line(way[i], way[j]))
        way = np.vstack([way[: i + 1], way[j:]])
        i += 1
    return way


def _rounded(way: Array, checker: _Checker) -> Array:
    """Round the corners as far as there is room."""
    pieces = [way[:1]]
    for begin, end in itertools.pairwise(way):
        steps = int(np.ceil(max(float(np.abs(end - begin).max()) / checker.resolution, 1.0)))
        pieces.append(begin + np.linspace(0.0, 1.0, steps + 1)[1:, None] * (end - begin))
    even = np.vstack(pieces)
    even[-1] = way[-1]
    for window in _WINDOWS:
        rounded = moving_average(even, window)
        if checker.way(rounded):
            return rounded
    return way
