# SPDX-License-Identifier: Apache-2.0
"""One episode as an HDF5 group: the layout of robomimic and MimicGen, with everything else under a group of our own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from supple.episodes.episode import Episode, InitialState, Outcome
from supple.episodes.validation import validate
from supple.errors import DatasetError, JointError, SuppleError, disk_is_full
from supple.robots import ActionContract, JointTable, robot_named

__all__ = [
    "FORMAT_VERSION",
    "attempt_of",
    "episode_image",
    "opened",
    "read_episode",
    "read_json",
    "write_episode",
    "write_json",
]

FORMAT_VERSION = 1
_CHUNK_ROWS = 128
_JOINT_KEYS = ("q", "v", "effort")


def write_episode(group: h5py.Group, episode: Episode) -> None:
    """Write a valid episode into an empty group.

    The bytes depend on nothing but the episode: no times are stored and every name is written in sorted order.

    Args:
        group: An empty group, e.g. ``data/demo_0``.
        episode: A validated episode.
    """
    n = episode.length
    robot = robot_named(episode.robot)
    group.attrs["num_samples"] = n
    _put(group, "actions", episode.actions)
    # robomimic's loader asks for these two by default.
    reward = np.zeros(n)
    reward[-1] = float(episode.outcome.success)
    done = np.zeros(n, dtype=np.int64)
    done[-1] = 1
    _put(group, "rewards", reward)
    _put(group, "dones", done)
    _put(group, "states", episode.states[:n])
    _put_all(group, "obs", {key: value[:n] for key, value in episode.observations.items()})
    info = group.create_group("datagen_info")
    # MimicGen asks a source file which interface to the simulator its poses come from.
    info.attrs["env_interface_name"] = episode.task
    info.attrs["env_interface_type"] = "supple"
    _put_all(info, "eef_pose", {key: value[:n] for key, value in episode.effector_poses.items()})
    _put_all(info, "target_pose", episode.target_poses)
    _put_all(info, "object_poses", {key: value[:n] for key, value in episode.object_poses.items()})
    for name, signals in (("start", episode.start_signals), ("term", episode.signals)):
        _put_all(info, f"subtask_{name}_signals", {key: value.astype(np.int8) for key, value in signals.items()})
    fingers = {}
    for name in episode.effector_poses:
        joints = {robot.joints.names[i] for i in robot.joints.group(robot.effector(name).fingers)}
        columns = [i for i, term in enumerate(episode.contract.names) if term in joints]
        if columns:
            fingers[name] = episode.actions[:, columns]
    _put_all(info, "gripper_action", fingers)

    ours = group.create_group("supple")
    ours.attrs["attempt"] = episode.attempt
    if np.array_equal(episode.executed, episode.actions):
        # Without motion noise, as in every seed, both are one: a second name costs nothing.
        ours["executed"] = group["actions"]
    else:
        _put(ours, "executed", episode.executed)
    _put(ours, "stamps_ns", episode.stamps_ns)
    final = ours.create_group("final")
    _put(final, "state", episode.states[n])
    _put_all(final, "obs", {key: value[n] for key, value in episode.observations.items()})
    _put_all(final, "eef_pose", {key: value[n] for key, value in episode.effector_poses.items()})
    _put_all(final, "object_poses", {key: value[n] for key, value in episode.object_poses.items()})
    initial = ours.create_group("initial")
    _put(initial, "state", episode.initial.state)
    _put_all(initial, "objects", episode.initial.objects)
    contacts = ours.create_group("contacts")
    for key in sorted(episode.contacts):
        _put(contacts, key, episode.contacts[key])
    meta = {
        "task": episode.task,
        "distribution": episode.distribution,
        "robot": episode.robot,
        "joint_names": robot.joints.names,
        "attempt": episode.attempt,
        "seed": episode.seed,
        "source": episode.source,
        "sources": dict(episode.sources),
        "soundness": dict(episode.soundness),
        "contract": episode.contract.model_dump(mode="json"),
        "model_hash": episode.initial.model_hash,
        "materials": dict(episode.initial.materials),
        "goal": dict(episode.initial.goal),
        "versions": dict(episode.versions),
        "outcome": {
            "success": episode.outcome.success,
            "measures": dict(episode.outcome.measures),
            "reason": episode.outcome.reason,
        },
    }
    write_json(ours, "meta", meta)


def read_episode(group: h5py.Group, where: str) -> Episode:
    """Read an episode back and validate it.

    Joint observations are mapped by the names stored with them into the robot's table order.

    Args:
        group: Group that ``write_episode`` filled.
        where: File and name, for messages.

    Raises:
        DatasetError: Something is missing, malformed or was written by a newer format.
    """
    try:
        episode = _read(group, where)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, SuppleError):
            raise
        message = error.args[0] if error.args else error
        raise DatasetError(f"{where}: not an episode that Supple wrote: {message}") from error
    validate(episode, where)
    return episode


def episode_image(episode: Episode) -> bytes:
    """Return a whole HDF5 file that holds one episode in the group ``episode``, as bytes.

    It is composed in memory because HDF5 cannot give up cleanly on a file whose disk runs full.
    """
    with h5py.File("episode", "w", driver="core", backing_store=False) as file:
        file.attrs["supple_format"] = FORMAT_VERSION
        write_episode(file.create_group("episode"), episode)
        file.flush()
        return bytes(file.id.get_file_image())


def attempt_of(group: h5py.Group, where: str) -> int:
    """Return the attempt that made the episode in a group, without reading the episode."""
    try:
        return int(group["supple"].attrs["attempt"])
    except KeyError as error:
        raise DatasetError(f"{where}: not an episode that Supple wrote: it has no attempt index") from error


@contextmanager
def opened(path: Path, advice: str) -> Iterator[h5py.File]:
    """Open an HDF5 file to read, and turn what HDF5 says about a broken file into one clear line.

    Args:
        path: The file.
        advice: What a person should do if it cannot be read.

    Raises:
        DatasetError: Missing, truncated, garbled, no HDF5 at all, or written by a newer format.
    """
    if not path.is_file():
        raise DatasetError(f"{path}: there is no such file; {advice}")
    try:
        with h5py.File(path, "r") as file:
            version = int(file.attrs.get("supple_format", 0))
            if version > FORMAT_VERSION:
                raise DatasetError(
                    f"{path}: format {version} is newer than {FORMAT_VERSION}, the newest this version reads"
                )
            yield file
    except SuppleError:
        raise
    except (OSError, RuntimeError) as error:
        if disk_is_full(error):
            # It is not this file that cannot be read, but the one that it is copied to that cannot be written.
            raise
        raise DatasetError(f"{path}: truncated, garbled or not an HDF5 file ({_short(error)}); {advice}") from error


def write_json(group: h5py.Group, name: str, value: Mapping[str, Any]) -> None:
    """Store plain data as a JSON text of fixed length."""
    group.create_dataset(name, data=np.bytes_(json.dumps(value, sort_keys=True, allow_nan=False)), track_times=False)


def read_json(group: h5py.Group, name: str, where: str) -> dict[str, Any]:
    """Read plain data back.

    Raises:
        DatasetError: It is missing or no JSON object.
    """
    if name not in group:
        raise DatasetError(f"{where}: {name!r} is missing; this file was not written by Supple or is damaged")
    try:
        value = json.loads(group[name][()])
    except (TypeError, ValueError) as error:
        raise DatasetError(f"{where}: {name!r} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise DatasetError(f"{where}: {name!r}: expected a JSON object, got {type(value).__name__}")
    return value


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:160]


def _put(group: h5py.Group, name: str, array: NDArray[Any]) -> None:
    if array.ndim == 0 or array.size == 0 or array.nbytes < 512:
        group.create_dataset(name, data=array, track_times=False)
        return
    chunks = (min(len(array), _CHUNK_ROWS), *array.shape[1:])
    # The compression carries a checksum of its own, so a flipped bit does not go unnoticed.
    options = {"compression": "gzip", "compression_opts": 4, "shuffle": True}
    group.create_dataset(name, data=array, chunks=chunks, track_times=False, **options)


def _put_all(parent: h5py.Group, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    group = parent.create_group(name)
    for key in sorted(arrays):
        _put(group, key, arrays[key])


def _all(group: h5py.Group) -> dict[str, NDArray[Any]]:
    return {key: group[key][()] for key in group}


def _whole(rows: h5py.Group, last: h5py.Group, where: str) -> dict[str, NDArray[Any]]:
    if set(rows) != set(last):
        raise DatasetError(f"{where}: names in {rows.name} and {last.name} differ: {sorted(set(rows) ^ set(last))}")
    return {key: np.concatenate([rows[key][()], last[key][()][np.newaxis]]) for key in rows}


def _table_order(array: NDArray[Any], names: list[str], joints: JointTable, where: str) -> NDArray[Any]:
    if array.ndim != 2 or array.shape[1] != len(names):
        raise DatasetError(f"{where}: {len(names)} joint names but values of shape {array.shape}")
    try:
        columns = joints.ordered(names, np.arange(len(names)), where).astype(np.intp)
    except JointError as error:
        raise DatasetError(str(error)) from error
    return array[:, columns]


def _read(group: h5py.Group, where: str) -> Episode:
    ours, info = group["supple"], group["datagen_info"]
    meta = read_json(ours, "meta", where)
    joints = robot_named(meta["robot"]).joints
    observations = _whole(group["obs"], ours["final/obs"], where)
    for key in _JOINT_KEYS:
        if key in observations:
            observations[key] = _table_order(
                observations[key], meta["joint_names"], joints, f"{where}: observations/{key}"
            )
    contacts = {f"{a}/{b}": ours["contacts"][a][b][()] for a in ours["contacts"] for b in ours["contacts"][a]}
    outcome = meta["outcome"]
    try:
        contract = ActionContract.from_mapping(meta["contract"])
    except ValidationError as error:
        raise DatasetError(f"{where}: contract: {error}") from error
    return Episode(
        task=meta["task"],
        distribution=meta["distribution"],
        robot=meta["robot"],
        contract=contract,
        attempt=int(meta["attempt"]),
        seed=int(meta["seed"]),
        source=meta["source"],
        initial=InitialState(
            ours["initial/state"][()],
            meta["model_hash"],
            _all(ours["initial/objects"]),
            meta["materials"],
            meta["goal"],
        ),
        actions=group["actions"][()],
        executed=ours["executed"][()],
        states=np.concatenate([group["states"][()], ours["final/state"][()][np.newaxis]]),
        stamps_ns=ours["stamps_ns"][()],
        observations=observations,
        outcome=Outcome(outcome["success"], outcome["measures"], outcome["reason"]),
        effector_poses=_whole(info["eef_pose"], ours["final/eef_pose"], where),
        target_poses=_all(info["target_pose"]),
        object_poses=_whole(info["object_poses"], ours["final/object_poses"], where),
        contacts=contacts,
        # Older files lack these three.
        start_signals=_all(info["subtask_start_signals"]) if "subtask_start_signals" in info else {},
        sources=meta.get("sources", {}),
        soundness=meta.get("soundness", {}),
        signals=_all(info["subtask_term_signals"]),
        versions=meta["versions"],
    )
