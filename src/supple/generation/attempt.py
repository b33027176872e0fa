# SPDX-License-Identifier: Apache-2.0
"""One attempt: draw a scene, carry the demonstration over to it, execute it in physics and judge the end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.control.base_motion import WaypointController, WaypointStatus
from supple.control.path_following import PathFollower
from supple.control.steady_base import SteadyBase
from supple.control.whole_body import WholeBodyController
from supple.episodes import AttemptRecord, Episode, Origin, Outcome, Seed
from supple.episodes.recorder import EpisodeRecorder
from supple.episodes.versions import current_versions
from supple.errors import PlanningError, SceneError
from supple.generation.approach_planning import ApproachPlanner
from supple.generation.constraints import compile_groups
from supple.generation.placement import Placement, PlacementPlanner
from supple.generation.settings import GenerationSettings
from supple.generation.sources import SkillSource, skill_sources
from supple.generation.walk_planning import WalkPlanner
from supple.geometry import interpolate_pose, minimum_jerk, yaw_of
from supple.kinematics.whole_body_ik import WholeBodyIK
from supple.planning.timing import time_path
from supple.robots.g1 import ARM_GROUPS
from supple.sim.clearance import ClearanceChecker, Overlap
from supple.tasks import Environment, Layout, Task

__all__ = ["AttemptRunner"]

Array = NDArray[np.float64]

# Distance to the demonstrated place to stand in [m] below which a group may begin without a walk.
_NEAR = 0.12
# Largest joint acceleration in [rad/s^2] of an approach that leads round something.
_APPROACH_ACCELERATION = 4.0


class _RejectionError(Exception):
    """Ends an attempt: carries where it failed and why."""

    def __init__(self, origin: Origin, reason: str) -> None:
        super().__init__(reason)
        self.origin = origin
        self.reason = reason


@dataclass
class _Progress:
    stage: str = "reset"
    completed: bool = False


def _initial_of(layout: Layout) -> dict[str, list[float]]:
    """Return what the ledger keeps of a layout: poses as x, y, z in [m] and yaw in [rad], and materials."""
    poses = {f"object/{name}": pose for name, pose in layout.objects.items()} | {"robot": layout.T_world_base}
    rows = {name: [*map(float, pose.translation), yaw_of(pose)] for name, pose in poses.items()}
    return rows | {f"material/{name}": [float(value)] for name, value in layout.materials.items()}


class _NoClearance(ClearanceChecker):
    """Finds nothing in the way."""

    def overlaps(self, T_world_base: pin.SE3, q: Array, tolerance: float = 0.0) -> list[Overlap]:
        return []


class AttemptRunner:
    """Make attempts at a task from a seed, one at a time, in one process.

    Args:
        task: The task.
        seed: The demonstration.
        source: Its name, stored with each episode.
        settings: How to generate.

    Raises:
        SeedError: The seed does not fit the task.
        TaskError: The task's constraints contradict each other.
    """

    def __init__(self, task: Task, seed: Seed, source: str, settings: GenerationSettings) -> None:
        self._task = task
        self._settings = settings
        self._source = source
        self._robot = task.robot
        self._sources = skill_sources(task, seed, self._robot)
        self._groups = compile_groups(task.skills, task.precedence, task.coordination)
        self._environment = Environment(task)
        self._controller = WholeBodyController(self._robot)
        self._ik = WholeBodyIK(self._robot)
        self._clearance = (ClearanceChecker if settings.collision_checks else _NoClearance)(self._environment.world)
        self._approaches = ApproachPlanner(self._robot, self._clearance)
        self._upper = self._controller.upper_body.indices
        self._arms = np.isin(self._upper, self._robot.joints.group(*ARM_GROUPS))
        group = self._robot.joints.group
        effectors = {skill.effector: self._robot.effector(skill.effector) for skill in task.skills}
        self._limbs = {name: (group(effector.arm), group(effector.fingers)) for name, effector in effectors.items()}
        self._steady = SteadyBase()
        self._dt = self._robot.contract.control_interval

    def run(self, attempt: int, seed: int, distribution: str) -> tuple[AttemptRecord, Episode | None]:
        """Make one attempt; the same arguments give the same episode bit for bit.

        Args:
            attempt: Its index.
            seed: Seed of the dataset; the attempt's random numbers derive from both.
            distribution: Initial distribution.

        Returns:
            The ledger's record, and the episode unless nothing happened at all.
        """
        began = time.perf_counter()
        self._timings: dict[str, float] = {}
        self._rng = np.random.default_rng([seed, attempt])
        layout = self._task.sample(distribution, self._rng)
        initial = self._environment.reset(layout)
        self._controller.reset()
        self._state = self._environment.body.read()
        self._recorder = EpisodeRecorder(self._robot, initial)
        self._progress = _Progress()
        self._q = layout.q.copy()
        self._finished: dict[str, bool] = {self._signal(source): False for source in self._sources}
        origin: Origin | None = None
        reason = ""
        sound = True
        try:
            self._execute()
            outcome = self._environment.outcome()
            if not outcome.success:
                origin, reason = self._blame(outcome), outcome.reason
        except _RejectionError as rejection:
            origin, reason = rejection.origin, rejection.reason
            outcome = Outcome(False, self._environment.outcome().measures, reason)
        except PlanningError as error:
            origin, reason = Origin.PLANNING, str(error)
            outcome = Outcome(False, self._environment.outcome().measures, reason)
        except SceneError as error:
            origin, reason, outcome = Origin.CONTACT, str(error), Outcome(False, {}, str(error))
            sound = False
        # MuJoCo has reset an unstable scene: what it shows then is no state of this episode.
        episode = self._finish(attempt, seed, distribution, outcome) if sound else None
        record = AttemptRecord(
            attempt=attempt,
            seed=seed,
            source=self._source,
            distribution=distribution,
            outcome="retained" if origin is None else "rejected",
            completed=self._progress.completed,
            stage=self._progress.stage,
            origin=origin,
            reason=reason,
            initial=_initial_of(layout),
            measures=dict(outcome.measures),
            sim_seconds=self._recorder.steps * self._dt,
            wall_seconds=time.perf_counter() - began,
            timings=self._timings,
        )
        return record, episode

    # -- the way through an attempt --------------------------------------------------------------------------------

    def _execute(self) -> None:
        with self._stage("settle"):
            for _ in range(round(self._settings.settle_time / self._dt)):
                self._tick(self._q)
        for members in self._groups:
            sources = [self._sources[i] for i in members]
            start = self._go_to(sources)
            with self._stage("approach"):
                self._approach(start)
            with self._stage("skill:" + "+".join(dict.fromkeys(source.skill.name for source in sources))):
                targets = self._run_skills(sources)
        with self._stage("hold"):
            for _ in range(round(self._settings.hold_time / self._dt)):
                base = self._steady.step(self._base(), self._dt)
                self._q = self._ik.track(base, self._q, targets, posture=self._held_posture())
                self._tick(self._q, targets)
        self._progress.completed = True
        self._progress.stage = "success_test"

    def _go_to(self, sources: Sequence[SkillSource]) -> Array:
        """Walk to where the group of skills can be done and return the configuration that begins it from there."""
        planner = PlacementPlanner(self._ik, self._clearance)
        if not self._settings.planning:
            return self._go_where_shown(sources, planner)
        for walks in range(self._settings.replans + 2):
            paths, postures = self._paths(sources)
            with self._stage("plan"):
                carried = self._environment.world.carried_objects(self._task.objects)
                self._clearance.carry(carried)
                here = self._base()
                # Never walk for a group that can be done from here.
                near = walks > 0 or self._near(sources, here)
                start = planner.reach(here, self._q, paths, postures) if near else None
                placement: Placement | None = None
                if start is None and walks <= self._settings.replans:
                    height = self._robot.standing_height
                    limit, sides = self._settings.placements, self._task.sides
                    nominal, ways, leads_to = self._shown_place(sources), None, None
                    if self._settings.collision_checks:
                        ways = WalkPlanner(self._environment.world, here, self._q, list(carried))
                        leads_to = ways.leads_to
                    placement = planner.find(nominal, height, self._q, paths, postures, limit, sides, leads_to)
                    if placement is None:
                        failures = planner.failures, ways.failures if ways else ()
                        raise _RejectionError(Origin.PLANNING, self._no_placement(*failures))
            if start is not None:
                return start.q
            if placement is None:
                break
            with self._stage("walk"):
                self._walk(placement.T_world_base, ways)
            if not self._settings.replanning:
                return placement.start.q
        raise _RejectionError(
            Origin.PLANNING,
            f"after walking {walks} times the robot still stands out of reach"
            + (f": {planner.failures[-1]}" if planner.failures else ""),
        )

    def _shown_place(self, sources: Sequence[SkillSource]) -> pin.SE3:
        """Return where the demonstration stood, carried over to where the object is now."""
        return self._reference(sources[0]) * sources[0].T_reference_base

    def _go_where_shown(self, sources: Sequence[SkillSource], planner: PlacementPlanner) -> Array:
        """Walk straight to where the demonstration stood and return the configuration that begins the skills there."""
        with self._stage("walk"):
            self._walk(self._shown_place(sources))
        with self._stage("plan"):
            start = planner.reach(self._base(), self._q, *self._paths(sources))
        if start is None:
            raise _RejectionError(Origin.PLANNING, f"out of reach from where it was shown: {planner.failures[-1]}")
        return start.q

    def _near(self, sources: Sequence[SkillSource], here: pin.SE3) -> bool:
        """Tell whether the robot stands where the demonstration did: leaning far out of a chance place tips it over."""
        return float(np.linalg.norm(self._shown_place(sources).translation[:2] - here.translation[:2])) < _NEAR

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

    def _walk(self, goal: pin.SE3, ways: WalkPlanner | None = None) -> None:
        tolerances = self._settings.arrival_tolerance, self._settings.arrival_yaw_tolerance
        stance = self._controller.stance
        controller: WaypointController | PathFollower
        if ways is None or ways.path is None:
            controller = WaypointController(self._robot, *tolerances, stance=stance)
            controller.start(goal)
        else:
            controller = PathFollower(self._robot, *tolerances, stance=stance, replan=ways.path_from)
            controller.start(ways.path)
        for _ in range(round(self._settings.walk_timeout / self._dt)):
            velocity = controller.step(self._state, self._dt)
            if controller.status is WaypointStatus.ARRIVED:
                return
            self._tick(self._q, velocity=velocity)
        offset, turn = controller.error(np.r_[self._base().translation[:2], yaw_of(self._base())])
        raise _RejectionError(
            Origin.ACTUATION,
            f"the walk did not end within {self._settings.walk_timeout:g} s: still {float(np.hypot(*offset)):.2f} m "
            f"and {np.degrees(turn):.0f} deg away",
        )

    def _approach(self, goal: Array) -> None:
        """Move waist and arms in joint space to where the skills begin, round what is in the way."""
        start, speed = self._q.copy(), self._settings.approach_speed
        planned = self._settings.planning
        way = self._approaches.way(self._base(), start, goal, self._rng) if planned else np.array([start, goal])
        if len(way) > 2:
            for q in time_path(way, speed, _APPROACH_ACCELERATION, self._dt).positions[1:]:
                self._q = q.copy()
                self._tick(self._q)
            return
        # Peak speed of a minimum-jerk motion is 1.875 times its mean.
        duration = max(0.3, 1.875 * float(np.abs(goal - start).max()) / speed)
        steps = max(1, round(duration / self._dt))
        for i in range(1, steps + 1):
            self._q = start + minimum_jerk(i / steps) * (goal - start)
            self._tick(self._q)

    def _run_skills(self, sources: Sequence[SkillSource]) -> dict[str, pin.SE3]:
        """Track the adapted hand paths step by step; returns the last targets."""
        adapted = {source.skill.effector: source.adapted(self._reference(source)) for source in sources}
        model = self._ik.kinematics
        entry = dict(
            zip(
                adapted,
                model.frame_poses(
                    model.configuration(self._base(), self._q), *(self._robot.effector(n).frame for n in adapted)
                ),
                strict=True,
            )
        )
        self._begin_posture = self._q.copy()
        self._steady.reset()
        steps = self._entry_steps(entry, adapted)
        targets: dict[str, pin.SE3] = {}
        for i in range(1, steps + 1):
            targets = {name: interpolate_pose(entry[name], path[0], i / steps) for name, path in adapted.items()}
            self._track(targets, sources, 0, noisy=False)
        for i in range(max(source.steps for source in sources)):
            targets = {name: path[min(i, len(path) - 1)] for name, path in adapted.items()}
            self._track(targets, sources, i, noisy=True)
            for source in sources:
                self._finished[self._signal(source)] = i + 1 >= source.steps
        return targets

    def _entry_steps(self, entry: Mapping[str, pin.SE3], adapted: Mapping[str, Sequence[pin.SE3]]) -> int:
        """Return over how many steps the hands are led from where they are to where the skills begin."""
        return self._settings.interpolation_steps

    def _track(self, targets: Mapping[str, pin.SE3], sources: Sequence[SkillSource], step: int, noisy: bool) -> None:
        posture = self._begin_posture.copy()
        for source in sources:
            row = source.postures[min(step, source.steps - 1)]
            arm, fingers = self._limbs[source.skill.effector]
            posture[arm] = row[arm]
            # Fingers replay the demonstration.
            self._q[fingers] = row[fingers]
        self._q = self._ik.track(self._steady.step(self._base(), self._dt), self._q, targets, posture=posture)
        noise = self._rng.normal(0.0, self._settings.arm_noise, self._upper.size) * self._arms if noisy else None
        self._tick(self._q, targets, noise=noise)

    def _tick(
        self,
        q: Array,
        targets: Mapping[str, pin.SE3] | None = None,
        velocity: Array | None = None,
        noise: Array | None = None,
    ) -> None:
        """Record the state, execute one action and pass one control interval.

        Raises:
            _RejectionError: The robot fell.
        """
        environment, state = self._environment, self._state
        effectors = environment.record(self._recorder, state)
        action = self._controller.action(q[self._upper], np.zeros(3) if velocity is None else velocity)
        action, _ = self._robot.contract.clamp(action)
        executed = action.copy()
        if noise is not None:
            executed[: self._upper.size] += noise
        executed = self._controller.command(executed)
        # A hand that no skill moves is sent where it is.
        sent = {**effectors, **(targets or {})}
        self._recorder.act(action, executed, sent, self._finished)
        environment.body.write(self._controller.step(state, self._dt))
        self._state = environment.body.read()
        environment.observe_success()
        if self._base().rotation[2, 2] < 0.6:
            raise _RejectionError(Origin.ACTUATION, f"the robot fell during {self._progress.stage}")

    # -- small things ------------------------------------------------------------------------------------------------

    @contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        self._progress.stage = name
        began = time.perf_counter()
        try:
            yield
        finally:
            self._timings[name] = self._timings.get(name, 0.0) + time.perf_counter() - began

    @staticmethod
    def _signal(source: SkillSource) -> str:
        return f"{source.skill.name}_{source.skill.effector}"

    def _base(self) -> pin.SE3:
        return self._state.T_world_base

    def _held_posture(self) -> Array:
        """Return what to stay near while holding: arms as they are, waist as when the skills began."""
        posture = self._q.copy()
        waist = self._robot.joints.group("waist")
        posture[waist] = self._begin_posture[waist]
        return posture

    def _reference(self, source: SkillSource) -> pin.SE3:
        return self._environment.world.object_pose(source.skill.reference)

    def _paths(self, sources: Sequence[SkillSource]) -> tuple[dict[str, list[pin.SE3]], Array]:
        paths = {source.skill.effector: source.adapted(self._reference(source)) for source in sources}
        longest = max(sources, key=lambda source: source.steps)
        return paths, longest.postures

    def _blame(self, outcome: Outcome) -> Origin:
        """Tell a lost object from a test that only just failed."""
        forces = self._environment.world.contact_forces(self._task.grasp_pairs).values()
        lost = any(normal == 0.0 for normal, _ in forces)
        return Origin.CONTACT if lost else Origin.SUCCESS_TEST

    def _finish(self, attempt: int, seed: int, distribution: str, outcome: Outcome) -> Episode | None:
        if self._recorder.steps == 0:
            return None
        try:
            self._environment.record(self._recorder)
            return self._recorder.finish(
                task=self._task.name,
                distribution=distribution,
                attempt=attempt,
                seed=seed,
                source=self._source,
                outcome=outcome,
                versions=current_versions(),
            )
        except SceneError:
            return None
