# SPDX-License-Identifier: Apache-2.0
"""Small, valid episodes of the G1 to write, spoil and read back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from supple.episodes import AttemptRecord, DatasetCard, Episode, InitialState, Mark, Outcome, Seed, SkillSegment
from supple.episodes.ledger import Origin
from supple.robots import robot_named


def episode(
    attempt: int = 0, length: int = 12, state_size: int = 30, *, success: bool = True, seed: int | None = None
) -> Episode:
    """Return an episode whose every number depends on the seed (the attempt if absent)."""
    rng = np.random.default_rng(attempt if seed is None else seed)
    robot = robot_named("g1")
    n, joints, width = length, len(robot.joints), robot.contract.size
    step = round(robot.contract.control_interval * 1e9)
    actions = rng.uniform(robot.contract.lower, robot.contract.upper, (n, width))
    states = rng.normal(size=(n + 1, state_size))
    return Episode(
        task="box_lift",
        distribution="D0",
        robot="g1",
        contract=robot.contract,
        attempt=attempt,
        seed=attempt + 1000,
        source="box_lift.hdf5",
        initial=InitialState(
            states[0], "5f3a", {"box": [0.5, 0.1, 0.7, 0.0, 0.0, 0.6, 0.8]}, {"box.mass": 0.7}, {"lift.height": 0.1}
        ),
        actions=actions,
        executed=actions + rng.normal(scale=0.003, size=actions.shape),
        states=states,
        stamps_ns=7_000_000 + step * np.arange(n + 1),
        observations={
            "q": rng.normal(size=(n + 1, joints)),
            "v": rng.normal(size=(n + 1, joints)),
            "effort": rng.normal(size=(n + 1, joints)),
            "base_pose": np.hstack([rng.normal(size=(n + 1, 3)), unit(rng.normal(size=(n + 1, 4)))]),
            "base_twist": rng.normal(size=(n + 1, 6)),
            "base_acceleration": rng.normal(size=(n + 1, 3)),
        },
        outcome=Outcome(success, {"height": 0.12, "upright": True}, "" if success else "the box was dropped"),
        effector_poses={name: poses(rng, n + 1) for name in ("left_hand", "right_hand")},
        target_poses={name: poses(rng, n) for name in ("left_hand", "right_hand")},
        object_poses={"box": poses(rng, n + 1), "table": poses(rng, n + 1)},
        contacts={"left_hand/box": rng.uniform(0, 30, (n + 1, 2)), "box/table": rng.uniform(0, 9, (n + 1, 2))},
        start_signals={"lift_left": np.arange(n) > n // 3, "lift_right": np.arange(n) > n // 3},
        sources={"lift_left": "box_lift.hdf5", "lift_right": "box_lift.hdf5"},
        signals={"lift_left": np.arange(n) > n // 2, "lift_right": np.arange(n) > n // 2},
        versions={"supple": "0.1.0", "mujoco": "3.17.0"},
    )


def unit(values: np.ndarray) -> np.ndarray:
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


def poses(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return random rigid poses, shape (rows, 4, 4)."""
    x, y, z, w = unit(rng.normal(size=(rows, 4))).T
    result = np.tile(np.eye(4), (rows, 1, 1))
    rows_of_r = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    result[:, :3, :3] = np.array(rows_of_r).transpose(2, 0, 1)
    result[:, :3, 3] = rng.normal(size=(rows, 3))
    return result


def card(**changes: Any) -> DatasetCard:
    values: dict[str, Any] = {
        "name": "box_lift_D0",
        "task": "box_lift",
        "distribution": "D0",
        "robot": "g1",
        "seed": 0,
        "source": "seeds/box_lift.hdf5",
        "source_sha256": "ab" * 32,
        "settings": {"noise": 0.003, "interpolation": {"steps": 5}},
        "contract": robot_named("g1").contract,
        "versions": {"mujoco": "3.17.0"},
        "created": "2026-01-31",
        "supple": "0.1.0",
    }
    return DatasetCard(**(values | changes))


def record(attempt: int, *, retained: bool = True, **changes: Any) -> AttemptRecord:
    values: dict[str, Any] = {
        "attempt": attempt,
        "seed": attempt + 1000,
        "source": "box_lift.hdf5",
        "distribution": "D0",
        "outcome": "retained" if retained else "rejected",
        "completed": True,
        "stage": "success_test",
        "origin": None if retained else Origin.SUCCESS_TEST,
        "reason": "" if retained else "the box ended 3 cm above the table, 10 cm are wanted",
        "initial": {"box": [0.5, 0.1, 0.7, 0.0, 0.0, 0.6, 0.8]},
        "measures": {"height": 0.12, "upright": True},
        "sim_seconds": 14.0,
        "wall_seconds": 0.9,
        "timings": {"walk": 0.4},
    }
    return AttemptRecord(**(values | changes))


def attempt(index: int, length: int = 12) -> tuple[AttemptRecord, Episode]:
    """Return a whole attempt; every third is rejected."""
    retained = index % 3 != 2
    return record(index, retained=retained), episode(index, length, success=retained)


def seed(length: int = 12) -> Seed:
    demo = replace(episode(0, length), source="", distribution="recorded")
    half = length // 2
    return Seed(
        demo,
        (
            SkillSegment("lift_left", "left_hand", "box", half, length),
            SkillSegment("lift_right", "right_hand", "box", half, length),
        ),
        (Mark("grasp", half), Mark("end", length)),
        "scripted",
        "a test",
    )
