# SPDX-License-Identifier: Apache-2.0
"""Fixtures and objects that several tasks share, built from primitives with the published dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco

__all__ = ["ERGO_TABLE_TOP", "add_cardboard_box", "add_ergo_table"]

ERGO_TABLE_TOP = 0.80
"""Height of the ergonomic table's top in [m]."""

_BOX = mujoco.mjtGeom.mjGEOM_BOX


def _half(size: Sequence[float]) -> list[float]:
    return [0.5 * value for value in size]


def add_ergo_table(spec: mujoco.MjSpec, name: str) -> None:
    """Add a height-adjustable desk: top 0.90 x 1.415 m at 0.80 m, two legs with long feet, a screen along one side.

    The body's frame is on the floor below the middle of the top; the screen is on its -x side.
    """
    table = spec.worldbody.add_body(name=name)
    wood, steel, cloth = [0.78, 0.63, 0.45, 1.0], [0.35, 0.36, 0.38, 1.0], [0.55, 0.6, 0.66, 1.0]
    friction = [0.8, 0.005, 0.0001]
    parts = [
        ("top", (0.90, 1.415, 0.099), (0.0, 0.0, ERGO_TABLE_TOP - 0.0495), wood),
        ("left_leg", (0.09, 0.09, 0.70), (0.0, 0.62, 0.35), steel),
        ("right_leg", (0.09, 0.09, 0.70), (0.0, -0.62, 0.35), steel),
        ("left_foot", (0.82, 0.09, 0.04), (0.0, 0.62, 0.02), steel),
        ("right_foot", (0.82, 0.09, 0.04), (0.0, -0.62, 0.02), steel),
        ("screen", (0.02, 1.415, 0.76), (-0.46, 0.0, 0.89), cloth),
    ]
    for part, size, position, rgba in parts:
        table.add_geom(name=f"{name}_{part}", type=_BOX, size=_half(size), pos=position, rgba=rgba, friction=friction)


def add_cardboard_box(spec: mujoco.MjSpec, name: str, size: Sequence[float], mass: float, friction: float) -> None:
    """Add a free box whose frame is at the middle of its bottom.

    Args:
        spec: The scene.
        name: Body name.
        size: Full extents along its x, y, z in [m].
        mass: Mass in [kg].
        friction: Sliding friction coefficient.
    """
    box = spec.worldbody.add_body(name=name)
    box.add_freejoint(name=f"{name}_joint")
    cardboard, tape = [0.72, 0.53, 0.33, 1.0], [0.85, 0.78, 0.6, 1.0]
    centre = [0.0, 0.0, 0.5 * size[2]]
    geom = box.add_geom(name=f"{name}_shell", type=_BOX, size=_half(size), pos=centre, mass=mass, rgba=cardboard)
    geom.friction, geom.condim = [friction, 0.01, 0.001], 4
    # A strip of tape shows in pictures which way the box is turned.
    strip = box.add_geom(name=f"{name}_tape", type=_BOX, pos=[0.0, 0.0, size[2]], rgba=tape, mass=0.0)
    strip.size, strip.contype, strip.conaffinity = [0.5 * size[0], 0.02, 0.0005], 0, 0
