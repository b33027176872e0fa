# SPDX-License-Identifier: Apache-2.0
"""The true surface of a simulated object: how far points are from it, and points all over it."""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
import trimesh
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from supple.errors import SettingError
from supple.sim.camera import COLLISION_GROUP, label_bodies
from supple.sim.distance import distances_from

__all__ = ["Samples", "TrueSurface"]

Array = NDArray[np.float64]

_GEOM = mujoco.mjtGeom
# Samples that a mesh, which has no formula for its distance, is replaced by; and how far inside another shape of the
# same object a sample counts as hidden.
_MESH_SAMPLES, _NEAR_SAMPLES = 20_000, 8
_INSIDE = 1e-5


@dataclass(frozen=True, eq=False)
class Samples:
    """Points all over a surface, equally dense everywhere.

    Attributes:
        points: Positions in the world frame in [m], shape (n, 3).
        normals: Unit vectors out of the surface, shape (n, 3).
        area: Area in [m^2] that each stands for.
    """

    points: Array
    normals: Array
    area: float

    def chosen(self, keep: NDArray[np.bool_]) -> Samples:
        """Return some of them."""
        return Samples(self.points[keep], self.normals[keep], self.area)


class TrueSurface:
    """The surface of a body and of what hangs on it, as it is drawn.

    Args:
        model: The scene.
        data: Where everything is; positions are read when a method is called.
        body: Name of the body.

    Raises:
        UnknownNameError: There is no such body.
        SettingError: Nothing of it is drawn, or a shape has no surface that is known here.
    """

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, body: str) -> None:
        self._model, self._data = model, data
        own = label_bodies(model, [body])[model.geom_bodyid] == 1
        drawn = own & (model.geom_group != COLLISION_GROUP) & (model.geom_rgba[:, 3] > 0.0)
        self._geoms = np.flatnonzero(drawn)
        if not self._geoms.size:
            raise SettingError(f"body {body!r}: nothing of it is drawn, so it has no surface")
        self._shapes = {int(geom): _mesh(model, int(geom), body) for geom in self._geoms}

    def distance(self, points: Array) -> Array:
        """Return the distance of points in the world frame from the surface in [m], never negative, shape (n,)."""
        return np.min([np.abs(self._from(int(geom), points)) for geom in self._geoms], axis=0)

    def sample(self, count: int, seed: int = 0) -> Samples:
        """Return points all over the surface, without what lies inside another shape of the same object.

        Args:
            count: About how many.
            seed: Of their places.
        """
        points, normals = [], []
        area = sum(float(shape.area) for shape in self._shapes.values()) / count
        for geom, shape in self._shapes.items():
            found, faces = trimesh.sample.sample_surface(shape, max(1, round(shape.area / area)), seed=seed)
            rotation = self._data.geom_xmat[geom].reshape(3, 3)
            placed = np.asarray(found) @ rotation.T + self._data.geom_xpos[geom]
            outside = np.ones(len(placed), np.bool_)
            for other in self._geoms:
                signed = distances_from(self._model, self._data, int(other), placed) if other != geom else None
                if signed is not None:
                    outside &= signed > -_INSIDE
            points.append(placed[outside])
            normals.append((np.asarray(shape.face_normals)[faces] @ rotation.T)[outside])
        return Samples(np.concatenate(points), np.concatenate(normals), area)

    def _from(self, geom: int, points: Array) -> Array:
        signed = distances_from(self._model, self._data, geom, points)
        if signed is not None:
            return signed
        rotation = self._data.geom_xmat[geom].reshape(3, 3)
        local = (points - self._data.geom_xpos[geom]) @ rotation
        shape = self._shapes[geom]
        dense, faces = trimesh.sample.sample_surface(shape, _MESH_SAMPLES, seed=0)
        # The nearest point lies on a face that has a sample near by.
        _, nearest = cKDTree(dense).query(local, k=_NEAR_SAMPLES)
        candidates = faces[nearest].ravel()
        owners = np.repeat(local, _NEAR_SAMPLES, axis=0)
        closest = trimesh.triangles.closest_point(shape.triangles[candidates], owners)
        gaps = np.linalg.norm(closest - owners, axis=1).reshape(-1, _NEAR_SAMPLES)
        return np.asarray(gaps.min(axis=1))


def _mesh(model: mujoco.MjModel, geom: int, body: str) -> trimesh.Trimesh:
    kind, size = int(model.geom_type[geom]), model.geom_size[geom]
    if kind == _GEOM.mjGEOM_BOX:
        return trimesh.creation.box(extents=2.0 * size)
    if kind == _GEOM.mjGEOM_SPHERE:
        return trimesh.creation.icosphere(subdivisions=4, radius=size[0])
    if kind == _GEOM.mjGEOM_CYLINDER:
        return trimesh.creation.cylinder(radius=size[0], height=2.0 * size[1], sections=128)
    if kind == _GEOM.mjGEOM_CAPSULE:
        return trimesh.creation.capsule(height=2.0 * size[1], radius=size[0], count=[64, 64])
    if kind == _GEOM.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        first, faces = model.mesh_vertadr[mesh], model.mesh_faceadr[mesh]
        vertices = model.mesh_vert[first : first + model.mesh_vertnum[mesh]]
        return trimesh.Trimesh(vertices, model.mesh_face[faces : faces + model.mesh_facenum[mesh]], process=False)
    raise SettingError(f"body {body!r}: the surface of a {_GEOM(kind).name} is not known")
