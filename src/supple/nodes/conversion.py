# SPDX-License-Identifier: Apache-2.0
"""Between ROS messages and the records of ``robots``: by joint name, in the robot's order, nothing guessed."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

import numpy as np
import pinocchio as pin
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Pose, Quaternion, Transform, TransformStamped, Twist, Vector3
from nav_msgs.msg import Odometry
from numpy.typing import ArrayLike, NDArray
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Header
from supple_interfaces.msg import JointCommand, ObjectPoses

from supple.errors import JointError, StateError
from supple.geometry import pose_from_quaternion, quaternion_of, unit_quaternion
from supple.kinematics.transforms import WORLD_FRAME
from supple.robots import JointTable, RobotCommand, RobotState
from supple.robots.description import BASE_FRAME

__all__ = [
    "command_of",
    "header",
    "imu_message",
    "joint_command",
    "joint_state",
    "nanoseconds",
    "object_poses",
    "odometry",
    "point_message",
    "pose_message",
    "pose_of",
    "state_of",
    "time_message",
    "transform_message",
    "transform_of",
    "vector_message",
]

Array = NDArray[np.float64]


def nanoseconds(stamp: Time) -> int:
    """Return a stamp in [ns]."""
    return int(stamp.sec) * 1_000_000_000 + int(stamp.nanosec)


def time_message(stamp_ns: int) -> Time:
    """Return a time in [ns] as a message."""
    return Time(sec=stamp_ns // 1_000_000_000, nanosec=stamp_ns % 1_000_000_000)


def header(stamp_ns: int, frame: str = "") -> Header:
    """Return a header."""
    return Header(stamp=time_message(stamp_ns), frame_id=frame)


def _doubles(values: ArrayLike) -> array[float]:
    # An array.array is taken over as it is; an ndarray would be checked number by number.
    return array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes())


def vector_message(values: ArrayLike) -> Vector3:
    """Return a vector (3,) as a message."""
    x, y, z = (float(value) for value in np.asarray(values))
    return Vector3(x=x, y=y, z=z)


def point_message(values: ArrayLike) -> Point:
    """Return a point (3,) in [m] as a message."""
    x, y, z = (float(value) for value in np.asarray(values))
    return Point(x=x, y=y, z=z)


def _quaternion(values: ArrayLike) -> Quaternion:
    x, y, z, w = (float(value) for value in np.asarray(values))
    return Quaternion(x=x, y=y, z=z, w=w)


def pose_message(pose: pin.SE3) -> Pose:
    """Return a pose as a message."""
    return Pose(position=point_message(pose.translation), orientation=_quaternion(quaternion_of(pose)))


def transform_message(stamp_ns: int, parent: str, child: str, pose: pin.SE3) -> TransformStamped:
    """Return the pose of a child frame in its parent as a message."""
    transform = Transform(translation=vector_message(pose.translation), rotation=_quaternion(quaternion_of(pose)))
    return TransformStamped(header=header(stamp_ns, parent), child_frame_id=child, transform=transform)


def pose_of(message: Pose, where: str) -> pin.SE3:
    """Return a message's pose.

    Args:
        message: The message.
        where: Names topic and field in the error.

    Raises:
        StateError: A position that is not finite, or a quaternion that holds no rotation.
    """
    p, o = message.position, message.orientation
    position = np.array([p.x, p.y, p.z])
    if not np.all(np.isfinite(position)):
        raise StateError(f"{where}: position is not finite, got {position.tolist()}")
    return pose_from_quaternion(position, [o.x, o.y, o.z, o.w], f"{where}: orientation")


def transform_of(message: Transform, where: str) -> pin.SE3:
    """Return a transform's pose; ``where`` and errors as ``pose_of``."""
    t, r = message.translation, message.rotation
    return pose_from_quaternion([t.x, t.y, t.z], [r.x, r.y, r.z, r.w], where)


# -- measurements ----------------------------------------------------------------------------------------------------


def joint_state(joints: JointTable, state: RobotState, stamp_ns: int) -> JointState:
    """Return the joints of a state as a message."""
    return JointState(
        header=header(stamp_ns),
        name=list(joints.names),
        position=_doubles(state.q),
        velocity=_doubles(state.v),
        effort=_doubles(state.effort),
    )


def odometry(state: RobotState, stamp_ns: int) -> Odometry:
    """Return the base of a state as a message: pose in the odom frame, twist in the base frame (REP-105)."""
    message = Odometry(header=header(stamp_ns, WORLD_FRAME), child_frame_id=BASE_FRAME)
    message.pose.pose.position = point_message(state.base_position)
    message.pose.pose.orientation = _quaternion(state.base_quaternion)
    linear = state.T_world_base.rotation.T @ state.base_linear_velocity
    message.twist.twist = Twist(linear=vector_message(linear), angular=vector_message(state.base_angular_velocity))
    return message


def imu_message(state: RobotState, stamp_ns: int) -> Imu:
    """Return the inertial measurements of a state as a message (REP-145)."""
    return Imu(
        header=header(stamp_ns, "imu_link"),
        orientation=_quaternion(state.base_quaternion),
        angular_velocity=vector_message(state.base_angular_velocity),
        linear_acceleration=vector_message(state.base_acceleration),
    )


def _vector(message: Vector3 | Point) -> Array:
    return np.array([message.x, message.y, message.z])


def state_of(joints: JointTable, joint_states: JointState, odom: Odometry, imu: Imu) -> RobotState:
    """Return the state that three messages describe.

    Raises:
        JointError: Joints missing, extra or doubled; all are listed.
        StateError: A number that is not finite, or a quaternion that holds no rotation.
    """
    names, where = joint_states.name, "joint_states"
    q = joints.ordered(names, joint_states.position, f"{where}.position")
    v = joints.ordered(names, joint_states.velocity, f"{where}.velocity")
    effort = joint_states.effort
    tau = joints.ordered(names, effort, f"{where}.effort") if len(effort) else np.zeros(len(joints))
    o = odom.pose.pose.orientation
    quaternion = np.array([o.x, o.y, o.z, o.w])
    unit = unit_quaternion(quaternion, "odom.pose.pose.orientation")
    # One that is a unit already is kept to the last bit, so that what is computed from it repeats exactly.
    quaternion = quaternion if abs(float(quaternion @ quaternion) - 1.0) < 1e-9 else unit
    rotation = pose_from_quaternion(np.zeros(3), quaternion).rotation
    state = RobotState(
        stamp_ns=nanoseconds(joint_states.header.stamp),
        q=q,
        v=v,
        effort=tau,
        base_position=_vector(odom.pose.pose.position),
        base_quaternion=quaternion,
        base_linear_velocity=rotation @ _vector(odom.twist.twist.linear),
        base_angular_velocity=_vector(imu.angular_velocity),
        base_acceleration=_vector(imu.linear_acceleration),
    )
    if not state.finite:
        bad = [names for names, row in _fields(state).items() if not np.all(np.isfinite(row))]
        raise StateError(f"state at {state.stamp_ns} ns is not finite in {', '.join(bad)}")
    return state


def _fields(state: RobotState) -> dict[str, Array]:
    return {
        "joint_states.position": state.q,
        "joint_states.velocity": state.v,
        "joint_states.effort": state.effort,
        "odom.pose.pose.position": state.base_position,
        "odom.twist.twist.linear": state.base_linear_velocity,
        "imu/data.angular_velocity": state.base_angular_velocity,
        "imu/data.linear_acceleration": state.base_acceleration,
    }


# -- commands --------------------------------------------------------------------------------------------------------


def joint_command(joints: JointTable, command: RobotCommand, because: tuple[str, int] | None = None) -> JointCommand:
    """Return a command as a message; only the joints it addresses are in it.

    Args:
        joints: The joint table.
        command: The command.
        because: Sensor, and sequence of its reading, that changed this command; None if no reading did.
    """
    at = np.flatnonzero(command.active)
    sensor, sequence = because or ("", 0)
    return JointCommand(
        header=header(command.stamp_ns),
        source=command.source,
        because=sensor,
        because_sequence=sequence,
        name=[joints.names[i] for i in at],
        **{key: _doubles(getattr(command, key)[at]) for key in ("q", "v", "tau", "kp", "kd")},
    )


def command_of(joints: JointTable, message: JointCommand) -> RobotCommand:
    """Return the command that a message holds; what it leaves out is the table's gains, no velocity, no torque.

    Raises:
        JointError: Unknown or doubled joints (all listed), or a length that does not fit; names source and field.
        StateError: A number that is not finite, or no position targets where gains are given; names the joints.
    """
    where, names = f"command from {message.source!r}", list(message.name)
    if not message.source:
        raise StateError("a command names no source; arbitration goes by it")
    if unknown := [name for name in names if name not in joints.names]:
        raise JointError(f"{where}: not in the robot's table: {', '.join(unknown)}")
    if len(set(names)) != len(names):
        raise JointError(f"{where}: given twice: {', '.join(sorted({n for n in names if names.count(n) > 1}))}")
    at = joints.indices(names)
    blank = RobotCommand.blank(joints, message.source, nanoseconds(message.header.stamp))
    for key in ("q", "v", "tau", "kp", "kd"):
        values = getattr(message, key)
        if len(values) == 0 and key != "q":
            continue
        if len(values) != len(names):
            raise JointError(f"{where}: {len(values)} numbers in {key} for {len(names)} names")
        getattr(blank, key)[at] = values
    blank.active[at] = True
    blank.check(joints)
    return blank


# -- objects ---------------------------------------------------------------------------------------------------------


def object_poses(poses: Mapping[str, pin.SE3], twists: Mapping[str, Array], stamp_ns: int) -> ObjectPoses:
    """Return poses and twists (linear, angular; world frame) of objects as a message."""
    return ObjectPoses(
        header=header(stamp_ns, WORLD_FRAME),
        name=list(poses),
        pose=[pose_message(pose) for pose in poses.values()],
        twist=[Twist(linear=vector_message(twists[n][:3]), angular=vector_message(twists[n][3:])) for n in poses],
    )
