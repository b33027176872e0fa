# SPDX-License-Identifier: Apache-2.0
"""``supple call``: ask running nodes for something where there is no ``ros2`` command."""

from __future__ import annotations

import functools
import os
import select
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from supple.cli.output import console, guarded
from supple.launching import LaunchError
from supple.launching.environment import ros_environment

if TYPE_CHECKING:
    from supple.nodes.operator import Operator

__all__ = ["Namespace", "Timeout", "answered", "call_app", "connect"]

F = TypeVar("F", bound=Callable[..., Any])

_NOBODY = 3
_FEEDBACK_EVERY = 1.0

Namespace = Annotated[str, typer.Option(help="Namespace of the nodes.")]
Timeout = Annotated[float, typer.Option(min=0.1, help="Longest wait for the node, and for its answer, in s.")]

call_app = typer.Typer(
    help="Ask running nodes for something. Exit code 1: refused or failed, 3: nobody there.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


class Switch(StrEnum):
    """On or off."""

    ON = "on"
    OFF = "off"


class Recording(StrEnum):
    """What a recorder can be asked for."""

    START = "start"
    STOP = "stop"
    DISCARD = "discard"
    MARK = "mark"


def answered(command: F) -> F:
    """Give a failure to reach anybody an exit code of its own; the rest is ``guarded``'s."""

    @guarded
    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except TimeoutError as error:
            console.print("[bold red]error:[/bold red] ", end="")
            console.print(str(error), markup=False, soft_wrap=True)
            raise typer.Exit(_NOBODY) from error

    return run  # type: ignore[return-value]


def connect(namespace: str, timeout: float) -> Operator:
    """Return a client of the running nodes.

    Raises:
        LaunchError: ROS is not complete here.
    """
    # As 'supple up' starts nodes, so that both sides speak through the same interfaces.
    os.environ.update(ros_environment())
    try:
        from supple.nodes.operator import Operator
    except ImportError as error:
        raise LaunchError(f"ROS is not complete here ({error}); see 'supple doctor'") from error
    return Operator(namespace, timeout)


@call_app.command("estop")
@answered
def estop_command(
    armed: Annotated[bool, typer.Option("--armed", help="Get ready, then wait for Enter: the fastest way.")] = False,
    namespace: Namespace = "",
    timeout: Timeout = 5.0,
) -> None:
    """Emergency stop: damp every joint of the simulated robot until the next reset."""
    with connect(namespace, timeout) as operator:
        operator.await_stop()
        if armed:
            _await_enter(operator)
        console.print(operator.stop(), style="bold")


def _await_enter(operator: Operator) -> None:
    ready = True
    console.print("armed: Enter stops the robot, Ctrl-C leaves it alone")
    while not select.select([sys.stdin], [], [], 0.5)[0]:
        if operator.stop_is_ready() != ready:
            ready = not ready
            text = "armed again" if ready else "NOT armed: nobody listens to the stop any more"
            console.print(text, style="" if ready else "bold red")
    # A closed standard input is ready too; the robot is then stopped rather than left without its stop.
    sys.stdin.readline()


@call_app.command("reset")
@answered
def reset_command(
    task: Annotated[str, typer.Option(help="Refuse unless the scene is this task's.")] = "",
    distribution: Annotated[str, typer.Option(help="Initial distribution; the launch's own if absent.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the initial state.")] = 0,
    namespace: Namespace = "",
    timeout: Timeout = 10.0,
) -> None:
    """Put the simulation into an initial state; ends an emergency stop."""
    with connect(namespace, timeout) as operator:
        operator.reset(task, distribution, seed)
    console.print("reset")


@call_app.command("pause")
@answered
def pause_command(
    switch: Annotated[Switch, typer.Argument(help="on: time stands still; off: it goes on.")],
    namespace: Namespace = "",
    timeout: Timeout = 5.0,
) -> None:
    """Let simulated time stand still, or go on."""
    with connect(namespace, timeout) as operator:
        operator.pause(switch is Switch.ON)
    console.print("paused" if switch is Switch.ON else "running")


@call_app.command("step")
@answered
def step_command(
    steps: Annotated[int, typer.Argument(min=1, help="Physics steps of 5 ms.")],
    namespace: Namespace = "",
    timeout: Timeout = 5.0,
) -> None:
    """Advance a paused simulation."""
    with connect(namespace, timeout) as operator:
        operator.step(steps)
    console.print(f"advanced by {steps} steps")


@call_app.command("record")
@answered
def record_service_command(
    action: Annotated[Recording, typer.Argument(help="What to do.")],
    label: Annotated[str, typer.Argument(help="For mark: what begins now.")] = "",
    namespace: Namespace = "",
    timeout: Timeout = 5.0,
) -> None:
    """Start, stop or discard the recording of a running teleop_recorder, or mark the present instant in it."""
    if (action is Recording.MARK) != bool(label):
        raise typer.BadParameter("'mark' needs a label, the others take none")
    with connect(namespace, timeout) as operator:
        console.print(operator.record(action, label) or str(action), markup=False)


@call_app.command("walk-to", context_settings={"ignore_unknown_options": True})
@answered
def walk_to_command(
    x: Annotated[float, typer.Argument(help="Target in m.")],
    y: Annotated[float, typer.Argument(help="Target in m.")],
    yaw: Annotated[float, typer.Argument(help="Heading there in rad.")],
    frame: Annotated[str, typer.Option(help="odom, base_link or base_footprint.")] = "odom",
    namespace: Namespace = "",
    timeout: Timeout = 5.0,
) -> None:
    """Walk to a pose and stand there; Ctrl-C cancels the walk."""
    told = -_FEEDBACK_EVERY

    def feedback(distance: float, turn: float, elapsed: float) -> None:
        nonlocal told
        if time.monotonic() - told >= _FEEDBACK_EVERY:
            told = time.monotonic()
            console.print(f"{elapsed:5.1f} s: {distance:.2f} m and {turn:.2f} rad to go")

    with connect(namespace, timeout) as operator:
        distance, turn = operator.walk_to(x, y, yaw, frame, feedback)
    console.print(f"arrived: {100 * distance:.1f} cm and {abs(turn):.3f} rad off")
