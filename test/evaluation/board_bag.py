# SPDX-License-Identifier: Apache-2.0
"""A bag as an operator records it: a hand holds a rendered board before the head camera, again and again, and rests."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin

from supple.episodes.bag import BagWriter
from supple.geometry import interpolate_pose, quaternion_of
from supple.perception.boards import Board
from supple.sim.camera import Camera

PARENT, CARRIER, CAMERA = "torso_link", "right_wrist_yaw_link", "camera_color_optical_frame"
WIDTH, HEIGHT, FOVY = 640, 480, 42.0
# Optical frame of a head camera that looks ahead and down.
T_PARENT_CAMERA = pin.SE3(
    pin.rpy.rpyToMatrix(0.0, 0.7, 0.05) @ np.array([[0.0, 0, 1], [-1, 0, 0], [0, -1, 0]]), np.array([0.06, 0.02, 0.43])
)
T_CARRIER_BOARD = pin.SE3(pin.rpy.rpyToMatrix(0.4, -1.2, 0.3), np.array([0.12, 0.03, -0.05]))
_STEP_NS = 50_000_000
_PIXELS_PER_METRE = 4000.0


class BoardScene:
    """A board that can be put anywhere before a camera, drawn by MuJoCo."""

    def __init__(self, board: Board) -> None:
        picture = board.picture(_PIXELS_PER_METRE)
        self.board, margin = board, board.square * 0.5
        width, height = board.columns * board.square + 2 * margin, board.rows * board.square + 2 * margin
        # The board's frame begins at the corner of its first square, on its face; this is the middle of the geom.
        self._centre = np.array([0.5 * width - margin, 0.5 * height - margin, 0.001])
        spec = mujoco.MjSpec()
        spec.visual.headlight.ambient, spec.visual.headlight.diffuse = [0.6] * 3, [0.4] * 3
        spec.visual.headlight.specular = [0.0] * 3
        spec.visual.map.znear, spec.stat.extent = 0.01, 1.0
        texture = spec.add_texture(name="board", type=mujoco.mjtTexture.mjTEXTURE_2D)
        texture.height, texture.width, texture.nchannel = *picture.shape, 3
        texture.data = np.repeat(picture.reshape(-1, 1), 3, axis=1).tobytes()
        material = spec.add_material(name="board", specular=0.0)
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "board"
        body = spec.worldbody.add_body(name="board", mocap=True)
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.5 * width, 0.5 * height, 0.001], material="board",
            contype=0, conaffinity=0,
        )  # fmt: skip
        camera = spec.worldbody.add_camera(name="camera", fovy=FOVY)
        camera.quat = [0.0, 1.0, 0.0, 0.0]  # MuJoCo looks along -z with y up, an optical frame along z with y down
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self.camera = Camera(self.model, "camera", WIDTH, HEIGHT)

    def picture(self, T_camera_board: pin.SE3) -> np.ndarray:
        """Return the picture of the board in this pose, which is that of its frame in the optical frame."""
        # The geom's z looks at the camera, the board's away from it.
        turn = np.diag([1.0, -1.0, -1.0])
        T = T_camera_board * pin.SE3(np.eye(3), self._centre) * pin.SE3(turn, np.zeros(3))
        self.data.mocap_pos[0] = T.translation
        self.data.mocap_quat[0] = quaternion_of(T)[[3, 0, 1, 2]]
        mujoco.mj_forward(self.model, self.data)
        return self.camera.rgb(self.data)


def poses(rng: np.random.Generator, count: int, tilt: float = 0.5) -> list[pin.SE3]:
    """Return poses of a board in the camera, facing it, tilted about all axes."""
    found = []
    for _ in range(count):
        z = rng.uniform(0.42, 0.7)
        place = np.array([*(rng.uniform(-0.16, 0.16, 2) * z - [0.12, 0.09]), z])
        found.append(pin.SE3(pin.exp3(rng.uniform(-tilt, tilt, 3)), place))
    return found


def write_bag(path: Path, board: Board, seed: int, count: int, *, tilt: float = 0.5, rest: int = 10) -> Path:
    """Write pictures, calibration and transforms of a hand that goes from pose to pose and rests at each.

    Args:
        path: Folder of the bag.
        board: The board that it holds.
        seed: Of the poses.
        count: Number of poses.
        tilt: Largest tilt of the board in [rad].
        rest: Pictures at each pose.
    """
    scene, rng = BoardScene(board), np.random.default_rng(seed)
    fx, fy, cx, cy = scene.camera.intrinsics
    stops = poses(rng, count, tilt)
    with BagWriter(path) as bag:
        bag.tf(1, {("camera_link", CAMERA): np.array([0.0, 0, 0, 0, 0, 0, 1.0])}, static=True)
        stamp = 1_000_000_000
        for start, end in zip([stops[0], *stops], stops, strict=False):
            for step in range(rest + 6):
                T_camera_board = interpolate_pose(start, end, min(step / 6.0, 1.0))
                carrier = T_PARENT_CAMERA * T_camera_board * T_CARRIER_BOARD.inverse()
                bag.tf(stamp, {(PARENT, CARRIER): np.r_[carrier.translation, quaternion_of(carrier)]})
                bag.image(stamp, scene.picture(T_camera_board), frame=CAMERA)
                bag.camera_info(stamp, WIDTH, HEIGHT, fx, fy, cx, cy, frame=CAMERA)
                stamp += _STEP_NS
    scene.camera.close()
    return path
