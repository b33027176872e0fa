# SPDX-License-Identifier: Apache-2.0
"""Recording of what a node sees into bags: serialised as it comes, written by a thread, every loss counted by topic."""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rosbags.interfaces import Qos
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image, Imu, JointState
from std_msgs.msg import String
from supple_interfaces.msg import CommandTrace, ContactArray, JointCommand, ObjectPoses
from tf2_msgs.msg import TFMessage

from supple.episodes import BagWriter
from supple.episodes import bag_types as offered
from supple.errors import DatasetError, SuppleError
from supple.nodes import qos

__all__ = [
    "BagRecorder",
    "BagReport",
    "BagTake",
    "RecordedTopic",
    "camera_topics",
    "deepened",
    "message_type",
    "robot_topics",
]

# What waits to be written when the disk is slow, in bytes; more is dropped and counted.
_WAITING_LIMIT = 256 * 2**20
_DEEP = 200
# A growing bag is readable up to so long ago, in [s].
_FLUSHED_EVERY = 0.25


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


@dataclass(frozen=True)
class BagReport:
    """What became of a bag.

    Attributes:
        path: The bag.
        written: Number of messages written, by topic.
        lost: Number of messages that were lost, by topic and how.
        failure: Why there is no bag; empty if there is.
    """

    path: Path
    written: dict[str, int]
    lost: dict[str, int]
    failure: str = ""

    def __str__(self) -> str:
        """Return one line for a person."""
        if self.failure:
            return f"no bag: {self.failure}"
        losses = ", ".join(f"{count} of {what}" for what, count in sorted(self.lost.items()))
        lost = f"LOST {losses}" if losses else "none lost"
        return f"bag {self.path.name}: {sum(self.written.values())} messages on {len(self.written)} topics, {lost}"


class BagTake:
    """One bag while it is written.

    Args:
        path: Folder of the bag; must not exist.
        latched: Latched messages received before: topic, type, serialised message, offered quality of service.
        growing: Whether it is a log, which can be read while it is written and takes late latched messages too.

    Raises:
        DatasetError: The bag cannot be made.
    """

    def __init__(self, path: Path, latched: Sequence[tuple[str, str, bytes, Qos]], growing: bool = False) -> None:
        self.path, self.growing = path, growing
        self._writer = BagWriter(path, growing=growing)
        self._queue: queue.SimpleQueue[tuple[str, str, int, bytes, Qos] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._waiting = 0
        self._written: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()
        self._failure = ""
        for topic, kind, data, profile in latched:
            self._writer.write_serialized(topic, kind, 0, data, profile)
            self._written[topic] += 1
        self._thread = threading.Thread(target=self._write, name="bag", daemon=True)
        self._thread.start()

    def put(self, topic: str, kind: str, stamp_ns: int, data: bytes, profile: Qos) -> None:
        """Take in a message; never waits for the disk."""
        with self._lock:
            fits = self._waiting + len(data) <= _WAITING_LIMIT and not self._failure
            if fits:
                self._waiting += len(data)
            else:
                self._lost[f"{topic} (disk too slow)" if not self._failure else topic] += 1
        if fits:
            self._queue.put((topic, kind, stamp_ns, data, profile))

    def lose(self, topic: str, count: int) -> None:
        """Count messages that never arrived."""
        with self._lock:
            self._lost[f"{topic} (on the way)"] += count

    @property
    def failure(self) -> str:
        """Why nothing more is written; empty if it is."""
        return self._failure

    def _write(self) -> None:
        flushed = time.monotonic()
        while True:
            try:
                row = self._queue.get(timeout=_FLUSHED_EVERY if self.growing else None)
            except queue.Empty:
                self._attempt(self._writer.flush)
                flushed = time.monotonic()
                continue
            if row is None:
                return
            if self._attempt(partial(self._writer.write_serialized, *row)):
                self._written[row[0]] += 1
            if self.growing and time.monotonic() - flushed > _FLUSHED_EVERY:
                self._attempt(self._writer.flush)
                flushed = time.monotonic()
            with self._lock:
                self._waiting -= len(row[3])

    def _attempt(self, work: Callable[[], None]) -> bool:
        """Do something with the file, unless that has failed before, and tell whether it went well."""
        if self._failure:
            return False
        try:
            work()
        except SuppleError as error:
            with self._lock:
                self._failure = str(error)
            return False
        return True

    def close(self, last: Callable[[BagReport], tuple[str, str, int, bytes, Qos]] | None = None) -> BagReport:
        """Write what still waits and finish the bag; the longest part is the disk's.

        Args:
            last: Makes one more message, which says what the bag holds: topic, type, time in [ns], serialised message,
                offered quality of service.
        """
        self._queue.put(None)
        self._thread.join()
        if last is not None and not self._failure:
            row = last(self._report())
            if self._attempt(partial(self._writer.write_serialized, *row)):
                self._written[row[0]] += 1
        if not self._failure:
            try:
                self._writer.close()
            except DatasetError as error:
                self._failure = str(error)
        else:
            self._writer.abort()
        return self._report()

    def _report(self) -> BagReport:
        unstamped = {f"{topic} (no stamp yet)": count for topic, count in self._writer.dropped.items()}
        written = {topic: n - self._writer.dropped.get(topic, 0) for topic, n in self._written.items()}
        return BagReport(self.path, written, dict(self._lost) | unstamped, self._failure)

    def discard(self) -> None:
        """Remove the bag."""
        self._queue.put(None)
        self._thread.join()
        self._writer.abort()


class BagRecorder:
    """Subscriptions to everything that is recorded, and the bag that it goes to while there is one.

    Args:
        node: The node that subscribes.
        topics: What is recorded.
        now: Returns the time in [ns] that a message is stamped with when it comes; never goes back. The node's clock if
            absent: simulated time with ``use_sim_time``, else the machine's.

    Attributes:
        received: Number of messages that came.
    """

    def __init__(self, node: Node, topics: Sequence[RecordedTopic], now: Callable[[], int] | None = None) -> None:
        self._node = node
        self._now = now or (lambda: node.get_clock().now().nanoseconds)
        self._latched: dict[tuple[str, bytes], tuple[str, str, bytes, Qos]] = {}
        self._take: BagTake | None = None
        self._subscriptions: list[Any] = []
        self.received = 0
        for topic in topics:
            self.add(topic)

    def add(self, topic: RecordedTopic, listener: Callable[[bytes], None] | None = None) -> None:
        """Record one more topic from now on.

        Args:
            topic: The topic.
            listener: Called with each serialised message after it was recorded.
        """
        name, kind = self._name(topic.name), message_type(topic.kind)
        latched = topic.offered == offered.LATCHED
        record = self._latch if latched else self.put

        def receive(data: bytes) -> None:
            self.received += 1
            record(name, kind, bytes(data), topic.offered)
            if listener is not None:
                listener(data)

        def lost(event: Any) -> None:
            if self._take is not None:
                self._take.lose(name, event.total_count_change)

        events = SubscriptionEventCallbacks(message_lost=lost, use_default_callbacks=False)
        self._subscriptions.append(
            self._node.create_subscription(
                topic.kind, topic.name, receive, topic.profile, raw=True, event_callbacks=events
            )
        )

    def _name(self, topic: str) -> str:
        return self._node.resolve_topic_name(topic).lstrip("/")

    def put(self, topic: str, kind: str, data: bytes, profile: Qos) -> None:
        """Record a message that did not come over a subscription, e.g. the node's own, if there is a bag."""
        if self._take is not None:
            self._take.put(topic, kind, self._now(), data, profile)

    def _latch(self, name: str, kind: str, data: bytes, profile: Qos) -> None:
        # Several nodes may latch transforms; of a text only the newest counts.
        key = (name, data if kind == message_type(TFMessage) else b"")
        news = self._latched.get(key, (name, kind, b"", profile))[2] != data
        self._latched[key] = (name, kind, data, profile)
        if news and self._take is not None and self._take.growing:
            self.put(name, kind, data, profile)

    def latch(self, topic: str, kind: str, data: bytes) -> None:
        """Record a latched message of the node's own, in this bag and in those to come."""
        self._latch(self._name(topic), kind, data, offered.LATCHED)

    @property
    def take(self) -> BagTake | None:
        """The bag that is being written."""
        return self._take

    def begin(self, path: Path, growing: bool = False) -> None:
        """Begin a bag, or a log, which can be read while it is written.

        Raises:
            DatasetError: It cannot be made.
        """
        self._take = BagTake(path, list(self._latched.values()), growing)

    def end(self) -> BagTake | None:
        """Let nothing more go to the bag and return it; whoever called closes or discards it."""
        take, self._take = self._take, None
        return take

    def close(self) -> None:
        """Stop listening; a bag that is still being written is discarded."""
        for entry in self._subscriptions:
            self._node.destroy_subscription(entry)
        self._subscriptions = []
        if (take := self.end()) is not None:
            take.discard()
