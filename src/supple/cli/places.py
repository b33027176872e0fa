# SPDX-License-Identifier: Apache-2.0
"""Where arguments point to: episodes given as PATH:NAME, seeds given by task, boards given by name."""

from __future__ import annotations

from pathlib import Path

from supple.episodes import Dataset, Episode, load_seed
from supple.episodes.dataset_writer import DEMOS
from supple.errors import DatasetError, SeedError, SuppleError, UnknownNameError
from supple.launching import share_folder
from supple.tasks import task_named

__all__ = ["find_board", "find_seed", "load_episode"]


def find_seed(task: str, given: Path | None) -> Path:
    """Return the file to generate from: the one given, that of a dataset, or the seed that Supple ships for the task.

    Raises:
        UnknownNameError: No such task.
        SeedError: There is no seed for it.
    """
    task_named(task)
    if given is not None:
        path = given / DEMOS if given.is_dir() else given
        if not path.is_file():
            found = f"is a folder without {DEMOS}" if given.is_dir() else "does not exist"
            raise SeedError(f"seed {given} {found}")
        return path
    folder = _shared("seeds")
    path = folder / f"{task}.hdf5"
    if not path.is_file():
        raise SeedError(
            f"no seed for {task!r} in {folder}; record one with 'supple record {task}' and give it by --from"
        )
    return path


def find_board(name: str) -> Path:
    """Return the description of a calibration board: a YAML file, or one of those that Supple ships.

    Raises:
        UnknownNameError: It is neither.
    """
    if Path(name).suffix in (".yaml", ".yml"):
        return Path(name)
    folder = _shared("config") / "boards"
    path = folder / f"{name}.yaml"
    if not path.is_file():
        raise UnknownNameError("board", name, (found.stem for found in folder.glob("*.yaml")))
    return path


def _shared(folder: str) -> Path:
    try:
        return share_folder("supple") / folder
    except SuppleError:
        return Path(__file__).resolve().parents[3] / folder


def load_episode(argument: str) -> Episode:
    """Return an episode given as ``DATASET``, ``DATASET:demo_3``, ``DATASET:rejected/demo_0`` or a seed file.

    Raises:
        DatasetError: There is no such dataset or episode, or it is damaged.
    """
    place, _, name = argument.partition(":")
    path = Path(place)
    if not path.exists():
        raise DatasetError(f"{path} does not exist; expected a dataset folder, its HDF5 file or a seed, then :NAME")
    if path.is_file() and not name:
        try:
            return load_seed(path, require_skills=False).episode
        except SeedError:
            pass_on = Dataset(path)
            return pass_on.episode(_first(pass_on))
    rejected = name.startswith("rejected/")
    dataset = Dataset(path, rejected=rejected)
    return dataset.episode(name.removeprefix("rejected/") or _first(dataset))


def _first(dataset: Dataset) -> str:
    if not dataset.names:
        raise DatasetError(f"{dataset.path} holds no episode")
    return dataset.names[0]
