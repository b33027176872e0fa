# SPDX-License-Identifier: Apache-2.0
"""Signed distances of points from the simple shapes of a scene."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from supple.kinematics.solids import DISTANCES

__all__ = ["distances_from"]

Array = NDArray[np.float64]
_SHAPE_OF = {int(kind): kind.name.removeprefix("mjGEOM_").lower() for kind in map(mujoco.mjtGeom, range(8))}


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
    formula = DISTANCES.get(_SHAPE_OF.get(int(model.geom_type[geom]), "")) if geom >= 0 else None
    if formula is None:
        return None
    local = (points - data.geom_xpos[geom]) @ data.geom_xmat[geom].reshape(3, 3)
    return formula(local, model.geom_size[geom])
