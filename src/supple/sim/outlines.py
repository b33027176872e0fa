# SPDX-License-Identifier: Apache-2.0
"""The scene and the robot as outlines on the floor plan, taken from MuJoCo's collision shapes as they stand now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from supple.errors import SceneError
from supple.geometry import pose_from_xyyaw
from supple.kinematics.outlines import Outline
from supple.robots.g1 import HAND_GROUPS
from supple.sim.world import World

__all__ = ["robot_outlines", "scene_outlines"]

Array = NDArray[np.float64]
_GEOM = mujoco.mjtGeom
_UNBOUNDED = (int(_GEOM.mjGEOM_PLANE), int(_GEOM.mjGEOM_HFIELD))
# Corners of a circle's polygon; drawn round the circle, it is at most 2 % wider.
_CORNERS = 16
_ANGLES = 2.0 * np.pi * np.arange(_CORNERS) / _CORNERS
_CIRCLE = np.stack([np.cos(_ANGLES), np.sin(_ANGLES), np.zeros(_CORNERS)], axis=1) / np.cos(np.pi / _CORNERS)
_POLES = np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])
_SIGNS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=np.float64)


def _corners(model: mujoco.MjModel, geom: int) -> Array:
    """Return points in a geom's own frame in [m], shape (n, 3): their hull is the solid, less a round one's radius."""
    size, kind = model.geom_size[geom], int(model.geom_type[geom])
    if kind == _GEOM.mjGEOM_SPHERE:
        return np.zeros((1, 3))
    if kind == _GEOM.mjGEOM_CAPSULE:
        return _POLES * size[1]
    if kind in (_GEOM.mjGEOM_BOX, _GEOM.mjGEOM_ELLIPSOID):
        return _SIGNS * size
    if kind == _GEOM.mjGEOM_CYLINDER:
        return np.vstack([_CIRCLE * size[0] + pole for pole in _POLES * size[1]])
    if kind == _GEOM.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        return model.mesh_vert[first : first + count].astype(np.float64)
    raise SceneError(f"no outline for geom {model.geom(geom).name!r} of type {_GEOM(kind).name}")


def _points(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> Array:
    """Return points in the world frame in [m], shape (n, 3), with the geom's outline and heights."""
    points = _corners(model, geom) @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
    if int(model.geom_type[geom]) in (_GEOM.mjGEOM_SPHERE, _GEOM.mjGEOM_CAPSULE):
        # Round all about: from above a circle, whichever way it is turned.
        round_about = np.vstack([_CIRCLE, _POLES]) * model.geom_size[geom, 0]
        return np.vstack([point + round_about for point in points])
    return points


def _solids(world: World, data: mujoco.MjData, bodies: NDArray[np.bool_]) -> Iterator[tuple[int, int, Array]]:
    """Yield geom, body and points of everything on some bodies that can touch something and has an end."""
    model = world.model
    solid = (model.geom_contype | model.geom_conaffinity) != 0
    for geom in np.flatnonzero(bodies[model.geom_bodyid] & solid).tolist():
        if int(model.geom_type[geom]) not in _UNBOUNDED:
            yield geom, int(model.geom_bodyid[geom]), _points(model, data, geom)


def _outlines(world: World, bodies: NDArray[np.bool_]) -> Iterator[Outline]:
    """Yield one outline per geom, as the scene stands now."""
    model = world.model
    for geom, body, points in _solids(world, world.data, bodies):
        yield Outline.of_points(model.body(body).name if body else model.geom(geom).name, points)


def scene_outlines(world: World, ignore: Sequence[str] = ()) -> list[Outline]:
    """Return the outlines of everything that is not the robot, in the world frame.

    Floors and height fields are left out, since the robot walks on them; so are flexible bodies, which give way.

    Args:
        world: The scene.
        ignore: Bodies that are no obstacles (with what hangs on them), e.g. one that the robot carries.
    """
    bodies = ~world.robot_bodies()
    for name in ignore:
        bodies &= ~world.attached_to(name)
    return list(_outlines(world, bodies))


def robot_outlines(world: World, q: Array, carried: Sequence[str] = ()) -> list[Outline]:
    """Return the outlines of the robot standing upright in a posture, in its base frame; heights are above the floor.

    One outline for each link, one for each hand.

    Args:
        world: The scene.
        q: Joint positions in [rad], table order.
        carried: Bodies that the robot carries, where they are now relative to its base.
    """
    data = mujoco.MjData(world.model)
    data.qpos[:] = world.data.qpos
    world.write_robot(data, pose_from_xyyaw(0.0, 0.0, 0.0, world.robot.standing_height), q)
    mujoco.mj_kinematics(world.model, data)
    owners = _owners(world)
    links: dict[int, list[Array]] = {}
    for _, body, points in _solids(world, data, world.robot_bodies()):
        links.setdefault(owners[body], []).append(points)
    found = [Outline.of_points(world.model.body(body).name, np.vstack(rows)) for body, rows in links.items()]
    base = world.object_pose(world.robot.base_link)
    for name in carried:
        found += [outline.seen_from(base) for outline in _outlines(world, world.attached_to(name))]
    return found


def _owners(world: World) -> list[int]:
    """Return for each body which one it is drawn with: fingers with the link that carries the hand."""
    model, joints = world.model, world.robot.joints
    fingers = {int(model.joint(joints.names[i]).bodyid[0]) for i in joints.group(*HAND_GROUPS)}
    owners: list[int] = []
    for body in range(model.nbody):
        owners.append(owners[int(model.body_parentid[body])] if body in fingers else body)
    return owners
