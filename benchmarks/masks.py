# SPDX-License-Identifier: Apache-2.0
"""How right and how fast masks from colour and geometry are, and masks carried by optical flow, on one core.

    python benchmarks/masks.py [--every 4] [--noise 0.003]

Draws the recorded demonstration of box_lift as the robot's head camera sees it, from walking up to lifting, and
compares masks with the simulator's own, pixel by pixel; once as drawn, once with noise of depth and colour and with
holes. Times are of the processor, so that other programs count little.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path

import cv2
import mujoco
import numpy as np
from numpy.typing import NDArray

from supple.episodes.seed_store import load_seed
from supple.perception.frames import Intrinsics, RgbdFrame
from supple.perception.looks import Looks
from supple.perception.propagation import FlowPropagator
from supple.perception.tracking import MaskTracker
from supple.sim.camera import Camera
from supple.tasks import Environment, task_named

ROOT = Path(__file__).resolve().parents[1]
OBJECTS = ("box", "table")
WIDTH, HEIGHT, CARRIED = 640, 480, 5
Mask = NDArray[np.bool_]
Shot = tuple[RgbdFrame, dict[str, Mask]]


def shots(every: int) -> Iterator[Shot]:
    """Yield frames of the demonstration with the true masks."""
    episode = load_seed(ROOT / "seeds/box_lift.hdf5").episode
    environment = Environment(task_named("box_lift"), visual=True)
    environment.restore(episode.initial)
    world = environment.world
    with Camera(world.model, "camera", WIDTH, HEIGHT) as camera:
        intrinsics = Intrinsics(*camera.intrinsics, WIDTH, HEIGHT)
        for index in range(0, len(episode.states), every):
            mujoco.mj_setState(world.model, world.data, episode.states[index], mujoco.mjtState.mjSTATE_FULLPHYSICS)
            mujoco.mj_forward(world.model, world.data)
            drawn, labels = camera.render(world.data), camera.labels(world.data, OBJECTS)
            depth = np.where(np.isfinite(drawn.depth), drawn.depth, np.nan).astype(np.float32)
            truth = {name: labels == number for number, name in enumerate(OBJECTS, start=1)}
            yield RgbdFrame(int(episode.stamps_ns[index]), drawn.rgb, depth, intrinsics), truth


def worsened(frame: RgbdFrame, noise: float, rng: np.random.Generator) -> RgbdFrame:
    """Return a frame as a cheap depth camera would give it: noise that grows with distance squared, 2 % holes."""
    depth = frame.depth + (noise * frame.depth**2 * rng.standard_normal(frame.shape)).astype(np.float32)
    depth[rng.random(frame.shape) < 0.02] = np.nan
    rgb = np.clip(frame.rgb + rng.normal(0.0, 4.0, frame.rgb.shape), 0, 255).astype(np.uint8)
    return RgbdFrame(frame.stamp_ns, rgb, depth, frame.intrinsics)


def of_geometry(title: str, sequence: list[Shot]) -> None:
    """Print how right and how fast the geometric source and the tracker are."""
    source, tracker = Looks.read(ROOT / "config/perception/box_lift.yaml").source(), MaskTracker()
    finding, tracking = [], []
    shares: dict[str, list[tuple[float, float]]] = {name: [] for name in OBJECTS}
    for frame, truth in sequence:
        start = time.process_time()
        masks = source.masks(frame)
        middle = time.process_time()
        tracker.update(frame, masks)
        finding.append(middle - start)
        tracking.append(time.process_time() - middle)
        for name in masks:
            both = np.count_nonzero(masks[name] & truth[name])
            shares[name].append((both / np.count_nonzero(masks[name]), both / np.count_nonzero(truth[name])))
    for name, rows in shares.items():
        least, median = np.min(rows, axis=0), np.median(rows, axis=0)
        print(
            f"{title:10} {name:6} found in {len(rows)} of {len(sequence)}   precision {median[0]:.3f} (least "
            f"{least[0]:.3f})   recall {median[1]:.3f} (least {least[1]:.3f})"
        )
    for what, times in (("masks", finding), ("tracker", tracking)):
        middle, worst = 1e3 * np.percentile(times, (50, 95))
        print(f"{title:10} {what:7} {middle:.1f} ms of processor time per frame, 95 % below {worst:.1f} ms")


def of_flow(sequence: list[Shot]) -> None:
    """Print how right the box's mask is after being carried for some frames."""
    overlaps: dict[int, list[float]] = {1: [], CARRIED: []}
    started = 0
    for first in range(0, len(sequence) - CARRIED, CARRIED):
        mask = sequence[first][1]["box"]
        started += 1
        for step in range(1, CARRIED + 1):
            carried = FlowPropagator(sequence[first + step - 1][0]).carry(mask, sequence[first + step][0])
            if carried is None:
                break
            mask, truth = carried.mask, sequence[first + step][1]["box"]
            if step in overlaps:
                overlaps[step].append(np.count_nonzero(mask & truth) / np.count_nonzero(mask | truth))
    for step, values in overlaps.items():
        low, median = np.percentile(values, (5, 50))
        print(
            f"flow       box    after {step} frames: followed {len(values)} of {started}   intersection over union "
            f"{median:.3f} (5 % below {low:.3f})"
        )


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--every", type=int, default=4, help="states between two frames; 4 are 12.5 frames per second")
    parser.add_argument("--noise", type=float, default=0.003, help="standard deviation of depth at 1 m, in [m]")
    arguments = parser.parse_args()
    sequence = list(shots(arguments.every))
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    cv2.setNumThreads(1)
    rng = np.random.default_rng(0)
    of_geometry("as drawn", sequence)
    of_geometry("with noise", [(worsened(frame, arguments.noise, rng), truth) for frame, truth in sequence])
    of_flow(sequence)


if __name__ == "__main__":
    main()
