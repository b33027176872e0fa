# SPDX-License-Identifier: Apache-2.0
"""Reading a dataset: its card, its ledger and its episodes, each validated before anyone relies on it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from supple.episodes.card import DatasetCard
from supple.episodes.dataset_writer import CARD, DEMOS, LEDGER, PARTS, QUARANTINE, REJECTED
from supple.episodes.episode import Episode
from supple.episodes.hdf5_store import opened, read_episode
from supple.episodes.ledger import Ledger
from supple.errors import DatasetError, UnknownNameError

__all__ = ["Dataset"]

_ADVICE = "restore it, or run the generation again with the same folder: it resumes and makes what is missing"


class Dataset:
    """A dataset on disk, opened to read.

    Args:
        place: Folder of the dataset, or an HDF5 file alone.
        rejected: Whether the episodes of ``rejected.hdf5`` are meant instead of the retained ones.

    Attributes:
        path: The HDF5 file.
        card: The card; None for a file alone.
        ledger: The ledger; None for a file alone.
        names: Names of its episodes, in order.

    Raises:
        DatasetError: Missing, truncated or garbled, or with a gap in its numbering; says what to do.
    """

    def __init__(self, place: Path | str, *, rejected: bool = False) -> None:
        place = Path(place)
        self.card: DatasetCard | None = None
        self.ledger: Ledger | None = None
        self._folder: Path | None = None
        if place.is_dir():
            self._folder = place
            self.card = DatasetCard.read(place / CARD)
            self.ledger = Ledger(place / LEDGER)
            self.path = place / (REJECTED if rejected else DEMOS)
            if not self.path.is_file():
                count = self.unfinished
                advice = (
                    f"{count} attempts are not gathered yet; resume the generation to finish it"
                    if count
                    else "no rejected episode was kept"
                    if rejected
                    else _ADVICE
                )
                raise DatasetError(f"{self.path}: there is no such file; {advice}")
        else:
            self.path = place
            if not place.exists():
                raise DatasetError(f"{place} does not exist; expected the folder of a dataset, or its HDF5 file")
        with opened(self.path, _ADVICE) as file:
            if "data" not in file:
                raise DatasetError(
                    f"{self.path}: no dataset: it has no group 'data' (it has: {', '.join(file) or 'nothing'})"
                )
            self.names = self._ordered(list(file["data"]))
            self._env_args = self._read_env_args(file["data"].attrs.get("env_args", "{}"))
        stored = self._env_args.get("env_kwargs", {}).get("robot")
        if self.card is not None and stored is not None and stored != self.card.robot:
            raise DatasetError(
                f"{self.path}: its episodes are of robot {stored!r}, but {CARD} beside it says {self.card.robot!r}: "
                "two datasets were mixed"
            )

    def __len__(self) -> int:
        """Return the number of episodes."""
        return len(self.names)

    def __iter__(self) -> Iterator[Episode]:
        """Yield every episode in order, one in memory at a time."""
        for name in self.names:
            yield self.episode(name)

    @property
    def robot(self) -> str | None:
        """Name of the robot, or None if the file does not say."""
        if self.card is not None:
            return self.card.robot
        robot = self._env_args.get("env_kwargs", {}).get("robot")
        if robot is None and self.names:
            robot = self.episode(self.names[0]).robot
        return robot

    @property
    def quarantined(self) -> tuple[Path, ...]:
        """Damaged files that were set aside."""
        folder = self._folder / QUARANTINE if self._folder else None
        return tuple(sorted(folder.iterdir())) if folder is not None and folder.is_dir() else ()

    @property
    def unfinished(self) -> int:
        """Number of attempts that are written but not gathered yet."""
        folder = self._folder / PARTS if self._folder else None
        return len(list(folder.glob("attempt_*.hdf5"))) if folder is not None and folder.is_dir() else 0

    def episode(self, name: str) -> Episode:
        """Read one episode and validate it.

        Raises:
            UnknownNameError: There is no such episode.
            DatasetError: It is damaged or malformed; names file, episode, field and sample.
        """
        if name not in self.names:
            raise UnknownNameError("episode", name, self.names)
        with opened(self.path, _ADVICE) as file:
            return read_episode(file["data"][name], f"{self.path}: {name}")

    def mask(self, key: str) -> tuple[str, ...]:
        """Return the names of the episodes in one share, ``"train"`` or ``"valid"``."""
        with opened(self.path, _ADVICE) as file:
            known = list(file.get("mask", ()))
            if key not in known:
                raise UnknownNameError("mask", key, known)
            return tuple(name.decode() for name in file["mask"][key][()])

    def require_robot(self, robot: str) -> None:
        """Refuse a dataset of another robot.

        Raises:
            DatasetError: Names both.
        """
        if self.robot != robot:
            raise DatasetError(f"{self.path}: this dataset is for robot {self.robot!r}, expected {robot!r}")

    def _ordered(self, names: list[str]) -> tuple[str, ...]:
        numbers = {}
        for name in names:
            digits = name.removeprefix("demo_")
            if digits == name or not digits.isdecimal():
                raise DatasetError(f"{self.path}: expected episodes named demo_0, demo_1, …, got {name!r}")
            numbers[int(digits)] = name
        if missing := sorted(set(range(max(numbers, default=-1) + 1)) - set(numbers)):
            gap = ", ".join(f"demo_{i}" for i in missing[:10])
            raise DatasetError(f"{self.path}: {gap} missing between others, so episodes were lost; {_ADVICE}")
        return tuple(numbers[i] for i in sorted(numbers))

    def _read_env_args(self, text: str | bytes) -> dict[str, dict[str, str]]:
        try:
            value = json.loads(text)
        except ValueError as error:
            raise DatasetError(f"{self.path}: attribute env_args is no JSON: {error}") from error
        return value if isinstance(value, dict) else {}
