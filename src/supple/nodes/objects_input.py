# SPDX-License-Identifier: Apache-2.0
"""Poses and velocities of objects as ``objects`` tells them, for a thread other than the node's own."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from rclpy.node import Node
from supple_interfaces.msg import ObjectPoses

from supple.errors import StateError, SuppleError
from supple.nodes.conversion import nanoseconds, pose_of
from supple.nodes.diagnostics import Diagnostics
from supple.nodes.qos import SENSOR_INPUT, subscription

__all__ = ["Objects", "ObjectsInput"]

_REMEMBERED = 50


@dataclass(frozen=True)
class Objects:
    """Objects at one instant.

    Attributes:
        poses: World pose of each, by name.
        twists: Linear velocity of each one's origin in [m/s] and angular in [rad/s], world frame, shape (6,); without
            those of which it is unknown.
    """

    poses: Mapping[str, pin.SE3] = field(default_factory=dict)
    twists: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)


class ObjectsInput:
    """Listen to ``objects``.

    Args:
        node: The node that subscribes.
        diagnostics: Where unusable messages are counted.
    """

    def __init__(self, node: Node, diagnostics: Diagnostics) -> None:
        self._node, self._diagnostics = node, diagnostics
        self._changed = threading.Condition()
        self._seen: OrderedDict[int, Objects] = OrderedDict()
        self._newest = Objects()
        self._arrived: float | None = None
        self._subscription = subscription(node, ObjectPoses, "objects", self._receive, SENSOR_INPUT)

    @property
    def age(self) -> float:
        """Time since the last usable message in [s], steady clock; infinite before the first."""
        return float("inf") if self._arrived is None else time.monotonic() - self._arrived

    @property
    def newest(self) -> Objects:
        """What the last message said; nothing before the first."""
        return self._newest

    def close(self) -> None:
        """Stop listening."""
        self._node.destroy_subscription(self._subscription)

    def at(self, stamp_ns: int, timeout: float = 1.0) -> Objects:
        """Return what is said of an instant in [ns].

        Raises:
            StateError: No message with that stamp within ``timeout`` in [s].
        """
        with self._changed:
            if not self._changed.wait_for(lambda: stamp_ns in self._seen, timeout):
                raise StateError(f"no message on objects with the state's stamp {stamp_ns} ns within {timeout:g} s")
            return self._seen[stamp_ns]

    def await_all(self, names: Iterable[str], timeout: float) -> Objects:
        """Return the newest message once it tells of every one of some objects.

        Raises:
            StateError: None did within ``timeout`` in [s]; names who is missing and who is there.
        """
        wanted = set(names)
        with self._changed:
            if not self._changed.wait_for(lambda: wanted <= set(self._newest.poses), timeout):
                there, topic = set(self._newest.poses), self._node.resolve_topic_name("objects")
                missing, seen = (", ".join(sorted(names)) or "none" for names in (wanted - there, there))
                raise StateError(f"{topic} tells nothing of {missing} within {timeout:g} s (seen: {seen})")
            return self._newest

    def _receive(self, message: ObjectPoses) -> None:
        try:
            poses = {
                name: pose_of(pose, f"objects: {name}") for name, pose in zip(message.name, message.pose, strict=True)
            }
        except (SuppleError, ValueError) as error:
            self._diagnostics.refuse("unusable messages", str(error))
            return
        # Twists may be left out as a whole.
        twists = {
            name: np.array([t.linear.x, t.linear.y, t.linear.z, t.angular.x, t.angular.y, t.angular.z])
            for name, t in zip(message.name, message.twist, strict=False)
        }
        with self._changed:
            self._newest, self._arrived = Objects(poses, twists), time.monotonic()
            self._seen[nanoseconds(message.header.stamp)] = self._newest
            while len(self._seen) > _REMEMBERED:
                self._seen.popitem(last=False)
            self._changed.notify_all()
