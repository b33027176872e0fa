# SPDX-License-Identifier: Apache-2.0
"""``supple demo``: the whole way once, from a seed to a replayed bag, with everything in one folder."""

from __future__ import annotations

import json as json_format
import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from supple.cli.generating import run_generation
from supple.cli.output import console, guarded, print_json
from supple.cli.places import find_seed
from supple.episodes import Dataset
from supple.episodes.atomic import write_atomically
from supple.errors import ReplayError
from supple.generation import GenerationSettings, Job
from supple.replay.bag_export import export_bag
from supple.replay.player import replay_in_simulation
from supple.report.inspect import write_report

__all__ = ["demo_command"]


@guarded
def demo_command(
    out: Annotated[Path, typer.Option(help="Folder for everything.")] = Path("out/demo"),
    attempts: Annotated[int, typer.Option(min=1, help="Attempts to make.")] = 50,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; all cores if absent.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object, last.")] = False,
) -> None:
    """Make 50 box lifts out of one demonstration, report on them, replay one and write it as a bag."""
    out, workers = out.resolve(), workers or os.cpu_count() or 1
    dataset_folder, bag, verdict_file = out / "dataset", out / "bag", out / "verdict.json"
    seed_file = find_seed("box_lift", None)
    console.rule(f"1. one demonstration, {attempts} attempts")
    job = Job("box_lift", "D0", 0, seed_file, GenerationSettings(), keep_rejected=True)
    generated = run_generation(job, dataset_folder, attempts, None, workers)
    console.rule("2. report and video")
    report = write_report(dataset_folder, out / "report")
    console.rule("3. replay")
    dataset = Dataset(dataset_folder)
    if not dataset.names:
        raise ReplayError(f"none of {generated.attempted} attempts succeeded; see {report.html}")
    episode = dataset.episode(dataset.names[0])
    verdict = replay_in_simulation(episode)
    verdict.write(verdict_file)
    diverged = "none" if verdict.first_divergence_step is None else f"step {verdict.first_divergence_step}"
    frames = f"{verdict.frames_applied} of {verdict.frames_total} frames"
    console.print(f"{dataset.names[0]}: {frames}, first divergence: {diverged}, success: {verdict.success}")
    console.rule("4. bag")
    if bag.exists():
        shutil.rmtree(bag)
    export_bag(episode, bag)
    summary = {
        "attempted": generated.attempted,
        "completed": generated.completed,
        "rejected": generated.rejected,
        "retained": generated.retained,
        "by_origin": generated.by_origin,
        "seed": str(seed_file),
        "dataset": str(dataset_folder),
        "report": str(report.html),
        "video": str(report.video) if report.video else None,
        "verdict": str(verdict_file),
        "replay_success": verdict.success,
        "bag": str(bag),
    }
    write_atomically(out / "summary.json", (json_format.dumps(summary, indent=2) + "\n").encode())
    console.rule("done")
    for key in ("attempted", "completed", "rejected", "retained"):
        console.print(f"{key:>10} {summary[key]}")
    for origin, count in generated.by_origin.items():
        console.print(f"{'':>10} {count} rejected by {origin}")
    for key in ("report", "video", "dataset", "verdict", "bag"):
        console.print(f"{key:>10} {summary[key]}", soft_wrap=True)
    console.print(f"{'summary':>10} {out / 'summary.json'}", soft_wrap=True)
    if json:
        print_json(summary)
