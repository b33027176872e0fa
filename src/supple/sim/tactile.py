# SPDX-License-Identifier: Apache-2.0
"""Simulated tactile sensors: what happens at the pads, as sensors with noise, limits, faults and delay report it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from supple.contact.readings import PadLayout, TactileReading, TaxelStatus
from supple.errors import SensorError, UnknownNameError
from supple.sim.forces import ContactForces
from supple.sim.skin import SKIN_STIFFNESS, TactileSkin
from supple.sim.world import World

__all__ = ["TactileSensors", "TactileSettings"]

# Of a sampling period: stamps that are one period apart may be off by rounding.
_ROUNDING = 1e-6


class TactileSettings(BaseModel):
    """How good the simulated sensors are.

    Attributes:
        rate: Readings of each sensor per second in [Hz]; no more than physics has steps.
        stiffness: Pressure per indentation of the skin in [Pa/m].
        noise: Standard deviation of each taxel's value in [Pa]; the default is a third of the smallest force that the
            Dex3's data sheet promises to feel (10 g), on a fingertip's taxel.
        saturation: Largest value of a taxel in [Pa]; the default is the data sheet's largest force (2.5 kg) on one.
        dead: Taxels without a value, each as ``"left_index_1:7"``.
        dead_fraction: Share of all taxels without a value besides those, drawn at the start.
        latency: Time from the measurement to its delivery in [s]; stamps are those of the measurement.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rate: float = Field(default=100.0, gt=0.0)
    stiffness: float = Field(default=SKIN_STIFFNESS, gt=0.0)
    noise: float = Field(default=500.0, ge=0.0)
    saturation: float = Field(default=4.0e5, gt=0.0)
    dead: tuple[str, ...] = ()
    dead_fraction: float = Field(default=0.0, ge=0.0, le=1.0)
    latency: float = Field(default=0.0, ge=0.0)


class TactileSensors:
    """All tactile sensors of the simulated robot.

    Args:
        world: The scene; it is only read.
        settings: How good they are.
        rng: Draws noise and dead taxels.

    Attributes:
        skin: What really happens at the pads.
        settings: How good they are.

    Raises:
        UnknownNameError: A dead taxel of a pad that does not exist.
        SensorError: A dead taxel that does not exist, or more readings than physics has steps.
    """

    def __init__(self, world: World, settings: TactileSettings, rng: np.random.Generator) -> None:
        self.skin, self.settings, self._rng = TactileSkin(world, settings.stiffness), settings, rng
        if settings.rate * world.model.opt.timestep > 1.0 + _ROUNDING:
            fastest = 1.0 / world.model.opt.timestep
            raise SensorError(f"tactile rate of {settings.rate:g} Hz, expected at most one per step: {fastest:g} Hz")
        self._period_ns = round(1e9 / settings.rate)
        self._latency_ns = round(settings.latency * 1e9)
        self._dead = self._draw_dead()
        self._sequence: Counter[str] = Counter()
        self._missed: Counter[str] = Counter()
        self._waiting: deque[tuple[str, TactileReading]] = deque()
        self._silent: frozenset[str] = frozenset()
        self._last: int | None = None

    @property
    def layouts(self) -> dict[str, PadLayout]:
        """Where each sensor has its taxels, by name."""
        return self.skin.layouts

    def _draw_dead(self) -> NDArray[np.bool_]:
        """Return which of all taxels give no value."""
        at, fraction = self.skin.at, self.settings.dead_fraction
        dead = self._rng.random(sum(len(layout) for layout in self.layouts.values())) < fraction
        for entry in self.settings.dead:
            name, _, number = entry.partition(":")
            if name not in at:
                raise UnknownNameError("tactile sensor", name, at)
            last = at[name].stop - at[name].start - 1
            if not number.isdecimal() or int(number) > last:
                raise SensorError(f"dead taxel {entry!r}: expected {name}:0 to {name}:{last}")
            dead[at[name].start + int(number)] = True
        return dead

    def silence(self, names: Collection[str]) -> None:
        """Let these sensors, and no others, be as if pulled out: they give nothing, and what they miss is counted.

        Raises:
            UnknownNameError: There is no such sensor.
        """
        for name in names:
            if name not in self.layouts:
                raise UnknownNameError("tactile sensor", name, self.layouts)
        self._silent = frozenset(names)

    def reset(self) -> None:
        """Forget what was measured in a state that the world was taken out of; it counts as missed."""
        for name, _ in self._waiting:
            self._missed[name] += 1
        self._waiting.clear()
        self._last = None

    def advance(self, stamp_ns: int, contacts: ContactForces | None = None) -> list[tuple[str, TactileReading]]:
        """Measure if it is time to, and return the readings that arrive now, by sensor, oldest first.

        Args:
            stamp_ns: Time of the world's present state in [ns]; called after each step.
            contacts: The contacts, if somebody has gathered them already.
        """
        if self.due(stamp_ns):
            self._last = stamp_ns
            self._measure(stamp_ns, contacts)
        arrived = []
        while self._waiting and self._waiting[0][1].stamp_ns + self._latency_ns <= stamp_ns:
            arrived.append(self._waiting.popleft())
        return arrived

    def due(self, stamp_ns: int) -> bool:
        """Tell whether the sensors measure at this time in [ns]."""
        return self._last is None or stamp_ns // self._period_ns != self._last // self._period_ns

    def _measure(self, stamp_ns: int, contacts: ContactForces | None) -> None:
        settings, pressure = self.settings, self.skin.pressure(contacts)
        # Drawn for silent sensors too: pulling one does not change what the others read.
        value = pressure + self._rng.normal(0.0, settings.noise, len(pressure))
        status = np.where(value >= settings.saturation, TaxelStatus.SATURATED, TaxelStatus.OK)
        status[self._dead] = TaxelStatus.DEAD
        value = np.minimum(value, settings.saturation)
        value[self._dead] = np.nan
        for name, at in self.skin.at.items():
            sequence = self._sequence[name]
            self._sequence[name] += 1
            if name in self._silent:
                self._missed[name] += 1
                continue
            reading = TactileReading(stamp_ns, sequence, self._missed[name], value[at], status[at])
            self._waiting.append((name, reading))
