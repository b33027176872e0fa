# SPDX-License-Identifier: Apache-2.0
"""``supple replay`` and ``supple export``: an episode in physics, or as a bag."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from supple.cli.output import console, guarded, print_json
from supple.cli.places import load_episode
from supple.replay.bag_export import export_bag
from supple.replay.player import replay_in_simulation

__all__ = ["export_command", "replay_command"]


class ExportFormat(StrEnum):
    """What an episode can be exported to."""

    BAG = "bag"


@guarded
def replay_command(
    episode: Annotated[str, typer.Argument(help="DATASET:demo_3, DATASET (its first), or a seed file.")],
    clean: Annotated[bool, typer.Option(help="Replay the clean labels instead of what was executed.")] = False,
    verdict: Annotated[Path | None, typer.Option(help="Write the verdict to this JSON file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the verdict as one JSON object, last.")] = False,
) -> None:
    """Replay an episode in physics and say whether it holds: exit code 0 only if the task succeeds."""
    result = replay_in_simulation(load_episode(episode), clean=clean)
    console.print(f"frames applied {result.frames_applied} of {result.frames_total}")
    if result.contract != "match":
        for difference in result.contract:
            console.print(f"contract: {difference}", markup=False)
    if result.first_divergence_step is None:
        console.print("no divergence" if not clean else "stays within 5 cm and 0.05 rad of the recording")
    else:
        size = ", ".join(f"{name} {value:.2e}" for name, value in result.divergence.items())
        console.print(f"first divergence at step {result.first_divergence_step} ({size})")
    console.print(f"success: {'yes' if result.success else 'no'} ({result.reason})", markup=False)
    if json:
        print_json(result)
    if verdict is not None:
        verdict.parent.mkdir(parents=True, exist_ok=True)
        result.write(verdict)
    if not result.success:
        raise typer.Exit(1)


@guarded
def export_command(
    episode: Annotated[str, typer.Argument(help="DATASET:demo_3, DATASET (its first), or a seed file.")],
    to: Annotated[ExportFormat, typer.Option(help="Format.")] = ExportFormat.BAG,
    out: Annotated[Path | None, typer.Option(help="Folder of the bag; made, must not exist.")] = None,
    images: Annotated[bool, typer.Option(help="Render colour and depth images into it.")] = True,
) -> None:
    """Export an episode as a rosbag2 (MCAP) that RViz, Foxglove and 'ros2 bag play' take as it is."""
    path = out or Path(f"{to.value}_{episode.replace('/', '_').replace(':', '_')}")
    path.parent.mkdir(parents=True, exist_ok=True)
    console.print(f"bag written to {export_bag(load_episode(episode), path, images=images)}")
