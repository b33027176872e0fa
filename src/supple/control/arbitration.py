# SPDX-License-Identifier: Apache-2.0
"""Arbitration of joint commands: one owner per joint group, what happens when it falls silent, and emergency stop."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from supple.errors import StateError, SuppleError
from supple.robots import JointTable, RobotCommand

__all__ = ["ArbitrationTimes", "CommandArbiter", "GroupState", "OwnershipError"]

Array = NDArray[np.float64]


class OwnershipError(SuppleError, PermissionError):
    """A command for joints that somebody else owns, or that nobody may command now."""


class GroupState(StrEnum):
    """What a joint group is doing."""

    FREE = "free"
    OWNED = "owned"
    HOLDING = "holding"
    DAMPED = "damped"


@dataclass(frozen=True)
class ArbitrationTimes:
    """How long a silent owner is trusted; times since its last command, clock of the body.

    A humanoid on its legs does not balance on a held target for long, and falls softly when damped: both are the last
    resort, since nobody is left who could do better.

    Attributes:
        hold_after: The last target is held, its velocity dropped, after this time in [s].
        lapse_after: Somebody else may take the group after this time in [s].
        damp_after: The group is damped after this time in [s]. Infinite holds for ever.
    """

    hold_after: float = 0.1
    lapse_after: float = 0.5
    damp_after: float = 1.0

    def __post_init__(self) -> None:
        """Refuse times that are not in order."""
        if not 0.0 < self.hold_after <= self.lapse_after <= self.damp_after:
            raise StateError(
                "arbitration times must satisfy 0 < hold_after <= lapse_after <= damp_after, "
                f"got {self.hold_after}, {self.lapse_after}, {self.damp_after} s"
            )


@dataclass
class _Group:
    indices: NDArray[np.intp]
    owner: str | None = None
    last_ns: int = 0


class CommandArbiter:
    """Merge the commands of several sources into one command for all joints.

    A source owns a joint group from its first command for it until it has been silent for ``lapse_after``. Groups that
    nobody ever commanded hold the posture of the last reset.

    Args:
        joints: The joint table.
        times: How long a silent owner is trusted.
    """

    def __init__(self, joints: JointTable, times: ArbitrationTimes | None = None) -> None:
        self._joints = joints
        self.times = times or ArbitrationTimes()
        self._hold_ns, self._lapse_ns = round(self.times.hold_after * 1e9), round(self.times.lapse_after * 1e9)
        self._damp_ns = np.inf if np.isinf(self.times.damp_after) else round(self.times.damp_after * 1e9)
        self._damping = RobotCommand.damping(joints, "damping")
        self._groups = {name: _Group(joints.group(name)) for name in joints.groups}
        self._stopped: str | None = None
        self.reset(joints.home, 0)

    def reset(self, q: Array, now_ns: int) -> None:
        """Forget all owners and an emergency stop; hold a posture from now on.

        Args:
            q: Joint positions to hold in [rad], shape (n,).
            now_ns: Present time in [ns]; commands that answer an older state are refused from now on.
        """
        joints, n = self._joints, len(self._joints)
        self._arrays = {
            "q": np.array(q),
            "v": np.zeros(n),
            "tau": np.zeros(n),
            "kp": joints.kp.copy(),
            "kd": joints.kd.copy(),
        }
        self._since_ns = now_ns
        self._stopped = None
        for group in self._groups.values():
            group.owner, group.last_ns = None, now_ns

    @property
    def stopped(self) -> str | None:
        """Why everything is damped, or None; only a reset ends it."""
        return self._stopped

    def stop(self, reason: str) -> None:
        """Damp everything and refuse every command until the next reset."""
        self._stopped = reason

    def state(self, group: str, now_ns: int) -> GroupState:
        """Return what a joint group is doing."""
        if self._stopped is not None:
            return GroupState.DAMPED
        row = self._groups[group]
        if row.owner is None:
            return GroupState.FREE
        silent = now_ns - row.last_ns
        if silent >= self._damp_ns:
            return GroupState.DAMPED
        return GroupState.HOLDING if silent >= self._hold_ns else GroupState.OWNED

    def owners(self, now_ns: int) -> dict[str, str]:
        """Return the source that owns each owned group, as long as it has not lapsed."""
        return {
            name: row.owner
            for name, row in self._groups.items()
            if row.owner is not None and now_ns - row.last_ns < self._lapse_ns
        }

    def offer(self, command: RobotCommand, now_ns: int) -> None:
        """Take a command in, all of it or nothing.

        Args:
            command: Finite, within limits; joints it does not address keep their target.
            now_ns: Present time in [ns].

        Raises:
            OwnershipError: Another source owns a group; names it. Or everything is stopped.
            StateError: Malformed, or it answers a state from before the last reset.
        """
        command.check(self._joints)
        if self._stopped is not None:
            raise OwnershipError(f"command from {command.source!r} refused: {self._stopped}; reset first")
        if command.stamp_ns < self._since_ns:
            age = (self._since_ns - command.stamp_ns) * 1e-9
            raise StateError(f"command from {command.source!r} answers a state from {age:.3f} s before the reset")
        owners = self.owners(now_ns)
        wanted = [name for name, row in self._groups.items() if command.active[row.indices].any()]
        taken = [name for name in wanted if owners.get(name, command.source) != command.source]
        if taken:
            whose = ", ".join(f"{name} owned by {owners[name]!r}" for name in taken)
            raise OwnershipError(f"command from {command.source!r} refused: {whose}")
        if not wanted:
            raise StateError(f"command from {command.source!r} addresses no joint")
        for key, array in self._arrays.items():
            array[command.active] = getattr(command, key)[command.active]
        for name in wanted:
            self._groups[name].owner, self._groups[name].last_ns = command.source, now_ns

    def merged(self, now_ns: int) -> RobotCommand:
        """Return the command for all joints now: targets of owners, held or damped where an owner fell silent."""
        arrays = {key: array.copy() for key, array in self._arrays.items()}
        for name, row in self._groups.items():
            state = self.state(name, now_ns)
            if state is GroupState.HOLDING:
                arrays["v"][row.indices] = 0.0
            elif state is GroupState.DAMPED:
                for key in ("v", "tau", "kp", "kd"):
                    arrays[key][row.indices] = getattr(self._damping, key)[row.indices]
        return RobotCommand(now_ns, "arbiter", active=np.ones(len(self._joints), dtype=bool), **arrays)
