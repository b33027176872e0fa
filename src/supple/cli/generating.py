# SPDX-License-Identifier: Apache-2.0
"""``supple generate``: a dataset from demonstrations, with a progress bar."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from supple.cli.output import console, guarded, print_json
from supple.cli.places import find_seed
from supple.episodes import AttemptRecord
from supple.errors import SettingError, TaskError
from supple.generation import GenerationSettings, GenerationSummary, Job, attempts_on_ray, generate
from supple.generation.settings import Selection, Strategy
from supple.report.soundness import soundness_line
from supple.yaml_file import read_model

__all__ = ["generate_command", "run_generation"]

Engine = Literal["processes", "ray"]


@contextmanager
def _dropped_interrupt() -> Iterator[Callable[[], None]]:
    """Yield what raises KeyboardInterrupt if Ctrl-C came where Python drops it: in a finaliser or weakref callback."""
    dropped = False
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        nonlocal dropped
        if isinstance(unraisable.exc_value, KeyboardInterrupt):
            dropped = True
        else:
            before(unraisable)

    def check() -> None:
        if dropped:
            raise KeyboardInterrupt

    sys.unraisablehook = hook
    try:
        yield check
    finally:
        sys.unraisablehook = before


def run_generation(
    job: Job, folder: Path, attempts: int | None, episodes: int | None, workers: int, **how: Any
) -> GenerationSummary:
    """Generate with a progress bar that shows rate, retained and the most frequent reason.

    Args:
        job: What to make.
        folder: The dataset's folder.
        attempts: So many attempts, or ...
        episodes: ... so many episodes.
        workers: Attempts under way at once.
        **how: The ``engine`` of ``generate``, if another than processes of this machine.
    """
    reasons: Counter[str] = Counter()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    bars = Progress(*columns, TextColumn("{task.fields[note]}"), console=console)
    with _dropped_interrupt() as check_interrupt, bars as progress:
        what = "attempts" if attempts is not None else "episodes"
        bar = progress.add_task("", total=None, note="", visible=False)

        def show(record: AttemptRecord, summary: GenerationSummary) -> None:
            check_interrupt()
            if record.origin is not None:
                reasons[f"{record.origin.value}: {record.reason}"] += 1
            speed = summary.sim_seconds / max(summary.wall_seconds, 1e-9)
            note = f"{summary.retained} retained, {speed:.0f}x"
            if reasons:
                reason, count = reasons.most_common(1)[0]
                note += f", {count}x {reason[:28]}"
            done = summary.attempted if attempts is not None else summary.retained
            total = attempts if attempts is not None else episodes
            progress.update(bar, visible=True, description=what, total=total, completed=done, note=escape(note))

        return generate(job, folder, attempts=attempts, episodes=episodes, workers=workers, on_attempt=show, **how)


def _settings(path: Path | None, **given: Any) -> GenerationSettings:
    """Return what a file says, or the defaults, less what was given besides."""
    settings = GenerationSettings() if path is None else read_model(path, GenerationSettings, SettingError)
    return settings.model_copy(update={name: value for name, value in given.items() if value is not None})


@guarded
def generate_command(
    task: Annotated[str, typer.Argument(help="Task to generate for; 'supple tasks' lists them.")],
    out: Annotated[Path, typer.Option(help="Folder of the dataset; an interrupted one is carried on.")],
    attempts: Annotated[int | None, typer.Option(min=0, help="Make exactly so many attempts.")] = None,
    episodes: Annotated[int | None, typer.Option(min=0, help="Go on until so many episodes are retained.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    distribution: Annotated[str, typer.Option(help="Initial distribution, D0 (narrow) or D1 (wide).")] = "D0",
    workers: Annotated[int, typer.Option(min=1, help="Attempts at once; the result does not depend on it.")] = 1,
    sources: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            help="Seed, dataset or file in MimicGen's format with demonstrations; may be given several times. "
            "Supple's own seed if absent.",
        ),
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="Where attempts run: processes of this machine, or Ray.")
    ] = "processes",
    address: Annotated[
        str | None, typer.Option(help="Ray cluster, as host:port or 'auto'; one on this machine if absent.")
    ] = None,
    arm_noise: Annotated[
        float | None, typer.Option(min=0.0, max=0.2, help="Motion noise on arm targets in rad.")
    ] = None,
    strategy: Annotated[
        Strategy | None, typer.Option(help="How attempts are made: Supple's way (default), or a baseline's.")
    ] = None,
    selection: Annotated[
        Selection | None, typer.Option(help="How a skill's demonstration is chosen among several; random if absent.")
    ] = None,
    settings: Annotated[
        Path | None, typer.Option(help="YAML file with settings; what is given here as well counts instead.")
    ] = None,
    keep_rejected: Annotated[bool, typer.Option(help="Keep rejected episodes in rejected.hdf5.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object, last.")] = False,
) -> None:
    """Turn one demonstration, or a few, into many physically checked episodes."""
    if (attempts is None) == (episodes is None):
        raise TaskError("give either --attempts N or --episodes N")
    if address is not None and engine != "ray":
        raise SettingError(f"--address is for --engine ray, got --engine {engine}")
    how = {"engine": partial(attempts_on_ray, address=address)} if engine == "ray" else {}
    first, *further = [find_seed(task, source) for source in sources or (None,)]
    chosen = _settings(settings, arm_noise=arm_noise, strategy=strategy, selection=selection)
    job = Job(task, distribution, seed, first, chosen, keep_rejected, tuple(further))
    try:
        # Ray prints what nodes report to standard output, which is for the result alone.
        with redirect_stdout(sys.stderr):
            summary = run_generation(job, out, attempts, episodes, workers, **how)
    except KeyboardInterrupt:
        console.print(f"interrupted; what was made is safe in {out}; the same command carries on")
        raise
    for line in summary.recovered:
        console.print(f"repaired: {line}", markup=False)
    console.print(
        f"{summary.attempted} attempted, {summary.completed} completed, {summary.rejected} rejected, "
        f"[bold]{summary.retained} retained[/bold] in {out}"
    )
    for origin, count in summary.by_origin.items():
        console.print(f"  {count} rejected by {origin}")
    if line := soundness_line(summary.soundness):
        console.print(line, markup=False)
    if not summary.complete:
        console.print("gave up: too few attempts succeed; 'supple inspect' shows where they fail")
    if json:
        print_json(summary)
    if not summary.complete:
        raise typer.Exit(3)
