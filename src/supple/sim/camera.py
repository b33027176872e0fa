# SPDX-License-Identifier: Apache-2.0
"""Cameras of a MuJoCo scene: colour and metric depth from one pass, without a display."""

from __future__ import annotations

import atexit
import ctypes
import ctypes.util
import importlib
import math
import os
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import mujoco
import numpy as np
from numpy.typing import NDArray

from supple.errors import SceneError, StateError, UnknownNameError

__all__ = [
    "COLLISION_GROUP",
    "Camera",
    "Frame",
    "RenderContext",
    "label_bodies",
    "orbit_camera",
    "scene_option",
]

_DEBIAN = "libegl1 libegl-mesa0 libgl1-mesa-dri (EGL) or libosmesa6 (OSMesa)"
_EGL_PLATFORM_DEVICE = 0x313F
_MAX_DEVICES = 16
_MAX_GEOMS = 4000

COLLISION_GROUP = 3
"""MuJoCo geom group of collision shapes, which no picture shows."""


@dataclass(frozen=True)
class Frame:
    """One picture.

    Attributes:
        rgb: Colours, uint8, shape (height, width, 3), first row on top.
        depth: Distance along the optical axis (z-depth) in [m], float32, shape (height, width); +Inf where nothing was
            hit (REP 117).
    """

    rgb: NDArray[np.uint8]
    depth: NDArray[np.float32]


class RenderContext:
    """The graphics context that holds a model's meshes and textures; several cameras can share one.

    It belongs to the thread that made it. Without ``MUJOCO_GL`` in the environment it tries EGL, then OSMesa, both of
    which work without a display or a GPU, and sets the variable, because MuJoCo's library loads its functions by it.

    Args:
        model: The compiled scene.

    Raises:
        SceneError: No graphics library works; names the Debian packages.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model = model
        make_context = _backend()
        quality, size = model.vis.quality, model.vis.global_
        asked = quality.offsamples, quality.shadowsize
        # Multisampling mixes the depths of foreground and background at edges, and shadows are never drawn here.
        quality.offsamples, quality.shadowsize = 0, 0
        gl: Any = None
        try:
            gl = make_context(int(size.offwidth), int(size.offheight))
            gl.make_current()
            mjr = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100.value)
        except (ImportError, OSError, RuntimeError, AttributeError, mujoco.FatalError) as error:
            if gl is not None:
                gl.free()
            raise SceneError(f"no picture can be rendered ({_describe(error)}); on Debian install {_DEBIAN}") from error
        finally:
            quality.offsamples, quality.shadowsize = asked
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, mjr)
        mjr.readDepthMap = mujoco.mjtDepthMap.mjDEPTH_ZEROFAR
        self._gl, self._mjr = gl, mjr
        self._finalizer = weakref.finalize(self, _free, gl, mjr)
        # At exit the display is closed by a hook of its own; this one, registered later, runs before it.
        atexit.register(self._finalizer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def fit(self, width: int, height: int) -> None:
        """Make room for pictures of this size in [px]."""
        mjr = self._current()
        if mjr.offWidth < width or mjr.offHeight < height:
            mujoco.mjr_resizeOffscreen(max(width, mjr.offWidth), max(height, mjr.offHeight), mjr)

    def draw(
        self,
        scene: mujoco.MjvScene,
        width: int,
        height: int,
        rgb: NDArray[np.uint8] | None,
        depth: NDArray[np.float32] | None,
    ) -> None:
        """Draw a scene once and read what is asked for, last row on top, depth as MuJoCo stores it (0 is far).

        Args:
            scene: The geometry to draw.
            width: Width in [px].
            height: Height in [px].
            rgb: Where colours go, shape (height, width, 3).
            depth: Where depths go, shape (height, width).
        """
        mjr = self._current()
        area = mujoco.MjrRect(0, 0, width, height)
        mujoco.mjr_render(area, scene, mjr)
        mujoco.mjr_readPixels(rgb, depth, area, mjr)

    def close(self) -> None:
        """Release the graphics memory; may be called twice."""
        atexit.unregister(self._finalizer)
        self._finalizer()

    def _current(self) -> mujoco.MjrContext:
        if not self._finalizer.alive:
            raise SceneError("this render context is closed")
        self._gl.make_current()
        return self._mjr


class Camera:
    """One camera of a scene.

    Args:
        model: The compiled scene.
        camera: Name of a camera in the model, or a free or tracking camera, which may be moved between pictures.
        width: Image width in [px].
        height: Image height in [px].
        context: A render context of the same model to share; without one the camera has its own.

    Raises:
        UnknownNameError: The model has no such camera.
        SceneError: No graphics library works, or the camera is not a plain pinhole with square pixels.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        camera: str | mujoco.MjvCamera,
        width: int,
        height: int,
        context: RenderContext | None = None,
    ) -> None:
        if width < 1 or height < 1:
            raise SceneError(f"a picture needs at least one pixel, got {width} x {height}")
        if context is not None and context.model is not model:
            raise SceneError("the shared render context belongs to another model")
        self.model, self.width, self.height = model, width, height
        self._view, self._fovy = _resolve(model, camera)
        self._option = scene_option()
        self._scene = mujoco.MjvScene(model, _MAX_GEOMS)
        for flag in (mujoco.mjtRndFlag.mjRND_SHADOW, mujoco.mjtRndFlag.mjRND_REFLECTION, mujoco.mjtRndFlag.mjRND_HAZE):
            self._scene.flags[flag] = False
        self._owns_context = context is None
        self._context = context or RenderContext(model)
        self._context.fit(width, height)
        self._rgb = np.empty((height, width, 3), np.uint8)
        self._depth = np.empty((height, width), np.float32)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def intrinsics(self) -> tuple[float, float, float, float]:
        """Pinhole parameters (fx, fy, cx, cy) in [px]; pixel centres have integer coordinates, as in CameraInfo."""
        focal = 0.5 * self.height / math.tan(0.5 * math.radians(self._fovy))
        return focal, focal, 0.5 * (self.width - 1), 0.5 * (self.height - 1)

    def render(self, data: mujoco.MjData) -> Frame:
        """Return colour and depth of the present state, drawn in one pass.

        Args:
            data: State of the same model, with positions computed (``mj_kinematics`` and ``mj_camlight`` at least).

        Raises:
            SceneError: The camera is closed.
            StateError: The data belong to another model.
        """
        self._update(data)
        self._context.draw(self._scene, self.width, self.height, self._rgb, self._depth)
        return Frame(self._rgb[::-1].copy(), self._metric())

    def rgb(self, data: mujoco.MjData) -> NDArray[np.uint8]:
        """Return the colours alone, uint8, shape (height, width, 3)."""
        self._update(data)
        self._context.draw(self._scene, self.width, self.height, self._rgb, None)
        return self._rgb[::-1].copy()

    def segmentation(self, data: mujoco.MjData) -> NDArray[np.int32]:
        """Return which body each pixel shows: its index, int32, shape (height, width), -1 where nothing was hit.

        Fixed parts of the scene (the floor) belong to body 0, the world; a deformable to the body of its first vertex.
        It is a pass of its own, drawn from the same geometry as the colours, so that outlines agree to the pixel.

        Raises:
            SceneError: The camera is closed.
            StateError: The data belong to another model.
        """
        self._update(data)
        flags = mujoco.mjtRndFlag.mjRND_SEGMENT, mujoco.mjtRndFlag.mjRND_IDCOLOR
        try:
            for flag in flags:
                self._scene.flags[flag] = True
            self._context.draw(self._scene, self.width, self.height, self._rgb, None)
        finally:
            for flag in flags:
                self._scene.flags[flag] = False
        # A colour holds the number of the drawn shape plus one, lowest byte first; 0 is the background.
        number = self._rgb[::-1].astype(np.int32) @ np.array([1, 1 << 8, 1 << 16], np.int32)
        return self._bodies_drawn()[number]

    def labels(self, data: mujoco.MjData, objects: Sequence[str]) -> NDArray[np.uint16]:
        """Return which object each pixel shows, uint16, shape (height, width): 0 none of them, 1 the first, and so on.

        Args:
            data: State of the same model.
            objects: Names of bodies, at most 65,535; what hangs on a body belongs to it.

        Raises:
            UnknownNameError: The model has no such body.
            SceneError: The camera is closed.
            StateError: The data belong to another model.
        """
        labels = label_bodies(self.model, objects)
        # One more row, which index -1 finds: the background.
        return np.append(labels, np.uint16(0))[self.segmentation(data)]

    def close(self) -> None:
        """Release graphics memory, unless it is shared; may be called twice."""
        if self._owns_context:
            self._context.close()

    def _update(self, data: mujoco.MjData) -> None:
        # MuJoCo itself does not look: the data of another model would be read beyond its end.
        if data.model is not self.model:
            raise StateError(f"data of another model than the camera's: {data.model.nbody}, {self.model.nbody} bodies")
        everything = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(self.model, data, self._option, None, self._view, everything, self._scene)

    def _bodies_drawn(self) -> NDArray[np.int32]:
        """Return the body of each shape in the scene by its number plus one, -1 for what belongs to none."""
        model, scene = self.model, self._scene
        bodies = np.full(scene.ngeom + 1, -1, np.int32)
        for geom in scene.geoms[: scene.ngeom]:
            if geom.segid < 0:
                continue
            if geom.objtype == mujoco.mjtObj.mjOBJ_GEOM:
                bodies[geom.segid + 1] = model.geom_bodyid[geom.objid]
            elif geom.objtype == mujoco.mjtObj.mjOBJ_FLEX:
                bodies[geom.segid + 1] = _flex_body(model, geom.objid)
        return bodies

    def _metric(self) -> NDArray[np.float32]:
        """Undo the perspective projection: the buffer holds near (far - z) / (z (far - near)), 1 near and 0 far."""
        # The frustum is made in single precision; the quotient below needs double.
        extent, limits = self.model.stat.extent, self.model.vis.map
        near, far = (float(np.float32(limit * extent)) for limit in (limits.znear, limits.zfar))
        stored = self._depth[::-1].astype(np.float64)
        depth = (near * far / (stored * (far - near) + near)).astype(np.float32)
        depth[stored <= 0.0] = np.inf
        return depth


def orbit_camera(
    lookat: tuple[float, float, float] | NDArray[np.float64], distance: float, azimuth: float, elevation: float
) -> mujoco.MjvCamera:
    """Return a free camera that looks at a point.

    Args:
        lookat: Point in the world frame in [m].
        distance: Distance from it in [m].
        azimuth: Direction of view about z in [deg]; 0 looks along +x, 90 along +y.
        elevation: Angle above the horizon in [deg]; negative looks down.
    """
    camera = mujoco.MjvCamera()
    camera.type = mujoco.mjtCamera.mjCAMERA_FREE
    camera.lookat[:] = lookat
    camera.distance, camera.azimuth, camera.elevation = distance, azimuth, elevation
    return camera


def label_bodies(model: mujoco.MjModel, objects: Sequence[str]) -> NDArray[np.uint16]:
    """Return the label of every body, uint16, shape (nbody,): 0 none, otherwise 1 + the index of the object it is of.

    Args:
        model: The compiled scene.
        objects: Names of bodies; what hangs on one belongs to it, unless it is named itself.

    Raises:
        UnknownNameError: The model has no such body.
    """
    labels = np.zeros(model.nbody, np.uint16)
    for label, name in enumerate(objects, start=1):
        body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name)
        if body < 0:
            raise UnknownNameError("body", name, (model.body(i).name for i in range(model.nbody)))
        labels[body] = label
    # Parents come before their children.
    for body in range(1, model.nbody):
        if labels[body] == 0:
            labels[body] = labels[model.body_parentid[body]]
    return labels


def scene_option() -> mujoco.MjvOption:
    """Return what is drawn: everything a camera would see, collision shapes not."""
    option = mujoco.MjvOption()
    option.geomgroup[COLLISION_GROUP] = 0
    option.sitegroup[:] = 0
    return option


def _resolve(model: mujoco.MjModel, camera: str | mujoco.MjvCamera) -> tuple[mujoco.MjvCamera, float]:
    """Return a camera to draw with and its vertical field of view in [deg]."""
    if isinstance(camera, mujoco.MjvCamera):
        if camera.type != mujoco.mjtCamera.mjCAMERA_FIXED:
            return camera, float(model.vis.global_.fovy)
        index = int(camera.fixedcamid)
    else:
        index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, camera)
        if index < 0:
            raise UnknownNameError("camera", camera, (model.camera(i).name for i in range(model.ncam)))
    name = model.camera(index).name
    if np.any(model.cam_sensorsize[index]) or model.cam_projection[index] != mujoco.mjtProjection.mjPROJ_PERSPECTIVE:
        raise SceneError(f"camera {name!r} is no plain pinhole: give it fovy instead of a sensor size")
    view = mujoco.MjvCamera()
    view.type, view.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, index
    return view, float(model.cam_fovy[index])


def _flex_body(model: mujoco.MjModel, flex: int) -> int:
    """Return the body that stands for a deformable: that of its first vertex, or of its first node (interpolated)."""
    vertex = int(model.flex_vertbodyid[model.flex_vertadr[flex]])
    return vertex if vertex >= 0 else int(model.flex_nodebodyid[model.flex_nodeadr[flex]])


def _backend() -> Callable[[int, int], Any]:
    """Return the maker of graphics contexts that MUJOCO_GL asks for, choosing one first if it is not set."""
    chosen = os.environ.get("MUJOCO_GL", "").strip().lower()
    if not chosen:
        chosen = "egl" if _egl_works() else "osmesa" if ctypes.util.find_library("OSMesa") else ""
        if not chosen:
            raise SceneError(f"no picture can be rendered: neither EGL nor OSMesa works; on Debian install {_DEBIAN}")
        os.environ["MUJOCO_GL"] = chosen
    # MuJoCo picks its own context class once, when it is first imported; that may have been before the choice.
    place = f"mujoco.{chosen}" if chosen in ("egl", "osmesa", "glfw") else "mujoco.rendering.classic.gl_context"
    try:
        maker: Callable[[int, int], Any] = importlib.import_module(place).GLContext
    except (ImportError, OSError, AttributeError) as error:
        reason = f"no picture can be rendered with MUJOCO_GL={chosen} ({_describe(error)})"
        raise SceneError(f"{reason}; unset it, or on Debian install {_DEBIAN}") from error
    return maker


def _egl_works() -> bool:
    """Tell whether EGL can open a device without a display.

    Asked of the library itself: importing MuJoCo's EGL module first would bind PyOpenGL to EGL for good, and OSMesa
    could not be used after it.
    """
    found = ctypes.util.find_library("EGL")
    if found is None:
        return False
    try:
        egl = ctypes.CDLL(found)
    except OSError:
        return False
    egl.eglGetProcAddress.restype = ctypes.c_void_p
    query = egl.eglGetProcAddress(b"eglQueryDevicesEXT")
    get_display = egl.eglGetProcAddress(b"eglGetPlatformDisplayEXT")
    if not query or not get_display:
        return False
    integer, pointer = ctypes.c_int, ctypes.c_void_p
    devices, count = (pointer * _MAX_DEVICES)(), integer()
    prototype = ctypes.CFUNCTYPE(ctypes.c_uint, integer, ctypes.POINTER(pointer), ctypes.POINTER(integer))
    if not prototype(query)(_MAX_DEVICES, devices, ctypes.byref(count)):
        return False
    display_of = ctypes.CFUNCTYPE(pointer, ctypes.c_uint, pointer, ctypes.POINTER(integer))(get_display)
    egl.eglInitialize.argtypes = [pointer, ctypes.POINTER(integer), ctypes.POINTER(integer)]
    displays = (display_of(_EGL_PLATFORM_DEVICE, devices[i], None) for i in range(count.value))
    return any(display and egl.eglInitialize(display, None, None) for display in displays)


def _describe(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _free(gl: Any, mjr: mujoco.MjrContext) -> None:
    gl.make_current()
    mjr.free()
    gl.free()
