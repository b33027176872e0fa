# SPDX-License-Identifier: Apache-2.0
"""What the logger of touch says when something is wrong: one clear line, and it goes on with whatever is good."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from sensor_msgs.msg import Image
from supple_interfaces.msg import TactileArray
from touch_probe import LAYOUT, READY, TAXELS, Logger, wait_for

from supple.contact.events import EventKind
from supple.contact.readings import TactileReading
from supple.nodes.conversion import header
from supple.nodes.qos import SENSOR
from supple.nodes.touch_output import blank_array, fill_array

MANY = 12


def test_a_message_at_odds_with_itself_is_one_line_and_the_next_is_taken(logger, graph, probe, heard):
    for _ in range(5):
        probe.spoil(pressure=[0.0] * 3)
    graph.until(lambda: logger.state()[2].get("unusable readings") == "5", "five refusals")
    probe.press(5.0)
    wait_for(graph, heard, EventKind.MADE)
    lines = [line for line in logger.process.output().splitlines() if "/tactile/probe" in line]
    assert len(lines) == 1
    assert "pressure" in lines[0]


@pytest.mark.parametrize("fault", ["frame", "no taxels"])
def test_a_sensor_that_cannot_be_used_costs_no_reading_of_another(logger, graph, probe, heard, fault):
    message = fill_array(blank_array(LAYOUT), TactileReading(0, 0, 0, np.zeros(TAXELS), np.zeros(TAXELS)))
    if fault == "frame":
        message.header.frame_id = "nowhere"
    else:
        for field in ("position", "normal", "area", "pressure", "status"):
            setattr(message, field, [])
    publisher = graph.publisher(TactileArray, "tactile/stray", SENSOR)

    def refused() -> bool:
        publisher.publish(message)
        return int(logger.state()[2].get("unusable readings", 0)) >= 3

    graph.until(refused, "three refusals", READY)
    made_at = probe.press(5.0)
    wait_for(graph, heard, EventKind.MADE)
    messages, _ = logger.finish()
    assert made_at in [reading.sequence for reading in messages["/tactile/probe"]]
    lines = [line for line in logger.process.output().splitlines() if "/tactile/stray" in line]
    assert lines
    assert "Traceback" not in logger.process.output()


def test_a_reading_that_nothing_can_have_taken_is_one_line_but_no_loss(logger, graph, probe, heard):
    for _ in range(5):
        probe.spoil(pressure=[0.0, 3e38, 0.0, 0.0])
    graph.until(lambda: logger.state()[2].get("unusable readings") == "5", "five refusals")
    pressure = "/tactile/probe: sensor 'probe': pressure of taxel 1 is 3e+38 Pa, expected at most 1e+09 Pa"
    status = "/tactile/probe: sensor 'probe': unknown status 9 of taxel 2 (available: 0 OK, 1 DEAD, 2 SATURATED)"
    # A line about a topic comes once in two seconds, whatever is wrong with it.
    graph.until(
        lambda: probe.spoil(status=[0, 0, 9, 0]) or status in logger.process.output(), "a line about the status"
    )
    probe.press(5.0)
    wait_for(graph, heard, EventKind.MADE)
    messages, report = logger.finish()
    assert logger.process.output().count(pressure) in (1, 2)
    assert report.complete, str(report)
    sequences = [reading.sequence for reading in messages["/tactile/probe"]]
    assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))
    assert "overload" not in report.events


def test_many_sensors_that_fall_silent_at_once_are_one_line(logger, graph, heard):
    names = [f"pad_{i}" for i in range(MANY)]
    publishers = {name: graph.publisher(TactileArray, f"tactile/{name}", SENSOR) for name in names}
    blank = fill_array(blank_array(LAYOUT), TactileReading(0, 0, 0, np.zeros(TAXELS), np.zeros(TAXELS)))
    count, end = 0, threading.Event()

    def play() -> None:
        nonlocal count
        while not end.wait(0.01):
            blank.header, blank.sequence = header(10_000_000 * (count + 1)), count
            blank.header.frame_id = LAYOUT.frame
            for name, publisher in publishers.items():
                blank.sensor = name
                publisher.publish(blank)
            count += 1

    thread = threading.Thread(target=play)
    thread.start()
    try:
        graph.until(lambda: all(logger.sensor(name)[1] == "ok" for name in names), "every pad", READY)
    finally:
        end.set()
        thread.join()
    since = len(logger.process.output())
    graph.until(
        lambda: {e.sensor for e in heard if e.kind == EventKind.SILENT} >= set(names), "silence of every pad", READY
    )
    graph.until(lambda: "silent: " in logger.process.output()[since:], "a line about it")
    logger.finish()
    lines = [line for line in logger.process.output()[since:].splitlines() if ": silent at reading" in line]
    assert len(lines) < MANY / 2
    assert (
        any(f"silent: {MANY} at once: " in line and f"and {MANY - 3} more" in line for line in lines) or len(lines) > 1
    )


def test_a_full_disk_is_said_at_once_with_the_path_and_what_to_do(tiny_disk: Path, graph):
    graph.diagnostics.clear()
    pictures = graph.publisher(Image, "camera/color/image_raw", SENSOR)
    noise = np.random.default_rng(0).integers(0, 255, 640 * 480 * 3, dtype=np.uint8).tobytes()
    picture = Image(height=480, width=640, encoding="rgb8", step=1920, data=noise)
    logger = Logger(tiny_disk, graph, cameras="['camera']")
    try:
        logger.until_logging()

        def said() -> str:
            pictures.publish(picture)
            return next((line for line in logger.process.output().splitlines() if "nothing more is logged" in line), "")

        line = graph.until(said, "the line about the disk", READY)
        assert "ERROR" in line
        assert f"{logger.output}: disk full" in line
        assert "make room, then end this node and start it again" in line
        graph.until(lambda: logger.state()[0] == b"\x02", "diagnostics of it")
    finally:
        logger.process.stop()
    assert logger.process.output().count("ERROR") == 1
