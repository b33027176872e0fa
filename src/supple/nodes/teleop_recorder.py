# SPDX-License-Identifier: Apache-2.0
"""Node through which an operator drives the whole robot and records seeds and bags, by keys and by services."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from std_srvs.srv import Trigger
from supple_interfaces.msg import CommandTrace, ContactArray, JointCommand, ObjectPoses
from supple_interfaces.srv import Mark

from supple.episodes import save_seed
from supple.episodes.atomic import free_path
from supple.errors import DatasetError, SuppleError, TeleopError, UnknownNameError
from supple.nodes.bag_recorder import BagRecorder
from supple.nodes.bag_take import BagTake
from supple.nodes.conversion import joint_command, nanoseconds, pose_of
from supple.nodes.diagnostics import steady_clock
from supple.nodes.lifecycle import ActuatorNode
from supple.nodes.qos import COMMAND, EVENT, SENSOR_INPUT, publisher, subscription, withdraw
from supple.nodes.recorded_topics import camera_topics, robot_topics
from supple.nodes.runtime import run_node
from supple.nodes.state_input import StateInput
from supple.robots import RobotCommand, RobotState
from supple.tasks import task_named
from supple.teleop.device import Device
from supple.teleop.keyboard import KeyboardDevice
from supple.teleop.live import FinishedTake, LiveSession
from supple.teleop.scripted import ScriptedOperator
from supple.teleop.take import mark_labels, partial_path, save_take

__all__ = ["TeleopRecorder", "main"]

_DEVICES = ("keyboard", "scripted")
# After a signal every node is gone within 2 s; arms that need longer get home faster.
_SIGNAL_HOMING = 1.0
_STALE = 1.0


class TeleopRecorder(ActuatorNode):
    """The operator's node: it owns every joint while it is active."""

    source = "teleop"

    def __init__(self) -> None:
        super().__init__("teleop_recorder")
        self._task = task_named(self.parameter("task", "box_lift", "name of the task that is demonstrated"))
        self._kind = self.parameter("device", "keyboard", f"what the operator drives with: {', '.join(_DEVICES)}")
        output = self.parameter("output", "", "seed file to write; empty: <task>.hdf5 in the working directory")
        self._output = Path(output or f"{self._task.name}.hdf5").expanduser().absolute()
        self._with_bag = self.parameter("bag", True, "record a bag beside each seed")
        self._with_camera = self.parameter("bag_camera", True, "record the camera's pictures in the bag")
        self._interval = self._task.robot.contract.control_interval
        self._loop = self.diagnostics.loop("control", self._interval)
        self._device: Device | None = None
        self._bags: BagRecorder | None = None
        self._savers: list[threading.Thread] = []
        self._state: RobotState | None = None
        self._homing = self._homed = False
        self._longest_homing = np.inf
        self._blind = 0

    # -- lifecycle ---------------------------------------------------------------------------------------------------

    def configure(self) -> None:
        """Open the device and make everything that listens and speaks."""
        robot, say = self._task.robot, self.get_logger().info
        if self._kind == "keyboard":
            self._device = KeyboardDevice(robot, mark_labels(self._task))
        elif self._kind == "scripted":
            self._device = ScriptedOperator(robot, self._task.name, say)
        else:
            raise UnknownNameError("device", self._kind, _DEVICES)
        self._live = LiveSession(self._task, self._device, "over ROS")
        self._commands = publisher(self, JointCommand, "joint_commands", COMMAND)
        topics = (*robot_topics(), *(camera_topics() if self._with_camera else ()))
        self._bags = BagRecorder(self, topics) if self._with_bag else None
        self._surroundings = [
            subscription(self, ObjectPoses, "objects", self._on_objects, SENSOR_INPUT),
            subscription(self, ContactArray, "contacts", self._on_contacts, SENSOR_INPUT),
            subscription(self, CommandTrace, "command_trace", self._on_trace, EVENT),
        ]
        self._input = StateInput(self, robot.joints, self._interval, self._tick, self._reset, self.diagnostics)
        self._offered = [
            self.create_service(Trigger, "~/start", lambda _, response: self._on_trigger("start", response)),
            self.create_service(Trigger, "~/stop", lambda _, response: self._on_trigger("stop", response)),
            self.create_service(Trigger, "~/discard", lambda _, response: self._on_trigger("discard", response)),
            self.create_service(Mark, "~/mark", self._on_mark),
        ]
        self._timer = self.create_timer(0.5, self._watch, clock=steady_clock())
        self.diagnostics.set("source", self.source)
        self.diagnostics.set("device", self._kind)

    def activate(self) -> None:
        """Begin anew."""
        self._homing = self._homed = False
        self._live.reset()

    def deactivate(self) -> None:
        """Keep what was being recorded, then damp the robot."""
        self._cut_off()
        joints = self._task.robot.joints
        stamp = self._state.stamp_ns if self._state is not None else 0
        self._publish(RobotCommand.damping(joints, self.source, stamp))

    def cleanup(self) -> None:
        """Destroy what configure made."""
        if self._device is None:
            return
        self._device.close()
        self._device = None
        self._input.close()
        for entry in self._surroundings:
            self.destroy_subscription(entry)
        for service in self._offered:
            self.destroy_service(service)
        self.destroy_timer(self._timer)
        withdraw(self, self._commands)
        if self._bags is not None:
            self._bags.close()

    def make_safe(self) -> None:
        """Keep what was being recorded, bring the arms home, damp, and wait until everything is on the disk."""
        if self.active:
            self._cut_off()
            self._go_home()
        super().make_safe()
        for saver in self._savers:
            saver.join()

    def _go_home(self) -> None:
        executor, deadline = self.executor, time.monotonic() + 1.2 * _SIGNAL_HOMING
        self._homing, self._longest_homing = True, _SIGNAL_HOMING
        # Nothing else spins any more, and the legs need states to stand on while the arms move.
        while executor is not None and not self._homed and time.monotonic() < deadline:
            if self._input.age > 0.2:
                return
            executor.spin_once(timeout_sec=0.02)

    # -- the control loop --------------------------------------------------------------------------------------------

    def _tick(self, state: RobotState) -> None:
        began = time.perf_counter()
        self._state = state
        if not self.active or self._homed:
            return
        if self._homing:
            self._tick_home(state)
        else:
            try:
                self._tick_session(state)
            except SuppleError as error:
                self.get_logger().error(f"{error}; going home")
                self.diagnostics.state(DiagnosticStatus.ERROR, str(error))
                self._cut_off()
                self._homing = True
        self._loop.tick(time.perf_counter() - began)

    def _tick_session(self, state: RobotState) -> None:
        tick = self._live.tick(state)
        if tick is None:
            self._blind += 1
            # The first states come before the first objects; that is nothing to speak of.
            if self._blind * self._interval > _STALE:
                topic, missing = self.resolve_topic_name("objects"), ", ".join(self._live.missing_objects)
                self.diagnostics.refuse("waiting", f"waiting for {topic}: {missing} not seen yet")
            return
        self._blind = 0
        self._publish(tick.command)
        self._follow_recording()
        if "quit" in tick.events:
            self._cut_off()
            self._homing = True

    def _tick_home(self, state: RobotState) -> None:
        command, self._homed = self._live.home(state, self._longest_homing)
        self._publish(command)
        if self._homed:
            self.get_logger().info("the arms are home; ending")
            # As Ctrl-C would: run_node then ends this node in order.
            signal.raise_signal(signal.SIGINT)

    def _publish(self, command: RobotCommand) -> None:
        if self.context.ok():
            message = joint_command(self._task.robot.joints, replace(command, source=self.source))
            self._commands.publish(message)

    def _reset(self) -> None:
        finished = self._live.reset()
        if finished is not None:
            self.get_logger().warning("the robot was reset while recording")
        self._keep(finished)

    def _watch(self) -> None:
        if self._input.age > _STALE and self.active:
            age = "ever" if np.isinf(self._input.age) else f"for {self._input.age:.1f} s"
            self.diagnostics.state(DiagnosticStatus.WARN, f"no complete state (joint_states, odom, imu/data) {age}")
        elif self.active and not self._homing:
            self.diagnostics.state(DiagnosticStatus.OK, "recording" if self._live.recording else "running")
        self._savers = [saver for saver in self._savers if saver.is_alive()]

    # -- surroundings ------------------------------------------------------------------------------------------------

    def _on_objects(self, message: ObjectPoses) -> None:
        try:
            poses = {n: pose_of(pose, f"objects: {n}") for n, pose in zip(message.name, message.pose, strict=True)}
        except (SuppleError, ValueError) as error:
            self.diagnostics.refuse("unusable objects", str(error))
            return
        twists = {
            name: np.array([t.linear.x, t.linear.y, t.linear.z, t.angular.x, t.angular.y, t.angular.z])
            for name, t in zip(message.name, message.twist, strict=False)
        }
        known = {name: pose for name, pose in poses.items() if name in self._task.objects}
        self._live.see_objects(nanoseconds(message.header.stamp), known, twists)

    def _on_contacts(self, message: ContactArray) -> None:
        points = [(c.body1, c.body2, c.normal_force, c.tangential_force) for c in message.contacts]
        self._live.see_contacts(nanoseconds(message.header.stamp), points)

    def _on_trace(self, message: CommandTrace) -> None:
        if message.source == self.source and message.refused:
            self.diagnostics.refuse("refused commands", f"a command was not executed: {message.refused}")

    # -- recording ---------------------------------------------------------------------------------------------------

    def _on_trigger(self, event: str, response: Trigger.Response) -> Trigger.Response:
        response.success, response.message = self._request(event)
        return response

    def _on_mark(self, request: Mark.Request, response: Mark.Response) -> Mark.Response:
        response.success, response.message = self._request(f"mark:{request.label}")
        return response

    def _request(self, event: str) -> tuple[bool, str]:
        if not self.active or self._homing:
            return False, "this node is not active"
        try:
            return True, self._live.request(event)
        except TeleopError as error:
            return False, str(error)

    def _follow_recording(self) -> None:
        """Begin, keep or drop the bag as the take does."""
        bags = self._bags
        if bags is not None and self._live.recording and bags.take is None:
            try:
                bags.begin(free_path(self._output.with_name(f"{self._output.stem}_bag")))
            except DatasetError as error:
                self.diagnostics.refuse("bags", f"no bag is recorded: {error}")
        for finished in self._live.finished:
            self._keep(finished)
        self._live.finished.clear()
        if not self._live.busy:
            self._drop_bag()

    def _cut_off(self) -> None:
        seconds = self._live.recorded
        finished = self._live.cut_off()
        if finished is None and seconds:
            self.get_logger().warning(f"a recording of {seconds:.1f} s was too short to keep and is discarded")
        self._keep(finished)

    def _drop_bag(self) -> None:
        take = self._bags.end() if self._bags is not None else None
        if take is not None:
            threading.Thread(target=take.discard, name="discard").start()

    def _keep(self, finished: FinishedTake | None) -> None:
        """Save a take in a thread of its own, so that the robot is not left alone meanwhile."""
        if finished is None:
            self._drop_bag()
            return
        bag = self._bags.end() if self._bags is not None else None
        saver = threading.Thread(target=self._save, args=(finished, bag), name="save")
        self._savers.append(saver)
        saver.start()

    def _save(self, finished: FinishedTake, bag: BagTake | None) -> None:
        log = self.get_logger()
        report = bag.close() if bag is not None else None
        if report is not None:
            # Two lines: rclpy refuses one line of code that logs now as one severity and then as another.
            if report.lost or report.failure:
                log.warning(str(report))
            else:
                log.info(str(report))
        try:
            seed, problem = finished.take.finish(finished.outcome)
            late = self._live.late_objects
            extra = [str(report)] if report is not None else []
            extra += [f"objects of {late} states came late"] if late else []
            seed = replace(seed, notes="; ".join((seed.notes, *extra)))
            if finished.cut_off:
                path = save_seed(partial_path(self._output), seed)
                log.warning(f"the recording that was going on ({finished.take.duration:.1f} s) is kept in {path}")
                return
            older = save_take(self._output, seed)
        except SuppleError as error:
            log.error(f"the recording could not be saved: {error}")
            self.diagnostics.state(DiagnosticStatus.ERROR, str(error))
            return
        moved = f" (the one before is now {older.name})" if older is not None else ""
        verdict = "success" if finished.outcome.success else f"no success: {finished.outcome.reason}"
        log.info(f"saved {finished.take.duration:.1f} s to {self._output}{moved}: {verdict}")
        if problem:
            log.warning(f"it has no skills yet: {problem}; add marks with 'supple annotate'")


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run_node(TeleopRecorder, args)


if __name__ == "__main__":
    raise SystemExit(main())
