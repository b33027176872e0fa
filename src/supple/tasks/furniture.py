# SPDX-License-Identifier: Apache-2.0
"""Furniture that several tasks share, built from primitives with the published dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
import pinocchio as pin

__all__ = ["CABINET_DEPTH", "ERGO_TABLE_TOP", "add_control_cabinet", "add_ergo_table", "half", "stands_on_ergo_table"]

ERGO_TABLE_TOP = 0.80
"""Height of the ergonomic table's top in [m]."""

CABINET_DEPTH = 0.62
"""Depth of the control cabinet along its y axis in [m]."""

_TABLE_SIZE = (0.90, 1.415)
_BOX = mujoco.mjtGeom.mjGEOM_BOX


def half(size: Sequence[float]) -> list[float]:
    """Return half extents, as MuJoCo wants them, of full ones."""
    return [0.5 * value for value in size]


def add_ergo_table(spec: mujoco.MjSpec, name: str) -> None:
    """Add a height-adjustable desk: top 0.90 x 1.415 m at 0.80 m, two legs with long feet, a screen along one side.

    The body's frame is on the floor below the middle of the top; the screen is on its -x side.
    """
    table = spec.worldbody.add_body(name=name)
    wood, steel, cloth = [0.78, 0.63, 0.45, 1.0], [0.35, 0.36, 0.38, 1.0], [0.55, 0.6, 0.66, 1.0]
    friction = [0.8, 0.005, 0.0001]
    parts = [
        ("top", (*_TABLE_SIZE, 0.099), (0.0, 0.0, ERGO_TABLE_TOP - 0.0495), wood),
        ("left_leg", (0.09, 0.09, 0.70), (0.0, 0.62, 0.35), steel),
        ("right_leg", (0.09, 0.09, 0.70), (0.0, -0.62, 0.35), steel),
        ("left_foot", (0.82, 0.09, 0.04), (0.0, 0.62, 0.02), steel),
        ("right_foot", (0.82, 0.09, 0.04), (0.0, -0.62, 0.02), steel),
        ("screen", (0.02, 1.415, 0.76), (-0.46, 0.0, 0.89), cloth),
    ]
    for part, size, position, rgba in parts:
        table.add_geom(name=f"{name}_{part}", type=_BOX, size=half(size), pos=position, rgba=rgba, friction=friction)


def stands_on_ergo_table(T_world_table: pin.SE3, position: Sequence[float], margin: float) -> bool:
    """Tell whether a point lies above the table's top, at least a margin in [m] away from its edges.

    Args:
        T_world_table: Pose of the table.
        position: Point in the world in [m]; only x and y count.
        margin: Distance from the edges in [m].
    """
    local = T_world_table.actInv(np.array([*position[:2], 0.0]))
    return bool(np.all(np.abs(local[:2]) <= np.array(half(_TABLE_SIZE)) - margin))


def add_control_cabinet(spec: mujoco.MjSpec, name: str) -> None:
    """Add a control cabinet 1.58 m wide, 0.62 m deep and 1.775 m high; its front is on its +y side.

    The body's frame is on the floor below its middle.
    """
    cabinet = spec.worldbody.add_body(name=name)
    size = (1.58, CABINET_DEPTH, 1.775)
    steel, door = [0.62, 0.64, 0.66, 1.0], [0.45, 0.47, 0.5, 1.0]
    cabinet.add_geom(name=f"{name}_body", type=_BOX, size=half(size), pos=[0.0, 0.0, 0.5 * size[2]], rgba=steel)
    # Gaps between the doors, for pictures.
    for i, x in enumerate((-0.26, 0.26)):
        gap = cabinet.add_geom(name=f"{name}_gap_{i}", type=_BOX, pos=[x, 0.5 * CABINET_DEPTH, 0.9], rgba=door)
        gap.size, gap.contype, gap.conaffinity = [0.004, 0.001, 0.85], 0, 0
