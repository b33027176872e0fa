# SPDX-License-Identifier: Apache-2.0
"""What a growing data set costs per attempt: processor time and memory of the process that stores it.

    python benchmarks/dataset_growth.py [--attempts 10000]

One real attempt is made once and then handed over again and again under the next number, through everything that a
generation runs in its main process: checks, part files, ledger, counts, and the gathering at the end. Workers keep
nothing from one attempt to the next, so that what grows with the number of attempts grows here. Prints both figures
for each tenth, and the last tenth's time as a ratio to the first's.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from supple.episodes import AttemptRecord
from supple.generation import GenerationSettings, GenerationSummary, Job, generate
from supple.generation.engine import Result

_SEEDS = Path(__file__).resolve().parents[1] / "seeds"


def _resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def _repeated(job: Job, indices: Iterable[int], workers: int) -> Iterator[Result]:
    """Make the first attempt and return it for every index."""
    record, episode = job.run(job.runner(), 0)
    for index in indices:
        yield record.model_copy(update={"attempt": index}), episode and dataclasses.replace(episode, attempt=index)


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--task", default="box_lift")
    parser.add_argument("--attempts", type=int, default=10_000)
    arguments = parser.parse_args()
    job = Job(arguments.task, "D0", 0, _SEEDS / f"{arguments.task}.hdf5", GenerationSettings(), keep_rejected=False)
    tenth = max(1, arguments.attempts // 10)
    costs: list[float] = []
    began = time.process_time()

    def note(record: AttemptRecord, summary: GenerationSummary) -> None:
        nonlocal began
        if summary.attempted == 1:
            began = time.process_time()  # making it is not what is measured
        if summary.attempted % tenth == 0:
            now = time.process_time()
            costs.append(1e3 * (now - began) / tenth)
            began = now
            print(f"{summary.attempted:8} {costs[-1]:10.1f} {_resident_mb():8.0f}", flush=True)

    print("attempts  ms/attempt  resident MB")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "dataset"
        summary = generate(job, out, attempts=arguments.attempts, engine=_repeated, on_attempt=note)
        gathered = time.process_time() - began
        size = (out / "demos.hdf5").stat().st_size / 1e9
    print(f"gathered into one file of {size:.1f} GB: {1e3 * gathered / arguments.attempts:.1f} ms per attempt")
    print(f"resident at the end: {_resident_mb():.0f} MB")
    print(f"last tenth over first tenth: {costs[-1] / costs[0]:.2f} ({summary.retained} retained)")


if __name__ == "__main__":
    main()
