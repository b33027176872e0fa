# SPDX-License-Identifier: Apache-2.0
"""A bag in the layout of a real robot with a RealSense camera, drawn from a scene whose surfaces are known.

Topics and frames are those of the camera's own driver with aligned depth: best effort, 16UC1 in millimetres, colour and
depth stamped apart. The robot turns at the waist all the while, so that a pose of another moment than the picture's
gives wrong points.

realsense_bag.py FOLDER       writes the bag
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin

from supple.episodes import BagWriter
from supple.episodes.bag_types import SENSOR
from supple.geometry import quaternion_of
from supple.kinematics.transforms import TransformTree, base_transforms
from supple.sim.camera import Camera
from supple.tasks import Environment, task_named

__all__ = ["BOX_SIZE", "CAMERA", "Recorded", "write_realsense_bag"]

CAMERA = "/camera/camera"
BOX_SIZE = np.array([0.172, 0.231, 0.168])

_START_NS = 1_700_000_000_000_000_000
_MS = 1_000_000
_FRAME = "camera_color_optical_frame"
_APPROACH, _SWING, _FREQUENCY = 1.1, 0.25, 0.5
_TF_PERIOD_NS = 20 * _MS


@dataclass(frozen=True)
class Recorded:
    """What a bag holds.

    Attributes:
        path: The bag.
        T_base_box: Pose of the box in base_link; its frame is at the middle of its bottom.
        depth_ns: Stamps of the depth images in [ns].
        color_ns: Stamps of the colour images in [ns]; some that belong to a depth image were lost.
        q: Joint positions at a stamp in [ns].
    """

    path: Path
    T_base_box: pin.SE3
    depth_ns: tuple[int, ...]
    color_ns: tuple[int, ...]
    q: Callable[[int], np.ndarray]

    def matched(self, tolerance_ns: int = 20 * _MS) -> list[int]:
        """Return the stamps of depth images that have a colour image near enough."""
        color = np.array(self.color_ns)
        return [stamp for stamp in self.depth_ns if np.abs(color - stamp).min() <= tolerance_ns]


def write_realsense_bag(path: Path, pictures: int = 30, rate: float = 15.0) -> Recorded:
    """Write the bag.

    Args:
        path: Folder that it becomes; must not exist.
        pictures: Number of depth images.
        rate: Pictures per second in [Hz].
    """
    rng = np.random.default_rng(7)
    task = task_named("box_lift")
    environment = Environment(task, visual=True)
    layout = task.nominal()
    layout.T_world_base.translation[0] += _APPROACH
    environment.reset(layout)
    world, robot = environment.world, task.robot
    tree, waist = TransformTree(robot), robot.joints.index("waist_yaw_joint")
    T_base_box = layout.T_world_base.actInv(world.object_pose("box"))

    def posture(stamp_ns: int) -> np.ndarray:
        q = layout.q.copy()
        q[waist] = _SWING * np.sin(2.0 * np.pi * _FREQUENCY * (stamp_ns - _START_NS) * 1e-9)
        return q

    def pose_at(stamp_ns: int) -> None:
        world.place_robot(layout.T_world_base, posture(stamp_ns))
        mujoco.mj_forward(world.model, world.data)

    period = round(1e9 / rate)
    depth_ns = [_START_NS + 5 * _TF_PERIOD_NS + period * i + int(rng.integers(-_MS, _MS)) for i in range(pictures)]
    color_ns = [stamp + 6 * _MS + int(rng.integers(-_MS, _MS)) for stamp in depth_ns]
    lost = {pictures // 3, pictures // 2}
    # (when it is received, what, stamp); a picture takes some milliseconds to come, depth more than colour.
    events = [(stamp + 9 * _MS, "depth", stamp) for stamp in depth_ns]
    events += [(stamp + 4 * _MS, "color", stamp) for i, stamp in enumerate(color_ns) if i not in lost]
    last = max(depth_ns) + 10 * _TF_PERIOD_NS
    events += [(stamp + 2 * _MS, "tf", stamp) for stamp in range(_START_NS, last, _TF_PERIOD_NS)]
    with BagWriter(path) as bag, Camera(world.model, "camera", 640, 480) as camera:
        bag.tf(_START_NS, {names: _row(pose) for names, pose in tree.fixed.items()}, static=True)
        for received, what, stamp in sorted(events):
            if what == "tf":
                poses = tree.moving(posture(stamp)) | base_transforms(layout.T_world_base)
                _write_tf(bag, received, stamp, poses)
                continue
            pose_at(stamp)
            picture = camera.render(world.data)
            if what == "color":
                _write_image(bag, "color", "rgb8", received, stamp, picture.rgb)
            else:
                far = ~(picture.depth < 65.0)
                millimetres = np.where(far, 0.0, np.rint(np.where(far, 0.0, picture.depth) * 1000.0))
                _write_image(bag, "aligned_depth_to_color", "16UC1", received, stamp, millimetres.astype(np.uint16))
            stream = "color" if what == "color" else "aligned_depth_to_color"
            _write_info(bag, stream, received, stamp, camera.intrinsics)
    kept = tuple(stamp for i, stamp in enumerate(color_ns) if i not in lost)
    return Recorded(path, T_base_box, tuple(depth_ns), kept, posture)


def _row(pose: pin.SE3) -> np.ndarray:
    return np.r_[pose.translation, quaternion_of(pose)]


def _header(bag: BagWriter, stamp_ns: int, frame: str):
    types = bag.types.types
    time = types["builtin_interfaces/msg/Time"](stamp_ns // 10**9, stamp_ns % 10**9)
    return types["std_msgs/msg/Header"](time, frame)


def _write_tf(bag: BagWriter, received: int, stamp: int, poses: dict[tuple[str, str], pin.SE3]) -> None:
    types = bag.types.types
    vector, quaternion = types["geometry_msgs/msg/Vector3"], types["geometry_msgs/msg/Quaternion"]
    rows = [
        types["geometry_msgs/msg/TransformStamped"](
            _header(bag, stamp, parent),
            child,
            types["geometry_msgs/msg/Transform"](vector(*pose.translation), quaternion(*quaternion_of(pose))),
        )
        for (parent, child), pose in poses.items()
    ]
    bag.write("tf", "tf2_msgs/msg/TFMessage", received, types["tf2_msgs/msg/TFMessage"](rows))


def _write_image(bag: BagWriter, stream: str, encoding: str, received: int, stamp: int, pixels: np.ndarray) -> None:
    kind = "sensor_msgs/msg/Image"
    height, width = pixels.shape[:2]
    data = np.ascontiguousarray(pixels).view(np.uint8).reshape(-1)
    message = bag.types.types[kind](_header(bag, stamp, _FRAME), height, width, encoding, 0, data.size // height, data)
    bag.write(f"{CAMERA}/{stream}/image_raw".lstrip("/"), kind, received, message, SENSOR)


def _write_info(
    bag: BagWriter, stream: str, received: int, stamp: int, intrinsics: tuple[float, float, float, float]
) -> None:
    kind = "sensor_msgs/msg/CameraInfo"
    types = bag.types.types
    fx, fy, cx, cy = intrinsics
    message = types[kind](
        header=_header(bag, stamp, _FRAME),
        height=480,
        width=640,
        distortion_model="plumb_bob",
        d=np.zeros(5),
        k=np.array([fx, 0.0, cx, 0.0, fy, cy, 0.0, 0.0, 1.0]),
        r=np.eye(3).reshape(-1),
        p=np.array([fx, 0.0, cx, 0.0, 0.0, fy, cy, 0.0, 0.0, 0.0, 1.0, 0.0]),
        binning_x=0,
        binning_y=0,
        roi=types["sensor_msgs/msg/RegionOfInterest"](0, 0, 0, 0, False),
    )
    bag.write(f"{CAMERA}/{stream}/camera_info".lstrip("/"), kind, received, message, SENSOR)


if __name__ == "__main__":
    written = write_realsense_bag(Path(sys.argv[1]))
    sys.stdout.write(f"{written.path}: {len(written.depth_ns)} depth and {len(written.color_ns)} colour images\n")
