# SPDX-License-Identifier: Apache-2.0
"""Node that logs touch: every reading, what it says about contact, events, and how each sensor is."""

from __future__ import annotations

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
from pydantic import ValidationError
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.serialization import deserialize_message, serialize_message
from rosbags.interfaces import Qos
from sensor_msgs.msg import CameraInfo, Image, Imu, JointState, PointCloud2
from std_msgs.msg import String
from supple_interfaces.msg import (
    CommandTrace,
    ContactArray,
    ContactEvent,
    ContactState,
    ObjectPoses,
    TactileArray,
    TaskPoints,
)

from supple.contact import events
from supple.contact.detection import ContactEstimate, ContactSettings
from supple.contact.events import EventFinder, EventKind, EventLimits, Reactions
from supple.contact.health import Condition, SensorHealth
from supple.contact.log import LogReport, account_of
from supple.contact.monitor import TouchMonitor, TouchNews
from supple.contact.readings import PASCAL, PadLayout, TaxelStatus
from supple.contact.sensors import TactileSensor, TouchSensor, WrenchSensor, load_sensors
from supple.episodes import bag_types as offered
from supple.episodes import mend_log
from supple.episodes.atomic import free_path
from supple.errors import DatasetError, SensorError, SuppleError
from supple.nodes.bag_recorder import (
    BagRecorder,
    BagReport,
    RecordedTopic,
    camera_topics,
    deepened,
    message_type,
    robot_topics,
)
from supple.nodes.conversion import header, nanoseconds, pose_of, time_message
from supple.nodes.diagnostics import Diagnostics, steady_clock
from supple.nodes.lifecycle import ParameterError, declare_parameter
from supple.nodes.qos import EVENT, LATCHED, SENSOR, SENSOR_INPUT, publisher
from supple.nodes.runtime import run_node
from supple.nodes.touch_input import LinkPoses, TactileInput, layout_of, stamp_of
from supple.robots import robot_named

__all__ = ["ContactLogger", "main"]

_WATCH = 0.05
_DISCOVER = 0.5
# Subscriptions keep this much while the logger stands still: 5 s of 400 Hz, 6.7 s of pictures at 30 Hz.
_DEPTH, _PICTURES = 2000, 200
_PATIENCE = 5.0
# What nothing touches is said of one reading in so many.
_REPEATED = 10
_DRAINED = 1.0
# Pictures and states come at the pace of a busy machine; a sensor's bus does not.
_STREAM_SILENCE = 1.0
# Members of an enum are slow to look up, and this is asked of every reading.
_DEAD, _SATURATED = int(TaxelStatus.DEAD), int(TaxelStatus.SATURATED)
_STAMPED = (JointState, Odometry, Imu, ObjectPoses, ContactArray, Image, CameraInfo, PointCloud2, TaskPoints)
_LEVELS = {
    Condition.OK: DiagnosticStatus.OK,
    Condition.DEGRADED: DiagnosticStatus.WARN,
    Condition.MISSING: DiagnosticStatus.WARN,
    Condition.SILENT: DiagnosticStatus.ERROR,
}


class ContactLogger(Node):
    """Everything touched, in one log that survives its process."""

    def __init__(self) -> None:
        super().__init__("contact_logger")
        self._declare()
        self.diagnostics = Diagnostics(self, self._robot.name)
        self._poses = LinkPoses(self._robot)
        self._monitor = TouchMonitor(self._poses_at, self._settings)
        self._reactions = Reactions()
        self._health: dict[str, SensorHealth] = {}
        self._inputs: dict[str, TactileInput] = {}
        self._newest: dict[str, int] = {}
        self._layouts: dict[str, PadLayout] = {}
        self._loads: dict[str, EventFinder] = {}
        self._states: dict[str, Publisher[Any]] = {}
        self._said: dict[str, tuple[bool, int]] = {}
        self._rates: dict[str, tuple[float, float]] = {}
        self._topics_heard: set[str] = set()
        self._counted: Counter[str] = Counter()
        self._reacted = 0
        self._events = publisher(self, ContactEvent, "contact_events", EVENT)
        self._described = publisher(self, String, "touch_sensors", LATCHED)
        self._anchor = time.time_ns() - time.monotonic_ns()
        self._bags = BagRecorder(self, (), self._now)
        self._began: float | None = None
        self._watched = time.monotonic()
        self._waiting_ns: int | None = None
        self._stall = 0.0

    def _declare(self) -> None:
        self._robot = robot_named(declare_parameter(self, "robot", "g1", "name of the robot"))
        output = declare_parameter(self, "output", "", "folder of the log; empty: touch_DATE_TIME where it is started")
        self._output = Path(output or f"touch_{datetime.now():%Y%m%d_%H%M%S}").expanduser().absolute()
        folder = declare_parameter(self, "sensors", "", "folder of sensor files; empty: whatever is published")
        self._cameras = declare_parameter(self, "cameras", ["camera"], "cameras whose pictures are logged")
        self._with_points = declare_parameter(self, "points", True, "log the task points and their quality as well")
        self._silent_after = declare_parameter(self, "silent_after", 0.25, "a sensor without readings is silent in s")
        self._settle = declare_parameter(self, "settle", 2.0, "the log begins so long after the start in s")
        self._overload = declare_parameter(self, "overload", 0.0, "force on a sensor that is too much in N; 0: none")
        self._object = declare_parameter(self, "object", "", "held object that is tracked on 'objects'; empty: none")
        standard = ContactSettings()
        values = {
            name: declare_parameter(self, name, getattr(standard, name), text)
            for name, text in (
                ("made_force", "normal force at which a contact begins in N"),
                ("broken_force", "normal force at which it ends in N"),
                ("slip_speed", "speed across a sensor from which it slips in m/s"),
            )
        }
        try:
            self._settings = ContactSettings(**values)
        except ValidationError as error:
            raise ParameterError(f"{self.get_name()}: {error.errors()[0]['msg']}, got {values}") from error
        sensors = load_sensors(Path(folder).expanduser(), self._robot) if folder else ()
        self._sensors: dict[str, TouchSensor] = {sensor.name: sensor for sensor in sensors}

    # -- beginning and end -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Listen, and begin the log when what is latched has had time to come."""
        text = json.dumps({name: sensor.model_dump(mode="json") for name, sensor in self._sensors.items()})
        self._described.publish(String(data=text))
        self._bags.latch("touch_sensors", message_type(String), serialize_message(String(data=text)))
        self._hear_surroundings()
        for name, sensor in self._sensors.items():
            if (topic := self.resolve_topic_name(sensor.message_topic)) in self._topics_heard:
                raise SensorError(f"sensor {name!r}: topic {topic} is logged already, as something else")
            self._hear(name, sensor.message_topic, isinstance(sensor, TactileSensor), sensor.rate)
        for period, work in ((_WATCH, self._watch), (_DISCOVER, self._discover), (1.0, self._report)):
            self.create_timer(period, work, clock=steady_clock())
        self._beginning = self.create_timer(max(self._settle, 1e-3), self._begin, clock=steady_clock())

    def _begin(self) -> None:
        self._beginning.cancel()
        self._mend()
        path = free_path(self._output)
        try:
            self._bags.begin(path, growing=True)
        except DatasetError as error:
            self.get_logger().error(f"no log: {error}")
            self.diagnostics.state(DiagnosticStatus.ERROR, f"no log: {error}")
            self.exit_code = 1
            return
        self._health = {name: SensorHealth(name, *row) for name, row in self._rates.items()}
        self._began, self._stall = time.monotonic(), 0.0
        self.diagnostics.set("log", path)
        self.get_logger().info(f"logging to {path}: {len(self._states)} tactile sensors, {len(self._loads)} wrenches")

    def _mend(self) -> None:
        """Make the logs of this name readable whose process was killed in the middle of a write."""
        stem = self._output.name.split("_")[0]
        for folder in sorted(self._output.parent.glob(f"{stem}*/")):
            if (folder / "metadata.yaml").exists() or not (folder / f"{folder.name}.mcap").is_file():
                continue
            try:
                taken = mend_log(folder)
            except DatasetError:
                # It is being written, or it is no log of ours: neither is to be touched.
                continue
            if taken:
                self.get_logger().warning(f"{folder.name} was cut off: its last {taken} bytes, half a chunk, are gone")

    def make_safe(self) -> None:
        """Finish the log and say what it lacks."""
        try:
            self._drain()
            self._hand_on(self._monitor.flush())
        finally:
            self._close()

    def _close(self) -> None:
        take = self._bags.end()
        if take is None or self._began is None:
            return
        duration = time.monotonic() - self._began
        found: list[LogReport] = []

        def say(report: BagReport) -> tuple[str, str, int, bytes, Qos]:
            found.append(self._account(duration, report))
            data = serialize_message(String(data=found[-1].to_json()))
            return self._name("touch_report"), message_type(String), self._now(), data, offered.LATCHED

        report = take.close(say)
        account = self._account(duration, report)
        log = self.get_logger()
        (log.info if account.complete else log.warning)(f"log {report.path.name}: {account}")

    def _drain(self) -> None:
        """Take in what has come and was not looked at yet; what goes on to come is not waited for."""
        executor, deadline, seen = self.executor, time.monotonic() + _DRAINED, -1
        while executor is not None and seen != self._bags.received and time.monotonic() < deadline:
            seen = self._bags.received
            executor.spin_once(timeout_sec=0.01)

    def _account(self, duration: float, report: BagReport) -> LogReport:
        return LogReport(
            duration=duration,
            written=report.written,
            dropped=report.lost,
            sensors={name: account_of(health) for name, health in self._health.items()},
            events=dict(self._counted),
            reactions=self._reacted,
            stall=self._stall,
            patience=_PATIENCE,
            failure=report.failure,
        )

    def _now(self) -> int:
        # The machine's time as it was at the start, carried on by the steady clock: neither a simulation that starts
        # anew nor a clock that is set makes the log go back.
        return self._anchor + time.monotonic_ns()

    def _name(self, topic: str) -> str:
        return self.resolve_topic_name(topic).lstrip("/")

    # -- what is heard -----------------------------------------------------------------------------------------------

    def _hear_surroundings(self) -> None:
        rest = [*robot_topics(), *(row for name in self._cameras if name for row in camera_topics(name))]
        if self._with_points:
            rest += [
                RecordedTopic("points", PointCloud2, SENSOR_INPUT, offered.SENSOR),
                RecordedTopic("points/quality", TaskPoints, SENSOR_INPUT, offered.SENSOR),
            ]
        listeners: dict[str, Callable[[bytes], None]] = {
            "joint_states": self._on_joints,
            "command_trace": self._on_trace,
        }
        if self._object:
            listeners |= {"odom": self._on_odometry, "objects": self._on_objects}
        for topic in deepened(rest, _DEPTH, _PICTURES):
            also = listeners.get(topic.name, _ignore)
            if topic.kind in _STAMPED:
                self._rates[topic.name] = (0.0, max(_STREAM_SILENCE, self._silent_after))
                also = partial(self._on_stamped, topic.name, also)
            self._topics_heard.add(self.resolve_topic_name(topic.name))
            self._bags.add(topic, also)

    def _discover(self) -> None:
        """Listen to every tactile sensor and every wrench of this namespace, as they appear."""
        space = self.get_namespace().rstrip("/") + "/"
        for topic, kinds in self.get_topic_names_and_types():
            tactile = message_type(TactileArray) in kinds
            if topic in self._topics_heard or not topic.startswith(space) or not kinds:
                continue
            if tactile or message_type(WrenchStamped) in kinds:
                name = topic.removeprefix(space)
                self._hear(name.removeprefix("tactile/") if tactile else name, topic, tactile, 0.0)

    def _hear(self, name: str, topic: str, tactile: bool, rate: float) -> None:
        self._topics_heard.add(self.resolve_topic_name(topic))
        self._rates[name] = (rate, self._silent_after)
        if self._began is not None:
            self._health[name] = SensorHealth(name, rate, self._silent_after)
        kind: type = TactileArray if tactile else WrenchStamped
        row = RecordedTopic(topic, kind, SENSOR_INPUT, offered.SENSOR)
        if tactile:
            self._inputs[name] = TactileInput()
            self._states[name] = publisher(self, ContactState, f"contact/{name}", SENSOR)
        else:
            self._loads[name] = EventFinder(name, self._limits(name))
        on_reading = self._on_tactile if tactile else self._on_wrench
        self._bags.add(deepened([row], _DEPTH, _PICTURES)[0], partial(on_reading, name, topic))

    def _limits(self, name: str) -> EventLimits:
        described = self._sensors.get(name)
        overload = (described.overload if described is not None else None) or self._overload or math.inf
        return EventLimits(self._settings.made_force, self._settings.broken_force, self._settings.slip_speed, overload)

    def _on_stamped(self, topic: str, also: Callable[[bytes], None], data: bytes) -> None:
        self._arrived(topic, stamp_of(data))
        also(data)

    def _arrived(self, name: str, stamp_ns: int, **figures: int) -> None:
        health = self._health.get(name)
        if health is None:
            return
        lost, pauses, restarts = health.lost, health.pauses, health.restarts
        resumed = health.take(stamp_ns, time.monotonic(), **figures)
        if resumed is not None:
            self._announce(resumed)
        back = health.restarts > restarts and stamp_ns < self._newest.get(name, stamp_ns)
        self._newest[name] = stamp_ns
        if back:
            self._monitor.reset()
            self.diagnostics.refuse("restarts", f"{name}: stamps jumped back; detection begins anew", "restarts")
        if health.lost > lost:
            reason = f"{name}: {health.lost - lost} readings lost before reading {figures.get('sequence', 0)}"
            self.diagnostics.refuse("gaps", reason, name)
        elif health.pauses > pauses and name in self._states:
            reason = f"{name}: nothing measured for {health.gaps[-1].duration:.3f} s" if health.gaps else name
            self.diagnostics.refuse("pauses", reason, name)

    def _on_tactile(self, name: str, topic: str, data: bytes) -> None:
        heard, described = self._inputs[name], self._sensors.get(name)
        try:
            before = heard.changes
            reading = heard.take(data)
            raw = described if isinstance(described, TactileSensor) and heard.message.unit != PASCAL else None
            if heard.changes != before or name not in self._layouts:
                self._learn(name, raw.layout if raw is not None else layout_of(heard.message))
            if raw is not None:
                values, status = reading.pressure, reading.status
                reading = raw.reading(reading.stamp_ns, reading.sequence, reading.missed, values, status)
        except SuppleError as error:
            self.diagnostics.refuse("unusable readings", f"{self.resolve_topic_name(topic)}: {error}", topic)
            return
        status = reading.status
        self._arrived(
            name,
            reading.stamp_ns,
            sequence=reading.sequence,
            missed=reading.missed,
            taxels=len(status),
            dead=int(np.count_nonzero(status == _DEAD)),
            saturated=int(np.count_nonzero(status == _SATURATED)),
        )
        if self._layouts[name].unit == PASCAL:
            self._hand_on(self._monitor.take(name, reading))

    def _learn(self, name: str, layout: PadLayout) -> None:
        """Take in where a sensor's taxels are, at first and when it has changed."""
        if self._layouts.pop(name, None) is not None:
            self.diagnostics.refuse("layouts", f"{name}: its layout has changed; detection begins anew", name)
        layout = replace(layout, name=name)
        if layout.unit == PASCAL:
            self._monitor.add(layout, self._limits(name).overload, self._poses.hand_of(layout.frame))
        # Last: of a layout that cannot be used nothing stays, so that the next reading is looked at anew.
        self._layouts[name] = layout

    def _on_wrench(self, name: str, topic: str, data: bytes) -> None:
        message = deserialize_message(data, WrenchStamped)
        stamp, f, t = nanoseconds(message.header.stamp), message.wrench.force, message.wrench.torque
        values, frame = np.array([f.x, f.y, f.z, t.x, t.y, t.z]), message.header.frame_id
        described = self._sensors.get(name)
        try:
            if isinstance(described, WrenchSensor):
                values, frame = described.wrench(values), described.frame
                self._monitor.observe_wrench(frame, stamp, values[:3])
            elif not np.isfinite(values).all():
                raise SensorError(f"wrench: expected six finite numbers, got {values.tolist()}")
        except SensorError as error:
            self.diagnostics.refuse("unusable readings", f"{self.resolve_topic_name(topic)}: {error}", topic)
            return
        self._arrived(name, stamp)
        for event in self._loads[name].take(stamp, 0, False, math.hypot(*values[:3])):
            self._announce(event, frame)

    def _on_joints(self, data: bytes) -> None:
        try:
            self._poses.take(deserialize_message(data, JointState))
        except SuppleError as error:
            self.diagnostics.refuse("unusable messages", str(error))

    def _on_odometry(self, data: bytes) -> None:
        try:
            self._poses.take_base(deserialize_message(data, Odometry))
        except SuppleError as error:
            self.diagnostics.refuse("unusable messages", str(error))

    def _on_objects(self, data: bytes) -> None:
        message = deserialize_message(data, ObjectPoses)
        if self._object not in message.name:
            known = ", ".join(message.name) or "none"
            self.diagnostics.refuse(
                "unusable messages", f"objects: no {self._object!r} (available: {known})", "objects"
            )
            return
        stamp = nanoseconds(message.header.stamp)
        try:
            pose = pose_of(message.pose[list(message.name).index(self._object)], f"objects: {self._object}")
        except SuppleError as error:
            self.diagnostics.refuse("unusable messages", str(error))
            return
        in_base = self._poses.in_base(stamp, pose)
        if in_base is not None:
            self._monitor.observe_object(stamp, in_base)

    def _on_trace(self, data: bytes) -> None:
        trace = deserialize_message(data, CommandTrace)
        if not trace.because or trace.refused:
            return
        for event in self._reactions.join(trace.because, trace.because_sequence, trace.source, trace.sequence):
            self._reacted += 1
            self._announce(event)
        self.diagnostics.set("commands that name no event", self._reactions.unmatched)

    def _poses_at(self, stamp_ns: int) -> dict[str, pin.SE3] | None:
        return self._poses.at(stamp_ns, self._monitor.frames)

    # -- what is said ------------------------------------------------------------------------------------------------

    def _hand_on(self, news: Sequence[TouchNews]) -> None:
        for row in news:
            if row.problem:
                self.diagnostics.refuse("unusable readings", row.problem, row.sensor)
            if row.estimate is not None:
                self._publish_state(row.sensor, row.estimate)
            for event in row.events:
                self._announce(event, self._layouts[row.sensor].frame)

    def _publish_state(self, name: str, found: ContactEstimate) -> None:
        touched, unsaid = self._said.get(name, (True, 0))
        if not found.in_contact and not touched and unsaid < _REPEATED:
            self._said[name] = (False, unsaid + 1)
            return
        self._said[name] = (found.in_contact, 1)
        message = ContactState(
            header=header(found.stamp_ns, self._layouts[name].frame),
            sensor=name,
            sequence=found.sequence,
            in_contact=found.in_contact,
            normal_force=found.normal_force,
            tangential_force=found.tangential_force,
            slip_speed=found.slip_speed,
            slipping=found.slipping,
            held=found.held,
            since=time_message(found.since_ns),
        )
        self._publish(self._states[name], message, offered.SENSOR)

    def _announce(self, event: events.ContactEvent, frame: str = "") -> None:
        if not frame and event.sensor in self._layouts:
            frame = self._layouts[event.sensor].frame
        message = ContactEvent(
            header=header(event.stamp_ns, frame),
            sensor=event.sensor,
            kind=str(event.kind),
            sequence=event.sequence,
            value=event.value,
            threshold=event.threshold,
            command_source=event.command_source,
            command_sequence=event.command_sequence,
        )
        self._publish(self._events, message, offered.RELIABLE)
        if not event.command_source:
            self._reactions.add(event)
            self._counted[str(event.kind)] += 1
        if event.kind in (EventKind.SILENT, EventKind.RESUMED, EventKind.OVERLOAD):
            self.get_logger().warning(str(event))

    def _publish(self, entry: Publisher[Any], message: Any, profile: Qos) -> None:
        data = serialize_message(message)
        self._bags.put(self._name(entry.topic_name), message_type(type(message)), data, profile)
        if self.context.ok():
            entry.publish(data)

    # -- how everything is -------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        now = time.monotonic()
        self._stall, self._watched = max(self._stall, now - self._watched - _WATCH), now
        waiting = self._monitor.waiting_ns
        if waiting is not None and waiting == self._waiting_ns:
            # The others of that time are not late, they are gone.
            self._hand_on(self._monitor.flush())
        self._waiting_ns = waiting
        fallen = [(name, health, event) for name, health in self._health.items() if (event := health.check(now))]
        for name, health, event in fallen:
            self._announce(event)
            self._tell(name, health, now)
        if fallen:
            # Once for all of them: a message tells of every sensor.
            self.diagnostics.publish()

    def _tell(self, name: str, health: SensorHealth, now: float) -> None:
        report = health.report(now)
        self.diagnostics.part(name, _LEVELS[report.condition], report.text, report.values)

    def _report(self) -> None:
        now, take = time.monotonic(), self._bags.take
        for name, health in self._health.items():
            # Streams that this robot does not have are no trouble.
            if health.readings or name in self._sensors:
                self._tell(name, health, now)
        if take is None:
            return
        self.diagnostics.set("logged [s]", f"{now - (self._began or now):.0f}")
        self.diagnostics.set("longest stall [s]", f"{self._stall:.3f}")
        for kind, count in self._counted.items():
            self.diagnostics.set(f"events {kind}", count)
        silent = sorted(name for name, health in self._health.items() if health.silent)
        if take.failure:
            self.diagnostics.state(DiagnosticStatus.ERROR, f"nothing more is logged: {take.failure}")
        elif silent:
            self.diagnostics.state(DiagnosticStatus.WARN, f"silent: {', '.join(silent)}")
        else:
            self.diagnostics.state(DiagnosticStatus.OK, "logging")


def _ignore(data: bytes) -> None:
    """Listen to nothing more than is recorded."""


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run_node(ContactLogger, args)


if __name__ == "__main__":
    raise SystemExit(main())
