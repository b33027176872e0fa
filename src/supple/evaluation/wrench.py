# SPDX-License-Identifier: Apache-2.0
"""How well the momentum observer tells the wrenches at feet and wrists, against the simulator's contact forces."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from supple.control.locomotion import Locomotion
from supple.control.upper_body import UpperBodyController
from supple.control.whole_body import WholeBodyController
from supple.episodes import Episode
from supple.errors import SceneError, UnknownNameError
from supple.geometry import minimum_jerk, pose_from_xyyaw
from supple.kinematics.momentum_observer import MomentumObserver
from supple.robots import Robot, RobotCommand, RobotState, g1
from supple.sim.body import SimBody
from supple.sim.forces import LinkWrenches
from supple.sim.g1_model import g1_spec
from supple.sim.world import World
from supple.tasks import Environment, task_named

__all__ = ["MOTIONS", "WrenchError", "measure_wrenches", "measure_wrenches_of"]

Array = NDArray[np.float64]

MOTIONS = ("standing", "reaching", "pushed", "walking")
"""What the robot does meanwhile: nothing; swinging its arms; being pushed at the wrists; walking at 0.4 m/s."""

_WALKING_SPEED = 0.4
_PUSH, _PUSH_PERIOD, _RAMP = 10.0, 2.0, 0.5  # N, s, s
_SWING, _SWING_PERIOD = 0.4, 2.0  # rad, s
_HOLDING = 1.0  # N
# Before this the robot has landed on its feet, and later begun to move, in [s].
_BEGIN, _MEASURE_FROM = 1.0, 3.0


class WrenchError(BaseModel):
    """Error of the estimated wrench at one frame during one motion.

    Attributes:
        motion: What the robot did.
        frame: Where.
        samples: Compared instants.
        force: Root mean square length of the force's error in [N], against the truth at the same instant.
        force_without_lag: The same against the truth passed through the observer's own low-pass: what is left is error,
            not delay.
        torque: Root mean square length of the torque's error in [Nm], against the truth at the same instant.
        bias: Mean error of the force in [N], axes of the frame.
        largest_force: Largest true force in [N].
    """

    model_config = ConfigDict(frozen=True)

    motion: str
    frame: str
    samples: int
    force: float
    force_without_lag: float
    torque: float
    bias: tuple[float, float, float]
    largest_force: float


def measure_wrenches(
    motion: str, rng: np.random.Generator, seconds: float = 10.0, cutoff: float = 10.0, torque_error: float = 0.0
) -> list[WrenchError]:
    """Let a simulated G1 do something and compare the observer with the contact forces.

    The observer sees what a robot's sensors give: joint positions, velocities and torques, and odometry, 200 times a
    second.

    Args:
        motion: One of ``MOTIONS``.
        rng: Draws directions of pushes and errors of torques.
        seconds: How long is measured.
        cutoff: Bandwidth of the observer in [Hz].
        torque_error: Standard deviation of a constant error of each measured torque, as a share of its motor's limit.

    Raises:
        UnknownNameError: No such motion.
        SceneError: The robot fell.
    """
    if motion not in MOTIONS:
        raise UnknownNameError("motion", motion, MOTIONS)
    robot = g1()
    world = World(g1_spec(), robot)
    world.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, robot.standing_height + 0.015), robot.joints.home)
    world.set_state(world.get_state())
    command, push = _driver(motion, robot), _Pusher(world, rng)
    comparison = _Comparison(world, cutoff, torque_error, rng)
    body = SimBody(world, robot.contract.control_interval)
    body.reset()
    timestep = float(world.model.opt.timestep)
    per_tick = round(body.control_interval / timestep)
    for step in range(round((_MEASURE_FROM + seconds) / timestep)):
        time = step * timestep
        if step % per_tick == 0:
            body.apply(command(body.read(), body.control_interval, time))
        if motion == "pushed":
            push(time)
        world.step(1)
        comparison.observe(counts=time >= _MEASURE_FROM)
    if float(body.read().T_world_base.rotation[2, 2]) < 0.8:
        raise SceneError(f"the robot fell while {motion}: nothing to compare")
    return comparison.errors(motion)


def measure_wrenches_of(
    episode: Episode, rng: np.random.Generator, cutoff: float = 10.0, torque_error: float = 0.0
) -> list[WrenchError]:
    """Execute an episode's actions again and compare the observer with the contact forces while both hands hold.

    Args:
        episode: The episode.
        rng: Draws errors of torques.
        cutoff: Bandwidth of the observer in [Hz].
        torque_error: As for ``measure_wrenches``.

    Raises:
        StateError: The episode belongs to another scene.
        SceneError: The hands never held anything.
    """
    environment = Environment(task_named(episode.task))
    environment.restore(episode.initial)
    world, body = environment.world, environment.body
    controller = WholeBodyController(world.robot)
    comparison = _Comparison(world, cutoff, torque_error, rng)
    hands = [world.robot.frames[effector.frame].link for effector in world.robot.effectors.values()]
    held = [name for name in world.robot.wrench_frames if world.robot.frame(name).link in hands]
    for action in episode.executed:
        controller.command(action)
        body.apply(controller.step(body.read(), body.control_interval))
        for _ in range(round(body.control_interval / world.model.opt.timestep)):
            world.step(1)
            comparison.observe(held_by=held)
    return comparison.errors("holding")


def _driver(motion: str, robot: Robot) -> Callable[[RobotState, float, float], RobotCommand]:
    """Return what commands all joints: legs by the walking policy, the rest in the home posture or swinging."""
    legs, upper = Locomotion(robot), UpperBodyController(robot)
    home = robot.joints.home[upper.indices]
    raised = [name for name in robot.joints.names if name.endswith(("shoulder_pitch_joint", "elbow_joint"))]
    swinging = np.isin(upper.indices, robot.joints.indices(raised))

    def command(state: RobotState, dt: float, time: float) -> RobotCommand:
        if motion == "walking" and time >= _BEGIN:
            legs.command_velocity([_WALKING_SPEED, 0.0, 0.0])
        swing = 0.0
        if motion == "reaching" and time >= _BEGIN:
            swing = 0.5 * _SWING * (1.0 - math.cos(2.0 * math.pi * (time - _BEGIN) / _SWING_PERIOD))
        upper.command(home - np.where(swinging, swing, 0.0))
        below, above = legs.step(state, dt), upper.step(state, dt)
        chosen = {
            key: np.where(above.active, getattr(above, key), getattr(below, key))
            for key in ("q", "v", "tau", "kp", "kd")
        }
        return replace(below, **chosen, active=above.active | below.active)

    return command


class _Pusher:
    """Push one wrist after the other, each time in another direction."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self._world, self._rng = world, rng
        self._count, self._force = -1, np.zeros(3)

    def __call__(self, time: float) -> None:
        if time < _BEGIN:
            return
        count = math.floor((time - _BEGIN) / _PUSH_PERIOD)
        since = time - _BEGIN - count * _PUSH_PERIOD
        side = "l" if count % 2 == 0 else "r"
        if count != self._count:
            self._count = count
            direction = self._rng.normal(size=3)
            self._force = _PUSH * direction / np.linalg.norm(direction)
        strength = minimum_jerk(since / _RAMP) - minimum_jerk((since - (_PUSH_PERIOD - _RAMP)) / _RAMP)
        frame = f"{side}_wrist"
        link = self._world.robot.frame(frame).link
        self._world.push(link, strength * self._force, self._world.link_pose(frame).translation)


class _Comparison:
    """What was estimated and what was true, instant by instant.

    Args:
        world: The scene.
        cutoff: Bandwidth of the observer in [Hz].
        torque_error: Standard deviation of the measured torques' errors, as a share of the limits.
        rng: Draws them.
    """

    def __init__(self, world: World, cutoff: float, torque_error: float, rng: np.random.Generator) -> None:
        joints = world.robot.joints
        self._world, self._offset = world, torque_error * joints.effort * rng.normal(size=len(joints))
        self._observer, self._truth = MomentumObserver(world.robot, cutoff=cutoff), LinkWrenches(world)
        self._share = -math.expm1(-2.0 * math.pi * cutoff * float(world.model.opt.timestep))
        self._delayed: Array | None = None
        self._rows: list[tuple[Array, Array, Array]] = []

    def observe(self, counts: bool = True, held_by: Sequence[str] = ()) -> None:
        """Take in the present state.

        Args:
            counts: Whether it is compared.
            held_by: Compare only while a true force acts at each of these frames.
        """
        state, known = self._world.robot_state(), self._truth.read()
        found = self._observer.step(replace(state, effort=state.effort + self._offset))
        truth = np.stack([known[name] for name in self._observer.frames])
        last = truth if self._delayed is None else self._delayed
        self._delayed = last + self._share * (truth - last)
        holds = all(np.linalg.norm(known[name][:3]) > _HOLDING for name in held_by)
        if counts and holds and found is not None:
            estimate = np.stack([found.wrench[name] for name in self._observer.frames])
            self._rows.append((estimate, truth, self._delayed))

    def errors(self, motion: str) -> list[WrenchError]:
        """Return the errors at each frame.

        Raises:
            SceneError: Nothing was compared.
        """
        if not self._rows:
            raise SceneError(f"{motion}: no instant to compare")
        estimate, truth, delayed = (np.array(rows) for rows in zip(*self._rows, strict=True))
        return [
            WrenchError(
                motion=motion,
                frame=frame,
                samples=len(estimate),
                force=_rms((estimate - truth)[:, i, :3]),
                force_without_lag=_rms((estimate - delayed)[:, i, :3]),
                torque=_rms((estimate - truth)[:, i, 3:]),
                bias=tuple((estimate - truth)[:, i, :3].mean(axis=0).tolist()),
                largest_force=float(np.linalg.norm(truth[:, i, :3], axis=1).max()),
            )
            for i, frame in enumerate(self._observer.frames)
        ]


def _rms(error: Array) -> float:
    return float(np.sqrt(np.mean(np.sum(error**2, axis=1))))
