# SPDX-License-Identifier: Apache-2.0
"""Events: each beginning and end once, at the reading that showed it, joined to the command that it changed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple.contact.events import ContactEvent, EventFinder, EventKind, EventLimits, Reactions
from supple.errors import SensorError

LIMITS = EventLimits(made=1.0, broken=0.5, slip=0.01, overload=30.0)
MS = 1_000_000


def run(rows: list[tuple[bool, float, bool]], limits: EventLimits = LIMITS) -> list[ContactEvent]:
    finder = EventFinder("pad", limits)
    found: list[ContactEvent] = []
    for i, (contact, force, slipping) in enumerate(rows):
        found += finder.take(i * 10 * MS, 100 + i, contact, force, slipping, 0.02 if slipping else math.nan)
    return found


def test_a_touch_that_slips_and_ends_is_three_events_at_their_readings():
    rows = [(False, 0.0, False), (True, 1.2, False), (True, 5.0, False), (True, 4.0, True), (True, 4.0, True)]
    rows += [(True, 4.0, False), (False, 0.3, False), (False, 0.0, False)]
    assert [(e.kind, e.sequence, e.stamp_ns, e.value, e.threshold) for e in run(rows)] == [
        (EventKind.MADE, 101, 10 * MS, 1.2, 1.0),
        (EventKind.SLIP, 103, 30 * MS, 0.02, 0.01),
        (EventKind.BROKEN, 106, 60 * MS, 0.3, 0.5),
    ]


def test_a_force_that_trembles_at_the_limit_is_one_overload():
    forces = [20.0, 30.0, 29.5, 30.5, 29.9, 31.0, 26.0, 30.0]
    events = run([(True, force, False) for force in forces])
    assert [(e.kind, e.sequence) for e in events] == [
        (EventKind.MADE, 100),
        (EventKind.OVERLOAD, 101),
        (EventKind.OVERLOAD, 107),
    ]


@given(st.lists(st.tuples(st.booleans(), st.floats(0.0, 100.0), st.booleans()), max_size=60))
def test_made_and_broken_alternate_and_events_say_where_they_crossed(rows):
    events = run(rows)
    touches = [e.kind for e in events if e.kind in (EventKind.MADE, EventKind.BROKEN)]
    assert touches == [EventKind.MADE, EventKind.BROKEN] * (len(touches) // 2) + [EventKind.MADE] * (len(touches) % 2)
    before = [False, *(slipping for _, _, slipping in rows)]
    rising = [100 + i for i, (_, _, slipping) in enumerate(rows) if slipping and not before[i]]
    assert [e.sequence for e in events if e.kind is EventKind.SLIP] == rising
    assert all(e.value >= e.threshold for e in events if e.kind is EventKind.OVERLOAD)


def test_a_sensor_without_limit_is_never_overloaded():
    events = run([(True, 1e6, False)], EventLimits(1.0, 0.5, 0.01))
    assert [e.kind for e in events] == [EventKind.MADE]


@pytest.mark.parametrize("name", ["made", "broken", "slip", "overload"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan])
def test_limits_are_positive(name, value):
    fields = {"made": 1.0, "broken": 0.5, "slip": 0.01, "overload": 30.0} | {name: value}
    with pytest.raises(SensorError, match=name):
        EventLimits(**fields)


def test_the_first_command_that_names_a_reading_is_the_one_that_changed():
    made, overload = run([(True, 40.0, False)])
    reactions = Reactions()
    reactions.add(made)
    reactions.add(overload)
    joined = reactions.join("pad", 100, "manipulation", 512)
    assert [(e.kind, e.command_source, e.command_sequence) for e in joined] == [
        (EventKind.MADE, "manipulation", 512),
        (EventKind.OVERLOAD, "manipulation", 512),
    ]
    assert reactions.join("pad", 100, "manipulation", 513) == ()
    assert [e.command_sequence for e in reactions.join("pad", 100, "locomotion", 9)] == [9, 9]
    assert reactions.unmatched == 0


def test_a_command_that_names_a_reading_without_event_is_counted():
    reactions = Reactions()
    assert reactions.join("pad", 7, "manipulation", 1) == ()
    assert reactions.join("pad", 7, "manipulation", 2) == ()
    assert reactions.unmatched == 1


def test_an_event_says_itself_in_one_line():
    (made, *_) = run([(True, 1.5, False)])
    assert str(made) == "pad: made at reading 100 (1.5 N, threshold 1 N)"
    reactions = Reactions()
    reactions.add(made)
    (joined,) = reactions.join("pad", 100, "arms", 3)
    assert str(joined).endswith("; changed command 3 of arms")
