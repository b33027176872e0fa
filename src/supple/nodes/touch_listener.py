# SPDX-License-Identifier: Apache-2.0
"""What the logger of touch hears: every sensor's readings, what they mean, and how each stream is doing."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

import pinocchio as pin
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import CameraInfo, Image, Imu, JointState, PointCloud2
from supple_interfaces.msg import ContactArray, ObjectPoses, TactileArray, TaskPoints

from supple.contact.events import EventFinder
from supple.contact.health import SensorHealth
from supple.contact.monitor import TouchMonitor, TouchNews
from supple.contact.readings import PASCAL, PadLayout, TactileReading, TaxelStatus
from supple.contact.sensors import TactileSensor, WrenchSensor
from supple.episodes import bag_types as offered
from supple.errors import SensorError, SuppleError
from supple.nodes.bag_recorder import BagRecorder
from supple.nodes.conversion import nanoseconds, pose_of
from supple.nodes.diagnostics import Diagnostics
from supple.nodes.digest import Digest
from supple.nodes.link_poses import LinkPoses
from supple.nodes.qos import SENSOR_INPUT
from supple.nodes.recorded_topics import RecordedTopic, deepened, message_type
from supple.nodes.touch_announcer import TouchAnnouncer
from supple.nodes.touch_input import TactileInput, layout_of, stamp_of, wrench_of
from supple.nodes.touch_scope import TouchScope

__all__ = ["TouchListener"]

# Subscriptions keep this much while the logger stands still: 5 s of 400 Hz, 6.7 s of pictures at 30 Hz.
_DEPTH, _PICTURES = 2000, 200
# Pictures and states come at the pace of a busy machine; a sensor's bus does not.
_STREAM_SILENCE = 1.0
_STAMPED = (JointState, Odometry, Imu, ObjectPoses, ContactArray, Image, CameraInfo, PointCloud2, TaskPoints)
# Members of an enum are slow to look up, and this is asked of every reading.
_DEAD, _SATURATED = TaxelStatus.DEAD, TaxelStatus.SATURATED


class TouchListener:
    """Subscriptions of the logger of touch; everything that comes is recorded first and understood then.

    Args:
        node: The node that listens.
        scope: What it listens to.
        bags: Where it is recorded.
        announcer: Says what it means.
        diagnostics: Says what is wrong.

    Attributes:
        health: How each sensor and each stream with stamps is doing, from ``begin`` on.
    """

    def __init__(
        self, node: Node, scope: TouchScope, bags: BagRecorder, announcer: TouchAnnouncer, diagnostics: Diagnostics
    ) -> None:
        self._node, self._scope, self._bags, self._announcer = node, scope, bags, announcer
        self._diagnostics = diagnostics
        self._poses = LinkPoses(scope.robot)
        self._monitor = TouchMonitor(self._poses_at, scope.settings)
        self.health: dict[str, SensorHealth] = {}
        self._began = False
        self._inputs: dict[str, TactileInput] = {}
        self._newest: dict[str, int] = {}
        self._layouts: dict[str, PadLayout] = {}
        self._loads: dict[str, EventFinder] = {}
        self._heard: Counter[str] = Counter()
        self._rates: dict[str, tuple[float, float]] = {}
        self._topics: set[str] = set()
        self._waiting_ns: int | None = None
        self._gaps = Digest("readings lost", node.get_logger().warning)

    @property
    def wrenches(self) -> int:
        """Number of wrenches that are listened to."""
        return len(self._loads)

    # -- subscriptions -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Listen to the robot, its surroundings and every sensor that a file describes.

        Raises:
            SensorError: A sensor's topic is logged already, as something else.
        """
        listeners: dict[str, Callable[[bytes], None]] = {
            "joint_states": self._on_joints,
            "command_trace": self._on_trace,
        }
        if self._scope.object:
            listeners |= {"odom": self._on_odometry, "objects": self._on_objects}
        for topic in deepened(self._scope.topics(), _DEPTH, _PICTURES):
            also = listeners.get(topic.name)
            if topic.kind in _STAMPED:
                self._rates[topic.name] = (0.0, max(_STREAM_SILENCE, self._scope.silent_after))
                also = partial(self._on_stamped, topic.name, also)
            self._topics.add(self._node.resolve_topic_name(topic.name))
            self._bags.add(topic, also)
        for name, sensor in self._scope.sensors.items():
            if (full := self._node.resolve_topic_name(sensor.message_topic)) in self._topics:
                raise SensorError(f"sensor {name!r}: topic {full} is logged already, as something else")
            self._hear(name, sensor.message_topic, isinstance(sensor, TactileSensor), sensor.rate)

    def discover(self) -> None:
        """Listen to every tactile sensor and every wrench of this namespace, as they appear."""
        space = self._node.get_namespace().rstrip("/") + "/"
        for topic, kinds in self._node.get_topic_names_and_types():
            tactile = message_type(TactileArray) in kinds
            if topic in self._topics or not topic.startswith(space) or not kinds:
                continue
            if tactile or message_type(WrenchStamped) in kinds:
                name = topic.removeprefix(space)
                self._hear(name.removeprefix("tactile/") if tactile else name, topic, tactile, 0.0)

    def _hear(self, name: str, topic: str, tactile: bool, rate: float) -> None:
        self._topics.add(self._node.resolve_topic_name(topic))
        self._rates[name] = (rate, self._scope.silent_after)
        if self._began:
            self.health[name] = SensorHealth(name, *self._rates[name])
        kind: type = TactileArray if tactile else WrenchStamped
        row = RecordedTopic(topic, kind, SENSOR_INPUT, offered.SENSOR)
        if tactile:
            self._inputs[name] = TactileInput()
            self._announcer.add(name)
        else:
            self._loads[name] = EventFinder(name, self._scope.limits(name))
        on_reading = self._on_tactile if tactile else self._on_wrench
        self._bags.add(deepened([row], _DEPTH, _PICTURES)[0], partial(on_reading, name, topic))

    def begin(self) -> None:
        """Count what comes from now on."""
        self.health = {name: SensorHealth(name, *row) for name, row in self._rates.items()}
        self._began = True

    # -- what comes --------------------------------------------------------------------------------------------------

    def _on_stamped(self, topic: str, also: Callable[[bytes], None] | None, data: bytes) -> None:
        self._arrived(topic, stamp_of(data))
        if also is not None:
            also(data)

    def _arrived(self, name: str, stamp_ns: int, sequence: int | None = None, missed: int = 0) -> None:
        health = self.health.get(name)
        if health is None:
            return
        lost, pauses, restarts = health.lost, health.pauses, health.restarts
        resumed = health.take(stamp_ns, time.monotonic(), sequence, missed)
        if resumed is not None:
            self._announcer.event(resumed, self._frame_of(name))
        back = health.restarts > restarts and stamp_ns < self._newest.get(name, stamp_ns)
        self._newest[name] = stamp_ns
        if back:
            self._monitor.reset()
            self._diagnostics.refuse("restarts", f"{name}: stamps jumped back; detection begins anew", "restarts")
        if health.lost > lost:
            reason = f"{name}: {health.lost - lost} readings lost before reading {sequence or 0}"
            self._diagnostics.counts["gaps"] += 1
            self._diagnostics.set("last gaps", reason)
            self._gaps.add(name, reason)
        elif health.pauses > pauses and name in self._inputs:
            reason = f"{name}: nothing measured for {health.gaps[-1].duration:.3f} s" if health.gaps else name
            self._diagnostics.refuse("pauses", reason, "pauses")

    def _on_tactile(self, name: str, topic: str, data: bytes) -> None:
        problem = ""
        try:
            reading = self._inputs[name].take(data)
        except SuppleError as error:
            self._refuse(topic, str(error))
            return
        try:
            reading = self._understood(name, reading)
        except SuppleError as error:
            problem = str(error)
        # It came, whatever it says.
        self._arrived(name, reading.stamp_ns, reading.sequence, reading.missed)
        if problem:
            self._refuse(topic, problem)
            return
        health = self.health.get(name)
        if health is not None:
            health.taxels(len(reading.status), reading.count(_DEAD), reading.count(_SATURATED))
        if self._layouts[name].unit == PASCAL:
            self._hand_on(self._monitor.take(name, reading))

    def _understood(self, name: str, reading: TactileReading) -> TactileReading:
        """Return a reading in the unit of its layout, which is learnt from the message or the sensor's file."""
        heard, described = self._inputs[name], self._scope.sensors.get(name)
        raw = described if isinstance(described, TactileSensor) and heard.message.unit != PASCAL else None
        if heard.changed or name not in self._layouts:
            self._learn(name, raw.layout if raw is not None else layout_of(heard.message))
        if raw is not None:
            values, status = reading.pressure, reading.status
            reading = raw.reading(reading.stamp_ns, reading.sequence, reading.missed, values, status)
        self._layouts[name].check(reading)
        return reading

    def _learn(self, name: str, layout: PadLayout) -> None:
        """Take in where a sensor's taxels are, at first and when it has changed."""
        if self._layouts.pop(name, None) is not None:
            self._diagnostics.refuse("layouts", f"{name}: its layout has changed; detection begins anew", name)
        layout = replace(layout, name=name)
        if layout.unit == PASCAL:
            self._monitor.add(layout, self._scope.limits(name).overload, self._poses.hand_of(layout.frame))
        # Last: of a layout that cannot be used nothing stays, so that the next reading is looked at anew.
        self._layouts[name] = layout

    def _on_wrench(self, name: str, topic: str, data: bytes) -> None:
        stamp, frame, values = wrench_of(data)
        described = self._scope.sensors.get(name)
        self._arrived(name, stamp)
        # A wrench has no sequence of its own; a command must be able to name its reading all the same.
        sequence = self._heard[name]
        self._heard[name] += 1
        try:
            if isinstance(described, WrenchSensor):
                values, frame = described.wrench(values), described.frame
                self._monitor.observe_wrench(frame, stamp, values[:3])
            elif not all(map(math.isfinite, values.tolist())):
                raise SensorError(f"wrench: expected six finite numbers, got {values.tolist()}")
        except SensorError as error:
            self._refuse(topic, str(error))
            return
        for event in self._loads[name].take(stamp, sequence, False, math.hypot(*values[:3].tolist())):
            self._announcer.event(event, frame)

    def _refuse(self, topic: str, problem: str) -> None:
        name = self._node.resolve_topic_name(topic)
        self._diagnostics.refuse("unusable readings", f"{name}: {problem}", name)

    def _on_joints(self, data: bytes) -> None:
        try:
            self._poses.take(data)
        except SuppleError as error:
            self._diagnostics.refuse("unusable messages", str(error))

    def _on_odometry(self, data: bytes) -> None:
        try:
            self._poses.take_base(deserialize_message(data, Odometry))
        except SuppleError as error:
            self._diagnostics.refuse("unusable messages", str(error))

    def _on_objects(self, data: bytes) -> None:
        message, name = deserialize_message(data, ObjectPoses), self._scope.object
        if name not in message.name:
            known = ", ".join(message.name) or "none"
            self._diagnostics.refuse("unusable messages", f"objects: no {name!r} (available: {known})", "objects")
            return
        stamp = nanoseconds(message.header.stamp)
        try:
            pose = pose_of(message.pose[list(message.name).index(name)], f"objects: {name}")
        except SuppleError as error:
            self._diagnostics.refuse("unusable messages", str(error))
            return
        in_base = self._poses.in_base(stamp, pose)
        if in_base is not None:
            self._monitor.observe_object(stamp, in_base)

    def _on_trace(self, data: bytes) -> None:
        for event in self._announcer.answer(data):
            self._announcer.event(event, self._frame_of(event.sensor))
        self._diagnostics.set("commands that name no event", self._announcer.unmatched)

    def _poses_at(self, stamp_ns: int) -> Mapping[str, pin.SE3] | None:
        return self._poses.at(stamp_ns, self._monitor.frames)

    def _frame_of(self, name: str) -> str:
        return self._layouts[name].frame if name in self._layouts else ""

    # -- what it means -----------------------------------------------------------------------------------------------

    def _hand_on(self, news: Iterable[TouchNews]) -> None:
        for row in news:
            frame = self._frame_of(row.sensor)
            if row.problem:
                self._diagnostics.refuse("unusable readings", row.problem, row.sensor)
            if row.estimate is not None:
                self._announcer.state(row.sensor, frame, row.estimate)
            for event in row.events:
                self._announcer.event(event, frame)

    def flush(self) -> None:
        """Understand the readings that still wait for others of their stamp."""
        self._hand_on(self._monitor.flush())
        self._gaps.tell_all(time.monotonic())

    def watch(self, now: float) -> list[str]:
        """Look for sensors that have fallen silent and return their names; to be called often.

        Args:
            now: Steady clock in [s].
        """
        waiting = self._monitor.waiting_ns
        if waiting is not None and waiting == self._waiting_ns:
            # The others of that time are not late, they are gone.
            self._hand_on(self._monitor.flush())
        self._waiting_ns = waiting
        fallen = [(name, event) for name, health in self.health.items() if (event := health.check(now))]
        for name, event in fallen:
            self._announcer.event(event, self._frame_of(name))
        self._gaps.tell(now)
        return [name for name, _ in fallen]
