# SPDX-License-Identifier: Apache-2.0
"""What an operator asks of running nodes without a ``ros2`` command: stop, reset, record, walk, do a task, replay."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import rclpy
from rclpy.action import ActionClient
from rclpy.client import Client
from rclpy.experimental.events_executor import EventsExecutor
from rclpy.signals import SignalHandlerOptions
from std_srvs.srv import SetBool, Trigger

from supple.errors import SuppleError

__all__ = ["NobodyThereError", "Operator", "RefusedError"]

# rclpy's own wait looks four times a second only; an emergency stop must not lose a quarter of a second to that.
_LOOK_EVERY = 0.002


class NobodyThereError(SuppleError, TimeoutError):
    """No node offers what was asked for, or it does not answer."""


class RefusedError(SuppleError, RuntimeError):
    """A node answered that it will not, or that it failed; its reason is the message."""


class Operator:
    """A client of the services and actions of a running graph; a context manager.

    Nothing here imports the kinematics or the simulator, so that a stop is on its way as soon as possible.

    Args:
        namespace: Namespace of the nodes; empty for none.
        timeout: Longest wait for a node to appear, and for its answer, in [s].
    """

    def __init__(self, namespace: str = "", timeout: float = 5.0) -> None:
        self.timeout = timeout
        self._context = rclpy.Context()
        rclpy.init(args=[], context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node(
            f"operator_{os.getpid()}",
            namespace=namespace,
            context=self._context,
            enable_rosout=False,
            start_parameter_services=False,
        )
        self._executor = EventsExecutor(context=self._context)
        self._executor.add_node(self._node)
        self._clients: dict[str, Client[Any, Any]] = {}

    def __enter__(self) -> Operator:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the graph."""
        self.close()

    def close(self) -> None:
        """Leave the graph."""
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)

    # -- waiting -----------------------------------------------------------------------------------------------------

    def _until(self, condition: Callable[[], bool], timeout: float | None, spin: bool = False) -> bool:
        deadline = None if timeout is None else time.monotonic() + timeout
        while not condition():
            if deadline is not None and time.monotonic() >= deadline:
                return False
            if spin:
                self._executor.spin_once(timeout_sec=0.05)
            else:
                time.sleep(_LOOK_EVERY)
        return True

    def _client(self, kind: type, name: str) -> Client[Any, Any]:
        if name not in self._clients:
            self._clients[name] = self._node.create_client(kind, name)
        return self._clients[name]

    def _nobody(self, what: str, name: str) -> NobodyThereError:
        wanted = self._node.resolve_service_name(name)
        ending = f"/{wanted.rsplit('/', 1)[-1]}"
        nodes, like = [], []
        for node, namespace in self._node.get_node_names_and_namespaces():
            if node == self._node.get_name():
                continue
            nodes.append(f"{namespace.rstrip('/')}/{node}")
            # A client counts as a service in the graph; only a node's own list tells who serves.
            for entry, _ in self._node.get_service_names_and_types_by_node(node, namespace):
                offered = entry.removesuffix("/_action/send_goal")
                like += [offered] if offered.endswith(ending) else []
        if like:
            seen = f"visible: {', '.join(sorted(like))} (see --namespace)"
        elif nodes:
            seen = f"visible nodes: {', '.join(sorted(nodes))}"
        else:
            domain = os.environ.get("ROS_DOMAIN_ID") or "0"
            seen = f"no node is visible in ROS_DOMAIN_ID {domain}; is the launch running, in the same domain?"
        return NobodyThereError(f"no {what} {wanted} within {self.timeout:g} s; {seen}")

    def await_service(self, kind: type, name: str) -> Client[Any, Any]:
        """Return the client of a service that is there.

        Raises:
            NobodyThereError: It does not appear in time; names what is visible instead.
        """
        client = self._client(kind, name)
        if not self._until(client.service_is_ready, self.timeout):
            raise self._nobody("service", name)
        return client

    def call(self, kind: type, name: str, request: Any) -> Any:
        """Return the response of a service that reports ``success`` and ``message``.

        Raises:
            NobodyThereError: It is not there, or does not answer in time.
            RefusedError: It reports failure.
        """
        future = self.await_service(kind, name).call_async(request)
        if not self._until(future.done, self.timeout, spin=True):
            raise NobodyThereError(f"{self._node.resolve_service_name(name)} did not answer within {self.timeout:g} s")
        response: Any = future.result()
        if not response.success:
            raise RefusedError(getattr(response, "message", "") or f"{self._node.resolve_service_name(name)} refused")
        return response

    # -- the simulator -----------------------------------------------------------------------------------------------

    def stop_is_ready(self) -> bool:
        """Whether the emergency stop would be heard now."""
        return bool(self._client(Trigger, "sim_bridge/estop").service_is_ready())

    def await_stop(self) -> None:
        """Wait until the emergency stop would be heard.

        Raises:
            NobodyThereError: It would not be.
        """
        self.await_service(Trigger, "sim_bridge/estop")

    def stop(self) -> str:
        """Damp every joint until the next reset; return what the simulator says."""
        return str(self.call(Trigger, "sim_bridge/estop", Trigger.Request()).message)

    def reset(self, task: str = "", distribution: str = "", seed: int = 0) -> None:
        """Put the simulation into an initial state; empty strings mean what is running and its own distribution."""
        from supple_interfaces.srv import Reset

        self.call(Reset, "sim_bridge/reset", Reset.Request(task=task, distribution=distribution, seed=seed))

    def pause(self, paused: bool) -> None:
        """Let simulated time stand still, or go on."""
        self.call(SetBool, "sim_bridge/pause", SetBool.Request(data=paused))

    def step(self, steps: int) -> None:
        """Advance a paused simulation by physics steps."""
        from supple_interfaces.srv import Step

        self.call(Step, "sim_bridge/step", Step.Request(steps=steps))

    # -- the recorder ------------------------------------------------------------------------------------------------

    def record(self, action: str, label: str = "") -> str:
        """Start, stop or discard a recording, or mark the present instant; return what the recorder says."""
        if action == "mark":
            from supple_interfaces.srv import Mark

            return str(self.call(Mark, "teleop_recorder/mark", Mark.Request(label=label)).message)
        return str(self.call(Trigger, f"teleop_recorder/{action}", Trigger.Request()).message)

    # -- walking -----------------------------------------------------------------------------------------------------

    def walk_to(
        self,
        x: float,
        y: float,
        yaw: float,
        frame: str = "odom",
        on_feedback: Callable[[float, float, float], None] = lambda distance, yaw_error, elapsed: None,
    ) -> tuple[float, float]:
        """Walk to a pose and stand there; an interrupt cancels the walk.

        Args:
            x: Target in [m].
            y: Target in [m].
            yaw: Target heading in [rad].
            frame: ``odom``, ``base_link`` or ``base_footprint``.
            on_feedback: Called with the distance in [m], the turn in [rad] and the elapsed time in [s].

        Returns:
            Remaining distance in [m] and turn in [rad].

        Raises:
            NobodyThereError: Nobody walks here, or the goal is not taken in time.
            RefusedError: The walk was refused or failed; says why.
        """
        from supple_interfaces.action import WalkTo

        goal = WalkTo.Goal(target=_planar(x, y, yaw, frame))
        result = self._act(WalkTo, "walk_to", goal, lambda f: on_feedback(f.distance, f.yaw_error, f.elapsed))
        if result.error_code != WalkTo.Result.SUCCESS:
            raise RefusedError(f"walk_to: {result.error_string or f'error {result.error_code}'}")
        return float(result.position_error), float(result.yaw_error)

    # -- whole tasks -------------------------------------------------------------------------------------------------

    def execute_task(
        self,
        task: str,
        seed_file: str = "",
        settings: str = "",
        random_seed: int = 0,
        on_feedback: Callable[[Any], None] = lambda feedback: None,
    ) -> Any:
        """Have a task done; an interrupt cancels it.

        Args:
            task: Its name.
            seed_file: The demonstration, on the server's disk; empty for the one the server has.
            settings: Settings of generation that differ from the default, as a JSON object; empty for none.
            random_seed: Seed of the server's random numbers.
            on_feedback: Called with each feedback of ExecuteTask.

        Returns:
            The result of ExecuteTask; a task that failed is no error.

        Raises:
            NobodyThereError: Nobody does tasks here, or the goal is not taken in time.
        """
        from supple_interfaces.action import ExecuteTask

        goal = ExecuteTask.Goal(task=task, seed_file=seed_file, settings=settings, random_seed=random_seed)
        return self._act(ExecuteTask, "execute_task", goal, on_feedback)

    def replay(
        self,
        dataset: str,
        episode: str = "",
        clean: bool = False,
        on_feedback: Callable[[int, int], None] = lambda frame, total: None,
    ) -> Any:
        """Have an episode played into the running simulator; an interrupt cancels it.

        Args:
            dataset: Dataset or seed file, on the server's disk.
            episode: Its name; empty for the first.
            clean: Play the clean labels instead of what was executed.
            on_feedback: Called with the frames applied so far and in all.

        Returns:
            The result of ReplayEpisode.

        Raises:
            NobodyThereError: Nobody plays episodes here, or the goal is not taken in time.
            RefusedError: There is no verdict; says why.
        """
        from supple_interfaces.action import ReplayEpisode

        goal = ReplayEpisode.Goal(dataset=dataset, episode=episode, clean=clean)
        result = self._act(ReplayEpisode, "replay_episode", goal, lambda f: on_feedback(f.frame, f.total))
        if not result.verdict:
            raise RefusedError(f"replay_episode: {result.error_string or f'error {result.error_code}'}")
        return result

    def _act(self, kind: Any, name: str, goal: Any, on_feedback: Callable[[Any], None]) -> Any:
        """Pursue an action to its end; an interrupt cancels it.

        Raises:
            NobodyThereError: No such action, the goal is not taken in time, or its server is gone.
            RefusedError: The goal is not accepted.
        """
        client: ActionClient[Any, Any, Any] = ActionClient(self._node, kind, name)
        if not self._until(client.server_is_ready, self.timeout):
            raise self._nobody("action", name)
        accepted = client.send_goal_async(goal, feedback_callback=lambda message: on_feedback(message.feedback))
        if not self._until(accepted.done, self.timeout, spin=True):
            raise NobodyThereError(f"{name} did not take the goal within {self.timeout:g} s")
        handle: Any = accepted.result()
        if not handle.accepted:
            raise RefusedError(f"{name}: the goal was rejected")
        future = handle.get_result_async()
        try:
            # How long it may take is the server's to say; but one that is gone must not be waited for.
            self._until(lambda: future.done() or not client.server_is_ready(), None, spin=True)
        except KeyboardInterrupt:
            handle.cancel_goal_async()
            self._until(future.done, self.timeout, spin=True)
            raise
        if not future.done():
            raise NobodyThereError(f"{name}: the node that pursued it is gone")
        return future.result().result


def _planar(x: float, y: float, yaw: float, frame: str) -> Any:
    from geometry_msgs.msg import PoseStamped

    from supple.geometry import pose_from_xyyaw
    from supple.nodes.conversion import header, pose_message

    return PoseStamped(header=header(0, frame), pose=pose_message(pose_from_xyyaw(x, y, yaw)))
