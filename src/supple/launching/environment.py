# SPDX-License-Identifier: Apache-2.0
"""The ROS side of the environment: prefixes, shared folders, executables and the middleware's settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from supple.launching.document import LaunchError, nearest

__all__ = ["find_executable", "find_launch_file", "prefixes", "ros_environment", "share_folder"]

_INDEX = Path("share/ament_index/resource_index/packages")


def prefixes(environment: Mapping[str, str]) -> list[Path]:
    """Return the ROS prefixes, first match first: ``AMENT_PREFIX_PATH``, then the virtual environment we run in."""
    paths = [Path(entry) for entry in environment.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if entry]
    own = Path(sys.prefix)
    if own not in paths and (own / _INDEX).is_dir():
        paths.append(own)
    return paths


def _prefix_of(package: str, environment: Mapping[str, str]) -> Path:
    paths = prefixes(environment)
    for prefix in paths:
        if (prefix / _INDEX / package).exists():
            return prefix
    known = {entry.name for prefix in paths if (prefix / _INDEX).is_dir() for entry in (prefix / _INDEX).iterdir()}
    where = ", ".join(map(str, paths)) or "no prefix; run `make setup`, or source a ROS distribution"
    close = nearest(package, known).split(" (available")[0]
    raise LaunchError(f"ROS package {package!r} is not installed{close}; looked in {where}")


def share_folder(package: str, environment: Mapping[str, str] | None = None) -> Path:
    """Return ``share/<package>`` of an installed ROS package.

    Args:
        package: Name of the package.
        environment: Environment variables; this process's when not given.

    Raises:
        LaunchError: No prefix holds the package.
    """
    environment = os.environ if environment is None else environment
    return _prefix_of(package, environment) / "share" / package


def find_executable(package: str, name: str, environment: Mapping[str, str]) -> Path:
    """Return ``lib/<package>/<name>``, the place of a ROS package's executables.

    Raises:
        LaunchError: No such package, or no such executable in it.
    """
    folder = _prefix_of(package, environment) / "lib" / package
    path = folder / name
    if path.is_file() and os.access(path, os.X_OK):
        return path
    known = [entry.name for entry in folder.iterdir() if os.access(entry, os.X_OK)] if folder.is_dir() else []
    raise LaunchError(f"ROS package {package!r} has no executable {name!r}{nearest(name, known)}")


def find_launch_file(name: str | Path, environment: Mapping[str, str] | None = None) -> Path:
    """Return a launch file given by path, or by its name in Supple's ``launch`` folder.

    Raises:
        LaunchError: There is no such file; lists those of Supple.
    """
    path = Path(name)
    if path.is_file():
        return path
    folder = share_folder("supple", environment) / "launch"
    if path.name == str(name) and (folder / path).is_file():
        return folder / path
    known = [entry.name for entry in folder.glob("*.launch.xml")]
    raise LaunchError(f"no launch file {str(name)!r}{nearest(str(name), known)}")


def ros_environment(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment in which nodes start.

    Adds what a sourced prefix would set, and middleware settings for one machine: everything stays on the loopback
    interface, with shared-memory segments that hold a camera image. What is set already is left as it is.

    Args:
        environment: Environment variables to start from; this process's when not given.
    """
    result = dict(os.environ if environment is None else environment)
    paths = prefixes(result)
    result["AMENT_PREFIX_PATH"] = os.pathsep.join(map(str, paths))
    libraries = [entry for entry in result.get("LD_LIBRARY_PATH", "").split(os.pathsep) if entry]
    for prefix in reversed(paths):
        if str(prefix / "lib") not in libraries:
            libraries.insert(0, str(prefix / "lib"))
    result["LD_LIBRARY_PATH"] = os.pathsep.join(libraries)
    result.setdefault("PYTHONUNBUFFERED", "1")
    result.setdefault("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp")
    profiles = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")
    if result["RMW_IMPLEMENTATION"].startswith("rmw_fastrtps") and not any(result.get(name) for name in profiles):
        # Fast DDS 3 (Kilted and later) reads the first, 2 (Jazzy) the second. With both set, 3 reads the file twice
        # and refuses it.
        name = profiles[result.get("ROS_DISTRO") == "jazzy"]
        result[name] = str(share_folder("supple", result) / "config/fastdds_localhost.xml")
    return result
