# SPDX-License-Identifier: Apache-2.0
"""Search over a lattice of places and headings: the quickest way for a robot that walks forward better than aside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from supple.geometry import wrap_angle
from supple.planning.base_space import BaseSpace

__all__ = ["Lattice", "RequiredMargin", "WalkingSpeeds"]

Array = NDArray[np.float64]

_HEADINGS = 16
_RESOLUTION = 0.1
# In a larger scene the cells grow instead of their number.
_MOST_CELLS = 12_000
_MOVES = np.array([(1, 0), (1, 1), (0, 1), (-1, 1), (-1, 0), (-1, -1), (0, -1), (1, -1)])
# Within this distance beyond the margin the way costs so much more: where there is room, it is used.
_SHY, _SHYNESS = 0.1, 1.5


@dataclass(frozen=True)
class WalkingSpeeds:
    """How fast a robot walks, to weigh ways against each other and to time the one chosen.

    Attributes:
        forward: In [m/s].
        backward: In [m/s].
        sideways: In [m/s].
        turning: In [rad/s].
    """

    forward: float = 0.4
    backward: float = 0.2
    sideways: float = 0.15
    turning: float = 0.6

    def duration(self, start: Array, end: Array) -> Array:
        """Return the time in [s] from poses to poses (x, y, yaw), shape (..., 3) each, moving and turning evenly."""
        turn = (end[..., 2] - start[..., 2] + np.pi) % (2.0 * np.pi) - np.pi
        middle = start[..., 2] + 0.5 * turn
        dx, dy = end[..., 0] - start[..., 0], end[..., 1] - start[..., 1]
        ahead = np.cos(middle) * dx + np.sin(middle) * dy
        aside = -np.sin(middle) * dx + np.cos(middle) * dy
        along = np.where(ahead >= 0.0, ahead / self.forward, ahead / self.backward)
        return np.sqrt(along**2 + (aside / self.sideways) ** 2 + (turn / self.turning) ** 2)


@dataclass(frozen=True)
class RequiredMargin:
    """The distance that is to be kept: a margin, but less near an end that itself is closer to something.

    Attributes:
        margin: In [m].
        ends: Start and goal (x, y, yaw), shape (2, 3).
        gaps: Their own distances from the nearest obstacle in [m], shape (2,).
    """

    margin: float
    ends: Array
    gaps: Array

    def at(self, poses: Array) -> Array:
        """Return the distance to keep in [m] at poses (n, 3), shape (n,)."""
        required = np.full(len(poses), self.margin)
        for end, gap in zip(self.ends, self.gaps, strict=True):
            turn = np.abs((poses[:, 2] - end[2] + np.pi) % (2.0 * np.pi) - np.pi)
            away = np.hypot(poses[:, 0] - end[0], poses[:, 1] - end[1]) + 0.4 * turn
            required = np.minimum(required, 0.9 * max(gap, 0.0) + 0.5 * away)
        return required


class Lattice:
    """Places on a grid, each with a fixed set of headings, between which the robot steps, turns, or does neither.

    Start and goal are nodes of their own; the grid passes through the start, and both headings are among the lattice's,
    so that a robot close to a table can step straight back from it and walk straight up to it. What lies between two
    nodes is not looked at here: whoever finds a step blocked bans it and asks again.

    Args:
        space: What is free.
        required: Distance to keep.
        speeds: What a step costs.
    """

    def __init__(self, space: BaseSpace, required: RequiredMargin, speeds: WalkingSpeeds) -> None:
        self._space, self._required, self._speeds = space, required, speeds
        start, goal = required.ends
        self._xs, self._ys = self._axes()
        self._yaws = self._headings(float(start[2]), float(goal[2]))
        x, y = np.meshgrid(self._xs, self._ys)
        self._cells = np.stack([x.ravel(), y.ravel()], axis=1)
        self._k = len(self._yaws)
        count = len(self._cells)
        self.nodes = np.vstack([np.c_[np.repeat(self._cells, self._k, axis=0), np.tile(self._yaws, count)], goal])
        self._free, self._roomy = self._occupancy(self._yaws)
        self._edges = self._build()
        column, row = int(np.abs(self._xs - start[0]).argmin()), int(np.abs(self._ys - start[1]).argmin())
        heading = int(np.abs([wrap_angle(yaw - start[2]) for yaw in self._yaws]).argmin())
        self.start, self.goal = (row * len(self._xs) + column) * self._k + heading, len(self.nodes) - 1

    def _axes(self) -> tuple[Array, Array]:
        corners = [self._required.ends[:, :2], *(outline.points for outline in self._space.obstacles)]
        grown = self._space.radius + self._required.margin + 0.3
        low, high = np.vstack(corners).min(axis=0) - grown, np.vstack(corners).max(axis=0) + grown
        size = max(_RESOLUTION, float(np.sqrt(np.prod(high - low) / _MOST_CELLS)))
        start = self._required.ends[0, :2]
        below, above = np.ceil((start - low) / size).astype(int), np.ceil((high - start) / size).astype(int)
        first, second = (start[i] + size * np.arange(-below[i], above[i] + 1) for i in (0, 1))
        return first, second

    @staticmethod
    def _headings(start: float, goal: float) -> Array:
        yaws = [wrap_angle(start + 2.0 * np.pi * k / _HEADINGS) for k in range(_HEADINGS)]
        if min(abs(wrap_angle(goal - yaw)) for yaw in yaws) > 1e-6:
            yaws.append(wrap_angle(goal))
        return np.array(sorted(yaws))

    def _occupancy(self, yaws: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return which (cell, heading) keep the required distance, and which have more room than that."""
        points = shapely.points(self._cells)
        free, roomy = np.empty((2, len(self._cells), len(yaws)), dtype=bool)
        for k, yaw in enumerate(yaws):
            area = self._space.forbidden(yaw)
            required = self._required.at(np.c_[self._cells, np.full(len(self._cells), yaw)])
            free[:, k] = ~shapely.dwithin(area, points, required)
            roomy[:, k] = ~shapely.dwithin(area, points, required + _SHY)
        return free, roomy

    def _build(self) -> csr_array:
        """Return the cost in [s] of each step between free nodes."""
        nx, ny, k = len(self._xs), len(self._ys), self._k
        index = np.arange(nx * ny * k).reshape(ny, nx, k)
        free, weight = self._free.reshape(ny, nx, k), np.where(self._roomy, 1.0, _SHYNESS).reshape(ny, nx, k)
        rows, columns, costs = [], [], []

        def add(begin: NDArray[np.int64], end: NDArray[np.int64], cost: Array, allowed: NDArray[np.bool_]) -> None:
            rows.append(begin[allowed])
            columns.append(end[allowed])
            costs.append(cost[allowed])

        step = self._xs[1] - self._xs[0]
        for mx, my in _MOVES:
            here = slice(max(0, -my), ny - max(0, my)), slice(max(0, -mx), nx - max(0, mx))
            there = slice(max(0, my), ny + min(0, my)), slice(max(0, mx), nx + min(0, mx))
            still = np.c_[np.zeros((k, 2)), self._yaws]
            cost = self._speeds.duration(still, still + np.array([step * mx, step * my, 0.0]))
            add(index[here], index[there], cost * 0.5 * (weight[here] + weight[there]), free[here] & free[there])
        ahead = np.roll(self._yaws, -1)
        turn = (ahead - self._yaws) % (2.0 * np.pi)
        allowed = free & np.roll(free, -1, axis=2)
        cost = np.broadcast_to(turn / self._speeds.turning, free.shape)
        add(index, np.roll(index, -1, axis=2), cost, allowed)
        add(np.roll(index, -1, axis=2), index, cost, allowed)
        # The goal lies between the places of the grid; they reach it in its own heading.
        goal = self._required.ends[1]
        off = np.hypot(*(self.nodes[:-1, :2] - goal[:2]).T)
        same = np.abs((self.nodes[:-1, 2] - goal[2] + np.pi) % (2.0 * np.pi) - np.pi) < 1e-6
        near = np.flatnonzero(same & (off < 1.1 * step) & self._free.ravel())
        rows.append(near)
        columns.append(np.full(near.size, len(self.nodes) - 1))
        costs.append(self._speeds.duration(self.nodes[near], goal) + 1e-6)
        shape = (len(self.nodes), len(self.nodes))
        return csr_array((np.concatenate(costs), (np.concatenate(rows), np.concatenate(columns))), shape=shape)

    def shortest(self) -> NDArray[np.int64] | None:
        """Return the quickest way from start to goal as indices of nodes, or None."""
        _, before = dijkstra(self._edges, indices=self.start, return_predecessors=True)
        way = [self.goal]
        while way[-1] != self.start:
            previous = int(before[way[-1]])
            if previous < 0:
                return None
            way.append(previous)
        return np.array(way[::-1])

    def ban(self, first: int, second: int) -> None:
        """Take a step between two nodes out, in both directions."""
        for i, j in ((first, second), (second, first)):
            row = slice(self._edges.indptr[i], self._edges.indptr[i + 1])
            self._edges.data[row][self._edges.indices[row] == j] = np.inf
