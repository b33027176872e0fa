# SPDX-License-Identifier: Apache-2.0
"""``supple execute``: have a running robot do a task, with its progress."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from supple.cli.calling import Namespace, Timeout, answered, connect
from supple.cli.output import console, print_json

__all__ = ["execute_command"]

_FEEDBACK_EVERY = 1.0


@answered
def execute_command(
    task: Annotated[str, typer.Argument(help="Task to do; 'supple tasks' lists them.")],
    seed_file: Annotated[Path | None, typer.Option(help="Demonstration; the robot's own if absent.")] = None,
    settings: Annotated[str, typer.Option(help="Settings of generation that differ, as a JSON object.")] = "",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random numbers of plans.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, last.")] = False,
    namespace: Namespace = "",
    timeout: Timeout = 5.0,
) -> None:
    """Have the running task_executor do a task; Ctrl-C cancels it. Exit code 0 only if the task succeeds."""
    told = (-_FEEDBACK_EVERY, "")

    def feedback(row: Any) -> None:
        nonlocal told
        if row.stage != told[1] or time.monotonic() - told[0] >= _FEEDBACK_EVERY:
            told = (time.monotonic(), row.stage)
            group = f"group {row.group + 1} of {row.groups} ({', '.join(row.skills)})"
            console.print(f"{row.elapsed:6.1f} s: {group}: {row.stage}", markup=False)

    with connect(namespace, timeout) as operator:
        demonstration = "" if seed_file is None else str(seed_file.resolve())
        result = operator.execute_task(task, demonstration, settings, seed, feedback)
    where = f" ({result.origin} during {result.stage})" if result.origin else ""
    verdict = f"success after {result.elapsed:.1f} s" if result.success else f"failed{where}: {result.error_string}"
    console.print(verdict, markup=False, soft_wrap=True)
    if json:
        fields = ("error_code", "error_string", "success", "origin", "stage", "elapsed")
        print_json({name: getattr(result, name) for name in fields})
    if not result.success:
        raise typer.Exit(1)
