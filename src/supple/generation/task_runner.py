# SPDX-License-Identifier: Apache-2.0
"""The way through a task: walk to where a group of skills can be done, approach, and follow the adapted hand paths."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.control.base_motion import WaypointController, WaypointStatus
from supple.control.path_following import PathFollower
from supple.control.stance import StanceEstimator
from supple.control.steady_base import SteadyBase
from supple.episodes import Origin
from supple.generation.approach_planning import ApproachPlanner
from supple.generation.constraints import compile_groups
from supple.generation.placement import Placement, PlacementPlanner
from supple.generation.settings import GenerationSettings
from supple.generation.sources import SkillSource
from supple.generation.walk_planning import WalkPlanner
from supple.geometry import interpolate_pose, minimum_jerk, yaw_of
from supple.kinematics.whole_body_ik import WholeBodyIK
from supple.planning.timing import time_path
from supple.robots import RobotState
from supple.robots.g1 import ARM_GROUPS, UPPER_BODY_GROUPS
from supple.sim.clearance import ClearanceChecker, Overlap
from supple.sim.world import World
from supple.tasks import Task

__all__ = ["Host", "RejectionError", "TaskRunner"]

Array = NDArray[np.float64]

# Distance to the demonstrated place to stand in [m] below which a group may begin without a walk.
_NEAR = 0.12
# Largest joint acceleration in [rad/s^2] of an approach that leads round something.
_APPROACH_ACCELERATION = 4.0


class RejectionError(Exception):
    """Ends an attempt.

    Args:
        origin: Where it failed.
        reason: Why.
    """

    def __init__(self, origin: Origin, reason: str) -> None:
        super().__init__(reason)
        self.origin = origin
        self.reason = reason


class Host(Protocol):
    """The robot that a task is done with, simulated or real, seen by who does it."""

    @property
    def state(self) -> RobotState:
        """The newest state."""
        ...

    def tick(
        self,
        q: Array,
        targets: Mapping[str, pin.SE3] | None = None,
        velocity: Array | None = None,
        noise: Array | None = None,
    ) -> None:
        """Execute one action and pass one control interval.

        Args:
            q: Joint targets in [rad]; those of waist, arms and hands count.
            targets: What the hands follow, in the world frame, by effector; others stay where they are.
            velocity: Base velocity (vx, vy, wz); zero without.
            noise: Added to the targets of waist, arms and hands for execution only, in [rad].

        Raises:
            RejectionError: It cannot go on.
        """
        ...


class _NoClearance(ClearanceChecker):
    """Finds nothing in the way."""

    def overlaps(self, T_world_base: pin.SE3, q: Array, tolerance: float = 0.0) -> list[Overlap]:
        return []


class TaskRunner:
    """Do a task once after the other with what a demonstration showed.

    Args:
        task: The task.
        sources: What was shown of each of its skills, in the task's order.
        settings: How.
        world: The scene as it is; it is read, never stepped.
        stance: Where the robot stands, free of sway.
        host: The robot.

    Attributes:
        settings: How.
        stage: What is under way.
        completed: Whether all skills were done.
        finished: For each skill and effector, whether it was done.
        timings: Wall time spent in each stage in [s].
        q: The present joint targets in [rad].

    Raises:
        TaskError: The task's constraints contradict each other.
    """

    def __init__(
        self,
        task: Task,
        sources: Sequence[SkillSource],
        settings: GenerationSettings,
        world: World,
        stance: StanceEstimator,
        host: Host,
    ) -> None:
        self._task, self._robot, self._sources = task, task.robot, sources
        self.settings = settings
        self._world, self._stance, self._host = world, stance, host
        self._groups = compile_groups(task.skills, task.precedence, task.coordination)
        self._ik = WholeBodyIK(self._robot)
        self._clearance = (ClearanceChecker if settings.collision_checks else _NoClearance)(world)
        self._approaches = ApproachPlanner(self._robot, self._clearance)
        group = self._robot.joints.group
        self._upper = self._robot.joints.group(*UPPER_BODY_GROUPS)
        self._arms = np.isin(self._upper, group(*ARM_GROUPS))
        effectors = {skill.effector: self._robot.effector(skill.effector) for skill in task.skills}
        self._limbs = {name: (group(effector.arm), group(effector.fingers)) for name, effector in effectors.items()}
        self._steady = SteadyBase()
        self._dt = self._robot.contract.control_interval

    def begin(self, q: Array, rng: np.random.Generator) -> None:
        """Forget the attempt before.

        Args:
            q: Joint positions in [rad] that the robot stands with.
            rng: Random numbers of this attempt.
        """
        self.q, self._rng = q.copy(), rng
        self.stage, self.completed = "reset", False
        self.timings: dict[str, float] = {}
        self.finished: dict[str, bool] = {self._signal(source): False for source in self._sources}

    def execute(self) -> None:
        """Do the task's skills, group by group.

        Raises:
            RejectionError: It cannot be done, or the host ended it.
            PlanningError: A plan failed.
        """
        with self.staged("settle"):
            for _ in range(round(self.settings.settle_time / self._dt)):
                self._host.tick(self.q)
        for members in self._groups:
            sources = [self._sources[i] for i in members]
            start = self.go_to(sources)
            with self.staged("approach"):
                self.approach(start)
            with self.staged("skill:" + "+".join(dict.fromkeys(source.skill.name for source in sources))):
                targets = self._run_skills(sources)
        with self.staged("hold"):
            for _ in range(round(self.settings.hold_time / self._dt)):
                base = self._steady.step(self._base(), self._dt)
                self.q = self._ik.track(base, self.q, targets, posture=self._held_posture())
                self._host.tick(self.q, targets)
        self.completed = True
        self.stage = "success_test"

    def go_to(self, sources: Sequence[SkillSource]) -> Array:
        """Walk to where the group of skills can be done and return the configuration that begins it from there."""
        planner = PlacementPlanner(self._ik, self._clearance)
        if not self.settings.planning:
            return self._go_where_shown(sources, planner)
        for walks in range(self.settings.replans + 2):
            paths, postures = self._paths(sources)
            with self.staged("plan"):
                carried = self._world.carried_objects(self._task.objects)
                self._clearance.carry(carried)
                here = self._base()
                # Never walk for a group that can be done from here.
                near = walks > 0 or self._near(sources, here)
                start = planner.reach(here, self.q, paths, postures) if near else None
                placement: Placement | None = None
                if start is None and walks <= self.settings.replans:
                    height = self._robot.standing_height
                    limit, sides = self.settings.placements, self._task.sides
                    nominal, ways, leads_to = self.shown_place(sources), None, None
                    if self.settings.collision_checks:
                        ways = WalkPlanner(self._world, here, self.q, list(carried))
                        leads_to = ways.leads_to
                    placement = planner.find(nominal, height, self.q, paths, postures, limit, sides, leads_to)
                    if placement is None:
                        failures = planner.failures, ways.failures if ways else ()
                        raise RejectionError(Origin.PLANNING, self._no_placement(*failures))
            if start is not None:
                return start.q
            if placement is None:
                break
            with self.staged("walk"):
                self.walk(placement.T_world_base, ways)
            if not self.settings.replanning:
                return placement.start.q
        raise RejectionError(
            Origin.PLANNING,
            f"after walking {walks} times the robot still stands out of reach"
            + (f": {planner.failures[-1]}" if planner.failures else ""),
        )

    def shown_place(self, sources: Sequence[SkillSource]) -> pin.SE3:
        """Return where the demonstration stood, carried over to where the object is now."""
        return self._reference(sources[0]) * sources[0].T_reference_base

    def _go_where_shown(self, sources: Sequence[SkillSource], planner: PlacementPlanner) -> Array:
        """Walk straight to where the demonstration stood and return the configuration that begins the skills there."""
        with self.staged("walk"):
            self.walk(self.shown_place(sources))
        with self.staged("plan"):
            start = planner.reach(self._base(), self.q, *self._paths(sources))
        if start is None:
            raise RejectionError(Origin.PLANNING, f"out of reach from where it was shown: {planner.failures[-1]}")
        return start.q

    def _near(self, sources: Sequence[SkillSource], here: pin.SE3) -> bool:
        """Tell whether the robot stands where the demonstration did: leaning far out of a chance place tips it over."""
        return float(np.linalg.norm(self.shown_place(sources).translation[:2] - here.translation[:2])) < _NEAR

    @staticmethod
    def _no_placement(failures: Sequence[str], unreached: Sequence[str]) -> str:
        kinds = {
            "inside": "furniture in the way",
            "outside the feet": "out of balance",
            "from their targets": "out of reach",
            "rad/s": "arms too slow for the path",
        }
        counts = {text: sum(key in failure for failure in failures) for key, text in kinds.items()}
        counts["no way to walk there"] = len(unreached)
        why = ", ".join(f"{text} {count} times" for text, count in counts.items() if count)
        tried = [*unreached, *failures]
        return f"no place to stand among {len(tried)} tried: {why}; e.g. {tried[0]}"

    def walk(self, goal: pin.SE3, ways: WalkPlanner | None = None) -> None:
        """Walk to a place, straight or the way that was planned.

        Raises:
            RejectionError: It was not reached in time.
        """
        tolerances = self.settings.arrival_tolerance, self.settings.arrival_yaw_tolerance
        stance = self._stance
        controller: WaypointController | PathFollower
        if ways is None or ways.path is None:
            controller = WaypointController(self._robot, *tolerances, stance=stance)
            controller.start(goal)
        else:
            controller = PathFollower(self._robot, *tolerances, stance=stance, replan=ways.path_from)
            controller.start(ways.path)
        for _ in range(round(self.settings.walk_timeout / self._dt)):
            velocity = controller.step(self._host.state, self._dt)
            if controller.status is WaypointStatus.ARRIVED:
                return
            self._host.tick(self.q, velocity=velocity)
        offset, turn = controller.error(np.r_[self._base().translation[:2], yaw_of(self._base())])
        raise RejectionError(
            Origin.ACTUATION,
            f"the walk did not end within {self.settings.walk_timeout:g} s: still {float(np.hypot(*offset)):.2f} m "
            f"and {np.degrees(turn):.0f} deg away",
        )

    def approach(self, goal: Array) -> None:
        """Move waist and arms in joint space to where the skills begin, round what is in the way."""
        start, speed = self.q.copy(), self.settings.approach_speed
        planned = self.settings.planning
        way = self._approaches.way(self._base(), start, goal, self._rng) if planned else np.array([start, goal])
        if len(way) > 2:
            for q in time_path(way, speed, _APPROACH_ACCELERATION, self._dt).positions[1:]:
                self.q = q.copy()
                self._host.tick(self.q)
            return
        # Peak speed of a minimum-jerk motion is 1.875 times its mean.
        duration = max(0.3, 1.875 * float(np.abs(goal - start).max()) / speed)
        steps = max(1, round(duration / self._dt))
        for i in range(1, steps + 1):
            self.q = start + minimum_jerk(i / steps) * (goal - start)
            self._host.tick(self.q)

    def _run_skills(self, sources: Sequence[SkillSource]) -> dict[str, pin.SE3]:
        """Track the adapted hand paths step by step; returns the last targets."""
        adapted = {source.skill.effector: source.adapted(self._reference(source)) for source in sources}
        model = self._ik.kinematics
        entry = dict(
            zip(
                adapted,
                model.frame_poses(
                    model.configuration(self._base(), self.q), *(self._robot.effector(n).frame for n in adapted)
                ),
                strict=True,
            )
        )
        self._begin_posture = self.q.copy()
        self._steady.reset()
        steps = self.entry_steps(entry, adapted)
        targets: dict[str, pin.SE3] = {}
        for i in range(1, steps + 1):
            targets = {name: interpolate_pose(entry[name], path[0], i / steps) for name, path in adapted.items()}
            self._track(targets, sources, 0, noisy=False)
        for i in range(max(source.steps for source in sources)):
            targets = {name: path[min(i, len(path) - 1)] for name, path in adapted.items()}
            self._track(targets, sources, i, noisy=True)
            for source in sources:
                self.finished[self._signal(source)] = i + 1 >= source.steps
        return targets

    def entry_steps(self, entry: Mapping[str, pin.SE3], adapted: Mapping[str, Sequence[pin.SE3]]) -> int:
        """Return over how many steps the hands are led from where they are to where the skills begin."""
        return self.settings.interpolation_steps

    def _track(self, targets: Mapping[str, pin.SE3], sources: Sequence[SkillSource], step: int, noisy: bool) -> None:
        posture = self._begin_posture.copy()
        for source in sources:
            row = source.postures[min(step, source.steps - 1)]
            arm, fingers = self._limbs[source.skill.effector]
            posture[arm] = row[arm]
            # Fingers replay the demonstration.
            self.q[fingers] = row[fingers]
        self.q = self._ik.track(self._steady.step(self._base(), self._dt), self.q, targets, posture=posture)
        noise = self._rng.normal(0.0, self.settings.arm_noise, self._upper.size) * self._arms if noisy else None
        self._host.tick(self.q, targets, noise=noise)

    @contextmanager
    def staged(self, name: str) -> Iterator[None]:
        """Name the stage that a block belongs to and add up its wall time."""
        self.stage = name
        began = time.perf_counter()
        try:
            yield
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - began

    @staticmethod
    def _signal(source: SkillSource) -> str:
        return f"{source.skill.name}_{source.skill.effector}"

    def _base(self) -> pin.SE3:
        return self._host.state.T_world_base

    def _held_posture(self) -> Array:
        """Return what to stay near while holding: arms as they are, waist as when the skills began."""
        posture = self.q.copy()
        waist = self._robot.joints.group("waist")
        posture[waist] = self._begin_posture[waist]
        return posture

    def _reference(self, source: SkillSource) -> pin.SE3:
        return self._world.object_pose(source.skill.reference)

    def _paths(self, sources: Sequence[SkillSource]) -> tuple[dict[str, list[pin.SE3]], Array]:
        paths = {source.skill.effector: source.adapted(self._reference(source)) for source in sources}
        longest = max(sources, key=lambda source: source.steps)
        return paths, longest.postures
