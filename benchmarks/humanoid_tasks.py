# SPDX-License-Identifier: Apache-2.0
"""What share of attempts is retained, task by task: Supple, DexMimicGen+, and Supple without one of its parts.

    python benchmarks/humanoid_tasks.py [TASK ...] [--attempts 100] [--distributions D0 D1] [--methods supple]

Prints a Markdown table: per task, distribution and method what was attempted, completed, rejected by origin and
retained, with its 95 % interval (Wilson), and the largest tilt of the pelvis, slide of a foot while standing and depth
outside intended contacts of any retained episode. Every method starts from the same seed
demonstration and the same initial states.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from pathlib import Path

from supple.episodes import Origin
from supple.episodes.versions import current_versions
from supple.generation import GenerationSettings, GenerationSummary, Job, generate
from supple.report.statistics import wilson_interval
from supple.tasks import task_names

METHODS = {
    "supple": GenerationSettings(),
    "dexmimicgen_plus": GenerationSettings(strategy="dexmimicgen_plus"),
    "without_planning": GenerationSettings(planning=False),
    "without_replanning": GenerationSettings(replanning=False),
    "without_collision_checks": GenerationSettings(collision_checks=False),
}
SOUNDNESS = (("tilt", 180.0 / math.pi), ("foot_slide", 1e2), ("penetration", 1e3))
_SEEDS = Path(__file__).resolve().parents[1] / "seeds"


def run(task: str, distribution: str, settings: GenerationSettings, attempts: int, workers: int) -> GenerationSummary:
    """Generate a dataset that is thrown away and return what came of it."""
    job = Job(task, distribution, 0, _SEEDS / f"{task}.hdf5", settings, keep_rejected=False)
    with tempfile.TemporaryDirectory() as folder:
        return generate(job, Path(folder) / "dataset", attempts=attempts, workers=workers)


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", default=task_names(), metavar="TASK")
    parser.add_argument("--attempts", type=int, default=100)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--distributions", nargs="+", default=["D0", "D1"])
    parser.add_argument("--methods", nargs="+", default=["supple", "dexmimicgen_plus"], choices=METHODS)
    arguments = parser.parse_args()
    print(", ".join(f"{name} {version}" for name, version in current_versions().items()) + "\n")
    origins = [origin.value for origin in Origin]
    columns = ["task", "distribution", "method", "attempted", "completed", *origins, "retained", "95 % interval"]
    columns += ["largest tilt [deg]", "slide [cm]", "depth [mm]"]
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    shares: dict[tuple[str, str], list[float]] = {}
    for task in arguments.tasks:
        for distribution in arguments.distributions:
            for method in arguments.methods:
                done = run(task, distribution, METHODS[method], arguments.attempts, arguments.workers)
                low, high = wilson_interval(done.retained, done.attempted)
                share = done.retained / done.attempted
                shares.setdefault((distribution, method), []).append(share)
                rejected = [done.by_origin.get(origin, 0) for origin in origins]
                interval = f"{100 * low:.0f} to {100 * high:.0f} %"
                cells = [task, distribution, method, done.attempted, done.completed, *rejected, done.retained, interval]
                cells += [f"{done.soundness[name] * scale:.1f}" if done.soundness else "-" for name, scale in SOUNDNESS]
                print(f"| {' | '.join(map(str, cells))} |", flush=True)
    for (distribution, method), values in shares.items():
        print(
            f"\nmean retained, {distribution}, {method}: {100 * sum(values) / len(values):.0f} % of {len(values)} tasks"
        )


if __name__ == "__main__":
    main()
