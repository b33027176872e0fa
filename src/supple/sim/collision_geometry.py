# SPDX-License-Identifier: Apache-2.0
"""The robot's and the scene's collision shapes as solids, taken from MuJoCo."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
import pinocchio as pin

from supple.errors import SceneError
from supple.kinematics.collision_spheres import cover
from supple.kinematics.solids import DISTANCES, Solid, Solids
from supple.sim.world import World

__all__ = ["robot_solids", "scene_solids"]

# Points per square metre, and how many at least, on the hull of a mesh that is taken for spheres.
_MESH_DENSITY, _MESH_POINTS = 1.5e4, 200


def robot_solids(world: World) -> dict[str, list[Solid]]:
    """Return the collision shapes of each of the robot's links, posed in its frame."""
    model = world.model
    found: dict[str, list[Solid]] = {}
    for geom in _solid_geoms(world, world.robot_bodies()):
        link = model.body(model.geom_bodyid[geom]).name
        pose = pin.XYZQUATToSE3(np.concatenate([model.geom_pos[geom], model.geom_quat[geom][[1, 2, 3, 0]]]))
        found.setdefault(link, []).extend(_solids(model, geom, link, pose))
    return found


def scene_solids(world: World, ignore: Sequence[str] = ()) -> Solids:
    """Return everything that is not the robot where it stands now, in the world frame; the floor is one of them.

    Flexible bodies, which give way, are left out.

    Args:
        world: The scene.
        ignore: Bodies that are left out (with what hangs on them), e.g. one that the robot carries.

    Raises:
        SceneError: A shape that has no formula: an ellipsoid or a height field.
    """
    bodies = ~world.robot_bodies()
    for name in ignore:
        bodies &= ~world.attached_to(name)
    model, data = world.model, world.data
    found = []
    for geom in _solid_geoms(world, bodies):
        body = int(model.geom_bodyid[geom])
        name = model.body(body).name if body else model.geom(geom).name
        pose = pin.SE3(data.geom_xmat[geom].reshape(3, 3), data.geom_xpos[geom])
        found += _solids(model, geom, name, pose)
    return Solids(found)


def _solid_geoms(world: World, bodies: np.ndarray) -> list[int]:
    model = world.model
    solid = (model.geom_contype | model.geom_conaffinity) != 0
    geoms: list[int] = np.flatnonzero(bodies[model.geom_bodyid] & solid).tolist()
    return geoms


def _solids(model: mujoco.MjModel, geom: int, body: str, pose: pin.SE3) -> list[Solid]:
    kind = mujoco.mjtGeom(model.geom_type[geom])
    shape = kind.name.removeprefix("mjGEOM_").lower()
    if shape in DISTANCES:
        x, y, z = map(float, model.geom_size[geom])
        return [Solid(body, shape, (x, y, z), pose)]
    if kind != mujoco.mjtGeom.mjGEOM_MESH:
        raise SceneError(
            f"no collision solid for geom {model.geom(geom).name!r} of {body!r}: it is of type {kind.name}"
        )
    import trimesh

    # MuJoCo itself takes a mesh for its convex hull.
    mesh = model.geom_dataid[geom]
    first, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
    hull = trimesh.convex.convex_hull(np.asarray(model.mesh_vert[first : first + count], dtype=np.float64))
    number = max(_MESH_POINTS, int(_MESH_DENSITY * hull.area))
    points, faces = trimesh.sample.sample_surface(hull, number, seed=0)
    spheres = zip(*cover(np.asarray(points), hull.face_normals[faces]), strict=True)
    return [Solid(body, "sphere", (float(r), 0.0, 0.0), pose * pin.SE3(np.eye(3), centre)) for centre, r in spheres]
