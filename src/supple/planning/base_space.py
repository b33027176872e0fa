# SPDX-License-Identifier: Apache-2.0
"""Where a robot of a given outline can stand: its parts against the obstacles that reach to their height."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import ConvexHull

from supple.errors import StateError
from supple.kinematics.outlines import Outline

__all__ = ["BaseSpace", "Nearest", "checked_pose", "turned"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Heights are taken this much larger in [m] when parts are compared with obstacles: a walking robot rises and dips.
_HEIGHT_MARGIN = 0.02


@dataclass(frozen=True)
class Nearest:
    """What a robot in some place comes closest to.

    Attributes:
        distance: Gap in [m] on the floor plan, negative where both overlap.
        part: Part of the robot.
        obstacle: The obstacle; empty if there is none at the robot's heights.
    """

    distance: float
    part: str
    obstacle: str


@dataclass(frozen=True)
class _Layer:
    """Obstacles that meet the same parts of the robot."""

    parts: tuple[Outline, ...]
    obstacles: tuple[Outline, ...]
    union: shapely.Geometry
    hull: Array
    radius: float


def _close(layer: _Layer, points: Array, poses: Array, margins: Array) -> Mask:
    """Tell at which poses (n, 3) corners (k, 2) come closer to a layer's obstacles than a margin (n,)."""
    if not len(poses):
        return np.zeros(0, dtype=bool)
    return shapely.dwithin(layer.union, shapely.polygons(turned(points, poses[:, 2]) + poses[:, None, :2]), margins)


def turned(points: Array, yaws: Array) -> Array:
    """Return points (k, 2) turned by each of some angles (n,) in [rad], shape (n, k, 2)."""
    c, s = np.cos(yaws)[:, None], np.sin(yaws)[:, None]
    x, y = points[:, 0], points[:, 1]
    return np.stack([c * x - s * y, s * x + c * y], axis=-1)


def _radius(parts: Sequence[Outline]) -> float:
    return max((float(np.hypot(*part.points.T).max()) for part in parts), default=0.0)


def _meet(part: Outline, pose: Array, obstacle: Outline) -> bool:
    """Tell whether a part of a robot in a pose overlaps an obstacle on the floor plan."""
    corners = turned(part.points, pose[2:])[0] + pose[:2]
    return bool(shapely.Polygon(corners).intersects(shapely.Polygon(obstacle.points)))


def _separation(first: Array, second: Array) -> float:
    """Return how far two convex outlines overlap, negative, as the least shift that parts them in [m]."""
    best = -np.inf
    for corners, other in ((first, second), (second, first)):
        edges = np.roll(corners, -1, axis=0) - corners
        normals = np.stack([edges[:, 1], -edges[:, 0]], axis=1)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        gaps = (other @ normals.T).min(axis=0) - np.einsum("ij,ij->i", corners, normals)
        best = max(best, float(gaps.max()))
    return best


class BaseSpace:
    """Free and blocked poses (x, y, yaw) of a robot that stands upright on the floor.

    A part of the robot counts against those obstacles only whose heights it shares: hands pass above a table that the
    feet must not run into.

    Args:
        robot: Outlines of the robot's parts in its base frame.
        obstacles: Outlines of the obstacles in the world frame.
        known_free: Poses (x, y, yaw) in which the robot is known to touch nothing, or in which it stands already, shape
            (k, 3): outlines that overlap there do so because they are coarse, and count nowhere.

    Attributes:
        obstacles: As given.
        radius: Largest distance of a part from the base in [m].
    """

    def __init__(
        self, robot: Sequence[Outline], obstacles: Sequence[Outline], known_free: Sequence[ArrayLike] = ()
    ) -> None:
        groups: dict[tuple[int, ...], list[Outline]] = {}
        places = [checked_pose(pose) for pose in known_free]
        for obstacle in obstacles:
            low, high = obstacle.bottom - _HEIGHT_MARGIN, obstacle.top + _HEIGHT_MARGIN
            meets = tuple(
                i
                for i, part in enumerate(robot)
                if part.bottom < high and low < part.top and not any(_meet(part, pose, obstacle) for pose in places)
            )
            if meets:
                groups.setdefault(meets, []).append(obstacle)
        self._layers = []
        for meets, members in groups.items():
            union = shapely.union_all([shapely.Polygon(obstacle.points) for obstacle in members])
            shapely.prepare(union)
            parts = self._outermost([robot[i] for i in meets])
            corners = np.vstack([part.points for part in parts])
            hull = corners[ConvexHull(corners).vertices]
            self._layers.append(_Layer(parts, tuple(members), union, hull, _radius(parts)))
        self.obstacles = tuple(obstacles)
        self.radius = _radius(robot)
        self._areas: dict[float, shapely.Geometry] = {}

    @staticmethod
    def _outermost(parts: Sequence[Outline]) -> tuple[Outline, ...]:
        """Drop parts that lie within another one's outline."""
        shapes = [shapely.Polygon(part.points) for part in parts]
        by_size = sorted(range(len(parts)), key=lambda i: (-shapes[i].area, i))
        kept: list[int] = []
        for i in by_size:
            if not any(shapes[j].covers(shapes[i]) for j in kept):
                kept.append(i)
        return tuple(parts[i] for i in sorted(kept))

    def free(self, poses: ArrayLike, margin: ArrayLike = 0.0) -> Mask:
        """Tell which poses keep a distance from everything.

        Args:
            poses: (x, y, yaw) in [m, m, rad], shape (n, 3).
            margin: Distance to keep in [m], one for all or shape (n,).
        """
        poses = np.asarray(poses, dtype=np.float64)
        margins = np.broadcast_to(np.asarray(margin, dtype=np.float64), len(poses))
        free = np.ones(len(poses), dtype=bool)
        for layer in self._layers:
            # What keeps clear with all round it needs no look at its parts: first a circle, then their common hull.
            near = free & shapely.dwithin(layer.union, shapely.points(poses[:, :2]), layer.radius + margins)
            doubtful = np.flatnonzero(near)
            doubtful = doubtful[_close(layer, layer.hull, poses[doubtful], margins[doubtful])]
            for part in layer.parts:
                left = doubtful[free[doubtful]]
                free[left] = ~_close(layer, part.points, poses[left], margins[left])
        return free

    def nearest(self, pose: ArrayLike) -> Nearest:
        """Return what is closest to the robot in a pose (x, y, yaw), or overlaps most.

        Raises:
            StateError: The pose is not three finite numbers.
        """
        x, y, yaw = checked_pose(pose)
        found = Nearest(np.inf, "", "")
        for layer in self._layers:
            for part in layer.parts:
                corners = turned(part.points, np.array([yaw]))[0] + [x, y]
                shape = shapely.Polygon(corners)
                for obstacle in layer.obstacles:
                    distance = float(shape.distance(shapely.Polygon(obstacle.points)))
                    if distance == 0.0:
                        distance = min(_separation(corners, obstacle.points), 0.0)
                    if distance < found.distance:
                        found = Nearest(distance, part.name, obstacle.name)
        return found

    def forbidden(self, yaw: float) -> shapely.Geometry:
        """Return where the base must not be with a heading in [rad], as one area on the floor plan."""
        if yaw not in self._areas:
            self._areas[yaw] = self._swept_areas(yaw)
        return self._areas[yaw]

    def _swept_areas(self, yaw: float) -> shapely.Geometry:
        sums = [
            (obstacle.points[:, None] + turned(-part.points, np.array([yaw]))[0]).reshape(-1, 2)
            for layer in self._layers
            for part in layer.parts
            for obstacle in layer.obstacles
        ]
        if not sums:
            return shapely.Polygon()
        owners = np.repeat(np.arange(len(sums)), [len(points) for points in sums])
        hulls = shapely.convex_hull(shapely.multipoints(np.vstack(sums), indices=owners))
        area = shapely.union_all(hulls)
        shapely.prepare(area)
        return area


def checked_pose(pose: ArrayLike) -> Array:
    """Return a pose (x, y, yaw) as an array.

    Raises:
        StateError: It is not three finite numbers.
    """
    value = np.asarray(pose, dtype=np.float64)
    if value.shape != (3,) or not np.all(np.isfinite(value)):
        raise StateError(f"pose on the floor: expected three finite numbers (x, y, yaw), got {value.tolist()}")
    return value
