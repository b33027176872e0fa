# SPDX-License-Identifier: Apache-2.0
"""``supple record`` and ``supple annotate``: seeds by teleoperation, and their marks."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from supple.cli.output import console, guarded, print_json
from supple.errors import SeedError
from supple.tasks import task_named
from supple.teleop.annotation import annotate, annotation_rows
from supple.teleop.keyboard import KeyboardDevice
from supple.teleop.recording import record_in_simulation
from supple.teleop.scripted import ScriptedOperator
from supple.teleop.take import mark_labels

__all__ = ["annotate_command", "record_command"]


class DeviceName(StrEnum):
    """What an operator can drive with."""

    KEYBOARD = "keyboard"
    SCRIPTED = "scripted"


@guarded
def record_command(
    task: Annotated[str, typer.Argument(help="Task to demonstrate.")],
    out: Annotated[Path, typer.Option(help="Seed file to write.")],
    device: Annotated[DeviceName, typer.Option(help="What the operator drives with.")] = DeviceName.KEYBOARD,
    timeout: Annotated[float, typer.Option(min=1.0, help="Longest session in seconds of simulation.")] = 600.0,
) -> None:
    """Record a seed demonstration in the simulator, without ROS (with ROS: 'supple up record.launch.xml')."""
    chosen = task_named(task)
    robot = chosen.robot
    operator = (
        KeyboardDevice(robot, mark_labels(chosen), pace=True)
        if device is DeviceName.KEYBOARD
        else ScriptedOperator(robot, task)
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    existed = out.exists()
    try:
        seed = record_in_simulation(chosen, operator, out=out, timeout=timeout)
    finally:
        operator.close()
    outcome = seed.episode.outcome
    console.print(f"{out}: {seed.episode.duration:.1f} s by {seed.operator}, {len(seed.skills)} skills")
    if existed:
        console.print(f"the seed that was there before is kept beside it as {out.stem}.before*{out.suffix}")
    console.print(f"task: {'success' if outcome.success else outcome.reason}", markup=False)


@guarded
def annotate_command(
    seed: Annotated[Path, typer.Argument(help="Seed file.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="label=STEP, label=12.8s, or label=+5 to shift; repeatable.")
    ] = None,
    remove: Annotated[list[str] | None, typer.Option(help="Mark to remove; repeatable.")] = None,
    suggest: Annotated[
        bool, typer.Option("--suggest", help="Begin from marks suggested by contact and speed.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Write here; the file itself (old one as .bak) if absent.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print marks and skills as one JSON object, last.")] = False,
) -> None:
    """Show or edit the marks of a seed; its skills follow from them."""
    changes: dict[str, int | str] = {}
    for word in set_ or ():
        label, separator, place = word.partition("=")
        if not separator:
            raise SeedError(f"--set {word!r}: expected label=STEP")
        changes[label] = place
    edited = annotate(seed, out, changes, tuple(remove or ()), suggest)
    table = Table("kind", "name", "hand", "object", "from step", "to step", "from s", "to s")
    for row in annotation_rows(edited):
        steps, times = (str(row.start), str(row.end)), (f"{row.start_time:.2f}", f"{row.end_time:.2f}")
        table.add_row(row.kind, row.label, row.effector, row.reference, *steps, *times)
    console.print(table)
    if json:
        print_json(
            {
                "marks": [vars(mark) for mark in edited.marks],
                "skills": [vars(skill) for skill in edited.skills],
            }
        )
