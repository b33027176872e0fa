# SPDX-License-Identifier: Apache-2.0
"""Walks round a shelf and arms' ways round a table's edge: found, how long it took, and what became of them in physics.

    python benchmarks/planning.py [--layouts 24] [--arms 20]

Walks: a robot at the origin, a desk 2 m ahead and a shelf of 0.43 x 0.88 m between them, each moved and turned at
random; the goal lies 0.35 m off the desk's edge, half the goals 0.4 to 0.6 m aside, half anywhere along the desk, also
where the shelf leaves no room. Each way found is walked in MuJoCo by the walking policy; any contact with desk or shelf
counts.

Arms: from hands below the table's edge to hands above the table and back, standing 0.3 m off its edge. Printed are the
shares found, medians of planning time, way and duration. Planning times are of the processor.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import mujoco
import numpy as np

from supple.control.base_motion import WaypointStatus
from supple.control.path_following import FloorPath, PathFollower
from supple.control.whole_body import WholeBodyController
from supple.errors import PlanningError
from supple.geometry import pose_from_xyyaw, wrap_angle, xyyaw_of
from supple.planning.arm_path import plan_arm_path
from supple.planning.base_path import BasePath, plan_base_path
from supple.planning.base_space import BaseSpace
from supple.planning.timing import time_path
from supple.robots import ActionKind, g1
from supple.sim.body import SimBody
from supple.sim.clearance import ClearanceChecker
from supple.sim.g1_model import g1_spec
from supple.sim.outlines import robot_outlines, scene_outlines
from supple.sim.world import World
from supple.tasks.furniture import add_ergo_table

# Half extents and middles of the shelf's posts and boards in [m].
POST, BOARD = (0.021, 0.028, 0.777), (0.21, 0.4256, 0.014)
POST_AT, BOARD_TOPS = (0.187, 0.411), (0.308, 0.637, 1.071)


def add_shelf(spec: mujoco.MjSpec, name: str) -> None:
    """Add an open shelf of 0.43 x 0.88 x 1.55 m."""
    shelf = spec.worldbody.add_body(name=name)
    box = mujoco.mjtGeom.mjGEOM_BOX
    for x in (-POST_AT[0], POST_AT[0]):
        for y in (-POST_AT[1], POST_AT[1]):
            shelf.add_geom(type=box, size=POST, pos=[x, y, POST[2]])
    for top in BOARD_TOPS:
        shelf.add_geom(type=box, size=BOARD, pos=[0.0, 0.0, top - BOARD[2]])


@dataclass
class Walks:
    """What became of the walks."""

    plan_seconds: list[float] = field(default_factory=list)
    lengths: list[float] = field(default_factory=list)
    detours: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    turns: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    touched: int = 0
    unfinished: int = 0


class Floor:
    """The scene and the robot in it."""

    def __init__(self) -> None:
        spec = g1_spec()
        add_ergo_table(spec, "table")
        add_shelf(spec, "shelf")
        self.world = World(spec, g1())
        self.robot = self.world.robot
        self.controller = WholeBodyController(self.robot)
        self.body = SimBody(self.world, self.robot.contract.control_interval)
        self.posture = self.robot.joints.home

    def arrange(self, rng: np.random.Generator, beside: bool) -> np.ndarray:
        """Put everything somewhere and return the goal (x, y, yaw)."""
        u = rng.uniform
        world = self.world
        world.clear()
        table = pose_from_xyyaw(2.0 + u(-0.12, 0.12), u(-0.12, 0.12), np.pi + u(-0.38, 0.38))
        world.place_object("table", table)
        world.place_object("shelf", pose_from_xyyaw(0.7 + u(-0.12, 0.12), u(-0.3, 0.3), np.pi + u(-0.38, 0.38)))
        base = pose_from_xyyaw(u(-0.15, 0.0), u(-0.05, 0.05), u(-0.175, 0.175), self.robot.standing_height + 0.015)
        world.place_robot(base, self.posture)
        world.set_state(world.get_state())
        aside = rng.choice([-1.0, 1.0]) * u(0.4, 0.6) if beside else u(-0.6, 0.6)
        return xyyaw_of(table * pose_from_xyyaw(0.8, aside, np.pi))

    def plan(self, goal: np.ndarray) -> tuple[BaseSpace, BasePath]:
        """Return free space and a way to the goal."""
        space = BaseSpace(robot_outlines(self.world, self.posture), scene_outlines(self.world))
        return space, plan_base_path(space, xyyaw_of(self.world.robot_state().T_world_base), goal)

    def walk(self, space: BaseSpace, path: BasePath, goal: np.ndarray, limit: float = 60.0) -> tuple[bool, bool, float]:
        """Walk it; return whether the robot arrived, whether it touched anything, and how long it took in [s]."""
        follower = PathFollower(self.robot, 0.05, 0.06, self.controller.stance, self._replanner(space, goal))
        follower.start(FloorPath(path.waypoints, path.times))
        self.controller.reset()
        self.body.reset()
        dt, arms = self.body.control_interval, self.posture[self.controller.upper_body.indices]
        state, touched = self.body.read(), False
        for tick in range(round(limit / dt)):
            velocity = follower.step(state, dt)
            if follower.status is WaypointStatus.ARRIVED:
                return True, touched, tick * dt
            action, _ = self.robot.contract.clamp(self.controller.action(arms, velocity))
            self.controller.command(action)
            self.body.write(self.controller.step(state, dt))
            state = self.body.read()
            touched |= any(self.world.touching(self.robot.base_link, name) for name in ("table", "shelf"))
        return False, touched, limit

    def _replanner(self, space: BaseSpace, goal: np.ndarray) -> Callable[[np.ndarray], FloorPath]:
        def replan(pose: np.ndarray) -> FloorPath:
            path = plan_base_path(space, pose, goal)
            return FloorPath(path.waypoints, path.times)

        return replan


def walks(layouts: int) -> Walks:
    """Plan and walk in random layouts."""
    floor, result = Floor(), Walks()
    for layout in range(layouts):
        goal = floor.arrange(np.random.default_rng(layout), beside=layout % 2 == 0)
        start = xyyaw_of(floor.world.robot_state().T_world_base)
        began = time.process_time()
        try:
            space, path = floor.plan(goal)
        except PlanningError as error:
            result.refused.append(str(error))
            continue
        result.plan_seconds.append(time.process_time() - began)
        result.lengths.append(path.length)
        result.detours.append(path.length / float(np.hypot(*(goal - start)[:2])))
        arrived, touched, seconds = floor.walk(space, path, goal)
        result.touched += touched
        result.unfinished += not arrived
        error = xyyaw_of(floor.world.robot_state().T_world_base) - goal
        result.seconds.append(seconds)
        result.errors.append(float(np.hypot(*error[:2])))
        result.turns.append(abs(wrap_angle(error[2])))
    return result


def arms(count: int) -> None:
    """Plan for the arms between below and above the table's edge, and time the ways."""
    floor = Floor()
    world, robot = floor.world, floor.robot
    world.place_object("table", pose_from_xyyaw(0.75, 0.0, np.pi))
    world.place_object("shelf", pose_from_xyyaw(-2.0, 0.0, 0.0))
    base = pose_from_xyyaw(0.0, 0.0, 0.0, robot.standing_height)
    world.place_robot(base, robot.joints.home)
    world.set_state(world.get_state())
    checker = ClearanceChecker(world)
    moving = robot.joints.group("waist", "left_arm", "right_arm")
    names = [robot.joints.names[i] for i in moving]
    entries = {robot.contract.names[i]: i for i in robot.contract.of_kind(ActionKind.JOINT_POSITION)}
    columns = [entries[name] for name in names]
    lower, upper = robot.contract.lower[columns], robot.contract.upper[columns]

    def whole(row: np.ndarray) -> np.ndarray:
        q = robot.joints.home.copy()
        q[moving] = row
        return q

    def blocked(row: np.ndarray) -> str | None:
        found = checker.overlaps(base, whole(row))
        return f"{found[0].link} would be inside {found[0].other}" if found else None

    def drawn(rng: np.random.Generator, elbow: float, pitch: float) -> np.ndarray:
        row = robot.joints.home[moving].copy()
        for side in ("left", "right"):
            row[names.index(f"{side}_elbow_joint")] = elbow + rng.uniform(-0.15, 0.15)
            row[names.index(f"{side}_shoulder_pitch_joint")] = pitch + rng.uniform(-0.15, 0.15)
        return row

    seconds, timing, durations, straight, failed = [], [], [], 0, 0
    for problem in range(count):
        rng = np.random.default_rng(problem)
        low, high = drawn(rng, 0.95, 0.35), drawn(rng, 0.1, -0.35)
        while blocked(low) or blocked(high):
            low, high = drawn(rng, 0.95, 0.35), drawn(rng, 0.1, -0.35)
        ends = (low, high) if problem % 2 else (high, low)
        began = time.process_time()
        try:
            way = plan_arm_path(*ends, lower, upper, blocked, rng)
        except PlanningError as error:
            failed += 1
            print(f"  arms {problem}: {error}")
            continue
        seconds.append(time.process_time() - began)
        straight += len(way) == 2
        began = time.process_time()
        timed = time_path(way, 1.0, 4.0)
        timing.append(time.process_time() - began)
        durations.append(timed.duration)
    row("arms: problems", f"{count}, of which straight {straight}, no way found {failed}")
    row("arms: planning", f"{1e3 * statistics.median(seconds):.0f} ms, at most {1e3 * max(seconds):.0f} ms")
    row("arms: timing", f"{1e3 * statistics.median(timing):.0f} ms")
    row("arms: duration at 1 rad/s, 4 rad/s^2", f"{statistics.median(durations):.2f} s")


def row(name: str, value: str) -> None:
    """Print a line of the table."""
    print(f"{name:40} {value}")


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layouts", type=int, default=24)
    parser.add_argument("--arms", type=int, default=20)
    arguments = parser.parse_args()
    found = walks(arguments.layouts)
    planned = len(found.plan_seconds)
    row("walks: layouts", f"{arguments.layouts}, of which a way was found in {planned}")
    for reason in found.refused:
        print(f"  {reason}")
    row("walks: planning", f"{statistics.median(found.plan_seconds):.2f} s, at most {max(found.plan_seconds):.2f} s")
    length, detour = statistics.median(found.lengths), statistics.median(found.detours)
    row("walks: way", f"{length:.2f} m, {detour:.2f} times the line")
    row("walks: arrived", f"{planned - found.unfinished} of {planned} in {statistics.median(found.seconds):.1f} s")
    row("walks: touched desk or shelf", f"{found.touched} of {planned}")
    errors = 100.0 * np.array(found.errors)
    row("walks: stop error", f"{np.median(errors):.1f} cm, at most {errors.max():.1f} cm")
    row("walks: heading error", f"at most {np.degrees(max(found.turns)):.1f} deg")
    arms(arguments.arms)


if __name__ == "__main__":
    main()
