# SPDX-License-Identifier: Apache-2.0
"""An episode as a ROS 2 bag: its stored states shown again, with everything that a viewer draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.episodes.bag import BagWriter, ContactPoint
from supple.episodes.episode import Episode
from supple.episodes.validation import validate
from supple.errors import ReplayError
from supple.geometry import quaternion_of
from supple.kinematics.transforms import FOOTPRINT_FRAME, WORLD_FRAME, TransformTree, base_transforms
from supple.robots import ActionKind, RobotCommand, RobotState
from supple.robots import Camera as CameraRow
from supple.robots.description import BASE_FRAME, optical_frame
from supple.sim.camera import Camera, RenderContext
from supple.sim.markers import contact_markers, scene_markers
from supple.sim.world import World
from supple.tasks import Environment, task_named

__all__ = ["COMMAND_SOURCE", "FIRST_STAMP_NS", "export_bag"]

Array = NDArray[np.float64]

FIRST_STAMP_NS = 1_000_000_000
"""Time of an episode's first state in its bag in [ns]."""

COMMAND_SOURCE = "episode"
"""Source that the joint commands of a bag name."""

_IMU_FRAME = "imu_link"


def export_bag(
    episode: Episode,
    path: Path | str,
    *,
    images: bool = True,
    rate: float | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Write an episode as a bag (rosbag2, MCAP).

    The recorded states are set, not simulated again, so that the bag shows the very motion that was stored; what was
    not stored (links, contacts, pictures) is computed from each state with the joint torques that were measured in it.
    Commands are the executed actions: the one chosen in a state bears that state's stamp.

    Stamps are the episode's own, moved so that the first state is at ``FIRST_STAMP_NS``: simulation time starts at 0,
    and a stamp of 0 means "unset" to ROS. Intervals stay as they are.

    Args:
        episode: What is written.
        path: Folder of the bag; must not exist.
        images: With pictures of the robot's cameras; without them no graphics library is needed.
        rate: Pictures and marker messages per second in [Hz], at most one per state; the cameras' own if absent.
        on_progress: Called with the number of states written and their total.

    Returns:
        The path.

    Raises:
        ReplayError: The episode is of another robot than its task, or the rate is not positive.
        UnknownNameError: There is no such task.
        StateError: The episode was recorded in another scene or MuJoCo version.
        SceneError: Pictures were asked for and cannot be rendered.
        DatasetError: The episode is malformed, the path exists, or the disk is full; nothing is left behind.
    """
    if rate is not None and not rate > 0.0:
        raise ReplayError(f"pictures per second must be positive, got {rate}")
    validate(episode, f"episode of attempt {episode.attempt}")
    task = task_named(episode.task)
    if task.robot.name != episode.robot:
        raise ReplayError(f"episode of robot {episode.robot!r}, but task {task.name!r} is for {task.robot.name!r}")
    environment = Environment(task, visual=images)
    environment.restore(episode.initial)
    total = len(episode.states)
    # A rendering context outlives the bag's files: a full disk must not leave graphics memory behind.
    with ExitStack() as stack:
        pictures = _Pictures(environment.world, stack) if images else None
        with BagWriter(path) as bag:
            writer = _StateWriter(bag, episode, environment, pictures, rate)
            for index in range(total):
                writer.write(index)
                if on_progress is not None:
                    on_progress(index + 1, total)
    return bag.path


class _Pictures:
    """The robot's cameras, sharing one graphics context."""

    def __init__(self, world: World, stack: ExitStack) -> None:
        context = stack.enter_context(RenderContext(world.model))
        self._world = world
        self._cameras: list[tuple[CameraRow, Camera]] = []
        for row in world.robot.cameras.values():
            camera = Camera(world.model, row.name, row.width, row.height, context)
            self._cameras.append((row, stack.enter_context(camera)))

    def write(self, bag: BagWriter, stamp: int, due: Callable[[CameraRow], bool]) -> None:
        """Draw the present state with each camera that is due."""
        for row, camera in self._cameras:
            if not due(row):
                continue
            picture, frame = camera.render(self._world.data), optical_frame(row.name)
            colour, depth = f"{row.name}/color", f"{row.name}/aligned_depth_to_color"
            bag.image(stamp, picture.rgb, frame=frame, topic=f"{colour}/image_raw")
            bag.depth(stamp, _in_millimetres(picture.depth), frame=frame, topic=f"{depth}/image_raw")
            for stream in (colour, depth):
                bag.camera_info(
                    stamp, row.width, row.height, *camera.intrinsics, frame=frame, topic=f"{stream}/camera_info"
                )


class _StateWriter:
    """Puts an episode's states into the simulation one by one and writes what is seen in each."""

    def __init__(
        self,
        bag: BagWriter,
        episode: Episode,
        environment: Environment,
        pictures: _Pictures | None,
        rate: float | None,
    ) -> None:
        self._bag, self._episode, self._pictures = bag, episode, pictures
        self._world, self._names, self._rate = environment.world, environment.task.objects, rate
        self._tree = TransformTree(environment.task.robot)
        self._stamps = episode.stamps_ns - episode.stamps_ns[0] + FIRST_STAMP_NS
        bag.robot_description(self._tree.description)
        bag.tf(FIRST_STAMP_NS, _rows(self._tree.fixed), static=True)

    def write(self, index: int) -> None:
        """Write one state, and the action that was chosen in it."""
        bag, world, stamp = self._bag, self._world, int(self._stamps[index])
        self._show(index)
        state = world.robot_state()
        bag.clock(stamp)
        self._write_robot(index, stamp, state)
        objects = {name: world.object_pose(name) for name in self._names}
        frames = {**base_transforms(state.T_world_base), **self._tree.moving(state.q)}
        frames |= {(WORLD_FRAME, name): pose for name, pose in objects.items()}
        bag.tf(stamp, _rows(frames))
        twists = {name: world.object_twist(name) for name in self._names}
        bag.object_poses(stamp, {name: _row(pose) for name, pose in objects.items()}, twists, frame=WORLD_FRAME)
        contacts = world.contacts()
        points = [
            ContactPoint(c.body1, c.body2, c.position, c.normal, max(c.normal_force, 0.0), c.tangential_force)
            for c in contacts
        ]
        bag.contacts(stamp, points, frame=WORLD_FRAME)
        if any(self._due(index, row) for row in world.robot.cameras.values()):
            bag.markers(stamp, [*scene_markers(world), *contact_markers(contacts)], frame=WORLD_FRAME)
        if self._pictures is not None:
            self._pictures.write(bag, stamp, lambda row: self._due(index, row))
        if index < self._episode.length:
            self._write_action(stamp, self._episode.executed[index])

    def _show(self, index: int) -> None:
        """Set a state; contact forces in it depend on the torques at that moment, which the servos are made to give."""
        world = self._world
        world.set_state(self._episode.states[index])
        joints = world.robot.joints
        nothing, all_joints = np.zeros(len(joints)), np.ones(len(joints), dtype=bool)
        effort = np.asarray(self._episode.observations["effort"][index], dtype=np.float64)
        blank = RobotCommand.blank(joints, COMMAND_SOURCE)
        world.apply(replace(blank, kp=nothing, kd=nothing, tau=effort, active=all_joints))
        mujoco.mj_forward(world.model, world.data)

    def _write_robot(self, index: int, stamp: int, state: RobotState) -> None:
        bag, observations = self._bag, self._episode.observations
        bag.joint_state(stamp, self._world.robot.joints.names, state.q, state.v, observations["effort"][index])
        pose = np.r_[state.base_position, state.base_quaternion]
        linear, angular = state.base_linear_velocity, state.base_angular_velocity
        bag.odometry(stamp, pose, linear, angular, frame=WORLD_FRAME, child=BASE_FRAME)
        bag.imu(stamp, state.base_quaternion, angular, observations["base_acceleration"][index], frame=_IMU_FRAME)

    def _write_action(self, stamp: int, action: Array) -> None:
        contract, bag = self._episode.contract, self._bag
        joints = contract.of_kind(ActionKind.JOINT_POSITION)
        if joints.size:
            bag.joint_command(stamp, COMMAND_SOURCE, [contract.names[i] for i in joints], q=action[joints])
        named = dict(zip(contract.names, action.tolist(), strict=True))
        if contract.of_kind(ActionKind.BASE_VELOCITY).size:
            x, y, yaw = (named.get(f"base_velocity_{axis}", 0.0) for axis in ("x", "y", "yaw"))
            bag.twist(stamp, [x, y, 0.0], [0.0, 0.0, yaw], frame=FOOTPRINT_FRAME)
        for i in contract.of_kind(ActionKind.BASE_HEIGHT):
            bag.number(contract.names[i], float(action[i]), stamp)

    def _due(self, index: int, row: CameraRow) -> bool:
        """Tell whether a picture period begins between the state before and this one."""
        rate = row.rate if self._rate is None else self._rate
        periods = [
            int(stamp - FIRST_STAMP_NS) * rate // 1_000_000_000 for stamp in self._stamps[max(index - 1, 0) :][:2]
        ]
        return index == 0 or periods[0] != periods[1]


def _in_millimetres(depth: NDArray[np.float32]) -> NDArray[np.float32]:
    """Round depth in [m] to whole millimetres.

    Depth cameras do not resolve more, and the digits behind would make a compressed bag seven times as large.
    """
    return np.round(depth, 3)


def _row(pose: pin.SE3) -> Array:
    return np.r_[pose.translation, quaternion_of(pose)]


def _rows(poses: Mapping[tuple[str, str], pin.SE3]) -> dict[tuple[str, str], Array]:
    return {names: _row(pose) for names, pose in poses.items()}
