# SPDX-License-Identifier: Apache-2.0
"""Python, the packages at their pinned versions, the robot assets and the seeds."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from supple.doctor.check import Check, run_python
from supple.errors import AssetError
from supple.launching import LaunchError, share_folder
from supple.robots.assets import g1_meshes, g1_mjcf, g1_policy, g1_urdf

__all__ = ["package_checks"]

_SETUP = "run: make setup"
# Distributions whose module has another name.
_MODULES = {
    "opencv-python-headless": "cv2",
    "pillow": "PIL",
    "pin": "pinocchio",
    "pin-pink": "pink",
    "pyyaml": "yaml",
}
_IMPORT = """
import importlib, json, sys
failed = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except Exception as error:
        failed[name] = f"{type(error).__name__}: {error}".splitlines()[0]
print(json.dumps(failed))
"""


def package_checks() -> list[Check]:
    """Look at Python, packages, assets and seeds."""
    return [_python(), *_pins(), _mujoco(), _assets(), _seeds()]


def _python() -> Check:
    distribution = os.environ.get("ROS_DISTRO", "")
    found = "{}.{}.{}".format(*sys.version_info[:3])
    if distribution:
        ok, expected = sys.version_info >= (3, 11), f"3.11 or newer (ROS {distribution} is sourced)"
    else:
        ok, expected = sys.version_info[:2] == (3, 11), "3.11 (the ROS wheels are made for it)"
    return Check("Python", ok, found, expected, "" if ok else "install Python 3.11, then: make clean setup")


def _pins() -> list[Check]:
    """Compare what is installed with what Supple's own metadata asks for, and import all of it."""
    try:
        wanted = [re.fullmatch(r"([\w.-]+)==([\w.]+)", line) for line in requires("supple") or ()]
        pins = {match[1]: match[2] for match in wanted if match}
    except PackageNotFoundError:
        return [Check("Python packages", False, "Supple itself is not installed", "installed", _SETUP)]
    wrong = []
    for name, pin in pins.items():
        try:
            if (found := version(name)) != pin:
                wrong.append(f"{name} {found} instead of {pin}")
        except PackageNotFoundError:
            wrong.append(f"{name} is missing")
    ok = not wrong
    text = "; ".join(wrong) or f"{len(pins)} of {len(pins)} at their pins"
    checks = [Check("Python packages", ok, text, "every pin of requirements/runtime.txt", "" if ok else _SETUP)]

    modules = [_MODULES.get(name.lower(), name.lower().replace("-", "_")) for name in pins]
    ran, line = run_python("-c", _IMPORT, *modules, environment=os.environ)
    failed = json.loads(line) if ran else {"import": line}
    text = "; ".join(f"{name}: {why}" for name, why in failed.items()) or f"all {len(modules)}"
    checks.append(Check("Imports", not failed, text, "every package imports", _SETUP if failed else ""))
    return checks


def _mujoco() -> Check:
    expected = "3.17.x (4.0.0 has a sparse-Cholesky bug and drops flex features that tasks need)"
    try:
        found = version("mujoco")
    except PackageNotFoundError:
        found = "missing"
    ok = found.startswith("3.17.")
    return Check("MuJoCo", ok, found, expected, "" if ok else _SETUP)


def _assets() -> Check:
    kinds: dict[str, Callable[[], Path]] = {
        "G1 MJCF": g1_mjcf,
        "meshes": g1_meshes,
        "URDF with hands": g1_urdf,
        "walking policy": g1_policy,
    }
    missing = []
    for locate in kinds.values():
        try:
            locate()
        except AssetError as error:
            missing.append(str(error))
    remedy = "run: .venv/bin/pip install --no-deps -r requirements/assets.txt" if missing else ""
    return Check("Robot assets", not missing, "; ".join(missing) or ", ".join(kinds), "in the installed wheels", remedy)


def _seeds() -> Check:
    expected = "one HDF5 file per task in share/supple/seeds"
    try:
        seeds = sorted(path.stem for path in (share_folder("supple") / "seeds").glob("*.hdf5"))
    except LaunchError as error:
        return Check("Seeds", False, str(error), expected, _SETUP)
    remedy = "" if seeds else "restore them: git checkout -- seeds; or record one: supple record"
    return Check("Seeds", bool(seeds), ", ".join(seeds) or "none", expected, remedy)
