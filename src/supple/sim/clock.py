# SPDX-License-Identifier: Apache-2.0
"""The clock that a simulation shows to others: strictly increasing, also over resets."""

from __future__ import annotations

__all__ = ["RESET_GAP_NS", "SimulationClock"]

RESET_GAP_NS = 1_000_000_000
"""By how much the shown clock jumps forward at a reset, in [ns]; it never goes back."""


class SimulationClock:
    """Time in [ns] since the simulator was started, counted in physics steps.

    Physics time starts anew with every episode; what is shown goes on. Each reset leaves a gap of at least
    ``RESET_GAP_NS``, so that whoever sees two stamps in a row knows that the world between them is not the same, even
    if messages were lost. The first stamp after a reset is a multiple of the control interval.

    Args:
        step_ns: Physics step in [ns].
        control_ns: Control interval in [ns], a multiple of the step.
    """

    def __init__(self, step_ns: int, control_ns: int) -> None:
        self._step_ns = step_ns
        self._control_ns = control_ns
        self.now_ns = control_ns

    @property
    def control_tick(self) -> bool:
        """Whether a control interval begins now."""
        return self.now_ns % self._control_ns == 0

    def advance(self) -> int:
        """Count one physics step and return the time in [ns]."""
        self.now_ns += self._step_ns
        return self.now_ns

    def reset(self) -> int:
        """Jump over the gap to the next control interval and return the time in [ns]."""
        after = self.now_ns + RESET_GAP_NS
        self.now_ns = -(-after // self._control_ns) * self._control_ns
        return self.now_ns
