# SPDX-License-Identifier: Apache-2.0
"""Node that does whole tasks with what one demonstration showed: the action execute_task, planned while it holds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pinocchio as pin
from diagnostic_msgs.msg import DiagnosticStatus
from numpy.typing import NDArray
from pydantic import ValidationError
from supple_interfaces.action import ExecuteTask
from supple_interfaces.msg import CommandTrace, JointCommand

from supple.control.stance import StanceEstimator
from supple.control.whole_body import WholeBodyController
from supple.episodes import Origin, Outcome
from supple.errors import PlanningError, SceneError, SeedError, SettingError, StateError, SuppleError, TaskError
from supple.generation import GenerationSettings
from supple.generation.demonstrations import load_demonstrations
from supple.generation.host import RejectionError
from supple.generation.selection import SourceSelector
from supple.generation.task_runner import TaskRunner
from supple.nodes.conversion import joint_command
from supple.nodes.diagnostics import steady_clock
from supple.nodes.goals import Goal, SingleGoalServer
from supple.nodes.lifecycle import ActuatorNode
from supple.nodes.objects_input import ObjectsInput
from supple.nodes.qos import COMMAND, EVENT, publisher, subscription, withdraw
from supple.nodes.runtime import run_node
from supple.nodes.scheduling import CONTROL_PRIORITY
from supple.nodes.state_input import StateInput
from supple.nodes.task_host import TaskHost, TaskStoppedError, Wanted
from supple.robots import RobotCommand, RobotState, robot_named
from supple.tasks import Environment, Task, task_named
from supple.yaml_file import first_problem

__all__ = ["TaskExecutor", "main"]

Result = ExecuteTask.Result

_WATCH = 0.05
_FEEDBACK_EVERY = 0.2
# The robot has fallen when the vertical component of its base's z axis is below this.
_UPRIGHT = 0.6
# So many commands in a row must be refused: those on their way while the robot is reset say nothing.
_REFUSED = 5


@dataclass
class _Run:
    """A goal that is being pursued in a thread of its own.

    Attributes:
        goal: The goal.
        began: The state with which it began.
        host: The robot as the task sees it, once everything is loaded.
        runner: Who does the task, likewise.
        work: What came of it.
    """

    goal: Goal
    began: RobotState
    host: TaskHost | None = None
    runner: TaskRunner | None = None
    work: Future[Outcome] = field(default_factory=Future)
    told: tuple[float, str] = (0.0, "")


class TaskExecutor(ActuatorNode):
    """Do tasks. It owns all joints and holds the robot standing as soon as it is active."""

    source = "task_executor"

    def __init__(self) -> None:
        super().__init__("task_executor", realtime_priority=CONTROL_PRIORITY)
        self._robot = robot_named(self.parameter("robot", "g1", "name of the robot"))
        self._seeds = self.parameter("seeds", "", "folder of the demonstrations TASK.hdf5 of goals that name none")
        self._state_timeout = self.parameter(
            "state_timeout", 1.0, "goals are aborted without states, or without poses of objects, for this time in s"
        )
        self._patience = self.parameter(
            "patience", 0.012, "longest wait in s for a task's wish at a control tick, before the last one is held"
        )
        self._interval = self._robot.contract.control_interval
        self._loop = self.diagnostics.loop("control", self._interval)
        self._controller = WholeBodyController(self._robot)
        self._upper = self._controller.upper_body.indices
        self._run: _Run | None = None
        self._forget()

    def configure(self) -> None:
        """Make publishers, subscriptions and the action server."""
        self._commands = publisher(self, JointCommand, "joint_commands", COMMAND)
        self._traces = subscription(self, CommandTrace, "command_trace", self._on_trace, EVENT)
        self._objects = ObjectsInput(self, self.diagnostics)
        self._input = StateInput(self, self._robot.joints, self._interval, self._tick, self._reset, self.diagnostics)
        self._server = SingleGoalServer(self, ExecuteTask, "execute_task", self._on_goal, self._on_replaced)
        self._timer = self.create_timer(_WATCH, self._watch, clock=steady_clock())
        self.diagnostics.set("source", self.source)

    def activate(self) -> None:
        """Begin anew, standing."""
        self._forget()

    def deactivate(self) -> None:
        """End what is under way and damp every joint."""
        self._end(Result.PREEMPTED, "the task executor was deactivated")
        self._publish(self._damping())

    def cleanup(self) -> None:
        """Destroy what configure made."""
        self._input.close()
        self._objects.close()
        self.destroy_subscription(self._traces)
        self.destroy_timer(self._timer)
        self._server.close()
        withdraw(self, self._commands)

    # -- the control loop --------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._controller.reset()
        self._state: RobotState | None = None
        self._held: Wanted | None = None
        self._fallen = False
        self._refused = 0

    def _reset(self) -> None:
        self._end(Result.PREEMPTED, "the simulation was reset")
        if self._fallen:
            self.diagnostics.state(DiagnosticStatus.OK, "running")
        self._forget()

    def _tick(self, state: RobotState) -> None:
        began = time.perf_counter()
        self._state = state
        if not self.active:
            return
        self._judge_upright(state)
        self._publish(self._damping() if self._fallen else self._command(state))
        self._loop.tick(time.perf_counter() - began)

    def _command(self, state: RobotState) -> RobotCommand:
        if self._held is None:
            # Measured fingers rest a little beyond their stops.
            joints = self._robot.joints
            self._held = Wanted(np.clip(state.q, joints.lower, joints.upper), np.zeros(3))
        host = self._run.host if self._run is not None else None
        self._held = (host.exchange(state) if host is not None else None) or self._held
        wanted, controller = self._held, self._controller
        action = controller.action(wanted.q[self._upper], wanted.velocity, wanted.height)
        controller.command(self._robot.contract.clamp(action)[0])
        return controller.step(state, self._interval)

    def _judge_upright(self, state: RobotState) -> None:
        upright = float(state.T_world_base.rotation[2, 2])
        if self._fallen or upright >= _UPRIGHT:
            return
        self._fallen = True
        self.get_logger().error("the robot has fallen: everything is damped until the next reset")
        self.diagnostics.state(DiagnosticStatus.ERROR, "fallen")
        self._end(
            Result.FALLEN, f"the robot fell: pelvis upright {upright:.2f}, expected {_UPRIGHT:.2f}", Origin.ACTUATION
        )

    def _damping(self) -> RobotCommand:
        stamp = self._state.stamp_ns if self._state is not None else 0
        return RobotCommand.damping(self._robot.joints, self.source, stamp)

    def _publish(self, command: RobotCommand) -> None:
        self._commands.publish(joint_command(self._robot.joints, replace(command, source=self.source)))

    def _on_trace(self, message: CommandTrace) -> None:
        if message.source != self.source or not self.active:
            return
        self._refused = self._refused + 1 if message.refused else 0
        self._refusal = message.refused
        if self._refused >= _REFUSED:
            self.diagnostics.refuse("refused commands", f"commands are not executed: {message.refused}")
            self._end(Result.FAILED, message.refused, Origin.ACTUATION)

    # -- goals: in the node's thread -----------------------------------------------------------------------------------

    def _on_goal(self, goal: Goal) -> None:
        try:
            state = self._present()
        except StateError as error:
            goal.abort(Result(error_code=Result.INVALID_GOAL, error_string=str(error)))
            return
        self._run = _Run(goal, state)
        # A plan may take seconds; a process that is told to end does not wait for it.
        threading.Thread(target=self._work, args=(self._run,), name="task", daemon=True).start()
        self.diagnostics.state(DiagnosticStatus.OK, f"doing {goal.request.task}")

    def _present(self) -> RobotState:
        if not self.active:
            raise StateError("the task executor is not active")
        if self._fallen:
            raise StateError("the robot has fallen; reset first")
        if self._state is None or self._held is None or self._input.age > self._state_timeout:
            raise StateError("no state of the robot arrives on joint_states, odom and imu/data")
        if self._refused >= _REFUSED:
            raise StateError(self._refusal)
        return self._state

    def _on_replaced(self, goal: Goal) -> None:
        self._end(Result.PREEMPTED, "replaced by a newer goal")

    def _watch(self) -> None:
        """Serve what must not depend on states arriving; the clock here does not stop with the simulation."""
        run = self._run
        if run is None:
            return
        if run.goal.cancel_requested:
            self._end(Result.PREEMPTED, "cancelled")
        elif self._input.age > self._state_timeout:
            self._end(
                Result.STALE_STATE, f"no complete state (joint_states, odom, imu/data) for {self._input.age:.1f} s"
            )
        elif run.runner is not None and self._objects.age > self._state_timeout:
            self._end(Result.STALE_STATE, f"no poses on objects for {self._objects.age:.1f} s")
        elif run.work.done():
            self._conclude(run)
        else:
            self._tell(run)

    def _tell(self, run: _Run) -> None:
        runner, (when, stage) = run.runner, run.told
        if runner is None or (runner.stage == stage and time.monotonic() - when < _FEEDBACK_EVERY):
            return
        run.told = (time.monotonic(), runner.stage)
        group, task = runner.group, task_named(run.goal.request.task)
        skills = list(dict.fromkeys(task.skills[i].name for i in runner.groups[group]))
        run.goal.feedback(
            ExecuteTask.Feedback(
                group=group, groups=len(runner.groups), skills=skills, stage=runner.stage, elapsed=self._elapsed(run)
            )
        )

    def _elapsed(self, run: _Run) -> float:
        return (self._state.stamp_ns - run.began.stamp_ns) * 1e-9 if self._state is not None else 0.0

    def _conclude(self, run: _Run) -> None:
        """Finish a goal by what its thread came to."""
        try:
            outcome = run.work.result()
        except RejectionError as error:
            self._end(Result.FAILED, error.reason, error.origin)
        except PlanningError as error:
            self._end(Result.FAILED, str(error), Origin.PLANNING)
        except SceneError as error:
            self._end(Result.FAILED, str(error), Origin.CONTACT)
        except SuppleError as error:
            self._end(Result.FAILED if run.runner is not None else Result.INVALID_GOAL, str(error))
        except Exception as error:
            # A fault in a plan must not drop the robot.
            self.get_logger().error(f"the task ended with {type(error).__name__}: {error}")
            self._end(Result.FAILED, f"{type(error).__name__}: {error}")
        else:
            if outcome.success:
                self._end(Result.SUCCESS, "")
            else:
                self._end(Result.FAILED, outcome.reason, Origin.SUCCESS_TEST)

    def _end(self, code: int, text: str, origin: Origin | None = None) -> None:
        """Finish the goal, if there is one; the robot stands still and holds what it was sent to."""
        run, self._run = self._run, None
        if run is None:
            return
        if run.host is not None:
            run.host.stop(text or "done")
        if self._held is not None:
            self._held = self._held.at_rest()
        result = Result(
            error_code=code,
            error_string=text,
            success=code == Result.SUCCESS,
            origin="" if origin is None else origin.value,
            stage=run.runner.stage if run.runner is not None else "load",
            elapsed=self._elapsed(run),
        )
        said = f"{run.goal.request.task}: {text or 'success'}"
        # One call cannot log with two severities.
        if result.success:
            self.get_logger().info(said)
        else:
            self.get_logger().warning(said)
        if not self._fallen:
            self.diagnostics.state(DiagnosticStatus.OK, said)
        if result.success:
            run.goal.succeed(result)
        elif code == Result.PREEMPTED:
            run.goal.cancel(result)
        else:
            run.goal.abort(result)

    # -- the task: in a thread of its own ------------------------------------------------------------------------------

    def _work(self, run: _Run) -> None:
        try:
            run.work.set_result(self._execute(run))
        except BaseException as error:
            # The node's thread deals with it.
            run.work.set_exception(error)

    def _execute(self, run: _Run) -> Outcome:
        request = run.goal.request
        task = task_named(request.task)
        if task.robot.name != self._robot.name:
            raise TaskError(f"task {task.name!r} is for {task.robot.name!r}, this node drives {self._robot.name!r}")
        settings = self._settings(request.settings)
        sources = SourceSelector(task, load_demonstrations(task, [self._seed_file(task, request.seed_file)]), settings)
        environment = Environment(task)
        # Masses and friction of the true scene are not known; nothing that is planned here depends on them.
        environment.reset(task.nominal())
        self._objects.await_all(task.objects, self._state_timeout)
        state, held = self._state, self._held
        if state is None or held is None:
            raise TaskStoppedError("the robot was reset while the task was loaded")
        host = TaskHost(environment, state, lambda: self._seen(task), self._patience)
        # The loop's own estimator remembers the loop's states, in the loop's thread.
        stance = StanceEstimator(self._robot)
        runner = TaskRunner(task, sources, settings, environment.world, stance, host)
        q = state.q.copy()
        q[self._upper] = held.q[self._upper]
        runner.begin(q, np.random.default_rng(request.random_seed))
        run.host, run.runner = host, runner
        if self._run is not run:
            raise TaskStoppedError("ended while the task was loaded")
        runner.execute()
        return environment.outcome()

    def _seen(self, task: Task) -> tuple[dict[str, pin.SE3], dict[str, NDArray[np.float64]]]:
        seen, names = self._objects.newest, task.objects
        poses = {name: seen.poses[name] for name in names if name in seen.poses}
        return poses, {name: seen.twists[name] for name in names if name in seen.twists}

    @staticmethod
    def _settings(text: str) -> GenerationSettings:
        try:
            settings = GenerationSettings.model_validate_json(text or "{}")
        except ValidationError as error:
            raise SettingError(f"settings: {first_problem(error, GenerationSettings)}") from error
        if settings.strategy != "supple":
            raise SettingError(f"settings: strategy {settings.strategy!r} is for comparison; only 'supple' is executed")
        return settings

    def _seed_file(self, task: Task, given: str) -> Path:
        if given:
            return Path(given)
        if not self._seeds:
            raise SeedError("the goal names no seed_file, and the parameter 'seeds' of this node no folder")
        return Path(self._seeds) / f"{task.name}.hdf5"


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    # A plan gives the interpreter up this often in [s], so that the control loop need not wait for it.
    sys.setswitchinterval(1e-3)
    return run_node(TaskExecutor, args)


if __name__ == "__main__":
    raise SystemExit(main())
