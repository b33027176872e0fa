# SPDX-License-Identifier: Apache-2.0
"""``supple evaluate points``: extracted points against the simulator's true surface."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from PIL import Image
from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from supple.cli.output import console, guarded, print_json
from supple.evaluation.degradation import CONDITIONS
from supple.evaluation.points import PointEvaluation, PointSettings, evaluate_points
from supple.perception.looks import Looks
from supple.report.point_quality import POINT_COLUMNS, POINT_UNITS, point_cells, write_point_report

__all__ = ["points_command"]

_NAMES = ", ".join(condition.name for condition in CONDITIONS)


@guarded
def points_command(
    task: Annotated[str, typer.Argument(help="Task whose scene is looked at.")] = "box_lift",
    distribution: Annotated[str, typer.Option(help="Initial distribution of the scenes.")] = "D1",
    condition: Annotated[list[str] | None, typer.Option(help=f"{_NAMES}; several allowed, all if none.")] = None,
    views: Annotated[int, typer.Option(min=1, max=100, help="Scenes, each seen from another side.")] = 6,
    points: Annotated[int, typer.Option(min=8, max=4096, help="Points per object.")] = 128,
    seed: Annotated[int, typer.Option(help="Seed of the scenes.")] = 0,
    looks: Annotated[
        Path | None, typer.Option(help="YAML file of what objects look like; the simulator's masks if absent.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for a page, its pictures and the figures.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, last.")] = False,
) -> None:
    """Measure extracted points under distance, occlusion, noise and miscalibration."""
    settings = PointSettings(
        task=task, distribution=distribution, conditions=tuple(condition or ()), views=views, seed=seed,
        points_per_object=points,
    )  # fmt: skip
    masks = Looks.read(looks).source() if looks is not None else None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("pictures", total=None)
        found = evaluate_points(settings, masks, lambda done, total: progress.update(bar, completed=done, total=total))
    for table in _tables(found):
        console.print(table)
    console.print(POINT_UNITS)
    if out is not None:
        _write(found, out, f"looks of {looks.name}" if looks is not None else "of the simulator")
    if json:
        print_json({"settings": settings.model_dump(), "rows": [row.model_dump() for row in found.rows]})


def _tables(found: PointEvaluation) -> Iterator[Table]:
    """Yield one table per condition."""
    for name in dict.fromkeys(row.condition for row in found.rows):
        table = Table(title=name, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for index, heading in enumerate(POINT_COLUMNS):
            table.add_column(heading, justify="left" if index < 2 else "right", no_wrap=index < 2)
        for row in found.rows:
            if row.condition == name:
                table.add_row(*point_cells(row))
        yield table


def _write(found: PointEvaluation, out: Path, masks: str) -> None:
    page = write_point_report(found, out / "points.html", masks)
    for picture in found.pictures:
        name = picture.title.replace(" ", "_").replace("%", "percent")
        Image.fromarray(picture.rgb).save(out / f"{name}.png")
    console.print(f"page: {page}")
    console.print(f"pictures: {len(found.pictures)} beside it")
