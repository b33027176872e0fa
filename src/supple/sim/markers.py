# SPDX-License-Identifier: Apache-2.0
"""What a viewer is shown of a scene besides the robot: shapes of its bodies, points of contact, forces, taxels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import mujoco
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.contact.readings import TaxelStatus
from supple.episodes.marker import Marker, MarkerShape
from supple.sim.camera import COLLISION_GROUP
from supple.sim.world import Contact, World

__all__ = ["FORCE_SCALE", "TAXEL_FULL_SCALE", "contact_markers", "scene_markers", "taxel_marker", "wrench_marker"]

Array = NDArray[np.float64]

FORCE_SCALE = 0.003
"""Length of a force arrow in [m] per newton."""

TAXEL_FULL_SCALE = 2.0e5
"""Pressure in [Pa] at which a taxel has its hottest colour."""

_PLANE_SIZE, _PLANE_THICKNESS = 8.0, 0.01
# A texture gives a plane its colour, which a marker does not have; and just below its height it does not hide a grid.
_PLANE_RGBA, _PLANE_SINK = (0.72, 0.73, 0.75, 1.0), 0.002
_POINT_RGBA, _FORCE_RGBA = (0.9, 0.1, 0.1, 1.0), (1.0, 0.55, 0.0, 1.0)
_POINT_SIZE, _LEAST_FORCE = 0.012, 0.5
_TAXEL_SIZE = 0.005
# From nothing to full scale; colour grows with the root of pressure, so that a light touch is seen.
_HEAT = np.array(
    [[0.25, 0.3, 0.4, 0.6], [0.1, 0.5, 0.9, 1.0], [0.1, 0.85, 0.3, 1.0], [1.0, 0.85, 0.0, 1.0], [1.0, 0.1, 0.0, 1.0]]
)
_DEAD_RGBA, _SATURATED_RGBA = (0.0, 0.0, 0.0, 1.0), (1.0, 0.0, 1.0, 1.0)
# A pressure below this share of full scale is not shown: noise would flicker.
_UNSEEN = 0.01
_WRENCH_RGBA = (0.6, 0.2, 0.9, 0.9)
_UPRIGHT = np.array([0.0, 0.0, 0.0, 1.0])
_GEOM = mujoco.mjtGeom


def scene_markers(world: World) -> list[Marker]:
    """Return the shapes of all bodies but the robot's, where they are now (``mj_kinematics`` at least).

    Group is the name of the body. Height fields, signed distance fields and flexible bodies are not shown.
    """
    model, robot = world.model, world.robot_bodies()
    found: list[Marker] = []
    for geom in range(model.ngeom):
        if not robot[model.geom_bodyid[geom]] and model.geom_group[geom] != COLLISION_GROUP:
            found += _shapes(world, geom)
    return found


def contact_markers(contacts: Iterable[Contact]) -> list[Marker]:
    """Return points of contact, and an arrow for each normal force: what the second body feels, from the point on."""
    points, arrows = [], []
    for contact in contacts:
        points.append(contact.position)
        if contact.normal_force >= _LEAST_FORCE:
            ends = np.stack([np.zeros(3), FORCE_SCALE * contact.normal_force * contact.normal])
            scale = (0.006, 0.014, min(0.02, 0.5 * FORCE_SCALE * contact.normal_force))
            arrows.append(Marker("forces", MarkerShape.ARROW, contact.position, _UPRIGHT, scale, _FORCE_RGBA, ends))
    if not points:
        return []
    spheres = Marker(
        "contacts", MarkerShape.SPHERE_LIST, np.zeros(3), _UPRIGHT, (_POINT_SIZE,) * 3, _POINT_RGBA, np.stack(points)
    )
    return [spheres, *arrows]


def taxel_marker(points: Array, pressure: Array, status: NDArray[np.uint8]) -> Marker:
    """Return taxels as balls coloured by pressure: dead ones black, saturated ones magenta. Group is ``"taxels"``.

    Args:
        points: Where they are shown, in the frame of the markers in [m], shape (n, 3).
        pressure: One value per taxel in [Pa], NaN where there is none, shape (n,).
        status: A `TaxelStatus` per taxel, shape (n,).
    """
    share = np.nan_to_num(pressure) / TAXEL_FULL_SCALE
    heat = np.sqrt(np.clip(np.where(share < _UNSEEN, 0.0, share), 0.0, 1.0)) * (len(_HEAT) - 1)
    stop = np.minimum(heat.astype(int), len(_HEAT) - 2)
    colours = _HEAT[stop] + (heat - stop)[:, None] * (_HEAT[stop + 1] - _HEAT[stop])
    colours[status == TaxelStatus.SATURATED] = _SATURATED_RGBA
    colours[(status == TaxelStatus.DEAD) | np.isnan(pressure)] = _DEAD_RGBA
    scale = (_TAXEL_SIZE,) * 3
    return Marker("taxels", MarkerShape.SPHERE_LIST, np.zeros(3), _UPRIGHT, scale, (1.0,) * 4, points, colours)


def wrench_marker(wrench: Array, pose: pin.SE3) -> Marker | None:
    """Return the force of a wrench as an arrow that ends where it acts; none if it is below half a newton.

    Args:
        wrench: Force in [N] and moment in [Nm] in the axes of a frame, shape (6,).
        pose: Pose of that frame in the frame of the markers.

    Group is ``"wrenches"``.
    """
    force = wrench[:3]
    if float(np.linalg.norm(force)) < _LEAST_FORCE:
        return None
    # It ends at the link, as a push does: from below for a foot that stands.
    ends = np.stack([-FORCE_SCALE * force, np.zeros(3)])
    quaternion = pin.Quaternion(pose.rotation).coeffs()
    scale = (0.012, 0.026, min(0.04, 0.5 * FORCE_SCALE * float(np.linalg.norm(force))))
    return Marker("wrenches", MarkerShape.ARROW, pose.translation, quaternion, scale, _WRENCH_RGBA, ends)


def _shapes(world: World, geom: int) -> Iterator[Marker]:
    """Yield what shows one geom; a capsule takes three markers."""
    model, data = world.model, world.data
    kind, size = _GEOM(model.geom_type[geom]), model.geom_size[geom]
    material = model.geom_matid[geom]
    rgba = tuple((model.mat_rgba[material] if material >= 0 else model.geom_rgba[geom]).tolist())
    position, rotation = data.geom_xpos[geom].copy(), data.geom_xmat[geom].reshape(3, 3)
    quaternion = np.zeros(4)
    mujoco.mju_mat2Quat(quaternion, data.geom_xmat[geom])
    quaternion = quaternion[[1, 2, 3, 0]]
    group = model.body(model.geom_bodyid[geom]).name

    def marker(shape: MarkerShape, scale: Iterable[float], offset: float = 0.0) -> Marker:
        return Marker(group, shape, position + rotation[:, 2] * offset, quaternion, tuple(map(float, scale)), rgba)

    if kind == _GEOM.mjGEOM_BOX:
        yield marker(MarkerShape.CUBE, 2.0 * size)
    elif kind == _GEOM.mjGEOM_SPHERE:
        yield marker(MarkerShape.SPHERE, [2.0 * size[0]] * 3)
    elif kind == _GEOM.mjGEOM_ELLIPSOID:
        yield marker(MarkerShape.SPHERE, 2.0 * size)
    elif kind in (_GEOM.mjGEOM_CYLINDER, _GEOM.mjGEOM_CAPSULE):
        yield marker(MarkerShape.CYLINDER, 2.0 * size[[0, 0, 1]])
        if kind == _GEOM.mjGEOM_CAPSULE:
            for end in (size[1], -size[1]):
                yield marker(MarkerShape.SPHERE, [2.0 * size[0]] * 3, end)
    elif kind == _GEOM.mjGEOM_PLANE:
        # A half-width of zero means without end.
        extent = [2.0 * float(half) or _PLANE_SIZE for half in size[:2]]
        rgba = _PLANE_RGBA
        yield marker(MarkerShape.CUBE, [*extent, _PLANE_THICKNESS], -0.5 * _PLANE_THICKNESS - _PLANE_SINK)
    elif kind == _GEOM.mjGEOM_MESH:
        points = _triangles(model, int(model.geom_dataid[geom]))
        yield Marker(group, MarkerShape.TRIANGLE_LIST, position, quaternion, (1.0,) * 3, rgba, points)


def _triangles(model: mujoco.MjModel, mesh: int) -> Array:
    """Return the corners of a mesh's faces in the geom's frame in [m], three rows per face."""
    vertices = model.mesh_vert[model.mesh_vertadr[mesh] :][: model.mesh_vertnum[mesh]]
    faces = model.mesh_face[model.mesh_faceadr[mesh] :][: model.mesh_facenum[mesh]]
    return vertices[faces.reshape(-1)].astype(np.float64)
