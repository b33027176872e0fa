# SPDX-License-Identifier: Apache-2.0
"""Touch as it is heard: readings out of messages, and where the links of the sensors were when they were taken."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable

import numpy as np
import pinocchio as pin
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from supple_interfaces.msg import TactileArray

from supple.contact.readings import PadLayout, TactileReading
from supple.errors import StateError
from supple.kinematics.model import KinematicModel
from supple.nodes.conversion import nanoseconds, pose_of
from supple.robots import Robot

__all__ = ["LinkPoses", "TactileInput", "layout_of", "reading_of", "stamp_of"]

Array = NDArray[np.float64]

_KEPT = 64
# A state this far from a reading in [ns] says nothing about where the sensor was.
_STATE_AGE_NS = 20_000_000


def layout_of(message: TactileArray) -> PadLayout:
    """Return where the taxels of a message's sensor are.

    Raises:
        SensorError: The message is at odds with itself; names sensor and field.
    """
    position = [(p.x, p.y, p.z) for p in message.position]
    normal = [(n.x, n.y, n.z) for n in message.normal]
    frame = message.header.frame_id
    return PadLayout(message.sensor, frame, np.array(position), np.array(normal), np.array(message.area), message.unit)


def reading_of(message: TactileArray) -> TactileReading:
    """Return what a message says.

    Raises:
        SensorError: It has not one value and one status per taxel.
    """
    return TactileReading(
        nanoseconds(message.header.stamp),
        message.sequence,
        message.missed,
        np.array(message.pressure, dtype=np.float64),
        np.array(message.status, dtype=np.uint8),
    )


def stamp_of(data: bytes) -> int:
    """Return the stamp in [ns] of a serialised message that begins with a header.

    Pictures are looked at in this way: taking them apart would cost more than writing them.
    """
    order = "<" if data[1] & 1 else ">"
    seconds, nanosec = struct.unpack_from(f"{order}iI", data, 4)
    return int(seconds) * 1_000_000_000 + int(nanosec)


class TactileInput:
    """Readings of one sensor out of serialised messages.

    Where the taxels are is most of a message and the same in each. Taking all of it apart takes ten times as long as
    the reading, and a hand has nine sensors; so it is done once, and then the bytes are compared.

    Attributes:
        message: The last message that was taken apart: its layout is that of every reading since.
        changes: Number of messages that had another layout than the one before, the first included.
    """

    def __init__(self) -> None:
        self.message = TactileArray()
        self.changes = 0
        self._fixed: tuple[tuple[int, bytes], ...] = ()
        self._numbers = self._pressure = self._status = self._count = self._size = 0

    def take(self, data: bytes) -> TactileReading:
        """Return the reading in a message.

        Raises:
            SensorError: The message has not one value and one status per taxel.
        """
        same = len(data) == self._size and all(data[at : at + len(part)] == part for at, part in self._fixed)
        if not same:
            self._learn(data)
        if not self._fixed:
            return reading_of(self.message)
        sequence, missed = struct.unpack_from("<QQ", data, self._numbers)
        pressure = np.frombuffer(data, "<f4", self._count, self._pressure)
        status = np.frombuffer(data, np.uint8, self._count, self._status)
        return TactileReading(stamp_of(data), sequence, missed, pressure, status)

    def _learn(self, data: bytes) -> None:
        """Take a message apart and note which of its bytes are its layout (CDR: each number at its own alignment)."""
        self.message = deserialize_message(data, TactileArray)
        self.changes += 1
        self._fixed, self._size = (), 0
        count = len(self.message.pressure)
        sizes = {len(getattr(self.message, field)) for field in ("position", "normal", "area", "status")}
        if not count or sizes != {count} or data[:2] != b"\x00\x01":
            return
        fixed, at = [], 12
        for text in (self.message.header.frame_id, self.message.sensor):
            length = len(text.encode()) + 1
            fixed.append((_aligned(at, 4), length + 4))
            at = _aligned(at, 4) + 4 + length
        self._numbers = _aligned(at, 8)
        at = self._numbers + 16
        for size in (24, 24, 8):
            begin = _aligned(_aligned(at, 4) + 4, 8)
            fixed.append((begin, count * size))
            at = begin + count * size
        self._pressure = _aligned(at, 4) + 4
        self._status = self._pressure + 4 * count + 4
        fixed.append((_aligned(self._status + count, 4), 4 + len(self.message.unit.encode()) + 1))
        self._fixed = tuple((begin, bytes(data[begin : begin + size])) for begin, size in fixed)
        self._count, self._size = count, len(data)


def _aligned(at: int, size: int) -> int:
    """Return the next place of a number of that size; places count from behind the four bytes of the encapsulation."""
    return 4 + -(-(at - 4) // size) * size


class LinkPoses:
    """Where the links of a robot are in its base, from its joint states of late.

    Args:
        robot: The robot.
    """

    def __init__(self, robot: Robot) -> None:
        self._joints = robot.joints
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

    def take(self, message: JointState) -> None:
        """Take in a state; one older than the last begins anew.

        Raises:
            SuppleError: It cannot be used.
        """
        stamp = nanoseconds(message.header.stamp)
        q = self._joints.ordered(message.name, message.position, "joint_states.position")
        v = self._joints.ordered(message.name, message.velocity, "joint_states.velocity")
        if not (np.all(np.isfinite(q)) and np.all(np.isfinite(v))):
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

    def at(self, stamp_ns: int, frames: Iterable[str]) -> dict[str, pin.SE3] | None:
        """Return the poses of frames in the base at a stamp in [ns]; None if no state is near it."""
        nearest = min(self._states, key=lambda row: abs(row[0] - stamp_ns), default=None)
        if nearest is None or abs(nearest[0] - stamp_ns) > _STATE_AGE_NS:
            return None
        stamp, q, v = nearest
        moved = q + v * ((stamp_ns - stamp) * 1e-9)
        names = list(frames)
        poses = self._model.frame_poses(self._model.configuration(pin.SE3.Identity(), moved), *names)
        return dict(zip(names, poses, strict=True))

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
