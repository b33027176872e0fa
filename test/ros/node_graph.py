# SPDX-License-Identifier: Apache-2.0
"""Real nodes in processes of their own, and a node in this process that speaks with them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Odometry
from rclpy.action import ActionClient
from rclpy.experimental.events_executor import EventsExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.task import Future
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from supple_interfaces.msg import CommandTrace, ContactArray, JointCommand, ObjectPoses
from supple_interfaces.srv import Reset, Step

from supple.nodes.conversion import header, nanoseconds, pose_message, pose_of
from supple.nodes.qos import COMMAND, EVENT
from supple.sim.clock import RESET_GAP_NS

__all__ = ["DISCOVERY", "Graph", "NodeProcess", "jumped", "seconds", "stamped"]

DISCOVERY = 20.0
"""Longest wait for nodes to find each other in [s]; a busy machine takes several seconds."""


# Deep enough that a client which is busy with something else loses nothing.
_SENSOR = QoSProfile(depth=4000, reliability=ReliabilityPolicy.BEST_EFFORT)


class NodeProcess:
    """One of Supple's nodes, started as its executable starts it."""

    def __init__(
        self, executable: str, log: Path, name: str = "", remap: Mapping[str, str] | None = None, **parameters: Any
    ) -> None:
        self.executable, self.log = executable, log
        command = [sys.executable, "-m", f"supple.nodes.{executable}", "--ros-args"]
        if name:
            command += ["-r", f"__node:={name}"]
        for old, new in (remap or {}).items():
            command += ["-r", f"{old}:={new}"]
        # Several stacks on one machine, all before everything else, would leave the tests themselves no processor.
        for key, value in ({"realtime_priority": 0} | parameters).items():
            command += ["-p", f"{key}:={str(value).lower() if isinstance(value, bool) else value}"]
        self._file = log.open("wb")
        self.process = subprocess.Popen(command, stdout=self._file, stderr=subprocess.STDOUT)

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, timeout: float) -> int:
        return self.process.wait(timeout)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10.0)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._file.close()


class Graph:
    """A client of the whole graph; messages are collected as they come, by topic."""

    def __init__(self, name: str) -> None:
        self.context = rclpy.Context()
        rclpy.init(args=[], context=self.context)
        self.node = rclpy.create_node(name, context=self.context)
        self._executor = EventsExecutor(context=self.context)
        self._open = True
        self._thread = threading.Thread(target=self._spin, daemon=True)
        self.received: dict[str, list[Any]] = {}
        self.diagnostics: dict[str, tuple[bytes, str, dict[str, str]]] = {}
        self.commands = self.node.create_publisher(JointCommand, "joint_commands", COMMAND)
        self.node.create_subscription(DiagnosticArray, "diagnostics", self._note_diagnostics, EVENT)
        for kind, topic, qos in (
            (Clock, "/clock", _SENSOR),
            (JointState, "joint_states", _SENSOR),
            (Odometry, "odom", _SENSOR),
            (ObjectPoses, "objects", _SENSOR),
            (ContactArray, "contacts", _SENSOR),
            (CommandTrace, "command_trace", EVENT),
        ):
            self.listen(kind, topic, qos)
        self._clients: dict[str, Any] = {}
        self._executor.add_node(self.node)
        self._thread.start()

    def _spin(self) -> None:
        while self._open:
            self._executor.spin_once(timeout_sec=0.05)

    def close(self) -> None:
        self._open = False
        self._thread.join(5.0)
        self.node.destroy_node()
        rclpy.try_shutdown(context=self.context)
        for messages in self.received.values():
            messages.clear()

    def on_executor(self, work: Callable[[], Any]) -> Any:
        """Run something where events are handled: the executor crashes if entities come or go on another thread."""
        if not self._thread.is_alive():
            return work()
        task = self._executor.create_task(work)
        self.until(task.done, "the executor's turn")
        return task.result()

    def listen(self, kind: type, topic: str, qos: Any) -> list[Any]:
        self.received[topic] = messages = []
        self.on_executor(lambda: self.node.create_subscription(kind, topic, messages.append, qos))
        return messages

    def publisher(self, kind: type, topic: str, qos: Any) -> Any:
        return self.on_executor(lambda: self.node.create_publisher(kind, topic, qos))

    def _note_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            values = {entry.key: entry.value for entry in status.values}
            self.diagnostics[status.name] = (status.level, status.message, values)

    # -- waiting -------------------------------------------------------------------------------------------------------

    def until(self, condition: Callable[[], Any], what: str, timeout: float = DISCOVERY) -> Any:
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if value := condition():
                return value
            time.sleep(0.005)
        raise AssertionError(f"waited {timeout} s in vain for: {what}")

    def result(self, future: Future, what: str, timeout: float = 60.0) -> Any:
        self.until(future.done, what, timeout)
        return future.result()

    def latest(self, topic: str) -> Any:
        return self.until(lambda: self.received[topic], f"a message on {topic}")[-1]

    def next(self, topic: str, condition: Callable[[Any], Any] = lambda _: True, timeout: float = DISCOVERY) -> Any:
        """Return the first message from now on that fits."""
        messages = self.received[topic]
        start = len(messages)

        def found() -> Any:
            return next((message for message in messages[start:] if condition(message)), None)

        return self.until(found, f"a fitting message on {topic}", timeout)

    def run_for(self, duration: float) -> None:
        """Let simulated time pass, in [s]."""
        end = nanoseconds(self.latest("/clock").clock) + round(duration * 1e9)
        self.until(lambda: nanoseconds(self.received["/clock"][-1].clock) >= end, f"{duration} s of /clock", 120.0)

    # -- asking --------------------------------------------------------------------------------------------------------

    def _client(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._clients:
            self._clients[name] = self.on_executor(make)
        return self._clients[name]

    def call(self, kind: type, service: str, request: Any) -> Any:
        client = self._client(service, lambda: self.node.create_client(kind, service))
        assert client.wait_for_service(DISCOVERY), f"no service {service}"
        return self.result(client.call_async(request), service)

    def reset(self, **fields: Any) -> Any:
        """Reset; if that worked, return once its gap has come on /clock, so that what is read then is new."""
        clock = self.received["/clock"]
        start = max(len(clock) - 1, 0)
        response = self.call(Reset, "sim_bridge/reset", Reset.Request(**fields))
        if response.success:
            self.until(lambda: jumped(clock[start:]), "the gap of a reset on /clock")
        return response

    def pause(self, paused: bool) -> Any:
        return self.call(SetBool, "sim_bridge/pause", SetBool.Request(data=paused))

    def step(self, steps: int) -> Any:
        return self.call(Step, "sim_bridge/step", Step.Request(steps=steps))

    def estop(self) -> Any:
        return self.call(Trigger, "sim_bridge/estop", Trigger.Request())

    def send_goal(
        self, kind: type, action: str, goal: Any, on_feedback: Callable[[Any], None] = lambda feedback: None
    ) -> Any:
        client = self._client(action, lambda: ActionClient(self.node, kind, action))
        assert client.wait_for_server(DISCOVERY), f"no action {action}"
        sent = client.send_goal_async(goal, feedback_callback=lambda message: on_feedback(message.feedback))
        handle = self.result(sent, f"acceptance by {action}")
        assert handle.accepted
        return handle

    def act(self, kind: type, action: str, goal: Any, timeout: float = 60.0) -> Any:
        handle = self.send_goal(kind, action, goal)
        return self.result(handle.get_result_async(), f"result of {action}", timeout).result

    # -- reading -------------------------------------------------------------------------------------------------------

    def base(self) -> pin.SE3:
        return pose_of(self.latest("odom").pose.pose, "odom")

    def object(self, name: str) -> pin.SE3:
        message = self.latest("objects")
        return pose_of(message.pose[list(message.name).index(name)], name)

    def joint(self, name: str) -> float:
        message = self.latest("joint_states")
        return float(message.position[list(message.name).index(name)])

    def owners(self) -> dict[str, str]:
        """Who owns which joint group, as the bridge says."""
        _, _, values = self.diagnostics.get("sim_bridge", (b"", "", {}))
        groups = {key.removeprefix("group "): value for key, value in values.items() if key.startswith("group ")}
        return {name: value.removeprefix("owned ") for name, value in groups.items() if value.startswith("owned ")}


def jumped(clock: list[Clock]) -> bool:
    stamps = [nanoseconds(message.clock) for message in clock]
    return any(b - a >= RESET_GAP_NS for a, b in pairwise(stamps))


def stamped(pose: pin.SE3, frame: str = "odom") -> PoseStamped:
    return PoseStamped(header=header(0, frame), pose=pose_message(pose))


def seconds(messages: list[Any]) -> np.ndarray:
    """Stamps of messages in [ns]."""
    return np.array([nanoseconds(message.header.stamp) for message in messages])
