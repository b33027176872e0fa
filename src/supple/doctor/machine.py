# SPDX-License-Identifier: Apache-2.0
"""The machine: cores, memory for messages, disk, and whether it can render."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from supple.doctor.check import Check, run_python

__all__ = ["machine_checks"]

_GB = 1e9
_MIN_CORES = 2
_MIN_DISK = 2 * _GB
# A participant's segment holds 32 MB; a whole stack with tools around it has about ten.
_SHARED_MEMORY = Path("/dev/shm")
_MIN_SHARED_MEMORY = 0.4 * _GB
_RENDER = """
import mujoco, numpy
model = mujoco.MjModel.from_xml_string(
    '<mujoco><worldbody><light pos="0 0 3"/><geom type="box" size=".2 .2 .2"/></worldbody></mujoco>')
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
with mujoco.Renderer(model, 48, 64) as renderer:
    renderer.update_scene(data)
    image = renderer.render()
if image.shape != (48, 64, 3) or numpy.ptp(image) == 0:
    raise SystemExit(f"the picture is empty: shape {image.shape}, values {image.min()} to {image.max()}")
"""


def machine_checks() -> list[Check]:
    """Look at cores, disk, shared memory and rendering."""
    return [_cores(), _disk(), _shared_memory(), _rendering()]


def _cores() -> Check:
    cores = len(os.sched_getaffinity(0))
    ok = cores >= _MIN_CORES
    remedy = "" if ok else "give this process more cores; in real time the simulator and an executor need one each"
    return Check("Cores", ok, str(cores), f"{_MIN_CORES} or more", remedy)


def _disk() -> Check:
    free = shutil.disk_usage(Path.cwd()).free
    ok = free >= _MIN_DISK
    remedy = "" if ok else "make room, or write datasets to another disk with --out"
    return Check("Disk", ok, f"{free / _GB:.1f} GB free here", f"{_MIN_DISK / _GB:.0f} GB or more", remedy)


def _shared_memory() -> Check:
    expected = f"{_MIN_SHARED_MEMORY / _GB:.1f} GB or more free in {_SHARED_MEMORY} for messages between processes"
    remedy = (
        f"stop all nodes and remove what killed ones left: rm {_SHARED_MEMORY}/fastdds_*; in a container: --shm-size=1g"
    )
    try:
        free = shutil.disk_usage(_SHARED_MEMORY).free
    except FileNotFoundError:
        return Check("Shared memory", False, f"no {_SHARED_MEMORY}", expected, remedy)
    ok = free >= _MIN_SHARED_MEMORY
    return Check("Shared memory", ok, f"{free / _GB:.1f} GB free", expected, "" if ok else remedy)


def _rendering() -> Check:
    """Render a picture the way that is asked for, else with EGL, else with OSMesa."""
    asked = os.environ.get("MUJOCO_GL")
    failures: list[str] = []
    for backend in (asked,) if asked else ("egl", "osmesa"):
        environment = {**os.environ, "MUJOCO_GL": backend}
        if backend in ("egl", "osmesa"):
            environment["PYOPENGL_PLATFORM"] = backend
        ok, line = run_python("-c", _RENDER, environment=environment)
        if ok:
            found = f"{backend} renders" + (" (EGL does not: set MUJOCO_GL=osmesa)" if failures else "")
            return Check("Rendering", True, found, "a picture without a display")
        failures.append(f"{backend}: {line}")
    remedy = "apt-get install libegl1 libegl-mesa0 libgl1-mesa-dri libopengl0; or libosmesa6 and MUJOCO_GL=osmesa"
    return Check("Rendering", False, "; ".join(failures), "a picture without a display", remedy)
