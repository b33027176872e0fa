# SPDX-License-Identifier: Apache-2.0
"""Action servers that pursue one goal at a time, driven by control ticks instead of a blocked thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.action import ActionServer, CancelResponse
from rclpy.action.server import ServerGoalHandle
from rclpy.node import Node
from rclpy.task import Future

from supple.errors import SuppleError

__all__ = ["Goal", "SingleGoalServer"]


class Goal:
    """A goal that is being pursued.

    Attributes:
        request: The goal message.
    """

    def __init__(self, handle: ServerGoalHandle) -> None:
        self._handle = handle
        self.request: Any = handle.request
        self.done: Future = Future()

    @property
    def active(self) -> bool:
        """Whether it is not finished yet."""
        return not self.done.done()

    @property
    def cancel_requested(self) -> bool:
        """Whether the client wants it cancelled."""
        return bool(self._handle.is_cancel_requested)

    def feedback(self, message: Any) -> None:
        """Tell the client how it stands."""
        if self.active:
            self._handle.publish_feedback(message)

    def succeed(self, result: Any) -> None:
        """Finish it: done."""
        self._finish(self._handle.succeed, result)

    def abort(self, result: Any) -> None:
        """Finish it: failed."""
        self._finish(self._handle.abort, result)

    def cancel(self, result: Any) -> None:
        """Finish it: cancelled by the client, or failed if it did not ask for that."""
        self._finish(self._handle.canceled if self.cancel_requested else self._handle.abort, result)

    def _finish(self, transition: Callable[[], None], result: Any) -> None:
        if self.active:
            self.done.set_result((transition, result))


class SingleGoalServer:
    """An action server; a new goal replaces the one before.

    All its callbacks run in the node's executor, one at a time.

    Args:
        node: The node.
        kind: Action type.
        name: Action name.
        on_goal: Called with each new goal, which may be finished at once.
        on_replaced: Called with the goal that a newer one replaces; must finish it.
    """

    def __init__(
        self, node: Node, kind: type, name: str, on_goal: Callable[[Goal], None], on_replaced: Callable[[Goal], None]
    ) -> None:
        self._on_goal, self._on_replaced = on_goal, on_replaced
        self._goal: Goal | None = None
        self._accepted_goals: dict[bytes, Goal] = {}
        self._server = ActionServer(
            node,
            kind,
            name,
            execute_callback=self._execute,
            handle_accepted_callback=self._accepted,
            cancel_callback=lambda _: CancelResponse.ACCEPT,
        )

    @property
    def goal(self) -> Goal | None:
        """The goal that is pursued, or None."""
        return self._goal if self._goal is not None and self._goal.active else None

    def close(self) -> None:
        """Take the server away."""
        self._server.destroy()

    def _accepted(self, handle: ServerGoalHandle) -> None:
        if self.goal is not None:
            self._on_replaced(self.goal)
        self._goal = self._accepted_goals[bytes(handle.goal_id.uuid)] = Goal(handle)
        handle.execute()
        self._on_goal(self._goal)

    async def _execute(self, handle: ServerGoalHandle) -> Any:
        # A goal may be replaced before this begins; its own result waits for it all the same.
        goal = self._accepted_goals.pop(bytes(handle.goal_id.uuid))
        finished: tuple[Callable[[], None], Any] | None = await goal.done
        if finished is None:
            raise SuppleError("a goal ended without a result")
        transition, result = finished
        transition()
        return result
