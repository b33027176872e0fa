# SPDX-License-Identifier: Apache-2.0
"""Node that plays a recorded episode into the running simulator and judges how faithful it was."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Pose
from rclpy.client import Client
from std_srvs.srv import SetBool
from supple_interfaces.action import ReplayEpisode
from supple_interfaces.srv import Reset, Step

from supple.episodes import Dataset, Episode, load_seed
from supple.errors import DatasetError, ReplayError, StateError, SuppleError
from supple.nodes.diagnostics import steady_clock
from supple.nodes.goals import Goal, SingleGoalServer
from supple.nodes.lifecycle import ActuatorNode
from supple.nodes.objects_input import ObjectsInput
from supple.nodes.runtime import run_node
from supple.nodes.topic_body import TopicBody
from supple.replay.on_body import contract_verdict, replay_on_body
from supple.replay.verdict import DivergenceWatch, Verdict
from supple.robots import RobotState, robot_named
from supple.sim.assembly import PHYSICS_TIMESTEP

__all__ = ["EpisodePlayer", "load_episode", "main"]

# Whoever commands joints at 50 Hz is heard within this time in [s].
_LISTEN = 0.2
_SOURCE = "episode_player"
# Recorded observations have single precision: what repeats exactly differs from them by this much at most.
_EXACT = 1e-5


def load_episode(place: str, name: str = "") -> Episode:
    """Return an episode of a dataset (its first without a name), or the one of a seed file.

    Raises:
        SuppleError: There is none, or it is damaged.
    """
    path = Path(place)
    if not place or not path.exists():
        raise DatasetError(f"dataset {place!r} does not exist; expected a dataset folder, its HDF5 file or a seed file")
    if path.is_file() and not name:
        return load_seed(path, require_skills=False).episode
    dataset = Dataset(path)
    if not dataset.names:
        raise DatasetError(f"{path} holds no episode")
    return dataset.episode(name or dataset.names[0])


@dataclass
class _Replay:
    """A replay that is running in the worker's thread."""

    verdict_path: str
    goal: Goal | None
    stop: threading.Event = field(default_factory=threading.Event)
    frames: tuple[int, int] = (0, 0)
    told: int = 0
    code: int = ReplayEpisode.Result.SUCCESS
    work: Future[Verdict] | None = None


class EpisodePlayer(ActuatorNode):
    """Play episodes. It owns all joints while it plays: executors that own some must be deactivated before."""

    def __init__(self) -> None:
        super().__init__("episode_player")
        self._robot = robot_named(self.parameter("robot", "g1", "name of the robot"))
        self._dataset = self.parameter("dataset", "", "dataset folder, its HDF5 file or a seed file; for autoplay")
        self._episode = self.parameter("episode", "", "name of the episode in it; empty for the first")
        self._clean = self.parameter("clean", False, "autoplay the clean labels instead of what was executed")
        self._verdict = self.parameter("verdict", "", "file that autoplay writes its verdict to")
        self._autoplay = self.parameter("autoplay", False, "play `dataset` and `episode` when activated")
        self._exit = self.parameter("exit", False, "end after autoplay: 0 if the task succeeded, else 1")
        self._lockstep = self.parameter("lockstep", True, "step the simulator action by action, which repeats exactly")
        self._simulator = self.parameter("simulator", "sim_bridge", "name of the simulator's node")
        self.exit_code: int | None = None
        self._current: _Replay | None = None
        # Once the node ends nobody hears answers of services any more: the worker must not go on waiting for one.
        self._ending = threading.Event()

    def configure(self) -> None:
        """Make clients, subscriptions and the action server."""
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="replay")
        self._objects = ObjectsInput(self, self.diagnostics)
        self._callable: dict[str, Client[Any, Any]] = {
            "reset": self.create_client(Reset, f"{self._simulator}/reset"),
            "pause": self.create_client(SetBool, f"{self._simulator}/pause"),
            "step": self.create_client(Step, f"{self._simulator}/step"),
        }
        self._body = TopicBody(self, self._robot, _SOURCE, self.diagnostics)
        self._server = SingleGoalServer(self, ReplayEpisode, "replay_episode", self._on_goal, self._on_replaced)
        self._timer = self.create_timer(0.05, self._watch, clock=steady_clock())

    def activate(self) -> None:
        """Begin to serve; play at once if asked to."""
        self._ending.clear()
        if self._autoplay:
            self._begin(self._dataset, self._episode, self._clean, self._verdict, None)

    def deactivate(self) -> None:
        """Stop a replay and damp what it commanded."""
        self._ending.set()
        if self._current is not None:
            self._current.stop.set()
        self._body.damp()

    def cleanup(self) -> None:
        """Destroy what configure made."""
        self._body.close()
        self._worker.shutdown(wait=False, cancel_futures=True)
        self._objects.close()
        for client in self._callable.values():
            self.destroy_client(client)
        self.destroy_timer(self._timer)
        self._server.close()

    # -- goals: in the node's thread -------------------------------------------------------------------------------

    def _on_goal(self, goal: Goal) -> None:
        if not self.active:
            text = "the episode player is not active"
            goal.abort(ReplayEpisode.Result(error_code=ReplayEpisode.Result.INVALID_GOAL, error_string=text))
            return
        request = goal.request
        self._begin(request.dataset, request.episode, request.clean, request.verdict_path, goal)

    def _on_replaced(self, goal: Goal) -> None:
        if self._current is not None:
            self._current.stop.set()
        result = ReplayEpisode.Result(
            error_code=ReplayEpisode.Result.PREEMPTED, error_string="replaced by a newer goal"
        )
        result.first_divergence_step = -1
        goal.cancel(result)

    def _begin(self, dataset: str, episode: str, clean: bool, verdict_path: str, goal: Goal | None) -> None:
        replay = _Replay(verdict_path, goal)
        replay.work = self._worker.submit(self._play, replay, dataset, episode, clean)
        self._current = replay
        self.diagnostics.state(DiagnosticStatus.OK, f"playing {episode or 'the first episode'} of {dataset}")

    def _watch(self) -> None:
        replay = self._current
        if replay is None or replay.work is None:
            return
        goal = replay.goal
        if goal is not None and goal.cancel_requested:
            replay.stop.set()
        if not replay.work.done():
            frame, total = replay.frames
            if goal is not None and frame >= replay.told + 25:
                replay.told = frame
                goal.feedback(ReplayEpisode.Feedback(frame=frame, total=total))
            return
        self._current = None
        self._conclude(replay, replay.work)

    def _conclude(self, replay: _Replay, work: Future[Verdict]) -> None:
        result = ReplayEpisode.Result(error_code=replay.code, first_divergence_step=-1)
        try:
            verdict = work.result()
            if replay.verdict_path:
                verdict.write(replay.verdict_path)
        except (SuppleError, OSError) as error:
            if result.error_code == ReplayEpisode.Result.SUCCESS:
                result.error_code = ReplayEpisode.Result.INVALID_GOAL
            result.error_string = str(error)
            self.get_logger().error(f"no replay: {error}")
            self.diagnostics.state(DiagnosticStatus.ERROR, str(error))
        else:
            result.error_string = verdict.reason if replay.code != ReplayEpisode.Result.SUCCESS else ""
            result.verdict = verdict.model_dump_json()
            result.frames_applied, result.frames_total = verdict.frames_applied, verdict.frames_total
            if verdict.first_divergence_step is not None:
                result.first_divergence_step = verdict.first_divergence_step
            result.success = verdict.success
            self.get_logger().info(f"verdict: {result.verdict}")
            self.diagnostics.state(DiagnosticStatus.OK, "success" if verdict.success else verdict.reason)
        if replay.goal is not None:
            if result.error_code == ReplayEpisode.Result.SUCCESS:
                replay.goal.succeed(result)
            elif replay.goal.cancel_requested:
                replay.goal.cancel(result)
            else:
                replay.goal.abort(result)
        elif self._exit:
            self.exit_code = 0 if result.success else 1

    # -- the replay: in the worker's thread --------------------------------------------------------------------------

    def _play(self, replay: _Replay, place: str, name: str, clean: bool) -> Verdict:
        body = self._body
        episode = load_episode(place, name)
        if (refused := contract_verdict(episode, clean)) is not None:
            replay.code = ReplayEpisode.Result.CONTRACT_MISMATCH
            return refused
        try:
            self._prepare(body, episode)
        except (ReplayError, StateError):
            replay.code = ReplayEpisode.Result.NOT_RESET
            raise
        exact = self._lockstep and not clean
        watch = DivergenceWatch(_EXACT, _EXACT) if exact else DivergenceWatch()

        def on_frame(frame: int, total: int) -> None:
            replay.frames = (frame, total)
            if replay.stop.is_set():
                replay.code = ReplayEpisode.Result.PREEMPTED
                raise ReplayError("cancelled")

        resets = body.resets
        verdict = replay_on_body(episode, body, self._objects_at, clean=clean, watch=watch, on_frame=on_frame)
        if replay.code == ReplayEpisode.Result.SUCCESS and verdict.frames_applied < verdict.frames_total:
            replay.code = ReplayEpisode.Result.NOT_RESET if body.resets != resets else ReplayEpisode.Result.STALE_STATE
        if self.context.ok():
            # Nobody holds the robot after the last action: let time stand still instead of letting it sink.
            self._call("pause", SetBool.Request(data=True))
        return verdict

    def _prepare(self, body: TopicBody, episode: Episode) -> None:
        """Bring the simulator into the episode's initial state."""
        initial = episode.initial
        # Time must go on until a state has come: then it is known that states, commands and traces reach each other.
        self._call("pause", SetBool.Request(data=False))
        body.await_peers()
        time.sleep(_LISTEN)
        if others := body.others(_LISTEN):
            raise ReplayError(
                f"joints are commanded by {', '.join(map(repr, others))}; deactivate them before a replay"
            )
        self._call("pause", SetBool.Request(data=self._lockstep))
        seen = body.resets
        request = Reset.Request(
            task=episode.task,
            state=array("d", np.asarray(initial.state).tobytes()),
            model_hash=initial.model_hash,
            object_name=list(initial.objects),
            object_pose=[_pose(row) for row in initial.objects.values()],
            material_name=list(initial.materials),
            material_value=list(initial.materials.values()),
            goal_name=list(initial.goal),
            goal_value=list(initial.goal.values()),
        )
        response = self._call("reset", request)
        if not response.success:
            raise ReplayError(f"{self._simulator} refused the initial state: {response.message}")
        if not np.array_equal(np.array(response.state), np.asarray(initial.state)):
            raise ReplayError(f"{self._simulator} came up in another state than the episode's initial one")
        body.await_reset(seen)
        body.pass_time = self._pass_time if self._lockstep else None

    def _pass_time(self) -> None:
        steps = round(self._robot.contract.control_interval / PHYSICS_TIMESTEP)
        response = self._call("step", Step.Request(steps=steps))
        if not response.success:
            raise ReplayError(f"{self._simulator} did not step: {response.message}")

    def _call(self, service: str, request: Any, timeout: float = 5.0) -> Any:
        client = self._callable[service]
        if self._ending.is_set():
            raise ReplayError("the episode player is ending")
        if not client.wait_for_service(timeout_sec=timeout):
            raise ReplayError(f"service {client.srv_name} is not there; is {self._simulator} running?")
        done = threading.Event()
        future = client.call_async(request)
        future.add_done_callback(lambda _: done.set())
        deadline = time.monotonic() + timeout
        while not done.wait(0.05) and time.monotonic() < deadline:
            if self._ending.is_set():
                raise ReplayError("the episode player is ending")
        if not done.is_set():
            raise ReplayError(f"service {client.srv_name} did not answer within {timeout:.1f} s")
        return future.result()

    def _objects_at(self, state: RobotState) -> Mapping[str, pin.SE3]:
        return self._objects.at(state.stamp_ns).poses


def _pose(row: Any) -> Pose:
    message = Pose()
    p, o = message.position, message.orientation
    p.x, p.y, p.z, o.x, o.y, o.z, o.w = (float(value) for value in row)
    return message


def main(args: Sequence[str] | None = None) -> int:
    """Run the node."""
    return run_node(EpisodePlayer, args)


if __name__ == "__main__":
    raise SystemExit(main())
