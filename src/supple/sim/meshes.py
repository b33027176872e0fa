# SPDX-License-Identifier: Apache-2.0
"""Lighter copies of the robot's meshes for rendering, made once and kept in the user's cache."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from supple.errors import AssetError
from supple.robots.assets import g1_meshes

__all__ = ["FACE_BUDGET", "cache_folder", "decimated_meshes"]

FACE_BUDGET = 1200
"""Faces kept per mesh: a software renderer then draws a 640x480 frame in under 20 ms instead of 40."""

# More aggressive settings reach the budget on every mesh, but tear shells: 39 mm off at the torso instead of 7 mm.
_AGGRESSIVENESS = 3


def cache_folder() -> Path:
    """Return the folder for files that can be made again: ``$XDG_CACHE_HOME/supple``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "supple"


def _decimate(source: Path, target: Path) -> None:
    import fast_simplification
    import trimesh

    mesh = trimesh.load_mesh(source)
    mesh.merge_vertices()
    vertices, faces = np.asarray(mesh.vertices, np.float32), np.asarray(mesh.faces, np.int32)
    if len(faces) > FACE_BUDGET:
        vertices, faces = fast_simplification.simplify(vertices, faces, target_count=FACE_BUDGET, agg=_AGGRESSIVENESS)
    # Written beside and renamed: two processes may do this at once, and either result is whole.
    with tempfile.NamedTemporaryFile(dir=target.parent, suffix=".stl", delete=False) as handle:
        temporary = Path(handle.name)
        handle.write(trimesh.exchange.stl.export_stl(trimesh.Trimesh(vertices, faces)))
    temporary.replace(target)


def decimated_meshes(files: Iterable[str]) -> Path:
    """Return a folder that holds lighter copies of the G1's meshes.

    Args:
        files: File names wanted, as in the installed mesh folder.

    Raises:
        AssetError: A mesh does not exist in the installed wheel.
    """
    source = g1_meshes()
    target = cache_folder() / f"meshes-{FACE_BUDGET}-{_AGGRESSIVENESS}"
    target.mkdir(parents=True, exist_ok=True)
    for name in sorted(set(files)):
        if not (source / name).exists():
            raise AssetError(f"mesh {name!r} is not in {source}")
        if not (target / name).exists():
            _decimate(source / name, target / name)
    return target
