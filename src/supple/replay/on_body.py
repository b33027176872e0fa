# SPDX-License-Identifier: Apache-2.0
"""Replay of an episode on a body that is seen only through its measurements, e.g. a robot behind ROS topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pinocchio as pin

from supple.control.whole_body import WholeBodyController
from supple.episodes import Episode, Outcome
from supple.errors import ReplayError, StateError
from supple.replay.verdict import DivergenceWatch, Verdict, compare_contracts
from supple.robots import Body, RobotState
from supple.sim.mirror import Mirror
from supple.tasks import Environment, task_named

__all__ = ["SceneJudge", "contract_verdict", "replay_on_body"]


class SceneJudge:
    """Evaluate a task's success test on what was measured, in a copy of the scene that is never stepped.

    Args:
        episode: What is replayed; its fixed objects and materials make the scene.
    """

    def __init__(self, episode: Episode) -> None:
        self._environment = Environment(task_named(episode.task))
        if episode.initial.model_hash != self._environment.world.model_hash:
            raise ReplayError(
                f"the episode was recorded in scene {episode.initial.model_hash}, the installed one is "
                f"{self._environment.world.model_hash}: another version of the task, robot model or MuJoCo"
            )
        self._environment.restore(episode.initial)
        self._mirror = Mirror(self._environment.world)

    def see(self, state: RobotState, objects: Mapping[str, pin.SE3]) -> None:
        """Take over the state after one action."""
        self._mirror.show(state, objects, {})
        self._environment.observe_success()

    @property
    def outcome(self) -> Outcome:
        """The verdict on the last state seen; the test must also have held for the time before it."""
        return self._environment.outcome()


def contract_verdict(episode: Episode, clean: bool = False) -> Verdict | None:
    """Return the verdict that stops a replay before anything moves, or None if the contracts match."""
    contract = compare_contracts(episode.contract, task_named(episode.task).robot.contract)
    if contract == "match":
        return None
    return Verdict(
        contract=contract,
        frames_applied=0,
        frames_total=len(episode.actions if clean else episode.executed),
        first_divergence_step=None,
        divergence={},
        success=False,
        reason="the episode's actions mean something else on this robot; nothing was moved",
    )


def replay_on_body(
    episode: Episode,
    body: Body,
    objects_at: Callable[[RobotState], Mapping[str, pin.SE3]],
    *,
    clean: bool = False,
    watch: DivergenceWatch | None = None,
    on_frame: Callable[[int, int], None] | None = None,
) -> Verdict:
    """Execute an episode's actions on a body that stands in the initial state, and judge the result.

    A frame counts as applied when the body's ``write`` confirmed it. What stops the replay half-way is in the reason.

    Args:
        episode: What to replay; its contract was compared already.
        body: What moves.
        objects_at: Returns the poses of the task's objects at the time of a state.
        clean: Replay the clean labels instead of what was executed.
        watch: Compares states; 5 cm and 0.05 rad if absent.
        on_frame: Called with the frames applied so far and in all; may raise ReplayError to stop.
    """
    actions = episode.actions if clean else episode.executed
    robot = task_named(episode.task).robot
    judge, controller = SceneJudge(episode), WholeBodyController(robot)
    watch = watch or DivergenceWatch()
    recorded, applied, stopped = episode.observations, 0, ""
    state = body.read()
    watch.observe(0, state.q, state.base_position, recorded["q"][0], recorded["base_pose"][0][:3])
    try:
        for step, action in enumerate(actions):
            controller.command(action)
            body.write(controller.step(state, robot.contract.control_interval))
            applied += 1
            state = body.read()
            watch.observe(
                step + 1, state.q, state.base_position, recorded["q"][step + 1], recorded["base_pose"][step + 1][:3]
            )
            judge.see(state, objects_at(state))
            if on_frame is not None:
                on_frame(applied, len(actions))
    except (ReplayError, StateError) as error:
        stopped = f"stopped after {applied} of {len(actions)} frames: {error}"
    outcome = judge.outcome
    return Verdict(
        contract="match",
        frames_applied=applied,
        frames_total=len(actions),
        first_divergence_step=watch.first_step,
        divergence=watch.size,
        success=outcome.success and not stopped,
        reason=stopped or outcome.reason,
    )
