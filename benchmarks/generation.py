# SPDX-License-Identifier: Apache-2.0
"""How fast and how well episodes are generated, and what their replays are worth.

    python benchmarks/generation.py [--attempts 100] [--workers 2] [--distribution D0]

Prints simulated seconds per wall second and core (everything included: start of the workers, planning, inverse
kinematics, physics, storage), retained share with its 95 % interval, retained episodes per hour, and how many of the
retained episodes replay exactly (executed actions) and successfully (clean actions).
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from supple.episodes import Dataset
from supple.generation import GenerationSettings, Job, generate
from supple.replay.player import replay_in_simulation
from supple.report.statistics import wilson_interval


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="box_lift")
    parser.add_argument("--distribution", default="D0")
    parser.add_argument("--attempts", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--replays", type=int, default=20, help="retained episodes to replay both ways")
    arguments = parser.parse_args()
    seed_file = Path(__file__).resolve().parents[1] / "seeds" / f"{arguments.task}.hdf5"
    job = Job(arguments.task, arguments.distribution, 0, seed_file, GenerationSettings(), keep_rejected=False)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "dataset"
        summary = generate(job, out, attempts=arguments.attempts, workers=arguments.workers)
        speed = summary.sim_seconds / summary.wall_seconds / arguments.workers
        low, high = wilson_interval(summary.retained, summary.attempted)
        per_hour = summary.retained / summary.wall_seconds * 3600.0
        size = (out / "demos.hdf5").stat().st_size / max(summary.retained, 1) / 1e6
        print(f"{'attempted':34} {summary.attempted}")
        print(f"{'retained':34} {summary.retained} ({100 * low:.0f} to {100 * high:.0f} %)")
        for origin, count in summary.by_origin.items():
            print(f"{'  rejected by ' + origin:34} {count}")
        print(f"{'simulated s per wall s and core':34} {speed:.1f}")
        print(f"{'attempts per hour':34} {summary.attempted / summary.wall_seconds * 3600.0:.0f}")
        print(f"{'retained episodes per hour':34} {per_hour:.0f}")
        print(f"{'MB per retained episode':34} {size:.2f}")
        dataset = Dataset(out)
        names = dataset.names[: arguments.replays]
        exact = clean = 0
        for name in names:
            episode = dataset.episode(name)
            verdict = replay_in_simulation(episode)
            exact += verdict.success and verdict.first_divergence_step is None
            clean += replay_in_simulation(episode, clean=True).success
        print(f"{'executed actions replay exactly':34} {exact} of {len(names)}")
        print(f"{'clean actions succeed':34} {clean} of {len(names)}")


if __name__ == "__main__":
    main()
