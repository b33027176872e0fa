# SPDX-License-Identifier: Apache-2.0
"""The ``supple`` command and its subcommands, each loaded only when it is called: an emergency stop must not wait."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from supple import __version__

__all__ = ["app"]

_COMMANDS = {
    "tasks": "inspecting:tasks_command",
    "record": "recording:record_command",
    "annotate": "recording:annotate_command",
    "generate": "generating:generate_command",
    "inspect": "inspecting:inspect_command",
    "replay": "replaying:replay_command",
    "execute": "executing:execute_command",
    "export": "replaying:export_command",
    "up": "launching:up_command",
    "call": "calling:call_app",
    "calibrate": "calibrating:calibrate_app",
    "evaluate": "evaluating:evaluate_app",
    "demo": "demonstrating:demo_command",
    "doctor": "checking:doctor_command",
}


class _OnDemand(TyperGroup):
    """A group whose commands are imported by name."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, in the order of the work."""
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return one command, or None if there is none of that name."""
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name].partition(":")
        try:
            found = getattr(import_module(f"supple.cli.{module}"), attribute)
        except RuntimeError as error:
            # MuJoCo refuses an unknown MUJOCO_GL while it is imported.
            typer.echo(f"error: {error}; supple doctor says what works here", err=True)
            raise typer.Exit(1) from error
        if not isinstance(found, typer.Typer):
            single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            single.command(cmd_name)(found)
            found = single
        command = get_command(found)
        command.name = cmd_name
        return command


app = typer.Typer(
    name="supple",
    cls=_OnDemand,
    help="Teach a humanoid once, get a thousand physically checked demonstrations.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _main(version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit
