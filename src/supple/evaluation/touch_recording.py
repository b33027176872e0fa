# SPDX-License-Identifier: Apache-2.0
"""An episode executed again in physics with its touch: what the sensors say, and what really happens at them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import mujoco
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from supple.contact.readings import PadLayout, TactileReading
from supple.control.whole_body import WholeBodyController
from supple.episodes import Episode
from supple.errors import ReplayError, SceneError
from supple.sim.forces import ContactForces, contact_forces
from supple.sim.skin import PadTouch
from supple.sim.tactile import TactileSensors, TactileSettings
from supple.sim.world import World
from supple.tasks import Environment, task_named

__all__ = ["Instant", "TouchRecording", "TrackedPose", "TrackerSettings", "record_touch"]

Array = NDArray[np.float64]


class TrackerSettings(BaseModel):
    """How the robot sees its own links and the object that it handles.

    Attributes:
        rate: Poses of the object per second in [Hz]; the default is the head camera's. 0: it does not see the object.
        latency: Time from the picture to the pose in [s].
        position_noise: Standard deviation of the object's position in [m].
        rotation_noise: Standard deviation of its orientation in [rad], about each axis.
        encoder_noise: Standard deviation of each joint position in [rad]; the default is one step of a 14-bit encoder
            on the motor's side of a 1:16 gear.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rate: float = Field(default=15.0, ge=0.0)
    latency: float = Field(default=0.04, ge=0.0)
    position_noise: float = Field(default=0.0005, ge=0.0)
    rotation_noise: float = Field(default=0.0035, ge=0.0)
    encoder_noise: float = Field(default=2.4e-5, ge=0.0)


@dataclass(frozen=True, eq=False)
class Instant:
    """One instant at which the sensors measured.

    Attributes:
        stamp_ns: Simulation time in [ns].
        readings: Readings by sensor.
        T_base_link: Pose of each sensor's link in the robot's base, from its encoders.
    """

    stamp_ns: int
    readings: Mapping[str, TactileReading]
    T_base_link: Mapping[str, pin.SE3]


@dataclass(frozen=True, eq=False)
class TrackedPose:
    """A pose of the object as the robot sees it.

    Attributes:
        stamp_ns: When it was seen in [ns].
        known_ns: When it became known in [ns].
        T_base_object: The pose in the robot's base.
    """

    stamp_ns: int
    known_ns: int
    T_base_object: pin.SE3


@dataclass(frozen=True, eq=False)
class TouchRecording:
    """Touch during one episode; truth after each physics step, readings at the sensors' rate.

    Attributes:
        layouts: Where each sensor has its taxels; sensors are in this order in all arrays.
        friction: Friction coefficient between hands and objects; None if it is what the episode was made with.
        stamps_ns: Time of each step in [ns], shape (S,).
        force: True normal force at each sensor in [N], shape (S, P).
        sliding: True velocity of each sensor's surface across what touches it, weighted by force, in the world frame in
            [m/s], zero when nothing touches, shape (S, P, 3).
        bodies: What touches most of each sensor, empty when nothing does, shape (S, P).
        instants: What the sensors said.
        tracked: The object as the robot saw it.
        same_states: Whether the recorded states came about again to the last bit; None under changed friction.
        success: Whether the task's success test held at the end.
    """

    layouts: Mapping[str, PadLayout]
    friction: float | None
    stamps_ns: NDArray[np.int64]
    force: Array
    sliding: Array
    bodies: NDArray[np.object_]
    instants: list[Instant]
    tracked: list[TrackedPose]
    same_states: bool | None
    success: bool


def record_touch(
    episode: Episode,
    sensors: TactileSettings,
    tracker: TrackerSettings,
    rng: np.random.Generator,
    *,
    friction: float | None = None,
    on_step: Callable[[int, int], None] | None = None,
) -> TouchRecording:
    """Execute an episode's actions again from its initial state and record touch.

    Args:
        episode: What to execute.
        sensors: How good the tactile sensors are.
        tracker: How well the robot knows its links and sees the object.
        rng: Draws all noise.
        friction: Sliding friction coefficient between hands and movable objects, instead of the recorded one.
        on_step: Called with the actions executed so far and in all.

    Raises:
        ReplayError: The episode belongs to another scene than the installed task's.
    """
    task = task_named(episode.task)
    environment = Environment(task)
    world = environment.world
    if episode.initial.model_hash != world.model_hash:
        raise ReplayError(
            f"the episode was recorded in scene {episode.initial.model_hash}, the installed one is {world.model_hash}"
        )
    movable = [name for name in task.objects if not world.is_fixed(name)]
    environment.restore(episode.initial)
    if friction is not None:
        _set_friction(world, movable, friction)
    controller = WholeBodyController(task.robot)
    recorder = _Recorder(world, movable, TactileSensors(world, sensors, rng), tracker, rng)
    interval = task.robot.contract.control_interval
    substeps, total = round(interval / world.model.opt.timestep), len(episode.executed)
    same, sound = True, True
    for step, action in enumerate(episode.executed):
        same &= np.array_equal(world.get_state(), episode.states[step])
        state = environment.body.read()
        controller.command(action)
        environment.body.apply(controller.step(state, interval))
        try:
            for _ in range(substeps):
                world.step()
                recorder.observe()
        except SceneError:
            # Changed friction may shake a scene apart; what was recorded until then is good.
            sound = False
            break
        environment.observe_success()
        if on_step is not None:
            on_step(step + 1, total)
    same &= sound and np.array_equal(world.get_state(), episode.states[total])
    success = sound and environment.outcome().success
    return recorder.recording(friction, same if friction is None else None, success)


def _set_friction(world: World, objects: list[str], friction: float) -> None:
    """Give hands and objects a sliding friction; MuJoCo takes the larger of both sides."""
    model = world.model
    bodies = np.zeros(model.nbody, dtype=bool)
    for name in {*objects, *(pad.link for pad in world.robot.pads.values())}:
        bodies |= world.attached_to(name)
    model.geom_friction[bodies[model.geom_bodyid], 0] = friction


class _Recorder:
    """Take down truth after each step, and what the robot knows when its sensors measure."""

    def __init__(
        self, world: World, objects: list[str], sensors: TactileSensors, tracker: TrackerSettings,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self._world, self._sensors, self._tracker, self._rng = world, sensors, tracker, rng
        pads = world.robot.pads
        self._pads = list(sensors.layouts)
        self._geoms = [world.model.geom(pads[name].shape).id for name in self._pads]
        self._links = {name: world.body_id(name) for name in dict.fromkeys(p.link for p in pads.values())}
        self._object = objects[0] if objects else None
        self._measured = mujoco.MjData(world.model)
        self._next_picture = 0
        self._stamps: list[int] = []
        self._force: list[Array] = []
        self._sliding: list[Array] = []
        self._bodies: list[list[str]] = []
        self._instants: list[Instant] = []
        self._tracked: list[TrackedPose] = []

    def observe(self) -> None:
        """Record the world as it is after a step."""
        world, stamp = self._world, self._world.time_ns
        contacts = contact_forces(world)
        touches = self._sensors.skin.touches(contacts)
        self._stamps.append(stamp)
        self._force.append(np.array([touches[name].normal_force for name in self._pads]))
        self._bodies.append([self._touching(touches[name]) for name in self._pads])
        self._sliding.append(self._slides(contacts, touches))
        if self._object is not None and self._tracker.rate > 0.0 and stamp >= self._next_picture:
            self._next_picture = stamp + round(1e9 / self._tracker.rate)
            self._see(self._object, stamp)
        if self._sensors.due(stamp):
            arrived = self._sensors.advance(stamp, contacts)
            self._instants.append(Instant(stamp, {}, self._link_poses()))
        else:
            arrived = self._sensors.advance(stamp, contacts)
        self._sort_in(arrived)

    def _sort_in(self, arrived: list[tuple[str, TactileReading]]) -> None:
        """Put readings, which may arrive late, to the instant that they were taken at."""
        for name, reading in arrived:
            for instant in reversed(self._instants):
                if instant.stamp_ns == reading.stamp_ns:
                    instant.readings[name] = reading  # type: ignore[index]
                    break

    def _touching(self, touch: PadTouch) -> str:
        return touch.bodies[0] if touch.bodies else ""

    def _slides(self, contacts: ContactForces, touches: Mapping[str, PadTouch]) -> Array:
        """Return the velocity of each pad's surface across what touches its shape, weighted by force, shape (P, 3)."""
        result = np.zeros((len(self._pads), 3))
        for i, (name, geom) in enumerate(zip(self._pads, self._geoms, strict=True)):
            if touches[name].normal_force <= 0.0:
                continue
            mine = contacts.geom == geom
            at = np.flatnonzero(mine.any(axis=1) & (contacts.body >= 0).all(axis=1) & (contacts.force[:, 0] > 0.0))
            if not len(at):
                continue
            side = mine[at].argmax(axis=1)
            own, other = contacts.body[at, side], contacts.body[at, 1 - side]
            relative = self._velocity(own, contacts.position[at]) - self._velocity(other, contacts.position[at])
            normal, weight = contacts.frame[at, 0], contacts.force[at, 0]
            across = relative - np.einsum("ni,ni->n", relative, normal)[:, None] * normal
            result[i] = weight @ across / weight.sum()
        return result

    def _velocity(self, bodies: NDArray[np.intp], points: Array) -> Array:
        """Return velocities of points fixed to bodies in the world frame in [m/s], shape (n, 3)."""
        model, data = self._world.model, self._world.data
        twist = np.zeros(6)
        result = np.zeros((len(points), 3))
        for i, body in enumerate(bodies.tolist()):
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, body, twist, 0)
            result[i] = twist[3:] + np.cross(twist[:3], points[i] - data.xpos[body])
        return result

    def _link_poses(self) -> dict[str, pin.SE3]:
        """Return where the encoders say that the sensors' links are in the base."""
        world, data = self._world, self._measured
        q = world.robot_state().q
        world.write_robot(data, pin.SE3.Identity(), q + self._rng.normal(0.0, self._tracker.encoder_noise, len(q)))
        mujoco.mj_kinematics(world.model, data)
        return {
            name: pin.SE3(data.xmat[body].reshape(3, 3).copy(), data.xpos[body].copy())
            for name, body in self._links.items()
        }

    def _see(self, name: str, stamp: int) -> None:
        world, tracker = self._world, self._tracker
        pose = world.object_pose(world.robot.base_link).actInv(world.object_pose(name))
        turn = pin.exp3(self._rng.normal(0.0, tracker.rotation_noise, 3))
        seen = pin.SE3(turn @ pose.rotation, pose.translation + self._rng.normal(0.0, tracker.position_noise, 3))
        self._tracked.append(TrackedPose(stamp, stamp + round(1e9 * tracker.latency), seen))

    def recording(self, friction: float | None, same: bool | None, success: bool) -> TouchRecording:
        """Return what was recorded."""
        return TouchRecording(
            layouts=self._sensors.layouts,
            friction=friction,
            stamps_ns=np.array(self._stamps, dtype=np.int64),
            force=np.array(self._force).reshape(-1, len(self._pads)),
            sliding=np.array(self._sliding).reshape(-1, len(self._pads), 3),
            bodies=np.array(self._bodies, dtype=object).reshape(-1, len(self._pads)),
            instants=self._instants,
            tracked=self._tracked,
            same_states=same,
            success=success,
        )
