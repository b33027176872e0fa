# SPDX-License-Identifier: Apache-2.0
"""The exceptions of Supple: one root, and children that are also the fitting builtin."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Iterable

__all__ = [
    "AssetError",
    "CalibrationError",
    "ContractError",
    "DatasetError",
    "ExtrinsicsError",
    "FrameError",
    "JointError",
    "PlanningError",
    "ReplayError",
    "SceneError",
    "SeedError",
    "SensorError",
    "SettingError",
    "StateError",
    "SuppleError",
    "TaskError",
    "TeleopError",
    "UnknownNameError",
    "disk_is_full",
]


class SuppleError(Exception):
    """Root of every error that Supple raises on purpose; its message is meant for a person."""


class UnknownNameError(SuppleError, KeyError):
    """A name that is not among the known ones.

    Args:
        kind: What the name stands for, e.g. ``"task"``.
        got: The name that was asked for.
        available: The names that exist.
    """

    def __init__(self, kind: str, got: str, available: Iterable[str]) -> None:
        self.available = sorted(available)
        close = difflib.get_close_matches(got, self.available, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        self.message = f"unknown {kind} {got!r}{hint} (available: {', '.join(self.available) or 'none'})"
        super().__init__(self.message)

    def __str__(self) -> str:
        """Return the message without the quotes that KeyError would add."""
        return self.message


class TaskError(SuppleError, ValueError):
    """A task definition or distribution that cannot be used."""


class JointError(SuppleError, ValueError):
    """Joint names or values that do not fit the robot's joint table."""


class StateError(SuppleError, ValueError):
    """A robot or simulator state that is malformed, not finite or stale."""


class ContractError(SuppleError, ValueError):
    """Two action contracts that differ, or an action that breaks its contract."""


class AssetError(SuppleError, FileNotFoundError):
    """A model, mesh or policy file that is not where an installed package should have it."""


class DatasetError(SuppleError, ValueError):
    """A dataset, episode or ledger on disk that cannot be read or must not be written."""


class SeedError(DatasetError):
    """A seed demonstration that cannot be generated from, e.g. one without skill marks."""


class ExtrinsicsError(SuppleError, ValueError):
    """Camera extrinsics that are malformed, or that their measurements do not determine."""


class FrameError(SuppleError, ValueError):
    """A picture, or something that came with it, that no points can be made of.

    Args:
        source: Which input: ``"color"``, ``"depth"``, ``"camera_info"``, ``"mask"``, ``"detections"`` or ``"tf"``.
        field: Its field that is wrong, e.g. ``"encoding"``; for a mask, the object's name.
        problem: Got and expected.
    """

    def __init__(self, source: str, field: str, problem: str) -> None:
        self.source, self.field, self.problem = source, field, problem
        super().__init__(f"{source}.{field}: {problem}")


class CalibrationError(FrameError):
    """A camera's own calibration that is missing or cannot be right.

    Args:
        field: The field of CameraInfo.
        problem: Got and expected.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__("camera_info", field, problem)


class SensorError(SuppleError, ValueError):
    """A description of a sensor, or a reading of it, that cannot be used."""


class SettingError(SuppleError, ValueError):
    """A setting out of its range, or of a kind that does not exist."""


class SceneError(SuppleError, RuntimeError):
    """A simulation that left the valid range (NaN, explosion) or a scene that cannot be built."""


class PlanningError(SuppleError, RuntimeError):
    """No way was found for the robot or its arms, or one of its ends is blocked."""


class ReplayError(SuppleError, RuntimeError):
    """A replay that cannot be started or carried on."""


class TeleopError(SuppleError, RuntimeError):
    """A teleoperation session that refuses to engage or to go on."""


def disk_is_full(error: BaseException) -> bool:
    """Return whether an error says that the disk, or the user's share of it, is full."""
    codes = (errno.ENOSPC, errno.EDQUOT)
    if isinstance(error, OSError) and error.errno in codes:
        return True
    # HDF5 says it in words only.
    return any(f"errno = {code}," in str(error) for code in codes)
