# SPDX-License-Identifier: Apache-2.0
"""The way through a task: walk to where a group of skills can be done, approach, and follow the adapted hand paths."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

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
from supple.generation.host import Host, RejectionError
from supple.generation.placement import Placement, PlacementPlanner
from supple.generation.selection import SourceSelector
from supple.generation.settings import GenerationSettings
from supple.generation.sources import SkillSource, Squat
from supple.generation.walk_planning import WalkPlanner
from supple.geometry import interpolate_pose, minimum_jerk, yaw_of
from supple.kinematics.collision import CollisionModel
from supple.kinematics.collision_spheres import link_spheres
from supple.kinematics.hand_tracking import HandTracking
from supple.kinematics.ik_batch import IkBatchSolver
from supple.kinematics.model import KinematicModel
from supple.kinematics.solids import Solids
from supple.planning.timing import time_path
from supple.robots.g1 import ARM_GROUPS, LEG_GROUPS, UPPER_BODY_GROUPS
from supple.sim.clearance import ClearanceChecker, Overlap
from supple.sim.collision_geometry import robot_solids
from supple.sim.world import World
from supple.tasks import Task

__all__ = ["TaskRunner"]

Array = NDArray[np.float64]

# Distance to the demonstrated place to stand in [m] below which a group may begin without a walk.
_NEAR = 0.12
# The base is at its height within so much in [m], slower than this in [m/s]; it must get there within this time in [s].
_AT_HEIGHT, _STILL, _HEIGHT_TIME = 0.012, 0.02, 12.0
# After so long in [s] a base that came to rest where the hands can work from may stay there.
_PATIENCE = 2.5
# Largest joint acceleration in [rad/s^2] of an approach that leads round something.
_APPROACH_ACCELERATION = 4.0
# How long the robot takes to stop in [s].
_STOPPING_TIME = 1.5


class _NoClearance(ClearanceChecker):
    """Finds nothing in the way."""

    def overlaps(self, T_world_base: pin.SE3, q: Array, tolerance: float = 0.0) -> list[Overlap]:
        return []

    def scene(self) -> Solids:
        return Solids(())


class TaskRunner:
    """Do a task once after the other with what a demonstration showed.

    Args:
        task: The task.
        sources: Chooses what was shown of each of its skills.
        settings: How.
        world: The scene as it is; it is read, never stepped.
        stance: Where the robot stands, free of sway.
        host: The robot.

    Attributes:
        settings: How.
        groups: The task's skills in the order in which they are done: indices of those done together.
        group: Which of the groups is under way.
        stage: What is under way.
        completed: Whether all skills were done.
        started: For each skill, by signal, whether it was begun.
        finished: The same, whether it was done.
        sources: Chooses what was shown of each skill, and tells what it chose.
        timings: Wall time spent in each stage in [s].
        q: The present joint targets in [rad].

    Raises:
        TaskError: The task's constraints contradict each other.
    """

    def __init__(
        self,
        task: Task,
        sources: SourceSelector,
        settings: GenerationSettings,
        world: World,
        stance: StanceEstimator,
        host: Host,
    ) -> None:
        self._task, self._robot, self.sources = task, task.robot, sources
        self.settings = settings
        self._world, self._stance, self._host = world, stance, host
        self.groups = compile_groups(task.skills, task.precedence, task.coordination)
        self._tracking, self._kinematics = HandTracking(self._robot), KinematicModel(self._robot)
        self._clearance = (ClearanceChecker if settings.collision_checks else _NoClearance)(world)
        self._approaches = ApproachPlanner(self._robot, self._clearance)
        spheres = link_spheres(robot_solids(world)) if settings.collision_checks else None
        self._starts = IkBatchSolver(self._robot, None if spheres is None else CollisionModel(self._robot, spheres))
        group = self._robot.joints.group
        self._upper = self._robot.joints.group(*UPPER_BODY_GROUPS)
        self._arms = np.isin(self._upper, group(*ARM_GROUPS))
        effectors = {skill.effector: self._robot.effector(skill.effector) for skill in task.skills}
        self._legs = group(*LEG_GROUPS)
        self._limbs = {name: (group(effector.arm), group(effector.fingers)) for name, effector in effectors.items()}
        self._arm_of = {name: np.isin(self._upper, arm) for name, (arm, _) in self._limbs.items()}
        self._steady = SteadyBase()
        self._dt = self._robot.contract.control_interval

    def begin(self, q: Array, rng: np.random.Generator) -> None:
        """Forget the attempt before.

        Args:
            q: Joint positions in [rad] that the robot stands with.
            rng: Random numbers of this attempt.
        """
        self.q, self._rng = q.copy(), rng
        self._height: float | None = None
        self.group, self.stage, self.completed = 0, "reset", False
        self.timings: dict[str, float] = {}
        self.started: dict[str, bool] = {skill.signal: False for skill in self._task.skills}
        self.finished = dict(self.started)
        self.sources.begin(rng)

    def execute(self) -> None:
        """Do the task's skills, group by group.

        Raises:
            RejectionError: It cannot be done, or the host ended it.
            PlanningError: A plan failed.
        """
        with self.staged("settle"):
            for _ in range(round(self.settings.settle_time / self._dt)):
                self._host.tick(self.q)
        for number, members in enumerate(self.groups):
            self.group = number
            sources = self.sources.choose(members, self._world.object_pose, self._hand_pose, self._rng)
            if self._height is not None:
                with self.staged("rise"):
                    self._bring_base_to(None)
            name = "skill:" + "+".join(dict.fromkeys(source.skill.name for source in sources))
            if self._longest(sources).walk is not None:
                with self.staged(name):
                    targets = self._run_walking(sources)
                continue
            start = self.go_to(sources)
            squat = self._squat(sources)
            height = self._task.working_height if squat is None else float(squat.heights[0])
            if height is not None:
                with self.staged("stand"):
                    self._bring_base_to(height, patience=math.inf if squat is not None else _PATIENCE)
                if squat is not None or self.settings.replanning:
                    start = self.start_below(sources, squat)
            with self.staged("approach"):
                self.approach(start)
            with self.staged(name):
                targets = self._run_skills(sources)
        with self.staged("hold"):
            for _ in range(round(self.settings.hold_time / self._dt)):
                self.q = self._tracking.step(self._steady_base(), self.q, targets, self._held_posture())
                self._host.tick(self.q, targets, height=self._height)
        self.completed = True
        self.stage = "success_test"

    def go_to(self, sources: Sequence[SkillSource]) -> Array:
        """Walk to where the group of skills can be done and return the configuration that begins it from there."""
        planner = self.placements()
        if not self.settings.planning:
            return self._go_where_shown(sources, planner)
        for walks in range(self.settings.replans + 2):
            paths, postures, motion = self._paths(sources)
            with self.staged("plan"):
                carried = self._world.carried_objects(self._task.objects)
                self._clearance.carry(carried)
                here = self._base()
                # Never walk for a group that can be done from here.
                near = walks > 0 or self._near(sources, here)
                start = planner.reach(self._lowered(here, motion), self.q, paths, postures, motion) if near else None
                placement: Placement | None = None
                if start is None and walks <= self.settings.replans:
                    height = (self._task.working_height if motion is None else None) or self._robot.standing_height
                    limit, sides = self.settings.placements, self._task.sides
                    nominal, ways, leads_to = self.shown_place(sources), None, None
                    if self.settings.collision_checks:
                        ways = WalkPlanner(self._world, here, self.q, list(carried))
                        leads_to = ways.leads_to
                    placement = planner.find(nominal, height, self.q, paths, postures, limit, sides, leads_to, motion)
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

    def start_below(self, sources: Sequence[SkillSource], squat: Squat | None) -> Array:
        """Return the configuration that begins a group of skills from where the base came to rest.

        Raises:
            RejectionError: The hands do not reach from there.
        """
        with self.staged("plan"):
            paths, postures, _ = self._paths(sources)
            motion = None
            if squat is not None:
                motion = [squat.T_stand_bases[0].actInv(T_stand_base) for T_stand_base in squat.T_stand_bases]
            planner = self.placements()
            start = planner.reach(self._base(), self.q, paths, postures, motion)
        if start is None:
            raise RejectionError(Origin.PLANNING, f"out of reach from where it came to rest: {planner.failures[-1]}")
        return start.q

    def placements(self) -> PlacementPlanner:
        """Return what looks for places to stand in the present scene."""
        return PlacementPlanner(self._tracking, self._starts, self._kinematics, self._clearance, self._rng)

    def shown_place(self, sources: Sequence[SkillSource]) -> pin.SE3:
        """Return where the demonstration stood, carried over to where the object is now."""
        return self._reference(sources[0]) * sources[0].T_reference_base

    def _go_where_shown(self, sources: Sequence[SkillSource], planner: PlacementPlanner) -> Array:
        """Walk straight to where the demonstration stood and return the configuration that begins the skills there."""
        with self.staged("walk"):
            self.walk(self.shown_place(sources))
        with self.staged("plan"):
            paths, postures, motion = self._paths(sources)
            start = planner.reach(self._lowered(self._base(), motion), self.q, paths, postures, motion)
        if start is None:
            raise RejectionError(Origin.PLANNING, f"out of reach from where it was shown: {planner.failures[-1]}")
        return start.q

    def _near(self, sources: Sequence[SkillSource], here: pin.SE3) -> bool:
        """Tell whether the robot stands where the demonstration did: leaning far out of a chance place tips it over."""
        return float(np.linalg.norm(self.shown_place(sources).translation[:2] - here.translation[:2])) < _NEAR

    @staticmethod
    def _no_placement(failures: Sequence[str], unreached: Sequence[str]) -> str:
        kinds = {
            "furniture in the way": ("inside",),
            "out of balance": ("over the feet",),
            "out of reach": ("from their targets", "beyond its tolerance"),
            "in collision where the skills begin": ("overlap",),
            "arms too slow for the path": ("rad/s",),
        }
        counts = {text: sum(any(key in f for key in keys) for f in failures) for text, keys in kinds.items()}
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
                self._host.tick(self.q, height=self._height)
            return
        # Peak speed of a minimum-jerk motion is 1.875 times its mean.
        duration = max(0.3, 1.875 * float(np.abs(goal - start).max()) / speed)
        steps = max(1, round(duration / self._dt))
        for i in range(1, steps + 1):
            self.q = start + minimum_jerk(i / steps) * (goal - start)
            self._host.tick(self.q, height=self._height)

    def _run_skills(self, sources: Sequence[SkillSource]) -> dict[str, pin.SE3]:
        """Track the adapted hand paths step by step; returns the last targets."""
        adapted = {source.skill.effector: source.adapted(self._reference(source)) for source in sources}
        model = self._kinematics
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
        self._expected: pin.SE3 | None = None
        steps = self.entry_steps(sources, entry, adapted)
        targets: dict[str, pin.SE3] = {}
        for i in range(1, steps + 1):
            targets = {name: interpolate_pose(entry[name], path[0], i / steps) for name, path in adapted.items()}
            self._track(targets, sources, 0, noisy=False)
        for i in range(max(source.steps for source in sources)):
            targets = {name: path[min(i, len(path) - 1)] for name, path in adapted.items()}
            self.started |= {source.skill.signal: True for source in sources}
            self._track(targets, sources, i, noisy=True)
            self.finished |= {source.skill.signal: i + 1 >= source.steps for source in sources}
        return targets

    def _run_walking(self, sources: Sequence[SkillSource]) -> dict[str, pin.SE3]:
        """Walk as it was shown while the hands do what they did, as seen from the base; returns the last targets.

        Such a walk begins where the robot stands: what it pushes is where the skill before left it. It ends when it
        should have arrived: were it to walk back for what is left, the hands would let go.
        """
        walks = {source.skill.effector: source.walk for source in sources if source.walk is not None}
        here, longest = self._stance.pose(self._host.state), self._longest(sources).skill.effector
        path = walks[longest].path(self._reference(sources[0]), here, self._dt)
        follower = PathFollower(self._robot, stance=self._stance)
        follower.start(path)
        # The hands keep still as seen from the base: that they answered its sway would disturb the legs.
        base, model = pin.SE3.Identity(), self._kinematics
        frames = [self._robot.effector(name).frame for name in walks]
        entry = dict(zip(walks, model.frame_poses(model.configuration(base, self.q), *frames), strict=True))
        self._begin_posture, self._expected = self.q.copy(), None
        entered = max(1, self.entry_steps(sources, entry, {name: w.T_base_targets for name, w in walks.items()}))
        self.started |= {source.skill.signal: True for source in sources}
        stopping, targets = 0, dict(entry)
        for tick in range(round(self.settings.walk_timeout / self._dt)):
            velocity = follower.step(self._host.state, self._dt)
            if follower.time >= path.times[-1]:
                stopping, velocity = stopping + 1, np.zeros(3)
            if stopping * self._dt > _STOPPING_TIME:
                self.finished |= {source.skill.signal: True for source in sources}
                self._steady.reset()
                return targets
            step, fraction = round(follower.time / self._dt), min(1.0, (tick + 1) / entered)
            shown = {name: walk.T_base_targets[min(step, len(walk.T_base_targets) - 1)] for name, walk in walks.items()}
            seen = {name: interpolate_pose(entry[name], pose, fraction) for name, pose in shown.items()}
            self.q = self._tracking.step(base, self.q, seen, self._shown_posture(sources, step))
            noise = self._noise(sources)
            targets = {name: self._base() * pose for name, pose in seen.items()}
            self._host.tick(self.q, targets, velocity=velocity, noise=noise)
        raise RejectionError(Origin.ACTUATION, f"the walk did not end within {self.settings.walk_timeout:g} s")

    def entry_steps(
        self, sources: Sequence[SkillSource], entry: Mapping[str, pin.SE3], adapted: Mapping[str, Sequence[pin.SE3]]
    ) -> int:
        """Return over how many steps the hands are led from where they are to where the skills begin."""
        return max(source.skill.interpolation_steps for source in sources)

    def _track(self, targets: Mapping[str, pin.SE3], sources: Sequence[SkillSource], step: int, noisy: bool) -> None:
        posture = self._shown_posture(sources, step)
        if squat := self._squat(sources):
            now = min(step, len(squat.heights) - 1)
            self._height, self._expected = float(squat.heights[now]), squat.T_stand_bases[now]
        self.q = self._tracking.step(self._steady_base(), self.q, targets, posture)
        noise = self._noise(sources) if noisy else None
        self._host.tick(self.q, targets, noise=noise, height=self._height)

    def _shown_posture(self, sources: Sequence[SkillSource], step: int) -> Array:
        """Return what the arms should stay near at a step of the skills, and let the fingers do what was shown."""
        posture = self._begin_posture.copy()
        for source in sources:
            row = source.postures[min(step, source.steps - 1)]
            arm, fingers = self._limbs[source.skill.effector]
            posture[arm] = row[arm]
            self.q[fingers] = row[fingers]
        return posture

    @contextmanager
    def staged(self, name: str) -> Iterator[None]:
        """Name the stage that a block belongs to and add up its wall time."""
        self.stage = name
        began = time.perf_counter()
        try:
            yield
        finally:
            self.timings[name] = self.timings.get(name, 0.0) + time.perf_counter() - began

    def _noise(self, sources: Sequence[SkillSource]) -> Array:
        """Draw the noise of waist, arms and hands in [rad]; an arm that has no skill has that of the noisiest."""
        deviations = np.full(self._upper.size, max(source.skill.arm_noise for source in sources))
        for source in sources:
            deviations[self._arm_of[source.skill.effector]] = source.skill.arm_noise
        return self._rng.normal(0.0, deviations) * self._arms

    def _hand_pose(self, effector: str) -> pin.SE3:
        return self._world.link_pose(self._robot.effector(effector).frame)

    def _lowered(self, T_world_base: pin.SE3, motion: Sequence[pin.SE3] | None) -> pin.SE3:
        """Return where the base will be for the hands' work; a motion that was shown goes down by itself."""
        height = self._task.working_height
        if height is None or motion is not None:
            return T_world_base
        x, y, _ = T_world_base.translation
        return pin.SE3(T_world_base.rotation, np.array([x, y, height]))

    def _base(self) -> pin.SE3:
        return self._host.state.T_world_base

    def _steady_base(self) -> pin.SE3:
        """Return the base pose that the hands reckon with: in a squat it moves as it was shown."""
        return self._steady.step(self._base(), self._dt, self._expected)

    def _bring_base_to(self, height: float | None, patience: float = math.inf) -> None:
        """Go to a height of the base in [m], that of walking without, and wait until the base rests there.

        A base that rests elsewhere for ``patience`` in [s], e.g. since a hand hangs before a thigh, is left there.
        """
        self._height, wanted = height, self._robot.standing_height if height is None else height
        resting = 0.0
        for _ in range(round(_HEIGHT_TIME / self._dt)):
            self._host.tick(self.q, height=height)
            state = self._host.state
            off = float(state.T_world_base.translation[2]) - wanted
            still = float(np.abs(state.base_linear_velocity).max()) < _STILL
            resting = resting + self._dt if still else 0.0
            if still and (abs(off) < _AT_HEIGHT or resting > patience):
                self.q[self._legs] = state.q[self._legs]
                return
        raise RejectionError(
            Origin.ACTUATION,
            f"the base is {100 * off:+.1f} cm off its height of {wanted:.2f} m after {_HEIGHT_TIME:g} s",
        )

    def _held_posture(self) -> Array:
        """Return what to stay near while holding: arms as they are, waist as when the skills began."""
        posture = self.q.copy()
        waist = self._robot.joints.group("waist")
        posture[waist] = self._begin_posture[waist]
        return posture

    def _reference(self, source: SkillSource) -> pin.SE3:
        return self._world.object_pose(source.skill.reference)

    @staticmethod
    def _longest(sources: Sequence[SkillSource]) -> SkillSource:
        return max(sources, key=lambda source: source.steps)

    def _squat(self, sources: Sequence[SkillSource]) -> Squat | None:
        """Return how the base moves in a group of skills."""
        return self._longest(sources).squat

    def _paths(
        self, sources: Sequence[SkillSource]
    ) -> tuple[dict[str, list[pin.SE3]], Array, Sequence[pin.SE3] | None]:
        """Return hand paths, postures and the base's motion, as ``PlacementPlanner.reach`` takes them."""
        paths = {source.skill.effector: source.adapted(self._reference(source)) for source in sources}
        squat = self._squat(sources)
        return paths, self._longest(sources).postures, None if squat is None else squat.T_stand_bases
