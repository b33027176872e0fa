# SPDX-License-Identifier: Apache-2.0
"""Where the links of a robot were when its sensors were read, from its joint states of late."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

import numpy as np
import pinocchio as pin
from nav_msgs.msg import Odometry
from numpy.typing import ArrayLike, NDArray
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from supple.errors import StateError
from supple.kinematics.model import KinematicModel
from supple.nodes.conversion import nanoseconds, pose_of
from supple.nodes.tactile_bytes import LITTLE_ENDIAN, aligned
from supple.nodes.touch_input import stamp_of
from supple.robots import JointTable, Robot

__all__ = ["LinkPoses"]

Array = NDArray[np.float64]

_KEPT = 64
# A state this far from a reading in [ns] says nothing about where the sensor was.
_STATE_AGE_NS = 20_000_000
# Where the text of a header's frame begins with its length, behind encapsulation and stamp.
_FRAME = 12


class _JointInput:
    """Positions and velocities in the robot's order out of serialised joint states.

    The names are most of a message and the same in each; they are looked at when they change.
    """

    def __init__(self, joints: JointTable) -> None:
        self._joints = joints
        self._names: list[str] = []
        self._begin = b""
        self._order = np.zeros(0, dtype=np.intp)

    def take(self, data: bytes) -> tuple[Array, Array]:
        """Return positions and velocities (n,) of a message.

        Raises:
            SuppleError: It cannot be used.
        """
        if data[:2] != LITTLE_ENDIAN:
            message = deserialize_message(data, JointState)
            q, v = (self._ordered(message.name, getattr(message, key), key) for key in ("position", "velocity"))
            return q, v
        if not self._begin or data[_FRAME : _FRAME + len(self._begin)] != self._begin:
            self._learn(data)
        at, found = _FRAME + len(self._begin), []
        for key in ("position", "velocity"):
            at = aligned(at, 4)
            (count,) = struct.unpack_from("<I", data, at)
            at += 4
            if count:
                at = aligned(at, 8)
            values = np.frombuffer(data, "<f8", count, at)
            whole = count == len(self._names)
            found.append(values[self._order] if whole else self._ordered(self._names, values, key))
            at += 8 * count
        return found[0], found[1]

    def _ordered(self, names: list[str], values: ArrayLike, key: str) -> Array:
        return self._joints.ordered(names, values, f"joint_states.{key}")

    def _learn(self, data: bytes) -> None:
        message = deserialize_message(data, JointState)
        self._begin, self._names = b"", list(message.name)
        self._order = self._ordered(self._names, np.arange(len(self._names)), "name").astype(np.intp)
        at = _FRAME + 4 + len(message.header.frame_id.encode()) + 1
        at = aligned(at, 4) + 4
        for name in self._names:
            at = aligned(at, 4) + 4 + len(name.encode()) + 1
        self._begin = bytes(data[_FRAME:at])


class _Poses(Mapping[str, pin.SE3]):
    """Poses of links in the base, computed when the first of them is asked for."""

    def __init__(self, model: KinematicModel, q: Array, frames: Iterable[str]) -> None:
        self._model, self._q, self._frames = model, q, frames

    @cached_property
    def _found(self) -> dict[str, pin.SE3]:
        names = list(self._frames)
        poses = self._model.frame_poses(self._model.configuration(pin.SE3.Identity(), self._q), *names)
        return dict(zip(names, poses, strict=True))

    def __getitem__(self, name: str) -> pin.SE3:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


class LinkPoses:
    """Where the links of a robot are in its base, from its joint states of late.

    Args:
        robot: The robot.
    """

    def __init__(self, robot: Robot) -> None:
        self._input = _JointInput(robot.joints)
        self._model = KinematicModel(robot)
        self._states: deque[tuple[int, Array, Array]] = deque(maxlen=_KEPT)
        self._bases: deque[tuple[int, pin.SE3]] = deque(maxlen=_KEPT)
        self._wrists = tuple(robot.wrench_frames)

    def hand_of(self, frame: str) -> str:
        """Return the frame, of those whose wrench is known, that bears a link; empty if there is none."""
        model = self._model.model
        chain = set(model.supports[model.frames[self._model.frame_id(frame)].parentJoint])
        borne = [name for name in self._wrists if model.frames[self._model.frame_id(name)].parentJoint in chain]
        return borne[-1] if borne else ""

    def take(self, data: bytes) -> None:
        """Take in a state, a serialised JointState; one older than the last begins anew.

        Raises:
            SuppleError: It cannot be used.
        """
        stamp = stamp_of(data)
        q, v = self._input.take(data)
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            raise StateError("joint_states: position or velocity is not finite")
        if self._states and stamp < self._states[-1][0]:
            self._states.clear()
        self._states.append((stamp, q, v))

    def take_base(self, message: Odometry) -> None:
        """Take in where the base is in the world.

        Raises:
            StateError: It cannot be used.
        """
        stamp = nanoseconds(message.header.stamp)
        if self._bases and stamp < self._bases[-1][0]:
            self._bases.clear()
        self._bases.append((stamp, pose_of(message.pose.pose, "odom.pose.pose")))

    def at(self, stamp_ns: int, frames: Iterable[str]) -> Mapping[str, pin.SE3] | None:
        """Return the poses of frames in the base at a stamp in [ns]; None if no state is near it.

        They are computed when they are looked at: most of the time nothing is touched, and nobody asks.
        """
        nearest = min(self._states, key=lambda row: abs(row[0] - stamp_ns), default=None)
        if nearest is None or abs(nearest[0] - stamp_ns) > _STATE_AGE_NS:
            return None
        stamp, q, v = nearest
        return _Poses(self._model, q + v * ((stamp_ns - stamp) * 1e-9), frames)

    def in_base(self, stamp_ns: int, T_world_object: pin.SE3) -> pin.SE3 | None:
        """Return a pose in the world as one in the base; None if the base's is not known at that stamp in [ns]."""
        nearest = min(self._bases, key=lambda row: abs(row[0] - stamp_ns), default=None)
        if nearest is None or abs(nearest[0] - stamp_ns) > _STATE_AGE_NS:
            return None
        return nearest[1].actInv(T_world_object)

    def reset(self) -> None:
        """Forget everything."""
        self._states.clear()
        self._bases.clear()
