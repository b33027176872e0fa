# SPDX-License-Identifier: Apache-2.0
"""``supple tasks`` and ``supple inspect``: what can be taught, and how a dataset or a bag stands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column, Table

from supple.cli.output import console, guarded, print_json
from supple.episodes import Ledger, worst_soundness
from supple.report.bag_report import is_bag, write_bag_report
from supple.report.inspect import ReportPaths, write_report
from supple.report.soundness import soundness_table
from supple.report.tables import counts_table, reasons_table
from supple.tasks import task_named, task_names

__all__ = ["inspect_command", "tasks_command"]

Json = Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, last.")]


@guarded
def tasks_command(json: Json = False) -> None:
    """List the tasks."""
    tasks = [task_named(name) for name in task_names()]
    table = Table(Column("task", no_wrap=True), "what it is", "robot", "skills", "distributions")
    for task in tasks:
        skills = ", ".join(f"{skill.name} ({skill.effector}, {skill.reference})" for skill in task.skills)
        table.add_row(task.name, task.summary, task.robot.name, skills, ", ".join(task.distributions))
    console.print(table)
    if json:
        print_json({task.name: {"summary": task.summary, "robot": task.robot.name} for task in tasks})


@guarded
def inspect_command(
    dataset: Annotated[Path, typer.Argument(help="Folder of the dataset, or of a bag.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the report; the dataset's own if absent.")] = None,
    video: Annotated[bool, typer.Option(help="Make a video: of a grid of episodes, or of the bag's pictures.")] = True,
    json: Json = False,
) -> None:
    """Write an HTML report and a video about a dataset or a bag, with force and contact over time."""
    if is_bag(dataset):
        _inspect_bag(dataset, out or dataset, video, json)
        return
    paths = write_report(dataset, out or dataset, video=video)
    ledger = Ledger(dataset / "ledger.jsonl")
    console.print(counts_table(ledger))
    if ledger.reasons():
        console.print(reasons_table(ledger))
    if any(record.soundness for record in ledger.records):
        console.print(soundness_table(ledger.records))
    _tell(paths)
    if json:
        origins = {origin: count for origin, count in ledger.by_origin().items() if count}
        found = ledger.counts() | {"by_origin": origins, "soundness": worst_soundness(ledger.records)}
        print_json(found | {"html": str(paths.html), "video": str(paths.video) if paths.video else None})


def _inspect_bag(bag: Path, out: Path, video: bool, json: bool) -> None:
    paths = write_bag_report(bag, out, video=video)
    _tell(paths)
    if json:
        print_json({"html": str(paths.html), "video": str(paths.video) if paths.video else None})


def _tell(paths: ReportPaths) -> None:
    for note in paths.notes:
        console.print(note, markup=False)
    console.print(f"report: {paths.html}")
    if paths.video is not None:
        console.print(f"video:  {paths.video}")
