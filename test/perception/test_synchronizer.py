# SPDX-License-Identifier: Apache-2.0
"""Streams put together by stamps: what belongs together, what is counted, and time that begins anew."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple.errors import SettingError, UnknownNameError
from supple.perception.synchronizer import Matched, Missed, Synchronizer

MS = 1_000_000
PERIOD = 33 * MS


class Feed:
    """A synchroniser of depth, colour and calibration, and everything it has said."""

    def __init__(self, streams=("depth", "color", "info"), **settings) -> None:
        self.synchronizer = Synchronizer(streams, **settings)
        self.matched: list[Matched] = []
        self.missed: list[Missed] = []
        self.clock = 0.0

    def put(self, stream: str, *stamps_ms: float) -> None:
        for stamp in stamps_ms:
            matched, missed = self.synchronizer.put(stream, round(stamp * MS), f"{stream} {stamp:g}", self.clock)
            self.matched += matched
            self.missed += missed

    def wait(self, seconds: float) -> None:
        self.clock += seconds
        matched, missed = self.synchronizer.expire(self.clock)
        self.matched += matched
        self.missed += missed

    @property
    def pairs(self) -> list[tuple[float, float]]:
        return [(m.stamps_ns["depth"] / MS, m.stamps_ns["color"] / MS) for m in self.matched]

    def counts(self) -> dict[str, int]:
        return {key: count for key, count in self.synchronizer.counts.items() if count}


@pytest.fixture
def pair() -> Feed:
    return Feed(("depth", "color"))


def test_equal_stamps_match_at_once_whatever_their_order():
    feed = Feed()
    feed.put("color", 100)
    feed.put("info", 100)
    assert feed.matched == []
    feed.put("depth", 100)
    feed.put("depth", 133)
    feed.put("info", 133)
    assert len(feed.matched) == 1
    feed.put("color", 133)
    assert [m.messages["color"] for m in feed.matched] == ["color 100", "color 133"]
    assert feed.matched[1].messages == {"depth": "depth 133", "color": "color 133", "info": "info 133"}
    assert feed.counts() == {"matched": 2}


def test_nearest_of_two_within_tolerance_is_taken(pair):
    pair.put("color", 100, 112)
    pair.put("depth", 115)
    # Another one could come at 118: messages were 12 ms apart.
    assert pair.pairs == [(115, 112)]
    pair.put("color", 124)
    pair.put("depth", 132)
    assert len(pair.matched) == 1
    pair.put("color", 136)
    assert pair.pairs[1] == (132, 136)


def test_what_cannot_be_beaten_is_not_waited_for(pair):
    """Colour 10 ms ahead of depth at 30 Hz: the next colour would be 23 ms behind."""
    pair.put("color", 100, 133)
    for i in range(5):
        pair.put("depth", 143 + 33 * i)
        assert len(pair.matched) == i + 1
        pair.put("color", 166 + 33 * i)
        assert len(pair.matched) == i + 1


def test_too_far_apart_is_missing_with_the_nearest_gap(pair):
    pair.put("color", 60, 100)
    pair.put("depth", 140)
    pair.wait(0.1)
    assert pair.missed == []
    pair.wait(0.11)
    assert pair.missed == [Missed(140 * MS, "color", 40 * MS)]
    assert str(pair.missed[0]) == "no message that belongs to a picture; the nearest is 40.0 ms away"
    assert pair.counts() == {"missing color": 1}


def test_a_stream_that_says_nothing_is_named():
    feed = Feed()
    feed.put("depth", 100)
    feed.put("color", 100)
    feed.wait(0.2)
    assert feed.missed == [Missed(100 * MS, "info", None)]
    assert "none received" in str(feed.missed[0])


def test_a_lost_message_does_not_hold_up_those_behind_it(pair):
    pair.put("depth", 100, 133, 166)
    pair.put("color", 100)
    pair.put("color", 166)
    assert pair.pairs == [(100, 100), (166, 166)]
    assert [m.stamp_ns for m in pair.missed] == [133 * MS]
    pair.put("color", 133)
    assert pair.counts() == {"matched": 2, "missing color": 1, "late color": 1}


def test_doubled_late_and_out_of_order_are_counted(pair):
    pair.put("color", 133, 100, 100)
    pair.put("depth", 100)
    assert pair.counts() == {"matched": 1, "out of order color": 1, "duplicated color": 1}
    pair.put("depth", 133)
    pair.put("depth", 120)
    pair.put("color", 90)
    pair.put("depth", 133)
    assert pair.pairs == [(100, 100), (133, 133)]
    assert pair.counts() == {
        "matched": 2,
        "out of order color": 1,
        "duplicated color": 1,
        "late depth": 1,
        "late color": 1,
        "duplicated depth": 1,
    }


def test_patience_ends_with_what_there_is(pair):
    """A nearer colour could still come, but does not."""
    pair.put("color", 80, 92)
    pair.put("depth", 102)
    assert pair.matched == []
    pair.wait(0.2)
    assert pair.pairs == [(102, 92)]
    assert pair.missed == []


def test_what_waits_is_bounded():
    feed = Feed(("depth", "color"), depth=5)
    feed.put("depth", *range(100, 1000, 33))
    assert feed.synchronizer.waiting == 5
    assert len(feed.missed) == 23
    feed.put("color", *range(5000, 6000, 33))
    assert feed.synchronizer.waiting == 5


def test_a_jump_back_begins_anew_once(pair):
    for stamp in (40_000, 40_033):
        pair.put("color", stamp)
        pair.put("depth", stamp)
    pair.put("depth", 40_066)
    pair.put("color", 10_000)
    # These were on their way.
    pair.put("depth", 40_099, 40_132)
    pair.put("depth", 10_000)
    pair.put("color", 10_033)
    pair.put("depth", 10_033)
    assert pair.pairs == [(40_000, 40_000), (40_033, 40_033), (10_000, 10_000), (10_033, 10_033)]
    assert [m.after_reset for m in pair.matched] == [False, False, True, False]
    assert pair.synchronizer.resets == 1
    assert pair.counts() == {"matched": 4, "late depth": 2, "forgotten depth": 1}


def test_a_stream_that_is_silent_after_a_jump_is_let_in_later(pair):
    pair.put("color", 40_000)
    pair.put("depth", 40_000)
    pair.put("depth", *range(10_000, 13_000, 33))
    pair.put("color", 12_970)
    assert pair.pairs[-1] == (12_970, 12_970)


def test_a_leap_ahead_begins_anew_and_keeps_what_belongs_to_it(pair):
    pair.put("color", 100)
    pair.put("depth", 100)
    pair.put("color", 5000)
    pair.put("depth", 5000)
    assert pair.pairs == [(100, 100), (5000, 5000)]
    assert pair.matched[1].after_reset
    assert pair.synchronizer.resets == 1


@pytest.mark.parametrize(
    ("streams", "settings", "field"),
    [
        (("depth",), {}, "streams"),
        (("depth", "depth"), {}, "streams"),
        (("depth", "color"), {"tolerance": 0.0}, "tolerance"),
        (("depth", "color"), {"patience": float("nan")}, "patience"),
        (("depth", "color"), {"depth": 0}, "depth"),
    ],
)
def test_settings_that_make_no_sense_are_refused(streams, settings, field):
    with pytest.raises(SettingError, match=field):
        Synchronizer(streams, **settings)


def test_an_unknown_stream_is_refused(pair):
    with pytest.raises(UnknownNameError, match="did you mean 'color'"):
        pair.put("colour", 1)


@given(
    offset=st.integers(-15, 15),
    jitter=st.lists(st.integers(-400, 400), min_size=40, max_size=40),
    lost=st.sets(st.integers(2, 39)),
    swaps=st.sets(st.integers(0, 78)),
)
def test_every_picture_is_matched_or_missed_and_the_nearest_is_taken(offset, jitter, lost, swaps):
    """Two streams at 30 Hz that jitter by 0.4 ms, colour lost once the spacing is known, neighbours swapped."""
    depth = [PERIOD * (i + 3) for i in range(40)]
    colour = [d + offset * MS + j * 1000 for d, j in zip(depth, jitter, strict=True)]
    events = [(d, "depth", d) for d in depth]
    events += [(c, "color", c) for i, c in enumerate(colour) if i not in lost]
    events.sort()
    for i in sorted(swaps):
        if i + 1 < len(events) and events[i][1] != events[i + 1][1]:
            events[i], events[i + 1] = events[i + 1], events[i]
    feed = Feed(("depth", "color"), depth=60)
    for _, stream, stamp in events:
        feed.put(stream, stamp / MS)
    feed.wait(1.0)
    assert sorted([m.stamp_ns for m in feed.matched] + [m.stamp_ns for m in feed.missed]) == depth
    stamps = [m.stamp_ns for m in feed.matched]
    assert stamps == sorted(stamps)
    came = np.array([c for i, c in enumerate(colour) if i not in lost])
    for match in feed.matched:
        gaps = np.abs(came - match.stamp_ns)
        assert abs(match.stamps_ns["color"] - match.stamp_ns) == gaps.min() <= 20 * MS
    for miss in feed.missed:
        assert not len(came) or np.abs(came - miss.stamp_ns).min() > 20 * MS
