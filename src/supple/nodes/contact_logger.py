# SPDX-License-Identifier: Apache-2.0
"""Node that logs touch: every reading, what it says about contact, events, and how each sensor is."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from diagnostic_msgs.msg import DiagnosticStatus
from pydantic import ValidationError
from rclpy.node import Node
from rclpy.serialization import serialize_message
from rosbags.interfaces import Qos
from std_msgs.msg import String

from supple.contact.detection import ContactSettings
from supple.contact.health import Condition, SensorHealth
from supple.contact.log import LogReport, account_of
from supple.contact.sensors import TouchSensor, load_sensors
from supple.episodes import bag_types as offered
from supple.episodes import mend_log
from supple.episodes.atomic import free_path
from supple.errors import DatasetError
from supple.nodes.bag_recorder import BagRecorder
from supple.nodes.bag_take import BagReport
from supple.nodes.diagnostics import Diagnostics, steady_clock
from supple.nodes.lifecycle import ParameterError, declare_parameter
from supple.nodes.qos import LATCHED, publisher
from supple.nodes.recorded_topics import message_type
from supple.nodes.runtime import run_node
from supple.nodes.scheduling import RECORDING_PRIORITY, take_priority
from supple.nodes.touch_announcer import TouchAnnouncer
from supple.nodes.touch_listener import TouchListener
from supple.nodes.touch_scope import TouchScope
from supple.robots import robot_named

__all__ = ["ContactLogger", "main"]

_WATCH = 0.05
_DISCOVER = 0.5
# A logger that is further behind what comes than this in [s] says so.
_BEHIND = 1.0
# In the end, what had come by then is taken in; longest time for it in [s], and after how much silence it is all there.
_DRAINED, _QUIET = 20.0, 0.2
# What subscriptions keep lasts so long, in [s].
_PATIENCE = 5.0
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
        self._scope = self._declare()
        self.diagnostics = Diagnostics(self, self._scope.robot.name)
        self._described = publisher(self, String, "touch_sensors", LATCHED)
        self._anchor = time.time_ns() - time.monotonic_ns()
        self._bags = BagRecorder(self, (), self._now)
        self._announcer = TouchAnnouncer(self, self._bags)
        self._listener = TouchListener(self, self._scope, self._bags, self._announcer, self.diagnostics)
        self._began: float | None = None
        self._stall = 0.0
        self._unread = False
        self._failure = ""
        self.exit_code: int | None = None

    def _declare(self) -> TouchScope:
        robot = robot_named(declare_parameter(self, "robot", "g1", "name of the robot"))
        output = declare_parameter(self, "output", "", "folder of the log; empty: touch_DATE_TIME where it is started")
        self._output = Path(output or f"touch_{datetime.now():%Y%m%d_%H%M%S}").expanduser().absolute()
        folder = declare_parameter(self, "sensors", "", "folder of sensor files; empty: whatever is published")
        cameras = declare_parameter(self, "cameras", ["camera"], "cameras whose pictures are logged")
        points = declare_parameter(self, "points", True, "log the task points and their quality as well")
        silent_after = declare_parameter(self, "silent_after", 0.25, "a sensor without readings is silent in s")
        self._settle = declare_parameter(self, "settle", 2.0, "the log begins so long after the start in s")
        overload = declare_parameter(self, "overload", 0.0, "force on a sensor that is too much in N; 0: none")
        tracked = declare_parameter(self, "object", "", "held object that is tracked on 'objects'; empty: none")
        self._priority = declare_parameter(
            self,
            "realtime_priority",
            RECORDING_PRIORITY,
            "real-time priority of everything that records, writing included; 0: normal scheduling",
        )
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
            settings = ContactSettings(**values)
        except ValidationError as error:
            raise ParameterError(f"{self.get_name()}: {error.errors()[0]['msg']}, got {values}") from error
        sensors = load_sensors(Path(folder).expanduser(), robot) if folder else ()
        by_name: dict[str, TouchSensor] = {sensor.name: sensor for sensor in sensors}
        return TouchScope(robot, by_name, tuple(cameras), points, tracked, settings, overload, silent_after)

    # -- beginning and end -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Listen, and begin the log when what is latched has had time to come."""
        text = json.dumps({name: sensor.model_dump(mode="json") for name, sensor in self._scope.sensors.items()})
        self._described.publish(String(data=text))
        self._bags.latch("touch_sensors", message_type(String), serialize_message(String(data=text)))
        self._listener.start()
        self.diagnostics.set("scheduling", take_priority(self._priority))
        for period, work in ((_WATCH, self._watch), (_DISCOVER, self._listener.discover), (1.0, self._report)):
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
        self._listener.begin()
        self._began, self._stall = time.monotonic(), 0.0
        self.diagnostics.set("log", path)
        heard = f"{self._announcer.sensors} tactile sensors, {self._listener.wrenches} wrenches"
        self.get_logger().info(f"logging to {path}: {heard}")

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
            self._listener.flush()
            self._announcer.tell(at_once=True)
        finally:
            self._close()

    def _drain(self) -> None:
        """Take in what had come when this was called and was not looked at yet; what comes later is not waited for."""
        executor, bags, called, begin = self.executor, self._bags, time.time_ns(), time.monotonic()
        seen, heard = bags.received, begin
        while executor is not None and self._began is not None and bags.newest_ns < called:
            now = time.monotonic()
            if bags.received != seen:
                seen, heard = bags.received, now
            if now - heard > _QUIET:
                return
            if now - begin > _DRAINED:
                self._unread = True
                return
            executor.spin_once(timeout_sec=0.01)

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

    def _account(self, duration: float, report: BagReport) -> LogReport:
        return LogReport(
            duration=duration,
            written=report.written,
            dropped=report.lost,
            sensors={name: account_of(health) for name, health in self._listener.health.items()},
            events=dict(self._announcer.counted),
            reactions=self._announcer.reacted,
            stall=self._stall,
            patience=None if self._bags.numbered else _PATIENCE,
            unread=self._unread,
            failure=report.failure,
        )

    def _now(self) -> int:
        # The machine's time as it was at the start, carried on by the steady clock: neither a simulation that starts
        # anew nor a clock that is set makes the log go back.
        return self._anchor + time.monotonic_ns()

    def _name(self, topic: str) -> str:
        return self.resolve_topic_name(topic).lstrip("/")

    # -- how everything is -------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        now = time.monotonic()
        self._stall = max(self._stall, self._bags.longest_wait)
        fallen = self._listener.watch(now)
        self._announcer.tell()
        take = self._bags.take
        if take is not None and take.failure and not self._failure:
            self._failure = take.failure
            self.get_logger().error(
                f"nothing more is logged: {take.failure}; make room, then end this node and start it again"
            )
            self._report()
        for name in fallen:
            self._tell(name, self._listener.health[name], now)
        if fallen:
            # Once for all of them: a message tells of every sensor.
            self.diagnostics.publish()

    def _tell(self, name: str, health: SensorHealth, now: float) -> None:
        report = health.report(now)
        self.diagnostics.part(name, _LEVELS[report.condition], report.text, report.values)

    def _report(self) -> None:
        now, take, health = time.monotonic(), self._bags.take, self._listener.health
        for name, row in health.items():
            # Streams that this robot does not have are no trouble.
            if row.readings or name in self._scope.sensors:
                self._tell(name, row, now)
        if take is None:
            return
        behind = self._bags.last_wait
        self.diagnostics.set("logged [s]", f"{now - (self._began or now):.0f}")
        self.diagnostics.set("behind [s]", f"{behind:.3f}")
        self.diagnostics.set("longest behind [s]", f"{self._stall:.3f}")
        self.diagnostics.set("to be written [MB]", f"{take.waiting / 1e6:.1f}")
        for kind, count in self._announcer.counted.items():
            self.diagnostics.set(f"events {kind}", count)
        silent = sorted(name for name, row in health.items() if row.silent)
        if take.failure:
            self.diagnostics.state(DiagnosticStatus.ERROR, f"nothing more is logged: {take.failure}")
        elif silent:
            self.diagnostics.state(DiagnosticStatus.WARN, f"silent: {', '.join(silent)}")
        elif behind > _BEHIND:
            self.diagnostics.state(DiagnosticStatus.WARN, f"{behind:.1f} s behind: this machine has too much to do")
        else:
            self.diagnostics.state(DiagnosticStatus.OK, "logging")


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run_node(ContactLogger, args)


if __name__ == "__main__":
    raise SystemExit(main())
