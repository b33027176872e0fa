# SPDX-License-Identifier: Apache-2.0
"""Conditions that several success tests share."""

from __future__ import annotations

import numpy as np

from supple.robots import Robot
from supple.sim.world import World
from supple.tasks.task import Criterion

__all__ = ["above", "clear_of", "grasped", "still", "upright", "upright_object"]

_DISTAL = ("thumb_2", "middle_1", "index_1")
_STILL_LINEAR, _STILL_ANGULAR = 0.002, 0.005


def above(world: World, name: str, height: float) -> Criterion:
    """An object's frame is above a height in [m]."""
    z = float(world.object_pose(name).translation[2])
    return Criterion(f"{name}_height", z, z > height, f"{name} at {z:.3f} m, wanted above {height:.2f} m")


def clear_of(world: World, name: str, fixture: str) -> Criterion:
    """An object does not touch a piece of furniture."""
    off = not world.touching(name, fixture)
    return Criterion(f"{name}_off_{fixture}", off, off, f"the {name} must not touch the {fixture}")


def grasped(world: World, name: str) -> Criterion:
    """At least one finger tip of one hand touches an object."""
    tips = [f"{side}_hand_{tip}_link" for side in ("left", "right") for tip in _DISTAL]
    held = any(world.touching(tip, name) for tip in tips)
    return Criterion("grasped", held, held, f"no finger tip touches the {name}")


def upright(world: World, robot: Robot) -> Criterion:
    """The robot stands upright."""
    cosine = float(world.object_pose(robot.base_link).rotation[2, 2])
    return Criterion("upright", cosine, cosine > 0.8, f"pelvis upright {cosine:.2f}, wanted above 0.8")


def upright_object(world: World, name: str, cosine: float) -> Criterion:
    """The cosine of an object's tilt is above a bound."""
    found = float(world.object_pose(name).rotation[2, 2])
    return Criterion(f"{name}_upright", found, found > cosine, f"{name} upright {found:.2f}, wanted above {cosine:.2f}")


def still(world: World, name: str) -> Criterion:
    """An object rests: at most 2 mm/s and 5 mrad/s."""
    twist = world.object_twist(name)
    linear, angular = float(np.linalg.norm(twist[:3])), float(np.linalg.norm(twist[3:]))
    return Criterion(
        f"{name}_speed",
        linear,
        linear <= _STILL_LINEAR and angular <= _STILL_ANGULAR,
        f"{name} moves at {1e3 * linear:.1f} mm/s and {1e3 * angular:.1f} mrad/s, wanted at most 2 and 5",
    )
