# SPDX-License-Identifier: Apache-2.0
"""Node that is the robot and its surroundings in MuJoCo: sensors out, joint commands in, reset, pause, step, stop."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Pose
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_srvs.srv import SetBool, Trigger
from supple_interfaces.msg import CommandTrace, Contact, ContactArray, JointCommand, ObjectPoses
from supple_interfaces.srv import Reset, Step
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import MarkerArray

from supple.control.arbitration import ArbitrationTimes, CommandArbiter
from supple.episodes.episode import InitialState
from supple.errors import StateError, SuppleError, TaskError
from supple.kinematics.transforms import WORLD_FRAME
from supple.nodes.camera_process import CameraProcess
from supple.nodes.conversion import (
    command_of,
    header,
    imu_message,
    joint_state,
    nanoseconds,
    object_poses,
    odometry,
    point_message,
    pose_of,
    transform_message,
    vector_message,
)
from supple.nodes.diagnostics import steady_clock
from supple.nodes.lifecycle import ActuatorNode
from supple.nodes.marker_message import marker_array
from supple.nodes.qos import CLOCK, COMMAND, EVENT, LATCHED, SENSOR, TRANSFORMS, publisher, subscription, withdraw
from supple.nodes.runtime import run_node
from supple.nodes.scheduling import CONTROL_PRIORITY
from supple.nodes.simulation_loop import SimulationLoop
from supple.nodes.touch_output import TouchOutput, TouchParameters
from supple.robots.g1 import LEG_GROUPS
from supple.sim.markers import contact_markers, scene_markers
from supple.sim.viewpoint import Viewpoint
from supple.sim.world import Contact as ContactPoint
from supple.tasks import Environment, task_named

__all__ = ["SimBridge", "main"]

_OBSERVATIONS = ("joint_states", "odom", "imu/data")


class SimBridge(ActuatorNode):
    """A simulated robot behind the topics of a real one."""

    def __init__(self) -> None:
        super().__init__("sim_bridge", "MuJoCo", CONTROL_PRIORITY)
        self._task = task_named(self.parameter("task", "box_lift", "name of the task whose scene is simulated"))
        self._distribution = self.parameter("distribution", "", "initial distribution; empty for its nominal layout")
        self._seed = self.parameter("seed", 0, "seed of the initial state")
        self._factor = self.parameter(
            "real_time_factor", 1.0, "simulated seconds per second; 0: as fast as owners answer"
        )
        if self._factor == 0.0:
            # Physics without a pause would keep everything else from a processor.
            self.realtime_priority = 0
        self._answer_timeout = self.parameter("answer_timeout", 0.1, "longest wait for commands at a control tick in s")
        self._gantry = self.parameter("gantry", True, "hold the robot after a reset until its legs are commanded")
        self._with_camera = self.parameter("camera", True, "render the head camera")
        self._segmentation = self.parameter("segmentation", False, "publish which object each pixel of a camera shows")
        self._with_external = self.parameter("external_camera", False, "render the camera beside the scene as well")
        self._with_markers = self.parameter("markers", True, "show the scene as markers while somebody listens")
        self._touch_parameters = TouchParameters(self)
        self._times = ArbitrationTimes(
            self.parameter("hold_after", 0.1, "a silent owner's target is held after this time in s"),
            self.parameter("lapse_after", 0.5, "others may take a silent owner's joints after this time in s"),
            self.parameter("damp_after", 1.0, "a silent owner's joints are damped after this time in s"),
        )
        self._loop: SimulationLoop | None = None
        self._cameras: list[CameraProcess] = []
        self._touch: TouchOutput | None = None

    # -- lifecycle -----------------------------------------------------------------------------------------------------

    def configure(self) -> None:
        """Build the scene and everything that is published."""
        environment = Environment(self._task)
        self._environment, self._world = environment, environment.world
        self._joints = self._task.robot.joints
        self._layout(self._distribution, self._seed)
        if self._touch_parameters.enabled:
            self._touch = TouchOutput(self, self._world, self._touch_parameters, self._seed)
        arbiter = CommandArbiter(self._joints, self._times)
        arbiter.reset(self._world.robot_state().q, 0)
        gantry = LEG_GROUPS if self._gantry else ()
        self._loop = SimulationLoop(
            environment, self._factor, self._answer_timeout, gantry, arbiter, self._publish, self._failed
        )
        self._monitor = self.diagnostics.loop("control", environment.body.control_interval)
        self._rows = next(iter(self._task.robot.cameras.values()))
        self._picture = -1
        beside = self._viewpoint() if self._with_external else None
        self._cameras = [
            CameraProcess(self._task.name, row, self.get_namespace(), segmentation=self._segmentation)
            for row in ([self._rows] if self._with_camera else []) + ([beside] if beside else [])
        ]
        self._out = {
            "clock": publisher(self, Clock, "/clock", CLOCK),
            "joint_states": publisher(self, JointState, "joint_states", SENSOR),
            "odom": publisher(self, Odometry, "odom", SENSOR),
            "imu": publisher(self, Imu, "imu/data", SENSOR),
            "objects": publisher(self, ObjectPoses, "objects", SENSOR),
            "contacts": publisher(self, ContactArray, "contacts", SENSOR),
            "markers": publisher(self, MarkerArray, "markers", EVENT),
            "tf": publisher(self, TFMessage, "/tf", TRANSFORMS),
            "tf_static": publisher(self, TFMessage, "/tf_static", LATCHED),
            "trace": publisher(self, CommandTrace, "command_trace", EVENT),
        }
        self._in = subscription(self, JointCommand, "joint_commands", self._on_command, COMMAND)
        self._offered = [
            self.create_service(Reset, "~/reset", self._on_reset),
            self.create_service(SetBool, "~/pause", self._on_pause),
            self.create_service(Step, "~/step", self._on_step),
            self.create_service(Trigger, "~/estop", self._on_estop),
        ]
        self._report_timer = self.create_timer(1.0, self._report, clock=steady_clock())

    def _viewpoint(self) -> Viewpoint:
        if self._task.viewpoint is None:
            raise TaskError(f"external_camera: task {self._task.name!r} has no camera beside its scene")
        return self._task.viewpoint

    def activate(self) -> None:
        """Let time begin."""
        if self._with_external:
            frames = self._viewpoint().fixed_frames(WORLD_FRAME).items()
            fixed = [transform_message(0, *names, pose) for names, pose in frames]
            self._out["tf_static"].publish(TFMessage(transforms=fixed))
        if self._loop is not None:
            self._loop.start()

    def deactivate(self) -> None:
        """Damp the robot and let time stand still."""
        if self._loop is not None:
            self._loop.emergency_stop("the simulator is being deactivated")
            self._loop.stop()

    def cleanup(self) -> None:
        """Destroy what configure made."""
        if self._loop is None:
            return
        for camera in self._cameras:
            camera.close()
        if self._touch is not None:
            self._touch.close()
        self.destroy_timer(self._report_timer)
        self.destroy_subscription(self._in)
        for service in self._offered:
            self.destroy_service(service)
        for entry in self._out.values():
            withdraw(self, entry)
        self._loop = self._touch = None
        self._cameras = []

    # -- out: called in the physics thread -----------------------------------------------------------------------------

    def _publish(self, stamp: int, control_tick: bool, after_reset: bool) -> None:
        if not self.context.ok():
            return
        state, out = self._world.robot_state(), self._out
        message = Clock()
        message.clock = header(stamp).stamp
        out["clock"].publish(message)
        out["odom"].publish(odometry(state, stamp))
        out["imu"].publish(imu_message(state, stamp))
        out["joint_states"].publish(joint_state(self._joints, state, stamp))
        shown = self._with_markers and out["markers"].get_subscription_count() > 0
        if self._touch is not None:
            self._touch.publish(stamp, after_reset, shown)
        if control_tick:
            self._monitor.tick()
            self._publish_surroundings(stamp)
        picture = int(stamp * 1e-9 * self._rows.rate)
        if picture == self._picture and not after_reset:
            return
        self._picture = picture
        if self._cameras:
            objects = {name: self._world.object_pose(name) for name in self._task.objects}
            for camera in self._cameras:
                camera.offer(stamp, self._world.get_state(), objects)
        if shown:
            markers = [*scene_markers(self._world), *contact_markers(self._world.contacts())]
            if self._touch is not None:
                markers += self._touch.markers()
            out["markers"].publish(marker_array(markers, stamp))

    def _publish_surroundings(self, stamp: int) -> None:
        world, names = self._world, self._task.objects
        poses = {name: world.object_pose(name) for name in names}
        twists = {name: world.object_twist(name) for name in names}
        self._out["objects"].publish(object_poses(poses, twists, stamp))
        transforms = [transform_message(stamp, WORLD_FRAME, name, pose) for name, pose in poses.items()]
        self._out["tf"].publish(TFMessage(transforms=transforms))
        contacts = [self._contact(point) for point in world.contacts()]
        self._out["contacts"].publish(ContactArray(header=header(stamp, WORLD_FRAME), contacts=contacts))

    @staticmethod
    def _contact(point: ContactPoint) -> Contact:
        return Contact(
            body1=point.body1,
            body2=point.body2,
            position=point_message(point.position),
            normal=vector_message(point.normal),
            normal_force=max(point.normal_force, 0.0),
            tangential_force=point.tangential_force,
        )

    def _failed(self, reason: str) -> None:
        self.get_logger().error(f"{reason}; reset to go on")
        self.diagnostics.state(DiagnosticStatus.ERROR, reason)

    # -- in ------------------------------------------------------------------------------------------------------------

    def _on_command(self, message: JointCommand) -> None:
        if not self.active or self._loop is None:
            return
        trace = CommandTrace(
            source=message.source,
            name=message.name,
            requested=message.q,
            because=message.because,
            because_sequence=message.because_sequence,
        )
        now = self._loop.clock.now_ns
        try:
            applied = self._loop.offer(command_of(self._joints, message))
        except SuppleError as error:
            trace.refused = str(error)
            self.diagnostics.refuse("refused commands", str(error))
        else:
            now = applied.stamp_ns
            at = self._joints.indices(message.name)
            trace.sequence = applied.sequence
            trace.applied = applied.command.q[at].tolist()
            trace.limited = list(applied.limited)
        trace.header = header(now)
        trace.observation = list(_OBSERVATIONS)
        trace.observation_age = [(now - nanoseconds(message.header.stamp)) * 1e-9] * len(_OBSERVATIONS)
        self._out["trace"].publish(trace)

    # -- services ------------------------------------------------------------------------------------------------------

    def _layout(self, distribution: str, seed: int) -> None:
        if distribution:
            self._environment.reset(self._task.sample(distribution, np.random.default_rng(seed)))
        else:
            self._environment.reset(self._task.nominal())

    def _restore(self, request: Reset.Request) -> None:
        # The numbers go on as they came: fixed objects must stand where they stood to the last bit.
        objects = {name: _row(pose) for name, pose in zip(request.object_name, request.object_pose, strict=True)}
        for name, pose in zip(request.object_name, request.object_pose, strict=True):
            pose_of(pose, f"reset: object {name}")
        materials = dict(zip(request.material_name, request.material_value, strict=True))
        missing = set(self._task.nominal().materials) - set(materials)
        if missing:
            raise StateError(f"reset: materials missing: {', '.join(sorted(missing))}; a full state needs them")
        unknown = sorted(set(objects) - set(self._task.objects))
        if unknown:
            raise StateError(
                f"reset: unknown objects {', '.join(unknown)} (available: {', '.join(self._task.objects)})"
            )
        model = request.model_hash or self._world.model_hash
        goal = dict(zip(request.goal_name, request.goal_value, strict=True))
        self._environment.restore(InitialState(np.array(request.state), model, objects, materials, goal))

    def _on_reset(self, request: Reset.Request, response: Reset.Response) -> Reset.Response:
        try:
            if self._loop is None:
                raise StateError("the simulator is not configured")
            if request.task not in ("", self._task.name):
                raise TaskError(f"reset: this scene is task {self._task.name!r}, got {request.task!r}")
            if request.distribution:
                self._task.check_distribution(request.distribution)
            for names, values, what in (
                (request.object_name, request.object_pose, "objects"),
                (request.material_name, request.material_value, "materials"),
                (request.goal_name, request.goal_value, "goal"),
            ):
                if len(names) != len(values):
                    raise StateError(f"reset: {len(names)} names of {what}, {len(values)} values")
            if len(request.state):
                self._loop.reset(lambda: self._restore(request))
            else:
                distribution = request.distribution or self._distribution
                self._loop.reset(lambda: self._layout(distribution, request.seed))
        except SuppleError as error:
            response.message = str(error)
            return response
        self.diagnostics.state(DiagnosticStatus.OK, "running")
        response.success = True
        response.state = self._world.get_state().tolist()
        return response

    def _on_pause(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if self._loop is not None:
            self._loop.set_paused(request.data)
            response.success = True
        return response

    def _on_step(self, request: Step.Request, response: Step.Response) -> Step.Response:
        try:
            if self._loop is None or request.steps < 1:
                raise StateError(f"step: expected at least 1 step of a configured simulator, got {request.steps}")
            self._loop.step(request.steps)
        except SuppleError as error:
            response.message = str(error)
            return response
        response.success = True
        return response

    def _on_estop(self, _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if self._loop is None:
            response.message = "the simulator is not configured"
            return response
        self._loop.emergency_stop("emergency stop")
        self.get_logger().error("emergency stop: everything is damped until the next reset")
        self.diagnostics.state(DiagnosticStatus.ERROR, "emergency stop")
        response.success, response.message = True, "everything is damped until the next reset"
        return response

    def _report(self) -> None:
        if self._loop is None:
            return
        for key, value in self._loop.report().items():
            self.diagnostics.set(key, value)
        for camera in self._cameras:
            self.diagnostics.set(f"pictures of {camera.name}", f"{camera.sent} sent, {camera.skipped} skipped")
            if camera.failure is not None:
                self.diagnostics.state(DiagnosticStatus.WARN, f"no {camera.name}: {camera.failure}")


def _row(pose: Pose) -> np.ndarray:
    p, o = pose.position, pose.orientation
    return np.array([p.x, p.y, p.z, o.x, o.y, o.z, o.w])


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run_node(SimBridge, args)


if __name__ == "__main__":
    raise SystemExit(main())
