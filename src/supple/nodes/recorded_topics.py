# SPDX-License-Identifier: Apache-2.0
"""What recorders listen to: the topics of a robot, its surroundings and its cameras, and how each is subscribed to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile
from rosbags.interfaces import Qos
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image, Imu, JointState
from std_msgs.msg import String
from supple_interfaces.msg import CommandTrace, ContactArray, JointCommand, ObjectPoses
from tf2_msgs.msg import TFMessage

from supple.episodes import bag_types as offered
from supple.nodes import qos

__all__ = ["RecordedTopic", "camera_topics", "deepened", "message_type", "robot_topics"]

_DEEP = 200


@dataclass(frozen=True)
class RecordedTopic:
    """A topic to record.

    Attributes:
        name: Relative or absolute topic name.
        kind: Message class.
        profile: What the subscription asks for.
        offered: What a player of the bag offers.
    """

    name: str
    kind: type
    profile: QoSProfile
    offered: Qos


def message_type(kind: type) -> str:
    """Return the name of a message class, e.g. ``"sensor_msgs/msg/Image"``."""
    return "/".join((kind.__module__.split(".")[0], "msg", kind.__name__))


def robot_topics() -> tuple[RecordedTopic, ...]:
    """Return what a robot and its surroundings publish, and what it is told, except pictures."""
    static = QoSProfile(depth=_DEEP, reliability=qos.LATCHED.reliability, durability=qos.LATCHED.durability)
    return (
        RecordedTopic("/clock", Clock, qos.SENSOR_INPUT, offered.CLOCK),
        RecordedTopic("joint_states", JointState, qos.SENSOR_INPUT, offered.SENSOR),
        RecordedTopic("odom", Odometry, qos.SENSOR_INPUT, offered.SENSOR),
        RecordedTopic("imu/data", Imu, qos.SENSOR_INPUT, offered.SENSOR),
        RecordedTopic("objects", ObjectPoses, qos.SENSOR_INPUT, offered.SENSOR),
        RecordedTopic("contacts", ContactArray, qos.SENSOR_INPUT, offered.SENSOR),
        RecordedTopic("joint_commands", JointCommand, qos.COMMAND, offered.RELIABLE),
        RecordedTopic("command_trace", CommandTrace, qos.EVENT, offered.RELIABLE),
        RecordedTopic("diagnostics", DiagnosticArray, qos.EVENT, offered.RELIABLE),
        RecordedTopic("/tf", TFMessage, qos.TRANSFORMS, offered.TRANSFORMS),
        RecordedTopic("/tf_static", TFMessage, static, offered.LATCHED),
        RecordedTopic("robot_description", String, qos.LATCHED, offered.LATCHED),
    )


def camera_topics(camera: str = "camera") -> tuple[RecordedTopic, ...]:
    """Return the pictures of a camera."""
    streams = (f"{camera}/color", f"{camera}/aligned_depth_to_color")
    return tuple(
        RecordedTopic(f"{stream}/{topic}", kind, qos.SENSOR, offered.SENSOR)
        for stream in streams
        for topic, kind in (("image_raw", Image), ("camera_info", CameraInfo))
    )


def deepened(topics: Sequence[RecordedTopic], depth: int, pictures: int) -> tuple[RecordedTopic, ...]:
    """Return topics with subscriptions that keep more for a recorder that stands still for a while.

    What they cannot keep is lost without a word: the middleware reports only what never arrived.

    Args:
        topics: The topics.
        depth: Messages kept of each topic.
        pictures: Messages kept of each topic of pictures.
    """
    found = []
    for topic in topics:
        kept = pictures if topic.kind is Image else depth
        profile = QoSProfile(
            depth=max(kept, topic.profile.depth),
            reliability=topic.profile.reliability,
            durability=topic.profile.durability,
        )
        found.append(replace(topic, profile=profile))
    return tuple(found)
