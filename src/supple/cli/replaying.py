# SPDX-License-Identifier: Apache-2.0
"""``supple replay`` and ``supple export``: an episode in physics, or as a bag."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from supple.cli.calling import Namespace, Timeout, answered, connect
from supple.cli.output import console, guarded, print_json
from supple.cli.places import load_episode
from supple.replay.bag_export import export_bag
from supple.replay.player import replay_in_simulation
from supple.replay.verdict import Verdict

__all__ = ["export_command", "replay_command"]


class ExportFormat(StrEnum):
    """What an episode can be exported to."""

    BAG = "bag"


@answered
def replay_command(
    episode: Annotated[str, typer.Argument(help="DATASET:demo_3, DATASET (its first), or a seed file.")],
    clean: Annotated[bool, typer.Option(help="Replay the clean labels instead of what was executed.")] = False,
    verdict: Annotated[Path | None, typer.Option(help="Write the verdict to this JSON file.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the verdict as one JSON object, last.")] = False,
    ros: Annotated[bool, typer.Option("--ros", help="Play it into the running simulator, by episode_player.")] = False,
    namespace: Namespace = "",
    timeout: Timeout = 5.0,
) -> None:
    """Replay an episode in physics and say whether it holds: exit code 0 only if the task succeeds."""
    if ros:
        result = _replay_over_ros(episode, clean, namespace, timeout)
    else:
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


def _replay_over_ros(episode: str, clean: bool, namespace: str, timeout: float) -> Verdict:
    place, _, name = episode.partition(":")
    with connect(namespace, timeout) as operator, Progress(console=console, transient=True) as progress:
        bar = progress.add_task("frames", total=None)
        result = operator.replay(
            str(Path(place).resolve()),
            name,
            clean,
            lambda frame, total: progress.update(bar, completed=frame, total=total),
        )
    return Verdict.model_validate_json(result.verdict)


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
