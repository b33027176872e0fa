# SPDX-License-Identifier: Apache-2.0
"""``supple evaluate wrench``: forces told from joint torques, against the simulator's contact forces."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from supple.cli.output import console, guarded, print_json
from supple.cli.places import load_episode
from supple.evaluation.wrench import MOTIONS, WrenchError, measure_wrenches, measure_wrenches_of

__all__ = ["wrench_command"]


@guarded
def wrench_command(
    motion: Annotated[
        list[str] | None, typer.Option(help=f"{', '.join(MOTIONS)}; several allowed, all if none.")
    ] = None,
    episode: Annotated[
        str | None, typer.Option(help="Instead, while the hands hold: DATASET:demo_3, DATASET or a seed file.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long each motion is measured, in s.")] = 10.0,
    cutoff: Annotated[float, typer.Option(min=0.1, help="Bandwidth of the observer in Hz.")] = 10.0,
    torque_error: Annotated[float, typer.Option(min=0.0, help="Error of each torque, as a share of its limit.")] = 0.0,
    seed: Annotated[int, typer.Option(help="Seed of pushes and errors.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, last.")] = False,
) -> None:
    """Compare wrenches estimated from joint torques with the simulator's contact forces."""
    rng = np.random.default_rng(seed)
    rows: list[WrenchError] = []
    if episode is not None:
        console.print(f"holding, {episode} ...", markup=False)
        rows += measure_wrenches_of(load_episode(episode), rng, cutoff, torque_error)
    for name in motion or (() if episode is not None else MOTIONS):
        console.print(f"{name} ...")
        rows += measure_wrenches(name, rng, seconds, cutoff, torque_error)
    console.print(_table(rows))
    if json:
        print_json({"cutoff": cutoff, "torque_error": torque_error, "rows": [row.model_dump() for row in rows]})


def _table(rows: list[WrenchError]) -> Table:
    table = Table(title="Error of estimated wrenches, root mean square", title_justify="left")
    for heading in ("motion", "frame"):
        table.add_column(heading)
    for heading in ("largest force [N]", "force [N]", "without lag [N]", "torque [Nm]"):
        table.add_column(heading, justify="right")
    for row in rows:
        figures = f"{row.largest_force:.0f}", f"{row.force:.2f}", f"{row.force_without_lag:.2f}", f"{row.torque:.3f}"
        table.add_row(row.motion, row.frame, *figures)
    return table
