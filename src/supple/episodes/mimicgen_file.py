# SPDX-License-Identifier: Apache-2.0
"""Files in MimicGen's format, read as demonstrations: our own datasets, and what MimicGen's tools make of our tasks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from supple.episodes.episode import Episode, InitialState, Outcome
from supple.episodes.hdf5_store import opened, read_episode
from supple.episodes.validation import validate
from supple.errors import DatasetError, SuppleError
from supple.robots import Robot

__all__ = ["read_mimicgen_file"]

_ADVICE = "expected a seed, or a file in MimicGen's format with data/demo_0/datagen_info"


def read_mimicgen_file(path: Path | str, task: str, robot: Robot, effector: str | None = None) -> dict[str, Episode]:
    """Read the demonstrations in a file in MimicGen's format, in order of their numbers.

    Of what Supple wrote, everything is read. Elsewhere a demonstration has as many states as actions; its last action,
    of which nobody knows where it led, is left out. Its actions are taken to mean what the robot's contract says.

    Args:
        path: The file.
        task: Name of the task that it must show.
        robot: The robot that it must be for.
        effector: Whose poses they are where they do not stand in a group by effector, as with MimicGen's robots of one
            arm; such a file is refused without.

    Returns:
        Episodes by name, each validated.

    Raises:
        DatasetError: Missing, no HDF5, not MimicGen's format, another task, or malformed; one clear line.
    """
    path = Path(path)
    with opened(path, _ADVICE) as file:
        names = [name for name in file.get("data", ()) if name.removeprefix("demo_").isdecimal()]
        if not names:
            raise DatasetError(f"{path}: holds no data/demo_0; {_ADVICE}")
        found = {}
        for name in sorted(names, key=lambda name: int(name.removeprefix("demo_"))):
            group, where = file["data"][name], f"{path}: {name}"
            if "supple" in group:
                found[name] = read_episode(group, where)
                continue
            shown = _task_of(group, file["data"])
            if shown != task:
                raise DatasetError(f"{where}: shows {shown!r} (env_interface_name, env_name), expected {task!r}")
            try:
                found[name] = _foreign(group, task, robot, effector, where)
            except (KeyError, TypeError, ValueError) as error:
                if isinstance(error, SuppleError):
                    raise
                raise DatasetError(
                    f"{where}: not MimicGen's format: {error.args[0] if error.args else error}"
                ) from error
            validate(found[name], where)
    return found


def _task_of(group: h5py.Group, data: h5py.Group) -> str | None:
    """Return the task that MimicGen's attributes name."""
    name = group["datagen_info"].attrs.get("env_interface_name") if "datagen_info" in group else None
    if name is not None:
        return str(name)
    try:
        value = json.loads(data.attrs.get("env_args", "{}"))
    except ValueError:
        return None
    return value.get("env_name") if isinstance(value, dict) else None


def _foreign(group: h5py.Group, task: str, robot: Robot, effector: str | None, where: str) -> Episode:
    info, states = group["datagen_info"], group["states"][()]
    n = len(states) - 1
    interval = round(1e9 * robot.contract.control_interval)
    return Episode(
        task=task,
        distribution="",
        robot=robot.name,
        contract=robot.contract,
        attempt=0,
        seed=0,
        source="",
        initial=InitialState(states[0], ""),
        actions=group["actions"][:n],
        executed=group["actions"][:n],
        states=states,
        stamps_ns=interval * np.arange(n + 1),
        observations={name: group["obs"][name][()] for name in group["obs"]},
        outcome=Outcome(False, reason="not judged: read from a file in MimicGen's format"),
        effector_poses=_by_effector(info, "eef_pose", effector, where),
        target_poses={key: poses[:n] for key, poses in _by_effector(info, "target_pose", effector, where).items()},
        object_poses={name: info["object_poses"][name][()] for name in info["object_poses"]},
        start_signals=_signals(info, "subtask_start_signals", n),
        signals=_signals(info, "subtask_term_signals", n),
    )


def _by_effector(info: h5py.Group, name: str, effector: str | None, where: str) -> dict[str, NDArray[Any]]:
    poses = info[name]
    if isinstance(poses, h5py.Group):
        return {key: poses[key][()] for key in poses}
    if effector is None:
        raise DatasetError(
            f"{where}: datagen_info/{name}: expected a group by effector, since this task has skills of several; "
            f"got one array of shape {poses.shape}"
        )
    return {effector: poses[()]}


def _signals(info: h5py.Group, name: str, n: int) -> dict[str, NDArray[np.bool_]]:
    return {key: info[name][key][()].reshape(-1)[:n] > 0 for key in info.get(name, ())}
