# SPDX-License-Identifier: Apache-2.0
"""Message types for bags, read from interface files, so that bags need neither rclpy nor a ROS installation."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.base import TypesysError
from rosbags.typesys.store import Typestore

from supple.errors import AssetError, DatasetError

__all__ = ["CLOCK", "LATCHED", "RELIABLE", "SENSOR", "TRANSFORMS", "interface_folder", "message_types"]

_UNSET = QosTime(0, 0)


def _profile(reliability: QosReliability, depth: int, durability: QosDurability = QosDurability.VOLATILE) -> Qos:
    history, automatic = QosHistory.KEEP_LAST, QosLiveliness.AUTOMATIC
    return Qos(history, depth, reliability, durability, _UNSET, _UNSET, automatic, _UNSET, False)


SENSOR = _profile(QosReliability.BEST_EFFORT, 5)
CLOCK = _profile(QosReliability.BEST_EFFORT, 1)
RELIABLE = _profile(QosReliability.RELIABLE, 10)
TRANSFORMS = _profile(QosReliability.RELIABLE, 100)
LATCHED = _profile(QosReliability.RELIABLE, 1, QosDurability.TRANSIENT_LOCAL)


def interface_folder(package: str = "supple_interfaces") -> Path:
    """Return the folder that holds the ``msg`` folder of an interface package.

    Looked for, in this order: sourced ROS workspaces (AMENT_PREFIX_PATH), the Python environment, the source tree.

    Raises:
        AssetError: Nowhere; names every place that was looked at.
    """
    prefixes = [Path(prefix) for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if prefix]
    places = [prefix / "share" / package for prefix in (*prefixes, Path(sys.prefix))]
    places.append(Path(__file__).resolve().parents[3] / "interfaces" / package)
    for place in places:
        if (place / "msg").is_dir():
            return place
    raise AssetError(
        f"the interface files of {package!r} were not found; build the workspace and source it, or run from the source "
        f"tree (looked at: {', '.join(map(str, places))})"
    )


def message_types(*packages: str) -> Typestore:
    """Return the standard message types, with those of further interface packages.

    Args:
        packages: Interface packages; ``supple_interfaces`` and ``tf2_msgs`` if none is named.

    Raises:
        AssetError: The interface files of a package are nowhere.
        DatasetError: An interface file cannot be parsed.
    """
    store = get_typestore(Stores.ROS2_KILTED)
    for package in packages or ("supple_interfaces", "tf2_msgs"):
        definitions = {}
        for path in sorted((interface_folder(package) / "msg").glob("*.msg")):
            try:
                found = get_types_from_msg(path.read_text(encoding="utf-8"), f"{package}/msg/{path.stem}")
            except TypesysError as error:
                raise DatasetError(f"{path}: not a valid interface file: {error}") from error
            definitions.update({name: value for name, value in found.items() if name not in store.types})
        store.register(definitions)
    return store
