# SPDX-License-Identifier: Apache-2.0
"""Streams put together by the stamps of their messages; what is late, missing, doubled or out of order is counted."""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from supple.errors import SettingError, UnknownNameError

__all__ = ["Matched", "Missed", "Synchronizer"]

# Stamps that a stream's spacing is learned from: a second of a fast camera.
_REMEMBERED = 30
_MS = 1e-6


@dataclass(frozen=True)
class Matched:
    """One message of each stream that belong together.

    Attributes:
        stamp_ns: Stamp of the leading message in [ns].
        messages: What was put in, by stream.
        stamps_ns: Their stamps in [ns], by stream.
        after_reset: Whether this is the first since time began anew.
    """

    stamp_ns: int
    messages: Mapping[str, Any]
    stamps_ns: Mapping[str, int]
    after_reset: bool


@dataclass(frozen=True)
class Missed:
    """A leading message for which another stream had none.

    Attributes:
        stamp_ns: Its stamp in [ns].
        stream: The stream that had none; the first of them.
        gap_ns: How far away that stream's nearest stamp is in [ns]; None if it has said nothing.
    """

    stamp_ns: int
    stream: str
    gap_ns: int | None

    def __str__(self) -> str:
        """Return what is missing and how far away the nearest is."""
        nearest = "none received" if self.gap_ns is None else f"the nearest is {self.gap_ns * _MS:.1f} ms away"
        return f"no message that belongs to a picture; {nearest}"


@dataclass
class _Stream:
    leads: bool
    stamps: list[int] = field(default_factory=list)
    messages: list[Any] = field(default_factory=list)
    # Stamps in the order of time that outlive their messages, for the spacing and for the nearest gap.
    seen: list[int] = field(default_factory=list)

    def spacing(self) -> int:
        """Return the smallest distance between stamps of the last time in [ns]; 0 while it is not known."""
        return min((b - a for a, b in pairwise(self.seen)), default=0)

    def nearest(self, stamp_ns: int) -> int | None:
        """Return the index of the kept message that is nearest in time."""
        if not self.stamps:
            return None
        at = bisect.bisect_left(self.stamps, stamp_ns)
        around = [i for i in (at - 1, at) if 0 <= i < len(self.stamps)]
        return min(around, key=lambda i: abs(self.stamps[i] - stamp_ns))

    def put(self, stamp_ns: int, message: Any, depth: int) -> None:
        """Keep a message; the oldest goes when there are more than ``depth``, except from a leading stream."""
        bisect.insort(self.seen, stamp_ns)
        del self.seen[: -max(depth, _REMEMBERED)]
        at = bisect.bisect_left(self.stamps, stamp_ns)
        self.stamps.insert(at, stamp_ns)
        self.messages.insert(at, message)
        if not self.leads and len(self.stamps) > depth:
            del self.stamps[0], self.messages[0]

    def drop_before(self, stamp_ns: int) -> None:
        at = bisect.bisect_left(self.stamps, stamp_ns)
        del self.stamps[:at], self.messages[:at]


class Synchronizer:
    """Find, for each message of a leading stream, the message of every other stream that is nearest in time.

    A match is made as soon as nothing nearer can come: at an equal stamp, when the stream has gone on past the leading
    stamp, or when its messages come too far apart for a nearer one. Matches leave in the order of time.

    Nothing here looks at a clock: stamps come with the messages and arrival times with the calls, so that a recording
    gives the same matches each time.

    Args:
        streams: Names of the streams, the leading one first.
        tolerance: Largest distance between stamps that belong together in [s].
        patience: How long after its arrival a leading message waits for the others in [s].
        jump: A stamp this much older than the newest of its stream means that time began anew, and so does a leading
            one this much newer, in [s].
        depth: Most messages that are kept of each stream.

    Attributes:
        counts: ``"late <stream>"``, ``"duplicated <stream>"``, ``"out of order <stream>"``, ``"missing <stream>"``,
            ``"forgotten <leading stream>"`` (what waited when time began anew) and ``"matched"``, each with its number
            since the start.
        resets: How often time began anew.

    Raises:
        SettingError: Fewer than two streams, one that comes twice, or a number that is not positive.
    """

    def __init__(
        self,
        streams: Iterable[str],
        tolerance: float = 0.02,
        patience: float = 0.2,
        jump: float = 1.0,
        depth: int = 30,
    ) -> None:
        names = tuple(streams)
        if len(names) < 2 or len(set(names)) < len(names):
            raise SettingError(f"streams: expected at least two different names, got {list(names)}")
        for key, value in (("tolerance", tolerance), ("patience", patience), ("jump", jump), ("depth", depth)):
            if not value > 0:
                raise SettingError(f"{key}: expected a positive number, got {value}")
        self.streams, self.leading = names, names[0]
        self._tolerance_ns, self._jump_ns = round(tolerance * 1e9), round(jump * 1e9)
        self._patience, self._depth = patience, depth
        self.counts: Counter[str] = Counter()
        self.resets = 0
        self._arrived: dict[int, float] = {}
        self._begin()

    def _begin(self) -> None:
        self._kept = {name: _Stream(name == self.leading) for name in self.streams}
        self._arrived = {}
        # Nothing up to here can be matched any more.
        self._done_ns: int | None = None
        self._newest_ns: int | None = None
        self._fresh: set[str] = set()
        self._after_reset = self.resets > 0

    def clear(self) -> None:
        """Forget everything but the counts: time began anew."""
        self.counts[f"forgotten {self.leading}"] += self.waiting
        self.resets += 1
        self._begin()

    def put(self, stream: str, stamp_ns: int, message: Any, arrived: float) -> tuple[list[Matched], list[Missed]]:
        """Take in a message.

        Args:
            stream: Which stream it is of.
            stamp_ns: Its stamp in [ns].
            message: Anything.
            arrived: When it came in [s], on a steady clock.

        Returns:
            What it completes, and what can no longer be completed; each in the order of time.

        Raises:
            UnknownNameError: There is no such stream.
        """
        if stream not in self._kept:
            raise UnknownNameError("stream", stream, self.streams)
        if not self._in_this_time(stream, stamp_ns):
            return [], []
        kept, leads = self._kept[stream], stream == self.leading
        behind = bool(kept.seen) and stamp_ns < kept.seen[-1]
        if stamp_ns in kept.seen:
            self.counts[f"duplicated {stream}"] += 1
        elif self._done_ns is not None and stamp_ns <= self._done_ns - (0 if leads else self._tolerance_ns):
            # What it could belong to has gone out already, or something later has.
            self.counts[f"late {stream}"] += 1
        else:
            self.counts[f"out of order {stream}"] += behind
            kept.put(stamp_ns, message, self._depth)
            if leads:
                self._arrived[stamp_ns] = arrived
            return self._match()
        return [], []

    def expire(self, now: float) -> tuple[list[Matched], list[Missed]]:
        """Give up leading messages that have waited long enough.

        Args:
            now: Present time in [s], on the clock of ``arrived``.

        Returns:
            What is matched now, with what there is, and what cannot be.
        """
        matched: list[Matched] = []
        missed: list[Missed] = []
        leading = self._kept[self.leading]
        while leading.stamps and now - self._arrived[leading.stamps[0]] >= self._patience:
            self._settle(leading.stamps[0], matched, missed)
        return matched, missed

    @property
    def waiting(self) -> int:
        """Number of leading messages that are not matched yet."""
        return len(self._kept[self.leading].stamps)

    # -- time that begins anew -----------------------------------------------------------------------------------------

    def _in_this_time(self, stream: str, stamp_ns: int) -> bool:
        """Tell whether a message belongs to the present run of time, and begin a new one if it does not."""
        seen = self._kept[stream].seen
        newest = seen[-1] if seen else self._newest_ns
        if newest is None or self._newest_ns is None:
            self._newest_ns = stamp_ns
            return True
        if stamp_ns <= newest - self._jump_ns and seen:
            self.clear()
            self._fresh = {stream}
            self._newest_ns = stamp_ns
            return True
        if stream == self.leading and seen and stamp_ns >= newest + self._jump_ns:
            self._leap(stamp_ns)
        elif self.resets and stream not in self._fresh and stamp_ns >= self._newest_ns + self._jump_ns:
            # It was on its way when time began anew.
            self.counts[f"late {stream}"] += 1
            return False
        self._fresh.add(stream)
        self._newest_ns = max(self._newest_ns, stamp_ns)
        return True

    def _leap(self, stamp_ns: int) -> None:
        """Begin anew at a later time; what the other streams have of it already stays."""
        kept = self._kept
        self.clear()
        for name, stream in kept.items():
            stream.drop_before(stamp_ns - self._tolerance_ns)
            stream.seen = list(stream.stamps)
            self._kept[name] = stream
        self._newest_ns = stamp_ns

    # -- matching ------------------------------------------------------------------------------------------------------

    def _match(self) -> tuple[list[Matched], list[Missed]]:
        matched: list[Matched] = []
        missed: list[Missed] = []
        leading = self._kept[self.leading]
        decided = (i for i, s in enumerate(leading.stamps) if all(self._decided(n, s) for n in self.streams))
        # Streams keep their order as a rule: where a later one is complete, nothing more comes for those before it.
        while (last := next(decided, None)) is not None:
            for stamp in leading.stamps[: last + 1]:
                self._settle(stamp, matched, missed)
            decided = (i for i, s in enumerate(leading.stamps) if all(self._decided(n, s) for n in self.streams))
        if len(leading.stamps) > self._depth:
            self._settle(leading.stamps[0], matched, missed)
        return matched, missed

    def _settle(self, stamp_ns: int, matched: list[Matched], missed: list[Missed]) -> None:
        """Match a leading message with what there is, or give it up."""
        absent = next((name for name in self.streams if self._candidate(name, stamp_ns) is None), None)
        if absent is None:
            matched.append(self._take(stamp_ns))
            return
        self.counts[f"missing {absent}"] += 1
        missed.append(Missed(stamp_ns, absent, self._gap(absent, stamp_ns)))
        self._advance(stamp_ns)

    def _candidate(self, name: str, stamp_ns: int) -> int | None:
        """Return the index of the message of a stream that belongs to a time, as far as is known."""
        stream = self._kept[name]
        at = stream.nearest(stamp_ns)
        return at if at is not None and abs(stream.stamps[at] - stamp_ns) <= self._tolerance_ns else None

    def _decided(self, name: str, stamp_ns: int) -> bool:
        """Tell whether a stream has a message for a time and no nearer one can come."""
        at, stream = self._candidate(name, stamp_ns), self._kept[name]
        if at is None:
            return False
        gap = stamp_ns - stream.stamps[at]
        return gap <= 0 or stream.stamps[-1] > stamp_ns or stream.spacing() >= 2 * gap

    def _take(self, stamp_ns: int) -> Matched:
        at = {name: self._candidate(name, stamp_ns) or 0 for name in self.streams}
        messages = {name: self._kept[name].messages[i] for name, i in at.items()}
        stamps = {name: self._kept[name].stamps[i] for name, i in at.items()}
        self._advance(stamp_ns)
        self.counts["matched"] += 1
        after, self._after_reset = self._after_reset, False
        return Matched(stamp_ns, MappingProxyType(messages), MappingProxyType(stamps), after)

    def _advance(self, stamp_ns: int) -> None:
        """Let go of a leading message and of what only it and earlier ones could need."""
        self._done_ns = stamp_ns
        del self._arrived[stamp_ns]
        for name, stream in self._kept.items():
            stream.drop_before(stamp_ns + 1 if name == self.leading else stamp_ns - self._tolerance_ns)

    def _gap(self, name: str, stamp_ns: int) -> int | None:
        return min((abs(stamp_ns - seen) for seen in self._kept[name].seen), default=None)
