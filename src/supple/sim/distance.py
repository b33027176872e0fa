# SPDX-License-Identifier: Apache-2.0
"""Signed distances of points from the simple shapes of a scene."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np
from numpy.typing import NDArray

__all__ = ["distances_from"]

Array = NDArray[np.float64]
_GEOM = mujoco.mjtGeom


def _plane(points: Array, size: Array) -> Array:
    return points[:, 2]


def _sphere(points: Array, size: Array) -> Array:
    return np.linalg.norm(points, axis=1) - size[0]


def _capsule(points: Array, size: Array) -> Array:
    beyond = points[:, 2] - np.clip(points[:, 2], -size[1], size[1])
    return np.sqrt(points[:, 0] ** 2 + points[:, 1] ** 2 + beyond**2) - size[0]


def _outside_and_in(excess: Array) -> Array:
    """Return the distance from a convex shape whose faces are passed by these much, negative inside, shape (n, k)."""
    return np.linalg.norm(np.maximum(excess, 0.0), axis=1) + np.minimum(excess.max(axis=1), 0.0)


def _cylinder(points: Array, size: Array) -> Array:
    radial = np.hypot(points[:, 0], points[:, 1]) - size[0]
    return _outside_and_in(np.stack([radial, np.abs(points[:, 2]) - size[1]], axis=1))


def _box(points: Array, size: Array) -> Array:
    return _outside_and_in(np.abs(points) - size)


_SHAPES: dict[int, Callable[[Array, Array], Array]] = {
    int(_GEOM.mjGEOM_PLANE): _plane,
    int(_GEOM.mjGEOM_SPHERE): _sphere,
    int(_GEOM.mjGEOM_CAPSULE): _capsule,
    int(_GEOM.mjGEOM_CYLINDER): _cylinder,
    int(_GEOM.mjGEOM_BOX): _box,
}


def distances_from(model: mujoco.MjModel, data: mujoco.MjData, geom: int, points: Array) -> Array | None:
    """Return the distance of points from a shape's surface in [m], negative inside, shape (n,).

    Args:
        model: The scene.
        data: Where everything is.
        geom: Index of the shape; -1 for a flexible body's.
        points: Points in the world frame in [m], shape (n, 3).

    Returns:
        None for a shape without a formula: a mesh, an ellipsoid, a height field, a flexible body.
    """
    formula = _SHAPES.get(int(model.geom_type[geom])) if geom >= 0 else None
    if formula is None:
        return None
    local = (points - data.geom_xpos[geom]) @ data.geom_xmat[geom].reshape(3, 3)
    return formula(local, model.geom_size[geom])
