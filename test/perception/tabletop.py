# SPDX-License-Identifier: Apache-2.0
"""A table with things on it, seen by a camera as high and as steep as a standing robot's, with the truth."""

from __future__ import annotations

import mujoco
import numpy as np

from supple.perception.frames import Intrinsics, RgbdFrame
from supple.sim.camera import Camera

__all__ = ["OBJECTS", "TABLE_TOP", "Tabletop"]

OBJECTS = ("box", "red", "big_red", "can", "table")
TABLE_TOP = 0.75
_WIDTH, _HEIGHT = 640, 480
_SCENE = f"""
<mujoco>
  <visual>
    <headlight ambient=".4 .4 .4" diffuse=".4 .4 .4" specular="0 0 0"/>
    <map znear=".01" zfar="30"/>
    <quality numslices="64"/>
  </visual>
  <worldbody>
    <light pos="1 -2 4" dir="-.2 .5 -1" diffuse=".5 .5 .5"/>
    <camera name="head" pos="0 0 1.25" xyaxes="0 -1 0 .71 0 .71" fovy="60"/>
    <geom type="plane" size="6 6 .1" rgba=".6 .62 .65 1"/>
    <body name="table" pos=".8 0 {TABLE_TOP - 0.02}">
      <geom type="box" size=".45 .7 .02" rgba=".78 .63 .45 1"/>
    </body>
    <body name="box" pos="0 0 -1"><freejoint/><geom type="box" size=".08 .11 .08" rgba=".72 .53 .33 1"/></body>
    <body name="red" pos="0 0 -1"><freejoint/><geom type="box" size=".03 .03 .03" rgba=".8 .15 .12 1"/></body>
    <body name="big_red" pos="0 0 -1"><freejoint/><geom type="box" size=".06 .06 .06" rgba=".8 .15 .12 1"/></body>
    <body name="other_red" pos="0 0 -1"><freejoint/><geom type="box" size=".03 .03 .03" rgba=".8 .15 .12 1"/></body>
    <body name="can" pos="0 0 -1"><freejoint/><geom type="cylinder" size=".04 .06" rgba=".2 .55 .75 1"/></body>
    <body name="hand" pos="0 0 -1"><freejoint/><geom type="capsule" size=".015 .2" rgba=".2 .2 .22 1"/></body>
    <body name="beam" pos="0 0 -1"><freejoint/><geom type="box" size=".25 .05 .05" rgba=".72 .53 .33 1"/></body>
  </worldbody>
</mujoco>
"""


class Tabletop:
    """The scene; nothing but the table is in it until it is placed."""

    def __init__(self) -> None:
        self.model = mujoco.MjModel.from_xml_string(_SCENE)
        self.data = mujoco.MjData(self.model)
        self.camera = Camera(self.model, "head", _WIDTH, _HEIGHT)
        self.intrinsics = Intrinsics(*self.camera.intrinsics, _WIDTH, _HEIGHT)
        self.stamp_ns = 0

    @property
    def up(self) -> np.ndarray:
        """Direction against gravity in the optical frame."""
        return np.diag([1.0, -1.0, -1.0]) @ self.data.cam_xmat[0].reshape(3, 3).T @ [0.0, 0.0, 1.0]

    def clear(self) -> None:
        """Take everything off the table."""
        mujoco.mj_resetData(self.model, self.data)

    def half_height(self, name: str) -> float:
        """Return half the height of a body in [m]."""
        size = self.model.geom_size[self.model.body(name).geomadr[0]]
        return float(size[1] if name == "can" else size[2])

    def put(self, name: str, x: float, y: float, yaw: float = 0.0, above: float = 0.0) -> None:
        """Stand a body on the table, or above it."""
        address = self.model.jnt_qposadr[self.model.body(name).jntadr[0]]
        z = TABLE_TOP + self.half_height(name) + above
        self.data.qpos[address : address + 7] = [x, y, z, np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)]

    def lay(self, name: str, position: tuple[float, float, float], axis: str) -> None:
        """Lay the hand, whose long axis is z, along an axis at a point in the world frame."""
        address = self.model.jnt_qposadr[self.model.body(name).jntadr[0]]
        half = np.sqrt(0.5)
        turn = {"x": [half, 0.0, half, 0.0], "y": [half, half, 0.0, 0.0]}[axis]
        self.data.qpos[address : address + 7] = [*position, *turn]

    def frame(self, rng: np.random.Generator | None = None) -> RgbdFrame:
        """Return what the camera sees; with a generator, as a cheap depth camera would."""
        mujoco.mj_forward(self.model, self.data)
        drawn = self.camera.render(self.data)
        depth, rgb = np.where(np.isfinite(drawn.depth), drawn.depth, np.nan).astype(np.float32), drawn.rgb
        if rng is not None:
            depth += (0.003 * depth**2 * rng.standard_normal(depth.shape)).astype(np.float32)
            depth[rng.random(depth.shape) < 0.02] = np.nan
            rgb = np.clip(rgb + rng.normal(0.0, 4.0, rgb.shape), 0, 255).astype(np.uint8)
        self.stamp_ns += 66_666_667
        return RgbdFrame(self.stamp_ns, rgb, depth, self.intrinsics)

    def truth(self, name: str) -> np.ndarray:
        """Return the pixels that really show a body."""
        return self.camera.labels(self.data, [name]) == 1
