# SPDX-License-Identifier: Apache-2.0
"""``supple up``: run a launch file without a ROS installation."""

from __future__ import annotations

from typing import Annotated

import typer

from supple.cli.output import console, guarded
from supple.launching import find_launch_file, parse_arguments, resolve, run

__all__ = ["up_command"]


@guarded
def up_command(
    file: Annotated[str, typer.Argument(help="Launch file, or the name of one of Supple's.")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Launch arguments, name:=value.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the commands.")] = False,
) -> None:
    """Run what a launch file describes, as 'ros2 launch' would."""
    processes = resolve(find_launch_file(file), parse_arguments(arguments or ()))
    if dry_run:
        for process in processes:
            typer.echo(str(process))
        return
    raise typer.Exit(run(processes, console=console))
