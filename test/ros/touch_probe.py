# SPDX-License-Identifier: Apache-2.0
"""A sensor that a test holds in its hand, and the logger of touch with the log that it leaves."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import numpy as np
from node_graph import Graph, NodeProcess
from supple_interfaces.msg import ContactEvent, TactileArray

from supple.contact.events import EventKind
from supple.contact.log import LogReport
from supple.contact.readings import PadLayout, TactileReading, TaxelStatus
from supple.episodes import read_bag
from supple.nodes.qos import SENSOR
from supple.nodes.touch_output import blank_array, fill_array

__all__ = ["LAYOUT", "READY", "TAXELS", "Logger", "Probe", "events", "wait_for"]

AREA, TAXELS = 1e-4, 4
LAYOUT = PadLayout(
    "probe",
    "left_hand_palm_link",
    np.stack([np.linspace(0.0, 0.03, TAXELS), np.zeros(TAXELS), np.zeros(TAXELS)], axis=1),
    np.tile([0.0, 0.0, 1.0], (TAXELS, 1)),
    np.full(TAXELS, AREA),
)
READY = 60.0


class Probe:
    """A sensor that is read 100 times a second and sends what the test wants."""

    def __init__(self, graph: Graph) -> None:
        self._publisher = graph.publisher(TactileArray, f"tactile/{LAYOUT.name}", SENSOR)
        self.sequence = 0
        self.force = 0.0
        self.missed = 0
        self.dead = 0
        self.sent: list[int] = []
        self._plugged = threading.Event()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._lock = threading.Lock()
        self._plugged.set()
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(0.01):
            if self._plugged.is_set():
                with self._lock:
                    self.send()

    def send(self) -> TactileArray:
        pressure = np.full(TAXELS, self.force / (TAXELS * AREA))
        status = np.zeros(TAXELS, dtype=np.uint8)
        pressure[: self.dead], status[: self.dead] = np.nan, TaxelStatus.DEAD
        reading = TactileReading(time.time_ns(), self.sequence, self.missed, pressure, status)
        message = fill_array(blank_array(LAYOUT), reading)
        self._publisher.publish(message)
        self.sent.append(self.sequence)
        self.sequence += 1
        return message

    def press(self, force: float) -> int:
        """Press from the next reading on and return that reading's sequence."""
        with self._lock:
            self.force = force
            return self.sequence

    def skip(self, count: int, known: int = 0) -> None:
        with self._lock:
            self.sequence += count
            self.missed += known

    def spoil(self, **fields: object) -> None:
        """Send the next message with other fields than it should have."""
        with self._lock:
            reading = TactileReading(time.time_ns(), self.sequence, self.missed, np.zeros(TAXELS), np.zeros(TAXELS))
            message = fill_array(blank_array(LAYOUT), reading)
            for name, value in fields.items():
                setattr(message, name, value)
            self._publisher.publish(message)
            self.sequence += 1

    def pull(self) -> int:
        """Pull it out and return the sequence of its last reading."""
        self._plugged.clear()
        with self._lock:
            return self.sequence - 1

    def plug_in(self) -> None:
        self._plugged.set()

    def close(self) -> None:
        self._end.set()
        self._thread.join()


class Logger:
    """The node, and the log that it leaves."""

    def __init__(self, folder: Path, graph: Graph, **parameters: object) -> None:
        self.output = folder / "touch"
        known = {"output": self.output, "cameras": "['']", "settle": 0.5} | parameters
        self.process = NodeProcess("contact_logger", folder / "contact_logger.log", **known)
        self.graph = graph

    def until_logging(self) -> None:
        self.graph.until(lambda: "logged [s]" in self.state()[2], "the logger to log", READY)

    def state(self) -> tuple[bytes, str, dict[str, str]]:
        return self.graph.diagnostics.get("contact_logger", (b"", "", {}))

    def sensor(self, name: str) -> tuple[bytes, str, dict[str, str]]:
        return self.graph.diagnostics.get(f"contact_logger: {name}", (b"", "", {}))

    def finish(self) -> tuple[dict[str, list], LogReport]:
        """End the node and return its log and what it says of it."""
        self.process.send(signal.SIGINT)
        assert self.process.wait(30.0) == 0
        bag = read_bag(self.output)
        messages = {topic: [message for _, message in rows] for topic, rows in bag.messages.items()}
        (report,) = messages["/touch_report"]
        return messages, LogReport.from_json(report.data)


def events(heard: list[ContactEvent], *kinds: EventKind) -> list[ContactEvent]:
    return [event for event in heard if event.sensor == "probe" and event.kind in kinds]


def wait_for(graph: Graph, heard: list[ContactEvent], kind: EventKind) -> ContactEvent:
    return graph.until(lambda: events(heard, kind), f"an event {kind}")[-1]
