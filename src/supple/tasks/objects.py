# SPDX-License-Identifier: Apache-2.0
"""Things that several tasks handle, built from primitives with the published dimensions."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco

from supple.tasks.furniture import half

__all__ = ["DRILL_GRIP_HEIGHT", "DRILL_RADIUS", "add_button", "add_cardboard_box", "add_drill"]

DRILL_GRIP_HEIGHT = 0.109
"""Height of the middle of the drill's handle above its bottom in [m]."""

DRILL_RADIUS = 0.067
"""Largest distance of the drill's foot from its axis in [m]."""

_BOX, _CAPSULE = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CAPSULE
_CYLINDER = mujoco.mjtGeom.mjGEOM_CYLINDER


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
    geom = box.add_geom(name=f"{name}_shell", type=_BOX, size=half(size), pos=centre, mass=mass, rgba=cardboard)
    geom.friction, geom.condim = [friction, 0.01, 0.001], 4
    # A strip of tape shows in pictures which way the box is turned.
    strip = box.add_geom(name=f"{name}_tape", type=_BOX, pos=[0.0, 0.0, size[2]], rgba=tape, mass=0.0)
    strip.size, strip.contype, strip.conaffinity = [0.5 * size[0], 0.02, 0.0005], 0, 0


def add_button(spec: mujoco.MjSpec, name: str, stiffness: float, travel: float) -> None:
    """Add a panel with a push-button, to be fixed to a wall; it faces along its +y axis.

    The button is the body ``<name>_cap``; it slides along the panel's y axis, ``travel`` deep, against a spring.

    Args:
        spec: The scene.
        name: Body name; its frame is in the middle of the panel's back.
        stiffness: Of the spring in [N/m].
        travel: How far the button goes in, in [m].
    """
    yellow, red, grey = [0.85, 0.72, 0.15, 1.0], [0.8, 0.1, 0.1, 1.0], [0.3, 0.3, 0.32, 1.0]
    depth, tip, thickness, height = 0.054, 0.079, 0.01, 0.0455
    panel = spec.worldbody.add_body(name=name)
    panel.add_geom(
        name=f"{name}_panel", type=_BOX, size=half((0.070, depth, 0.222)), pos=[0, 0.5 * depth, 0], rgba=yellow
    )
    cap = panel.add_body(name=f"{name}_cap", pos=[0.0, tip - 0.5 * thickness, height])
    joint = cap.add_joint(name=f"{name}_joint", type=mujoco.mjtJoint.mjJNT_SLIDE, axis=[0.0, 1.0, 0.0])
    joint.range, joint.limited = [-travel, 0.0], True
    joint.stiffness, joint.damping = [stiffness, 0.0, 0.0], [2.0, 0.0, 0.0]
    along_y = [0.7071067811865476, -0.7071067811865476, 0.0, 0.0]
    cap.add_geom(
        name=f"{name}_face", type=_CYLINDER, size=[0.025, 0.5 * thickness, 0.0], quat=along_y, mass=0.03, rgba=red
    )
    stem = panel.add_geom(name=f"{name}_stem", type=_CYLINDER, quat=along_y, rgba=grey, pos=[0.0, depth, height])
    stem.size, stem.contype, stem.conaffinity = [0.017, 0.012, 0.0], 0, 0


def add_drill(spec: mujoco.MjSpec, name: str, mass: float, friction: float) -> None:
    """Add a free cordless drill, 22 cm high, that stands on its battery.

    The frame is at the middle of the battery's bottom; the bit points along +x. Half of the weight is the battery's.

    Args:
        spec: The scene.
        name: Body name.
        mass: Mass in [kg].
        friction: Sliding friction coefficient.
    """
    teal, black, steel = [0.05, 0.45, 0.5, 1.0], [0.12, 0.12, 0.13, 1.0], [0.6, 0.6, 0.62, 1.0]
    drill = spec.worldbody.add_body(name=name)
    drill.add_freejoint(name=f"{name}_joint")
    parts = [
        drill.add_geom(
            name=f"{name}_battery", type=_BOX, size=half((0.11, 0.075, 0.05)), pos=[0, 0, 0.025], rgba=black
        ),
        drill.add_geom(
            name=f"{name}_handle", type=_CAPSULE, size=[0.02, 0, 0], fromto=[0, 0, 0.05, 0, 0, 0.175], rgba=teal
        ),
        drill.add_geom(
            name=f"{name}_body",
            type=_CAPSULE,
            size=[0.027, 0, 0],
            fromto=[-0.068, 0, 0.195, 0.068, 0, 0.195],
            rgba=teal,
        ),
    ]
    for geom, share in zip(parts, (0.5, 0.1, 0.4), strict=True):
        geom.mass, geom.friction, geom.condim = share * mass, [friction, 0.01, 0.001], 4
        # MuJoCo's contacts are as soft as the lighter of two bodies: without this, finger links of 20 g that close with
        # 1.4 Nm would sink 15 mm into the handle. Priority lets these numbers count against those of the hand.
        geom.solref, geom.solimp, geom.priority = [0.01, 1.0], [0.97, 0.995, 0.001, 0.5, 2.0], 1
    bit = drill.add_geom(name=f"{name}_chuck", type=_CAPSULE, rgba=steel, mass=0.0)
    bit.fromto, bit.size = [0.08, 0, 0.195, 0.12, 0, 0.195], [0.012, 0, 0]
    bit.contype, bit.conaffinity = 0, 0
