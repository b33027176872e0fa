# SPDX-License-Identifier: Apache-2.0
"""Bags (rosbag2 version 9, MCAP) written from plain arrays, without rclpy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rosbags.typesys.store import Typestore

from supple.episodes.bag_markers import marker_array
from supple.episodes.bag_stream import BagStream
from supple.episodes.bag_types import CLOCK, LATCHED, RELIABLE, SENSOR, TRANSFORMS
from supple.episodes.marker import Marker
from supple.errors import DatasetError, StateError
from supple.geometry import pose_from_quaternion, unit_quaternion

__all__ = ["BagWriter", "ContactPoint"]


@dataclass(frozen=True)
class ContactPoint:
    """One point of contact between two bodies.

    Attributes:
        body1: Name of the first body.
        body2: Name of the second body.
        position: Point of contact in the frame of the message in [m], shape (3,).
        normal: Unit vector from body1 to body2, shape (3,).
        normal_force: Force along the normal in [N].
        tangential_force: Magnitude of the friction force in [N].
    """

    body1: str
    body2: str
    position: ArrayLike
    normal: ArrayLike
    normal_force: float
    tangential_force: float


class BagWriter(BagStream):
    """Writes one bag from plain arrays: a stream with a method for each kind of message that Supple records.

    Arguments, attributes and errors are those of ``BagStream``.
    """

    def __init__(
        self, path: Path | str, *, namespace: str = "", types: Typestore | None = None, growing: bool = False
    ) -> None:
        super().__init__(path, namespace=namespace, types=types, growing=growing)
        self._static: dict[tuple[str, str], NDArray[np.float64]] = {}
        self._static_stamp = 0

    def joint_state(
        self,
        stamp_ns: int,
        names: Sequence[str],
        q: ArrayLike,
        v: ArrayLike,
        effort: ArrayLike,
        topic: str = "joint_states",
    ) -> None:
        """Write joint positions [rad], velocities [rad/s] and torques [Nm], each of shape (len(names),)."""
        n = (len(names),)
        arrays = [_numbers(x, n, f"{topic}: {key}") for key, x in (("q", q), ("v", v), ("effort", effort))]
        message = self._make("sensor_msgs/msg/JointState", self._header(stamp_ns, ""), list(names), *arrays)
        self.write(topic, message.__msgtype__, stamp_ns, message, SENSOR)

    def joint_command(
        self,
        stamp_ns: int,
        source: str,
        names: Sequence[str],
        q: ArrayLike = (),
        v: ArrayLike = (),
        tau: ArrayLike = (),
        kp: ArrayLike = (),
        kd: ArrayLike = (),
        topic: str = "joint_commands",
    ) -> None:
        """Write joint targets and gains; an empty array leaves that quantity to the receiver."""
        arrays = []
        for key, values in (("q", q), ("v", v), ("tau", tau), ("kp", kp), ("kd", kd)):
            rows = len(names) if np.size(values) else 0
            arrays.append(_numbers(values, (rows,), f"{topic}: {key}"))
        kind = "supple_interfaces/msg/JointCommand"
        message = self._make(kind, self._header(stamp_ns, ""), source, list(names), *arrays, "", 0)
        self.write(topic, kind, stamp_ns, message, RELIABLE)

    def tf(self, stamp_ns: int, transforms: Mapping[tuple[str, str], ArrayLike], *, static: bool = False) -> None:
        """Write transforms by (parent frame, child frame), each (x, y, z, qx, qy, qz, qw) in [m].

        Static ones may come in several calls, before the first ordinary message; they become one latched message.
        """
        topic = "tf_static" if static else "tf"
        checked = {key: _pose(pose, f"{topic}: {key[0]} to {key[1]}") for key, pose in transforms.items()}
        if static:
            if self._started:
                raise DatasetError(
                    f"{self.path}: latched topic 'tf_static' must be written before the first ordinary message"
                )
            self._static |= checked
            self._static_stamp = max(self._static_stamp, int(stamp_ns))
        else:
            self.write(topic, "tf2_msgs/msg/TFMessage", stamp_ns, self._transforms(stamp_ns, checked), TRANSFORMS)

    def robot_description(self, xml: str) -> None:
        """Write the URDF, latched."""
        self.string("robot_description", xml, latched=True)

    def string(self, topic: str, text: str, stamp_ns: int = 0, *, latched: bool = False) -> None:
        """Write a text."""
        message = self._make("std_msgs/msg/String", text)
        self.write(topic, "std_msgs/msg/String", stamp_ns, message, LATCHED if latched else RELIABLE)

    def clock(self, stamp_ns: int) -> None:
        """Write simulation time."""
        message = self._make("rosgraph_msgs/msg/Clock", self._time(stamp_ns))
        self.write("clock", "rosgraph_msgs/msg/Clock", stamp_ns, message, CLOCK)

    def odometry(
        self,
        stamp_ns: int,
        pose: ArrayLike,
        linear_in_world: ArrayLike,
        angular_in_base: ArrayLike,
        *,
        frame: str = "odom",
        child: str = "base_link",
        topic: str = "odom",
    ) -> None:
        """Write the base's pose (x, y, z, qx, qy, qz, qw) and twist.

        The message carries the twist in the child frame; the linear velocity is turned into it here.

        Args:
            stamp_ns: Time in [ns].
            pose: Pose of the base in the world frame in [m], shape (7,).
            linear_in_world: Velocity of the base's origin in the world frame in [m/s], shape (3,).
            angular_in_base: Angular velocity in the base frame in [rad/s], shape (3,).
            frame: World frame.
            child: Frame of the base.
            topic: Topic.
        """
        value = _pose(pose, f"{topic}: pose")
        rotation = pose_from_quaternion(value[:3], value[3:]).rotation
        linear = rotation.T @ _numbers(linear_in_world, (3,), f"{topic}: linear velocity")
        angular = _numbers(angular_in_base, (3,), f"{topic}: angular velocity")
        unknown = np.zeros(36)
        message = self._make(
            "nav_msgs/msg/Odometry",
            self._header(stamp_ns, frame),
            child,
            self._make("geometry_msgs/msg/PoseWithCovariance", self._pose(value), unknown),
            self._make("geometry_msgs/msg/TwistWithCovariance", self._twist(linear, angular), unknown),
        )
        self.write(topic, message.__msgtype__, stamp_ns, message, SENSOR)

    def imu(
        self,
        stamp_ns: int,
        quaternion: ArrayLike,
        angular_velocity: ArrayLike,
        acceleration: ArrayLike,
        *,
        frame: str = "base_link",
        topic: str = "imu/data",
    ) -> None:
        """Write an IMU (REP-145): orientation (x, y, z, w), angular velocity [rad/s] and specific force [m/s^2]."""
        unknown = np.zeros(9)
        message = self._make(
            "sensor_msgs/msg/Imu",
            self._header(stamp_ns, frame),
            self._quaternion(_rotation(quaternion, f"{topic}: orientation")),
            unknown,
            self._vector(_numbers(angular_velocity, (3,), f"{topic}: angular velocity")),
            unknown,
            self._vector(_numbers(acceleration, (3,), f"{topic}: acceleration")),
            unknown,
        )
        self.write(topic, message.__msgtype__, stamp_ns, message, SENSOR)

    def image(
        self,
        stamp_ns: int,
        rgb: NDArray[np.uint8],
        *,
        frame: str = "camera_color_optical_frame",
        topic: str = "camera/color/image_raw",
    ) -> None:
        """Write a colour image, uint8, shape (height, width, 3), red first."""
        if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8:
            raise DatasetError(
                f"{topic}: expected uint8 of shape (height, width, 3), got {rgb.dtype} of shape {rgb.shape}"
            )
        self._image(stamp_ns, np.ascontiguousarray(rgb), "rgb8", frame, topic)

    def depth(
        self,
        stamp_ns: int,
        depth: NDArray[np.floating[Any]],
        *,
        frame: str = "camera_color_optical_frame",
        topic: str = "camera/aligned_depth_to_color/image_raw",
    ) -> None:
        """Write depth along the optical axis in [m], shape (height, width), as 32FC1 (REP-118; NaN is unknown)."""
        if depth.ndim != 2 or not np.issubdtype(depth.dtype, np.floating):
            raise DatasetError(
                f"{topic}: expected floats in metres of shape (height, width), got {depth.dtype} {depth.shape}"
            )
        self._image(stamp_ns, np.ascontiguousarray(depth, dtype="<f4"), "32FC1", frame, topic)

    def camera_info(
        self,
        stamp_ns: int,
        width: int,
        height: int,
        fx: float,
        fy: float,
        cx: float,
        cy: float,
        *,
        frame: str = "camera_color_optical_frame",
        topic: str = "camera/color/camera_info",
    ) -> None:
        """Write a pinhole camera without distortion; focal lengths and centre in [px]."""
        if not (min(width, height, fx, fy) > 0 and all(map(math.isfinite, (fx, fy, cx, cy)))):
            raise DatasetError(f"{topic}: uncalibrated: {width} x {height} px, fx {fx}, fy {fy}, cx {cx}, cy {cy}")
        k = np.array([fx, 0, cx, 0, fy, cy, 0, 0, 1], dtype=np.float64)
        p = np.array([fx, 0, cx, 0, 0, fy, cy, 0, 0, 0, 1, 0], dtype=np.float64)
        region = self._make("sensor_msgs/msg/RegionOfInterest", 0, 0, 0, 0, False)
        header = self._header(stamp_ns, frame)
        flat = np.eye(3).ravel()
        kind = "sensor_msgs/msg/CameraInfo"
        message = self._make(kind, header, height, width, "plumb_bob", np.zeros(5), k, flat, p, 0, 0, region)
        self.write(topic, kind, stamp_ns, message, SENSOR)

    def contacts(
        self, stamp_ns: int, contacts: Iterable[ContactPoint], *, frame: str = "odom", topic: str = "contacts"
    ) -> None:
        """Write every contact at one instant; none means that nothing touches."""
        points = []
        for i, contact in enumerate(contacts):
            where = f"{topic}: contact {i}"
            forces = _numbers([contact.normal_force, contact.tangential_force], (2,), f"{where}: forces")
            points.append(
                self._make(
                    "supple_interfaces/msg/Contact",
                    contact.body1,
                    contact.body2,
                    self._make(
                        "geometry_msgs/msg/Point", *_numbers(contact.position, (3,), f"{where}: position").tolist()
                    ),
                    self._vector(_numbers(contact.normal, (3,), f"{where}: normal")),
                    *forces.tolist(),
                )
            )
        kind = "supple_interfaces/msg/ContactArray"
        self.write(topic, kind, stamp_ns, self._make(kind, self._header(stamp_ns, frame), points), SENSOR)

    def object_poses(
        self,
        stamp_ns: int,
        poses: Mapping[str, ArrayLike],
        twists: Mapping[str, ArrayLike] | None = None,
        *,
        frame: str = "odom",
        topic: str = "objects",
    ) -> None:
        """Write poses (x, y, z, qx, qy, qz, qw) [m] by object, and twists (linear, angular) [m/s, rad/s] if known."""
        messages = [self._pose(_pose(pose, f"{topic}: {name}")) for name, pose in poses.items()]
        motions = []
        if twists is not None:
            if set(twists) != set(poses):
                raise DatasetError(f"{topic}: twists of {sorted(twists)}, but poses of {sorted(poses)}")
            values = [_numbers(twists[name], (6,), f"{topic}: twist of {name}") for name in poses]
            motions = [self._twist(value[:3], value[3:]) for value in values]
        kind = "supple_interfaces/msg/ObjectPoses"
        message = self._make(kind, self._header(stamp_ns, frame), list(poses), messages, motions)
        self.write(topic, kind, stamp_ns, message, SENSOR)

    def markers(self, stamp_ns: int, markers: Iterable[Marker], *, frame: str = "odom", topic: str = "markers") -> None:
        """Write everything that a viewer shows as shapes from now on; what was shown before goes."""
        shown = list(markers)
        for i, marker in enumerate(shown):
            where = f"{topic}: marker {i} of {marker.group!r}"
            _pose(np.r_[marker.position, marker.quaternion], where)
            _numbers(marker.points, (len(marker.points), 3), f"{where}: points")
        message = marker_array(self.types, stamp_ns, shown, frame)
        self.write(topic, message.__msgtype__, stamp_ns, message, RELIABLE)

    def twist(
        self, stamp_ns: int, linear: ArrayLike, angular: ArrayLike, *, frame: str, topic: str = "cmd_vel"
    ) -> None:
        """Write a velocity command: linear [m/s] and angular [rad/s], each (3,), in a frame."""
        parts = [_numbers(x, (3,), f"{topic}: {key}") for key, x in (("linear", linear), ("angular", angular))]
        kind = "geometry_msgs/msg/TwistStamped"
        self.write(topic, kind, stamp_ns, self._make(kind, self._header(stamp_ns, frame), self._twist(*parts)))

    def number(self, topic: str, value: float, stamp_ns: int) -> None:
        """Write one number."""
        kind = "std_msgs/msg/Float64"
        self.write(topic, kind, stamp_ns, self._make(kind, float(_numbers([value], (1,), topic)[0])))

    def _start(self, stamp_ns: int) -> None:
        if self._static and not self._started:
            kind = "tf2_msgs/msg/TFMessage"
            message = self._transforms(self._static_stamp, self._static)
            self._latched.append(("tf_static", kind, bytes(self.types.serialize_cdr(message, kind))))
        super()._start(stamp_ns)

    def _make(self, kind: str, *fields: Any) -> Any:
        return self.types.types[kind](*fields)

    def _time(self, stamp_ns: int) -> Any:
        seconds, nanoseconds = divmod(int(stamp_ns), 10**9)
        return self._make("builtin_interfaces/msg/Time", seconds, nanoseconds)

    def _header(self, stamp_ns: int, frame: str) -> Any:
        return self._make("std_msgs/msg/Header", self._time(stamp_ns), frame)

    def _vector(self, value: NDArray[np.float64]) -> Any:
        return self._make("geometry_msgs/msg/Vector3", *value.tolist())

    def _quaternion(self, value: NDArray[np.float64]) -> Any:
        return self._make("geometry_msgs/msg/Quaternion", *value.tolist())

    def _pose(self, value: NDArray[np.float64]) -> Any:
        point = self._make("geometry_msgs/msg/Point", *value[:3].tolist())
        return self._make("geometry_msgs/msg/Pose", point, self._quaternion(value[3:]))

    def _twist(self, linear: NDArray[np.float64], angular: NDArray[np.float64]) -> Any:
        return self._make("geometry_msgs/msg/Twist", self._vector(linear), self._vector(angular))

    def _transforms(self, stamp_ns: int, transforms: Mapping[tuple[str, str], NDArray[np.float64]]) -> Any:
        messages = []
        for (parent, child), pose in transforms.items():
            transform = self._make("geometry_msgs/msg/Transform", self._vector(pose[:3]), self._quaternion(pose[3:]))
            kind = "geometry_msgs/msg/TransformStamped"
            messages.append(self._make(kind, self._header(stamp_ns, parent), child, transform))
        return self._make("tf2_msgs/msg/TFMessage", messages)

    def _image(self, stamp_ns: int, pixels: NDArray[Any], encoding: str, frame: str, topic: str) -> None:
        height, width = pixels.shape[:2]
        step = pixels.strides[0]
        data = pixels.view(np.uint8).reshape(-1)
        kind = "sensor_msgs/msg/Image"
        message = self._make(kind, self._header(stamp_ns, frame), height, width, encoding, 0, step, data)
        self.write(topic, kind, stamp_ns, message, SENSOR)


def _numbers(values: ArrayLike, shape: tuple[int, ...], where: str) -> NDArray[np.float64]:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.shape != shape:
        raise DatasetError(f"{where}: expected shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        index = int(np.argmin(np.isfinite(array)))
        raise DatasetError(f"{where}: index {index}: expected a finite number, got {array.flat[index]}")
    return array


def _rotation(values: ArrayLike, where: str) -> NDArray[np.float64]:
    try:
        return unit_quaternion(values, where)
    except StateError as error:
        raise DatasetError(str(error)) from error


def _pose(values: ArrayLike, where: str) -> NDArray[np.float64]:
    value = _numbers(values, (7,), where)
    return np.concatenate([value[:3], _rotation(value[3:], where)])
