# SPDX-License-Identifier: Apache-2.0
"""A shelving cart on four swivel casters, built from primitives with the published dimensions."""

from __future__ import annotations

import math

import mujoco

from supple.tasks.furniture import half

__all__ = ["CART_END", "CART_TOP", "add_cart"]

CART_TOP = 1.165
"""Height of the uppermost board's top in [m]."""

CART_END = 0.51
"""Where the cart ends along x, from its middle, in [m]."""

_DENSITY = 200.0
_WHEEL_RADIUS, _WHEEL_WIDTH, _TRAIL, _WHEEL_MASS = 0.045, 0.03, 0.033, 0.2
# Of a rubber tyre: 2 % of the weight on it.
_ROLLING_TORQUE = 0.038
_BOX, _CYLINDER = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CYLINDER


def add_cart(spec: mujoco.MjSpec, name: str) -> None:
    """Add a free cart of 17 kg: 1.02 m along x, 0.50 m along y, 1.46 m high, five boards, a bar across each end.

    The body's frame is on the floor below its middle. All four wheels swivel; they trail as if pushed along -x.

    Args:
        spec: The scene.
        name: Body name.
    """
    cart = spec.worldbody.add_body(name=name)
    cart.add_freejoint(name=f"{name}_joint")
    steel, wood, rubber = [0.55, 0.57, 0.6, 1.0], [0.8, 0.7, 0.52, 1.0], [0.1, 0.1, 0.1, 1.0]
    x, y = CART_END - 0.02, 0.229
    parts = [("board_0", (1.02, 0.50, 0.06), (0.0, 0.0, 0.144), wood)]
    parts += [
        (f"board_{i}", (1.02, 0.50, 0.02), (0.0, 0.0, z), wood)
        for i, z in enumerate((0.411, 0.654, 0.906, CART_TOP - 0.01), start=1)
    ]
    corners = [(sx * x, sy * y) for sx in (-1, 1) for sy in (-1, 1)]
    parts += [(f"post_{i}", (0.04, 0.04, 1.29), (px, py, 0.815), steel) for i, (px, py) in enumerate(corners)]
    parts += [(f"bar_{i}", (0.04, 0.44, 0.04), (side * 0.494, 0.0, 1.427), steel) for i, side in enumerate((-1, 1))]
    for part, size, position, rgba in parts:
        geom = cart.add_geom(name=f"{name}_{part}", type=_BOX, size=half(size), pos=position, rgba=rgba)
        geom.friction, geom.density = [0.8, 0.005, 0.0001], _DENSITY
    for i, (px, py) in enumerate((px, py) for px in (-0.48, 0.46) for py in (-0.21, 0.21)):
        fork = cart.add_body(name=f"{name}_fork_{i}", pos=[px, py, 0.1])
        swivel = fork.add_joint(name=f"{name}_swivel_{i}", type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0.0, 0.0, 1.0])
        swivel.damping, swivel.frictionloss = [0.005, 0.0, 0.0], 0.005
        bracket = fork.add_geom(name=f"{name}_bracket_{i}", type=_BOX, rgba=steel, mass=0.1)
        bracket.size, bracket.pos = half((0.05, 0.04, 0.008)), [0.5 * _TRAIL, 0.0, 0.0]
        bracket.contype, bracket.conaffinity = 0, 0
        wheel = fork.add_body(name=f"{name}_wheel_{i}", pos=[_TRAIL, 0.0, _WHEEL_RADIUS - 0.1])
        axle = wheel.add_joint(name=f"{name}_axle_{i}", type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0.0, 1.0, 0.0])
        axle.damping, axle.frictionloss, axle.armature = [0.001, 0.0, 0.0], _ROLLING_TORQUE, 1e-4
        tyre = wheel.add_geom(name=f"{name}_tyre_{i}", type=_CYLINDER, rgba=rubber, mass=_WHEEL_MASS)
        tyre.size, tyre.quat = [_WHEEL_RADIUS, 0.5 * _WHEEL_WIDTH, 0.0], [math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0]
