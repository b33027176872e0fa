# SPDX-License-Identifier: Apache-2.0
"""The shown clock only ever goes forward."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from supple.sim.clock import RESET_GAP_NS, SimulationClock

STEP, CONTROL = 5_000_000, 20_000_000


@given(st.lists(st.booleans(), max_size=200))
def test_stamps_increase_strictly_whatever_happens(resets):
    clock = SimulationClock(STEP, CONTROL)
    last = clock.now_ns
    for reset in resets:
        stamp = clock.reset() if reset else clock.advance()
        assert stamp - last >= (RESET_GAP_NS if reset else STEP)
        assert not reset or clock.control_tick
        last = stamp


def test_a_control_interval_begins_every_fourth_step():
    clock = SimulationClock(STEP, CONTROL)
    ticks = []
    for _ in range(12):
        ticks.append(clock.control_tick)
        clock.advance()
    assert ticks == [True, False, False, False] * 3
