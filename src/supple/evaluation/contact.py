# SPDX-License-Identifier: Apache-2.0
"""Detection of contact, slip and hold measured against the simulator: precision, recall, F1 and delay."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from supple.contact.detection import ContactDetector, ContactEstimate, ContactSettings
from supple.contact.slip import SlipEstimator, SlipSettings
from supple.episodes import Episode
from supple.evaluation.contact_scores import ContactScore, Score
from supple.evaluation.touch_recording import TouchRecording, TrackerSettings, record_touch
from supple.sim.tactile import TactileSettings

__all__ = [
    "EVERYTHING",
    "NOTHING",
    "ContactEvaluation",
    "Detections",
    "EvaluationSettings",
    "detect",
    "evaluate_contact",
    "score_recording",
]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

NOTHING = "nothing"
"""Object of false alarms where nothing had touched the sensor for a while."""

EVERYTHING = "all"
"""Object of the sum over all."""


class EvaluationSettings(BaseModel):
    """What is measured, and what counts as the truth.

    Attributes:
        sensors: How good the tactile sensors are; by default a reading arrives 5 ms after it was taken.
        tracker: How well the robot knows its links and sees the object.
        contact: When the detector counts a sensor as touched.
        slip: How the detector estimates slip.
        friction: Sliding friction between hands and objects; None leaves what the episode was made with.
        least_force: True normal force from which a sensor is in contact, in [N].
        least_slip: True speed from which it slips, in [m/s].
        slip_window: Time about an instant over which the true sliding is averaged, as a vector, in [s]. Two control
            intervals: servos shake fingers to and fro once in each, which moves nothing on.
        merge_gap: Contacts and slips closer than this in [s] are one event.
        least_slip_time: Shorter slips are no events, in [s]; they still count reading by reading.
        hold_time: Time in contact and without slip after which an object is held, in [s].
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    sensors: TactileSettings = TactileSettings(latency=0.005)
    tracker: TrackerSettings = TrackerSettings()
    contact: ContactSettings = ContactSettings()
    slip: SlipSettings = SlipSettings()
    friction: tuple[float | None, ...] = (None, 0.6, 0.3, 0.15)
    least_force: float = Field(default=1.0, gt=0.0)
    least_slip: float = Field(default=0.01, gt=0.0)
    slip_window: float = Field(default=0.04, gt=0.0)
    merge_gap: float = Field(default=0.05, ge=0.0)
    least_slip_time: float = Field(default=0.04, ge=0.0)
    hold_time: float = Field(default=0.2, ge=0.0)


class ContactEvaluation(BaseModel):
    """The result.

    Attributes:
        settings: What was measured.
        episodes: Episodes executed, once under each friction.
        diverged: Of those with their own friction, how many did not come about again to the last bit.
        succeeded: How many succeeded at the task, by friction; this says nothing about detection.
        scores: By object and friction.
        total: All together.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: EvaluationSettings
    episodes: int
    diverged: int
    succeeded: dict[str, int]
    scores: tuple[ContactScore, ...]
    total: ContactScore


@dataclass(eq=False)
class Detections:
    """What the detectors said, at each instant of a recording and each sensor.

    Attributes:
        in_contact: Shape (T, P).
        slipping: Shape (T, P).
        held: Shape (T, P).
        slip_speed: In [m/s], NaN where it could not be told, shape (T, P).
    """

    in_contact: Flags
    slipping: Flags
    held: Flags
    slip_speed: Array = field(repr=False)


def detect(recording: TouchRecording, settings: EvaluationSettings) -> Detections:
    """Run the detectors over what the sensors, encoders and tracker said; they see nothing else."""
    names = list(recording.layouts)
    detectors = {name: ContactDetector(layout, settings.contact) for name, layout in recording.layouts.items()}
    estimator = SlipEstimator(recording.layouts.values(), settings.slip)
    shape = (len(recording.instants), len(names))
    no = np.zeros(shape, dtype=bool)
    result = Detections(no, no.copy(), no.copy(), np.full(shape, math.nan))
    seen = 0
    for i, instant in enumerate(recording.instants):
        now = instant.stamp_ns + round(1e9 * settings.sensors.latency)
        while seen < len(recording.tracked) and recording.tracked[seen].known_ns <= now:
            estimator.observe_object(recording.tracked[seen].stamp_ns, recording.tracked[seen].T_base_object)
            seen += 1
        speeds = estimator.step(instant.stamp_ns, instant.T_base_link, instant.readings)
        for j, name in enumerate(names):
            if name not in instant.readings:
                continue
            said: ContactEstimate = detectors[name].update(instant.readings[name], slip_speed=speeds[name])
            result.in_contact[i, j], result.slipping[i, j], result.held[i, j] = (
                said.in_contact,
                said.slipping,
                said.held,
            )
            result.slip_speed[i, j] = said.slip_speed
    return result


def score_recording(
    recording: TouchRecording, said: Detections, settings: EvaluationSettings
) -> dict[str, ContactScore]:
    """Compare what was said with what happened, by object that touched."""
    stamps = recording.stamps_ns
    taken = np.array([instant.stamp_ns for instant in recording.instants], dtype=np.int64)
    # Readings without a truth of the same instant, of which there are none but after a broken simulation, do not count.
    at = np.searchsorted(stamps, taken)
    step = float(np.diff(stamps).mean()) * 1e-9 if len(stamps) > 1 else math.nan
    speed = np.linalg.norm(_moving_mean(recording.sliding, max(round(settings.slip_window / step), 1)), axis=2)
    scores: dict[str, ContactScore] = {}

    def add(body: str, **counts: object) -> None:
        one = ContactScore(object=body, friction=recording.friction, **counts)  # type: ignore[arg-type]
        scores[body] = scores[body] + one if body in scores else one

    for j in range(len(recording.layouts)):
        touched = recording.force[:, j] >= settings.least_force
        slips = touched & (speed[:, j] >= settings.least_slip)
        held = _lasting(touched & ~slips, settings.hold_time / step)
        owner = _owners(recording.bodies[:, j], round(settings.merge_gap / step))
        columns = {
            "contact": (touched[at], said.in_contact[:, j]),
            "slip": (slips[at], said.slipping[:, j]),
            "held": (held[at], said.held[:, j]),
        }
        bodies = owner[at]
        for body in np.unique(bodies[touched[at] | said.in_contact[:, j]]):
            mine = bodies == body
            untold = int((slips[at] & np.isnan(said.slip_speed[:, j]) & mine).sum())
            alarms = int(((touched & ~slips)[at] & said.slipping[:, j] & mine).sum())
            counts = {name: _count(truth & mine, claim & mine) for name, (truth, claim) in columns.items()}
            add(body, untold=untold, stuck_alarms=alarms, **counts)
        timing = _Timing(stamps, taken, settings)
        for body, delay in timing.contacts(touched, said.in_contact[:, j], owner):
            add(body, delays_ms=(delay,)) if delay is not None else add(body, missed=1)
        for body, score, late in timing.slips(slips, touched & (speed[:, j] >= 0.5 * settings.least_slip),
                                              said.slipping[:, j], owner):  # fmt: skip
            add(body, slip_events=score, slip_delays_ms=late)
    return scores


def _count(truth: Flags, claim: Flags) -> Score:
    return Score(
        true_positive=int((truth & claim).sum()),
        false_positive=int((~truth & claim).sum()),
        false_negative=int((truth & ~claim).sum()),
    )


def _moving_mean(values: Array, width: int) -> Array:
    """Return the mean over a window about each sample, shape (S, P, 3); outside the recording all is still."""
    padded = np.pad(values, ((width // 2 + 1, width - width // 2 - 1 + 1), (0, 0), (0, 0)))
    total = np.cumsum(padded, axis=0)
    return (total[width : width + len(values)] - total[: len(values)]) / width


def _lasting(flags: Flags, steps: float) -> Flags:
    """Return where a flag has been set for so many steps without a break."""
    count = np.arange(1, len(flags) + 1)
    since = np.maximum.accumulate(np.where(flags, 0, count))
    return flags & (count - since > steps)


def _owners(bodies: NDArray[np.object_], steps: int) -> NDArray[np.object_]:
    """Return the body that touches, or that touched last if that is no longer ago than so many steps."""
    result = np.full(len(bodies), NOTHING, dtype=object)
    last, age = NOTHING, steps
    for i, body in enumerate(bodies):
        last, age = (body, 0) if body else (last, age + 1)
        if age <= steps:
            result[i] = last
    return result


def _events(flags: Flags, gap: int) -> list[tuple[int, int]]:
    """Return begin and end (one past the last) of runs of set flags; up to ``gap`` unset ones do not break a run."""
    edges = np.flatnonzero(np.diff(np.r_[0, flags.astype(np.int8), 0]))
    found: list[tuple[int, int]] = []
    for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if found and begin - found[-1][1] <= gap:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


class _Timing:
    """Events and how late they are noticed, of one sensor."""

    def __init__(self, stamps: NDArray[np.int64], taken: NDArray[np.int64], settings: EvaluationSettings) -> None:
        self._stamps, self._taken, self._settings = stamps, taken, settings
        self._known = taken + round(1e9 * settings.sensors.latency)
        self._step = float(np.diff(stamps).mean()) * 1e-9
        self._period = float(np.diff(taken).mean()) * 1e-9

    def _first(self, claims: Flags, begin: int, end: int) -> int | None:
        """Return when the first claim between two times became known in [ns], or None."""
        found = np.flatnonzero(claims & (self._taken >= begin) & (self._taken <= end))
        return int(self._known[found[0]]) if len(found) else None

    def contacts(self, touched: Flags, claims: Flags, owner: NDArray[np.object_]) -> Iterable[tuple[str, float | None]]:
        """Yield the body and the delay in [ms] of each contact, None when it was missed."""
        for begin, end in _events(touched, round(self._settings.merge_gap / self._step)):
            known = self._first(claims, self._stamps[begin], self._stamps[end - 1])
            yield owner[begin], None if known is None else 1e-6 * (known - int(self._stamps[begin]))

    def slips(
        self, slips: Flags, moves: Flags, claims: Flags, owner: NDArray[np.object_]
    ) -> Iterable[tuple[str, Score, tuple[float, ...]]]:
        """Yield the body, the count and the delay in [ms] of each slip, then of each one that was said."""
        settings, grace = self._settings, round(1e9 * self._settings.merge_gap)
        gap = round(settings.merge_gap / self._step)
        for begin, end in _events(slips, gap):
            if (end - begin) * self._step < settings.least_slip_time:
                continue
            known = self._first(claims, self._stamps[begin], self._stamps[end - 1] + grace)
            late = () if known is None else (1e-6 * (known - int(self._stamps[begin])),)
            yield owner[begin], Score(true_positive=len(late), false_negative=1 - len(late)), late
        times = self._stamps[moves]
        for begin, end in _events(claims, round(settings.merge_gap / self._period)):
            first, last = self._taken[begin] - grace, self._taken[end - 1]
            if not ((times >= first) & (times <= last)).any():
                at = int(np.searchsorted(self._stamps, self._taken[begin]))
                yield owner[at], Score(false_positive=1), ()


def evaluate_contact(
    episodes: Iterable[Episode],
    settings: EvaluationSettings | None = None,
    seed: int = 0,
    on_recording: Callable[[int, float | None], None] | None = None,
) -> ContactEvaluation:
    """Execute episodes again under each friction, and measure what the detectors make of their touch.

    Args:
        episodes: What to execute.
        settings: What is measured.
        seed: Seed of the sensors' noise.
        on_recording: Called after each execution with the number of episodes begun and the friction.

    Raises:
        ReplayError: An episode belongs to another scene than the installed task's.
    """
    settings = settings or EvaluationSettings()
    scores: dict[tuple[str, float | None], ContactScore] = {}
    succeeded = {_friction_name(friction): 0 for friction in settings.friction}
    count = diverged = 0
    for number, episode in enumerate(episodes):
        count += 1
        for case, friction in enumerate(settings.friction):
            rng = np.random.default_rng([seed, number, case])
            recording = record_touch(episode, settings.sensors, settings.tracker, rng, friction=friction)
            diverged += recording.same_states is False
            succeeded[_friction_name(friction)] += recording.success
            said = detect(recording, settings)
            for body, score in score_recording(recording, said, settings).items():
                key = (body, friction)
                scores[key] = scores[key] + score if key in scores else score
            if on_recording is not None:
                on_recording(count, friction)
    total = ContactScore(object=EVERYTHING, friction=None)
    for score in scores.values():
        total = total + score
    ordered = sorted(scores, key=lambda key: (key[0], -(key[1] if key[1] is not None else math.inf)))
    return ContactEvaluation(
        settings=settings,
        episodes=count,
        diverged=diverged,
        succeeded=succeeded,
        scores=tuple(scores[key] for key in ordered),
        total=total,
    )


def _friction_name(friction: float | None) -> str:
    return "as made" if friction is None else f"{friction:g}"
