# SPDX-License-Identifier: Apache-2.0
"""Where the model, mesh and policy files of robots are found: inside installed packages, never in this tree."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from supple.errors import AssetError

__all__ = ["g1_meshes", "g1_mjcf", "g1_policy", "g1_urdf", "package_folder", "panda_meshes", "panda_urdf"]


def package_folder(package: str, wheel: str) -> Path:
    """Return the folder of an installed Python package without importing it.

    Raises:
        AssetError: It is not installed; names the wheel to install.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise AssetError(f"the Python package {package!r} is not installed; run: pip install --no-deps {wheel}")
    return Path(next(iter(spec.submodule_search_locations)))


def _existing(path: Path, wheel: str) -> Path:
    if not path.exists():
        raise AssetError(f"{path.name} is missing from the installed wheel {wheel}; expected it at {path}")
    return path


def g1_mjcf() -> Path:
    """Return the MJCF of the G1 with 29 joints (wheel holosoma, Apache-2.0)."""
    return _existing(package_folder("holosoma", "holosoma==0.0.3") / "data/robots/g1/g1_29dof.xml", "holosoma")


def g1_meshes() -> Path:
    """Return the folder of the G1's meshes, Dex3 hands included (wheel holosoma)."""
    return _existing(package_folder("holosoma", "holosoma==0.0.3") / "data/robots/g1/meshes", "holosoma")


def g1_policy(name: str = "ppo") -> Path:
    """Return the walking policy ``"ppo"`` or ``"fastsac"`` as ONNX (wheel holosoma-inference, Apache-2.0)."""
    folder = package_folder("holosoma_inference", "holosoma-inference==0.1.3") / "models/loco/g1_29dof"
    return _existing(folder / f"{name}_g1_29dof.onnx", "holosoma-inference")


def _example_robot(name: str) -> Path:
    """Return a file or folder of the wheel example-robot-data."""
    prefix = package_folder("pinocchio", "pin").parents[3]
    return _existing(prefix / "share/example-robot-data/robots" / name, "example-robot-data")


def g1_urdf() -> Path:
    """Return the URDF of the G1 with 29 joints and two Dex3 hands (wheel example-robot-data, BSD-3)."""
    return _example_robot("g1_description/urdf/g1_29dof_with_hand_rev_1_0.urdf")


def panda_urdf() -> Path:
    """Return the URDF of the Panda with its gripper (wheel example-robot-data, Apache-2.0)."""
    return _example_robot("panda_description/urdf/panda.urdf")


def panda_meshes() -> Path:
    """Return the folder of the Panda's collision meshes (wheel example-robot-data, Apache-2.0)."""
    return _example_robot("panda_description/meshes/collision")
