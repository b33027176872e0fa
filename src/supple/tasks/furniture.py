# SPDX-License-Identifier: Apache-2.0
"""Furniture that several tasks share, built from primitives with the published dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
import pinocchio as pin

__all__ = [
    "CABINET_DEPTH",
    "ERGO_TABLE_TOP",
    "HOLDER_SLOT",
    "LAB_TABLE_TOP",
    "SHELF_BOARDS",
    "add_control_cabinet",
    "add_drill_holder",
    "add_ergo_table",
    "add_floor_mark",
    "add_lab_table",
    "add_shelf",
    "distance_to_shelf",
    "half",
    "stands_on_ergo_table",
]

ERGO_TABLE_TOP = 0.80
"""Height of the ergonomic table's top in [m]."""

LAB_TABLE_TOP = 0.684
"""Height of the lab table's top in [m]."""

CABINET_DEPTH = 0.62
"""Depth of the control cabinet along its y axis in [m]."""

SHELF_BOARDS = (0.44, 0.91, 1.53)
"""Heights of the tops of the shelf's boards at scale 1 in [m]."""

HOLDER_SLOT = (-0.055, 0.14)
"""Where a tool hangs in the holder's second slot: x and y in the holder's frame in [m]."""

_TABLE_SIZE = (0.90, 1.415)
_SHELF_SIZE = (0.618, 1.234, 2.22)
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
        geom = table.add_geom(
            name=f"{name}_{part}", type=_BOX, size=half(size), pos=position, rgba=rgba, friction=friction
        )
        if rgba is steel:
            _make_hard(geom)


def _make_hard(geom: mujoco.MjsGeom) -> None:
    """Let steel give way as little as the step allows: MuJoCo's default lets a kicking foot 1 cm in."""
    geom.solref[0], geom.priority = 0.01, 1


def add_lab_table(spec: mujoco.MjSpec, name: str) -> None:
    """Add a plain table: top 1.17 x 0.74 m at 0.684 m, four legs.

    The body's frame is on the floor below the middle of the top; its long side is along x.
    """
    table = spec.worldbody.add_body(name=name)
    wood, steel = [0.86, 0.84, 0.8, 1.0], [0.35, 0.36, 0.38, 1.0]
    thickness = 0.052
    parts = [("top", (1.17, 0.74, thickness), (0.0, 0.0, LAB_TABLE_TOP - 0.5 * thickness), wood)]
    height = LAB_TABLE_TOP - thickness
    corners = [(x, y) for x in (-0.485, 0.485) for y in (-0.32, 0.32)]
    parts += [(f"leg_{i}", (0.05, 0.05, height), (x, y, 0.5 * height), steel) for i, (x, y) in enumerate(corners)]
    for part, size, position, rgba in parts:
        geom = table.add_geom(name=f"{name}_{part}", type=_BOX, size=half(size), pos=position, rgba=rgba)
        geom.friction = [0.8, 0.005, 0.0001]
        if rgba is steel:
            _make_hard(geom)


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


def add_shelf(spec: mujoco.MjSpec, name: str, scale: float) -> None:
    """Add a shelf, open all round, with three boards: at scale 1 0.618 m along x, 1.234 m along y, 2.22 m high.

    The body's frame is on the floor below its middle.

    Args:
        spec: The scene.
        name: Body name.
        scale: Factor of all its sizes.
    """
    shelf = spec.worldbody.add_body(name=name)
    steel, wood = [0.25, 0.33, 0.45, 1.0], [0.8, 0.7, 0.52, 1.0]
    parts = [(f"board_{i}", (0.6, 1.216, 0.04), (0.0, 0.0, top - 0.02), wood) for i, top in enumerate(SHELF_BOARDS)]
    corners = [(x, y) for x in (-0.267, 0.267) for y in (-0.587, 0.587)]
    parts += [(f"post_{i}", (0.06, 0.08, 2.22), (x, y, 1.11), steel) for i, (x, y) in enumerate(corners)]
    parts += [(f"rail_{i}", (0.03, 1.234, 0.04), (x, 0.0, 2.2), steel) for i, x in enumerate((-0.267, 0.267))]
    for part, size, position, rgba in parts:
        geom = shelf.add_geom(name=f"{name}_{part}", type=_BOX, rgba=rgba, friction=[0.8, 0.005, 0.0001])
        geom.size, geom.pos = scale * np.array(half(size)), scale * np.array(position)
        if rgba is steel:
            _make_hard(geom)


def distance_to_shelf(T_world_shelf: pin.SE3, scale: float, position: Sequence[float]) -> float:
    """Return the distance in [m] on the floor from a point to a shelf; 0 within it.

    Args:
        T_world_shelf: Pose of the shelf.
        scale: Its scale.
        position: Point in the world in [m]; only x and y count.
    """
    local = T_world_shelf.actInv(np.array([*position[:2], 0.0]))
    outside = np.abs(local[:2]) - scale * np.array(half(_SHELF_SIZE[:2]))
    return float(np.linalg.norm(np.maximum(outside, 0.0)))


def add_drill_holder(spec: mujoco.MjSpec, name: str) -> None:
    """Add a steel comb, 0.45 m wide, on whose teeth tools with a head hang; it is open on its +y side.

    The body's frame is in the middle of its top, 0.13 m before what it is fixed to. Its four slots, at x = +-0.055 and
    +-0.165 m, are 44 mm wide. The teeth are as smooth as its plastic coating.

    Args:
        spec: The scene.
        name: Body name.
    """
    holder = spec.worldbody.add_body(name=name)
    thickness, back, front, root, slot, pitch, width = 0.012, -0.13, 0.165, 0.0, 0.044, 0.11, 0.45
    coated = [0.75, 0.55, 0.1, 1.0]
    slots = [-1.5 * pitch, -0.5 * pitch, 0.5 * pitch, 1.5 * pitch]
    lefts = [-0.5 * width, *(x + 0.5 * slot for x in slots)]
    rights = [*(x - 0.5 * slot for x in slots), 0.5 * width]
    parts = [("plate", -0.5 * width, 0.5 * width, back, root)]
    parts += [(f"tooth_{i}", lefts[i], rights[i], root, front) for i in range(5)]
    for part, left, right, near, far in parts:
        geom = holder.add_geom(name=f"{name}_{part}", type=_BOX, rgba=coated)
        geom.size = half((right - left, far - near, thickness))
        geom.pos = [0.5 * (left + right), 0.5 * (near + far), -0.5 * thickness]
        # Its friction counts, not that of what hangs on it, and as hard as that.
        geom.friction, geom.priority, geom.condim = [0.15, 0.005, 0.0001], 2, 4
        geom.solref, geom.solimp = [0.01, 1.0], [0.97, 0.995, 0.001, 0.5, 2.0]
    holder.add_geom(
        name=f"{name}_flange", type=_BOX, size=half((width, 0.012, 0.10)), pos=[0.0, back, -0.05], rgba=coated
    )


def add_floor_mark(spec: mujoco.MjSpec, name: str) -> None:
    """Add a mark on the floor, 1 x 1 m, that nothing touches; the body's frame is in its middle."""
    mark = spec.worldbody.add_body(name=name)
    plate = mark.add_geom(name=f"{name}_plate", type=_BOX, pos=[0.0, 0.0, 0.001], rgba=[0.2, 0.6, 0.3, 0.5])
    plate.size, plate.contype, plate.conaffinity = half((1.0, 1.0, 0.002)), 0, 0
