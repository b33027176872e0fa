# SPDX-License-Identifier: Apache-2.0
"""Simple solids with closed formulas: signed distances of points from them, and points on their surfaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.errors import SceneError

__all__ = ["DISTANCES", "Solid", "Solids", "surface"]

Array = NDArray[np.float64]

_STEPS = 1e-6 * np.vstack([np.eye(3), -np.eye(3)])


def _plane(points: Array, size: Array) -> Array:
    return points[:, 2]


def _sphere(points: Array, size: Array) -> Array:
    return np.linalg.norm(points, axis=1) - size[..., 0]


def _capsule(points: Array, size: Array) -> Array:
    beyond = points[:, 2] - np.clip(points[:, 2], -size[..., 1], size[..., 1])
    return np.sqrt(points[:, 0] ** 2 + points[:, 1] ** 2 + beyond**2) - size[..., 0]


def _outside_and_in(excess: Array) -> Array:
    """Return the distance from a convex shape whose faces are passed by these much, negative inside, shape (n, k)."""
    return np.linalg.norm(np.maximum(excess, 0.0), axis=1) + np.minimum(excess.max(axis=1), 0.0)


def _cylinder(points: Array, size: Array) -> Array:
    radial = np.hypot(points[:, 0], points[:, 1]) - size[..., 0]
    return _outside_and_in(np.stack([radial, np.abs(points[:, 2]) - size[..., 1]], axis=1))


def _box(points: Array, size: Array) -> Array:
    return _outside_and_in(np.abs(points) - size)


DISTANCES: Mapping[str, Callable[[Array, Array], Array]] = MappingProxyType(
    {"plane": _plane, "sphere": _sphere, "capsule": _capsule, "cylinder": _cylinder, "box": _box}
)
"""Signed distance in [m] of points (n, 3) in a shape's own frame, by shape; its size is (3,) or one per point (n, 3).

Sizes are MuJoCo's: half extents of a box; radius and half length along z of a capsule (without its caps) or cylinder;
radius of a sphere; a plane fills everything below z = 0.
"""


@dataclass(frozen=True, eq=False)
class Solid:
    """One rigid solid.

    Attributes:
        body: Name of what it is a part of.
        shape: Key of :data:`DISTANCES`.
        size: Three numbers in [m], as the shape takes them.
        pose: Pose of its frame.
    """

    body: str
    shape: str
    size: tuple[float, float, float]
    pose: pin.SE3

    def distance(self, points: Array) -> Array:
        """Return the signed distance in [m] of points (n, 3) in the frame that the pose is given in."""
        local = (points - self.pose.translation) @ self.pose.rotation
        return DISTANCES[self.shape](local, np.asarray(self.size))


class Solids:
    """Many solids, with distances of many points from all of them at once.

    Args:
        solids: The solids; those of one shape are asked together.

    Attributes:
        solids: The solids, ordered by shape.

    Raises:
        SceneError: A shape without a formula.
    """

    def __init__(self, solids: Sequence[Solid]) -> None:
        for solid in solids:
            if solid.shape not in DISTANCES:
                raise SceneError(f"{solid.body}: no distance for shape {solid.shape!r}, only {', '.join(DISTANCES)}")
        self.solids = tuple(sorted(solids, key=lambda solid: solid.shape))
        self._shapes = [solid.shape for solid in self.solids]
        self._size = np.array([solid.size for solid in self.solids]).reshape(-1, 3)
        self._rotation = np.array([solid.pose.rotation for solid in self.solids]).reshape(-1, 3, 3)
        self._position = np.array([solid.pose.translation for solid in self.solids]).reshape(-1, 1, 3)
        kinds = dict.fromkeys(self._shapes)
        self._runs = [(kind, self._shapes.index(kind), self._shapes.count(kind)) for kind in kinds]

    def __len__(self) -> int:
        """Return the number of solids."""
        return len(self.solids)

    def distances(self, points: Array) -> Array:
        """Return the signed distance in [m] of world points (n, 3) from each solid, negative inside, shape (s, n)."""
        count = len(points)
        local = (points[None] - self._position) @ self._rotation
        result = np.empty((len(self.solids), count))
        for kind, first, number in self._runs:
            rows = slice(first, first + number)
            size = np.repeat(self._size[rows], count, axis=0)
            result[rows] = DISTANCES[kind](local[rows].reshape(-1, 3), size).reshape(number, count)
        return result

    def normal(self, which: int, point: Array) -> Array:
        """Return the direction in which a world point (3,) in [m] leaves one solid fastest, world frame, shape (3,)."""
        # By differences: at an edge or on an axis, where a formula would need cases, they give a usable direction too.
        local = (point - self._position[which, 0]) @ self._rotation[which]
        values = DISTANCES[self._shapes[which]](local + _STEPS, self._size[which])
        gradient = values[:3] - values[3:]
        return self._rotation[which] @ (gradient / max(float(np.linalg.norm(gradient)), 1e-12))


def _grid(low: float, high: float, spacing: float) -> Array:
    return np.linspace(low, high, max(2, int(np.ceil((high - low) / spacing)) + 1))


def _ring(radius: float, spacing: float) -> Array:
    """Return unit vectors round the z axis, as close as asked for on a circle of a radius, shape (n, 2)."""
    count = max(8, int(np.ceil(2.0 * np.pi * radius / spacing)))
    angles = 2.0 * np.pi * np.arange(count) / count
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _of_box(size: Array, spacing: float) -> tuple[Array, Array]:
    points, normals = [], []
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        across = np.stack(np.meshgrid(_grid(-size[u], size[u], spacing), _grid(-size[v], size[v], spacing)), -1)
        for sign in (-1.0, 1.0):
            face = np.full((across.shape[0] * across.shape[1], 3), sign * size[axis])
            face[:, [u, v]] = across.reshape(-1, 2)
            points.append(face)
            normals.append(np.broadcast_to(sign * np.eye(3)[axis], face.shape))
    return np.vstack(points), np.vstack(normals)


def _of_round(radius: float, half: float, capped: bool, spacing: float) -> tuple[Array, Array]:
    """Return points and normals of a capsule (a sphere, with no length) or of a cylinder with flat ends."""
    ring = _ring(radius, spacing)
    heights = _grid(-half, half, spacing) if half > 0.0 else np.zeros(1)
    points = [np.column_stack([radius * ring, np.full(len(ring), z)]) for z in heights]
    normals = [np.column_stack([ring, np.zeros(len(ring))]) for _ in heights]
    for sign in (-1.0, 1.0):
        if capped:
            for angle in _grid(0.0, 0.5 * np.pi, spacing / radius)[1:]:
                around = _ring(radius * np.cos(angle), spacing) if angle < 0.5 * np.pi - 1e-9 else np.zeros((1, 2))
                normal = np.column_stack([np.cos(angle) * around, np.full(len(around), sign * np.sin(angle))])
                points.append(radius * normal + [0.0, 0.0, sign * half])
                normals.append(normal)
        else:
            for r in _grid(0.0, radius, spacing):
                around = _ring(r, spacing) if r > 0.0 else np.zeros((1, 2))
                points.append(np.column_stack([r * around, np.full(len(around), sign * half)]))
                normals.append(np.broadcast_to([0.0, 0.0, sign], points[-1].shape))
    return np.vstack(points), np.vstack(normals)


def surface(solid: Solid, spacing: float) -> tuple[Array, Array]:
    """Return points on a solid's surface and the outward normals there, in the frame of its pose, shape (n, 3) each.

    Args:
        solid: A solid with an end: no plane.
        spacing: Largest distance of neighbours in [m].

    Raises:
        SceneError: A plane.
    """
    size = np.asarray(solid.size)
    if solid.shape == "box":
        points, normals = _of_box(size, spacing)
    elif solid.shape in ("capsule", "sphere", "cylinder"):
        half = 0.0 if solid.shape == "sphere" else float(size[1])
        points, normals = _of_round(float(size[0]), half, solid.shape != "cylinder", spacing)
    else:
        raise SceneError(f"{solid.body}: a {solid.shape} has no surface that could be sampled")
    rotation = solid.pose.rotation
    return points @ rotation.T + solid.pose.translation, normals @ rotation.T
