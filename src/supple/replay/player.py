# SPDX-License-Identifier: Apache-2.0
"""Replay of an episode in physics, in this process: same initial state, same actions, and what came of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from supple.control.whole_body import WholeBodyController
from supple.episodes import Episode
from supple.episodes.versions import current_versions
from supple.errors import ReplayError, SceneError
from supple.replay.verdict import DivergenceWatch, Verdict, compare_contracts
from supple.tasks import Environment, task_named

__all__ = ["replay_in_simulation"]


def replay_in_simulation(
    episode: Episode, *, clean: bool = False, on_frame: Callable[[int, int], None] | None = None
) -> Verdict:
    """Execute an episode's actions from its initial state and judge the result.

    Executed actions must bring about the very states that were recorded: any difference in the last bit counts as a
    divergence. Clean actions lack the noise of the recording, so only a distance of 5 cm or 0.05 rad counts.

    Args:
        episode: What to replay.
        clean: Replay the clean labels instead of what was executed.
        on_frame: Called with the frames applied so far and in all.

    Returns:
        The verdict. Contracts that differ stop it before anything moves.

    Raises:
        ReplayError: The episode belongs to another scene than the installed task's.
    """
    task = task_named(episode.task)
    actions = episode.actions if clean else episode.executed
    total = len(actions)
    contract = compare_contracts(episode.contract, task.robot.contract)
    if contract != "match":
        reason = "the episode's actions mean something else on this robot; nothing was moved"
        return Verdict(
            contract=contract,
            frames_applied=0,
            frames_total=total,
            first_divergence_step=None,
            divergence={},
            success=False,
            reason=reason,
        )
    environment = Environment(task)
    if episode.initial.model_hash != environment.world.model_hash:
        raise ReplayError(
            f"the episode was recorded in scene {episode.initial.model_hash}, the installed one is "
            f"{environment.world.model_hash}{_version_note(episode)}"
        )
    environment.restore(episode.initial)
    controller = WholeBodyController(task.robot)
    watch = DivergenceWatch() if clean else DivergenceWatch(0.0, 0.0)
    applied, broken = 0, ""
    for step in range(total + 1):
        _compare(watch, environment, episode, step, exact=not clean)
        if step == total:
            break
        state = environment.body.read()
        controller.command(actions[step])
        try:
            environment.body.write(controller.step(state, task.robot.contract.control_interval))
        except SceneError as error:
            broken = str(error)
            break
        environment.observe_success()
        applied += 1
        if on_frame is not None:
            on_frame(applied, total)
    outcome = environment.outcome()
    reason = broken or outcome.reason
    return Verdict(
        contract="match",
        frames_applied=applied,
        frames_total=total,
        first_divergence_step=watch.first_step,
        divergence=watch.size,
        success=outcome.success and not broken and applied == total,
        reason=reason + (_version_note(episode) if watch.first_step is not None else ""),
    )


def _compare(watch: DivergenceWatch, environment: Environment, episode: Episode, step: int, exact: bool) -> None:
    state = environment.body.read()
    recorded = episode.observations
    if not exact:
        watch.observe(step, state.q, state.base_position, recorded["q"][step], recorded["base_pose"][step][:3])
        return
    # Bit for bit, objects included: full physics states are compared. What is reported is how far the robot differs.
    same = np.array_equal(environment.world.get_state(), episode.states[step])
    if same:
        watch.observe(step, state.q, state.base_position, state.q, state.base_position)
        return
    q, base = recorded["q"][step].astype(np.float64), recorded["base_pose"][step][:3].astype(np.float64)
    watch.observe(step, state.q, state.base_position, q, base)
    watch.first_step = step if watch.first_step is None else watch.first_step


def _version_note(episode: Episode) -> str:
    now = current_versions()
    changed = [f"{name} {then} then, {now.get(name, 'absent')} now" for name, then in episode.versions.items()
               if now.get(name) != then]  # fmt: skip
    return f" (made with other versions: {', '.join(changed)})" if changed else ""
