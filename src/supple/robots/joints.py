# SPDX-License-Identifier: Apache-2.0
"""The joint table: the one declared order in which every joint array of a robot is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from supple.errors import JointError, UnknownNameError

__all__ = ["Joint", "JointTable"]


@dataclass(frozen=True)
class Joint:
    """One actuated joint; one that slides has [m] and [N] where one that turns has [rad] and [Nm].

    Attributes:
        name: Name in URDF, MJCF and ROS messages.
        group: The joint group that is owned, freed and commanded together.
        lower: Lower position limit in [rad].
        upper: Upper position limit in [rad].
        velocity: Velocity limit in [rad/s].
        effort: Torque limit in [Nm].
        kp: Default proportional gain in [Nm/rad].
        kd: Default derivative gain in [Nms/rad].
        home: Position in the home posture in [rad].
        armature: Inertia of the motor's rotor, seen behind the gears, in [kg m^2].
    """

    name: str
    group: str
    lower: float
    upper: float
    velocity: float
    effort: float
    kp: float
    kd: float
    home: float
    armature: float = 0.0


def _read_only(values: Iterable[float]) -> NDArray[np.float64]:
    array = np.fromiter(values, dtype=np.float64)
    array.setflags(write=False)
    return array


@dataclass(frozen=True)
class JointTable:
    """All joints of a robot in their declared order; arrays of shape (n,) follow it.

    Args:
        joints: The joints; names must be unique.
    """

    joints: tuple[Joint, ...]
    names: tuple[str, ...] = field(init=False)
    lower: NDArray[np.float64] = field(init=False)
    upper: NDArray[np.float64] = field(init=False)
    velocity: NDArray[np.float64] = field(init=False)
    effort: NDArray[np.float64] = field(init=False)
    kp: NDArray[np.float64] = field(init=False)
    kd: NDArray[np.float64] = field(init=False)
    home: NDArray[np.float64] = field(init=False)
    armature: NDArray[np.float64] = field(init=False)
    _index: Mapping[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Derive names and arrays once; the table never changes afterwards."""
        names = tuple(joint.name for joint in self.joints)
        if len(set(names)) != len(names):
            raise JointError(
                f"joint names must be unique, got twice: {sorted({n for n in names if names.count(n) > 1})}"
            )
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "_index", {name: i for i, name in enumerate(names)})
        for key in ("lower", "upper", "velocity", "effort", "kp", "kd", "home", "armature"):
            object.__setattr__(self, key, _read_only(getattr(joint, key) for joint in self.joints))

    def __len__(self) -> int:
        """Return the number of joints."""
        return len(self.joints)

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the joint groups, in order of first appearance."""
        return tuple(dict.fromkeys(joint.group for joint in self.joints))

    def index(self, name: str) -> int:
        """Return the position of a joint in the table."""
        try:
            return self._index[name]
        except KeyError:
            raise UnknownNameError("joint", name, self.names) from None

    def indices(self, names: Sequence[str]) -> NDArray[np.intp]:
        """Return the positions of several joints in the table, in the order asked for."""
        return np.array([self.index(name) for name in names], dtype=np.intp)

    def group(self, *groups: str) -> NDArray[np.intp]:
        """Return the positions of all joints of the given groups, in table order."""
        unknown = [name for name in groups if name not in self.groups]
        if unknown:
            raise UnknownNameError("joint group", unknown[0], self.groups)
        return np.array([i for i, joint in enumerate(self.joints) if joint.group in groups], dtype=np.intp)

    def ordered(self, names: Sequence[str], values: ArrayLike, where: str = "joint values") -> NDArray[np.float64]:
        """Bring values given with their names into table order.

        Args:
            names: One name per value, in any order.
            values: Shape (n,).
            where: What is mapped, named in the error.

        Returns:
            Values in table order, shape (n,).

        Raises:
            JointError: A joint is missing, doubled or not in the table; every such name is listed.
        """
        array = np.asarray(values, dtype=np.float64)
        if array.shape != (len(names),):
            raise JointError(f"{where}: {len(names)} names but values of shape {array.shape}")
        given = set(names)
        problems = []
        if missing := [name for name in self.names if name not in given]:
            problems.append(f"missing {', '.join(missing)}")
        if extra := [name for name in names if name not in self._index]:
            problems.append(f"not in the robot's table: {', '.join(extra)}")
        if len(given) != len(names):
            problems.append(f"given twice: {', '.join(sorted({n for n in names if list(names).count(n) > 1}))}")
        if problems:
            raise JointError(f"{where}: " + "; ".join(problems))
        result = np.empty(len(self), dtype=np.float64)
        result[self.indices(names)] = array
        return result
