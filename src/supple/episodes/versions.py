# SPDX-License-Identifier: Apache-2.0
"""Versions of everything that decides whether an episode can be repeated."""

from __future__ import annotations

import functools
from importlib.metadata import PackageNotFoundError, version

from supple import __version__

__all__ = ["current_versions"]

_DECISIVE = ("mujoco", "numpy", "onnxruntime", "pin", "daqp", "holosoma", "holosoma-inference")


def current_versions() -> dict[str, str]:
    """Return the versions of Supple and of the installed packages that physics, control and kinematics rest on."""
    return dict(_installed())


@functools.cache
def _installed() -> dict[str, str]:
    found = {"supple": __version__}
    for name in _DECISIVE:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "absent"
    return found
