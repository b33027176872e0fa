# SPDX-License-Identifier: Apache-2.0
"""``supple evaluate contact``: what the detectors make of touch in a dataset's episodes, as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from supple.cli.output import console, guarded, print_json
from supple.episodes import Dataset
from supple.errors import DatasetError, SettingError
from supple.evaluation.contact import EVERYTHING, ContactEvaluation, EvaluationSettings, evaluate_contact
from supple.evaluation.contact_scores import REQUIREMENTS, ContactScore

__all__ = ["contact_command"]

_AS_MADE = "made"


@guarded
def contact_command(
    dataset: Annotated[Path, typer.Argument(help="Folder of the dataset, or its HDF5 file.")],
    episodes: Annotated[int | None, typer.Option(min=1, help="Execute only the first so many.")] = None,
    friction: Annotated[
        list[str] | None,
        typer.Option(help=f"Friction of hands and objects, or '{_AS_MADE}' for the episode's; several allowed."),
    ] = None,
    noise: Annotated[float, typer.Option(min=0.0, help="Noise of each taxel in Pa.")] = 500.0,
    latency: Annotated[float, typer.Option(min=0.0, help="From a reading to its arrival, in s.")] = 0.005,
    dead: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of dead taxels.")] = 0.0,
    object_rate: Annotated[float, typer.Option(min=0.0, help="Tracked poses of the object per s; 0: none.")] = 15.0,
    object_latency: Annotated[float, typer.Option(min=0.0, help="From a picture to the object's pose, in s.")] = 0.04,
    object_noise: Annotated[float, typer.Option(min=0.0, help="Noise of the object's tracked position in m.")] = 5e-4,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sensors' noise.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print the result as one JSON object, last.")] = False,
) -> None:
    """Measure detection of contact, slip and hold against the simulator, by object and friction."""
    default = EvaluationSettings()
    tracker = {"rate": object_rate, "latency": object_latency, "position_noise": object_noise}
    sensors = {"noise": noise, "latency": latency, "dead_fraction": dead}
    settings = default.model_copy(
        update={
            "sensors": default.sensors.model_copy(update=sensors),
            "tracker": default.tracker.model_copy(update=tracker),
            "friction": tuple(map(_friction, friction)) if friction else default.friction,
        }
    )
    source = Dataset(dataset)
    if not source.names:
        raise DatasetError(f"{source.path} holds no episode")
    total = len(source) if episodes is None else min(episodes, len(source))

    def told(number: int, value: float | None) -> None:
        console.print(f"episode {number} of {total}, friction {_friction_text(value)}: measured")

    result = evaluate_contact(islice(source, total), settings, seed, told)
    for table in contact_tables(result):
        console.print(table)
    for requirement in REQUIREMENTS:
        console.print(requirement.sentence(result.total), markup=False)
    kept = ", ".join(f"{count} at friction {name}" for name, count in result.succeeded.items())
    console.print(f"apart from that, the task succeeded in {kept}, of {result.episodes} episodes each", markup=False)
    if result.diverged:
        console.print(f"{result.diverged} episodes did not come about again to the last bit", style="bold red")
    if json:
        rows = [score.figures() for score in (*result.scores, result.total)]
        print_json({"episodes": result.episodes, "diverged": result.diverged, "succeeded": result.succeeded,
                    "settings": result.settings.model_dump(mode="json"), "scores": rows})  # fmt: skip


def contact_tables(result: ContactEvaluation) -> Iterator[Table]:
    """Yield what was found about contact, slip and hold: one row per object and friction, and one for all."""
    scores = (*result.scores, result.total)
    contact = _table("Contact by reading, delay in ms", "readings", "P", "R", "F1", "delay", "95 %", "missed")
    for score in scores:
        contacts = len(score.delays_ms) + score.missed
        _add(
            contact,
            score,
            str(score.touched),
            *(_number(value, 3) for value in (score.contact.precision, score.contact.recall, score.contact.f1)),
            *(_number(value, 0) for value in (score.median_delay_ms, score.late_delay_ms)),
            f"{score.missed}/{contacts}",
        )
    yield contact
    slip = _table(
        "Slip by reading in contact and by event, delay in ms", "true", "P", "R", "false", "found", "event P", "delay"
    )
    for score in scores:
        events = score.slip_events
        _add(
            slip,
            score,
            *(_number(value, 2) for value in (score.slip_share, score.slip.precision, score.slip.recall)),
            _number(score.slip_false_alarms, 2),
            f"{events.true_positive}/{events.true_positive + events.false_negative}",
            _number(events.precision, 2),
            _number(score.median_slip_delay_ms, 0),
        )
    yield slip
    held = _table("Hold by reading", "P", "R", "F1")
    for score in scores:
        _add(held, score, *(_number(value, 2) for value in (score.held.precision, score.held.recall, score.held.f1)))
    yield held


def _table(title: str, *headings: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("object")
    table.add_column("µ")
    for heading in headings:
        table.add_column(heading, justify="right")
    return table


def _add(table: Table, score: ContactScore, *figures: str) -> None:
    everything = score.object == EVERYTHING
    if everything:
        table.add_section()
    table.add_row(score.object, "" if everything else _friction_text(score.friction), *figures)


def _number(value: float, digits: int) -> str:
    if math.isnan(value):
        return "-"
    return "missed" if math.isinf(value) else f"{value:.{digits}f}"


def _friction_text(value: float | None) -> str:
    return "as made" if value is None else f"{value:g}"


def _friction(text: str) -> float | None:
    if text == _AS_MADE:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 < value < math.inf:
        raise SettingError(f"friction must be a positive number or '{_AS_MADE}', got {text!r}")
    return value
