# SPDX-License-Identifier: Apache-2.0
"""The logger of touch with real DDS: readings, events, reactions, health, and a log that survives its process."""

from __future__ import annotations

import signal
import threading
import time
from array import array
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from node_graph import Graph, NodeProcess
from rclpy.serialization import serialize_message
from supple_interfaces.msg import CommandTrace, ContactEvent, TactileArray

from supple.contact.events import EventKind
from supple.contact.log import LogReport
from supple.contact.readings import PadLayout, TactileReading, TaxelStatus
from supple.episodes import read_bag
from supple.errors import SensorError
from supple.nodes.conversion import header
from supple.nodes.qos import EVENT, SENSOR
from supple.nodes.touch_input import TactileInput, layout_of, reading_of
from supple.nodes.touch_output import blank_array, fill_array
from supple.robots import g1

AREA, TAXELS = 1e-4, 4
LAYOUT = PadLayout(
    "probe",
    "left_hand_palm_link",
    np.stack([np.linspace(0.0, 0.03, TAXELS), np.zeros(TAXELS), np.zeros(TAXELS)], axis=1),
    np.tile([0.0, 0.0, 1.0], (TAXELS, 1)),
    np.full(TAXELS, AREA),
)
READY = 60.0
WRIST_ON_A_WRONG_TOPIC = """
kind: wrench
name: wrist
topic: joint_states
frame: r_wrist
rate: 100.0
unit: N
"""


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

    def spoil(self) -> None:
        """Send one message that is at odds with itself."""
        with self._lock:
            message = fill_array(blank_array(LAYOUT), TactileReading(time.time_ns(), 0, 0, np.zeros(4), np.zeros(4)))
            message.pressure = array("f", [0.0] * 3)
            self._publisher.publish(message)

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


@pytest.fixture(scope="module")
def heard(graph) -> list[ContactEvent]:
    return graph.listen(ContactEvent, "contact_events", EVENT)


@pytest.fixture
def probe(graph) -> Iterator[Probe]:
    probe = Probe(graph)
    yield probe
    probe.close()


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


@pytest.fixture
def logger(tmp_path, graph, probe, heard) -> Iterator[Logger]:
    graph.diagnostics.clear()
    heard.clear()
    node = Logger(tmp_path, graph)
    node.until_logging()
    graph.until(lambda: node.sensor("probe")[1] == "ok", "a healthy probe", READY)
    yield node
    node.process.stop()


def events(heard: list[ContactEvent], *kinds: EventKind) -> list[ContactEvent]:
    return [event for event in heard if event.sensor == "probe" and event.kind in kinds]


def wait_for(graph: Graph, heard: list[ContactEvent], kind: EventKind) -> ContactEvent:
    return graph.until(lambda: events(heard, kind), f"an event {kind}")[-1]


READING = TactileReading(5_000_000_007, 7, 2, [1.0, np.nan, 3.0, 4.0], [0, 1, 0, 2])


def same(a: TactileReading, b: TactileReading) -> bool:
    np.testing.assert_array_equal(a.pressure, b.pressure)
    np.testing.assert_array_equal(a.status, b.status)
    return (a.stamp_ns, a.sequence, a.missed) == (b.stamp_ns, b.sequence, b.missed)


def test_a_message_and_a_reading_are_the_same():
    message = fill_array(blank_array(LAYOUT), READING)
    layout = layout_of(message)
    for field in ("position", "normal", "area"):
        np.testing.assert_array_equal(getattr(layout, field), getattr(LAYOUT, field))
    assert (layout.name, layout.frame, layout.unit) == (LAYOUT.name, LAYOUT.frame, LAYOUT.unit)
    assert same(reading_of(message), READING)


@pytest.mark.parametrize("name", ["a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh"])
@pytest.mark.parametrize("count", [1, 2, 3, 12])
def test_readings_out_of_bytes_are_those_of_whole_messages(name, count):
    rng = np.random.default_rng(0)
    heard = TactileInput()
    layout = PadLayout(name, 2 * name, rng.random((count, 3)), np.tile([0.0, 0.0, 1.0], (count, 1)), np.ones(count))
    for i in range(20):
        status = rng.integers(0, 3, count)
        reading = TactileReading(i * 10_000_000 + 3, 2**40 + i, i // 3, rng.random(count).astype(np.float32), status)
        data = serialize_message(fill_array(blank_array(layout), reading))
        assert same(heard.take(data), reading)
    assert heard.changes == 1


@pytest.mark.parametrize("field", ["name", "frame", "position", "normal", "area", "unit"])
def test_another_layout_is_seen(field):
    values = {"name": "prove", "frame": "right_hand_palm_link", "unit": "raw"}
    values |= {
        "position": LAYOUT.position + [[1e-9, 0, 0]] * 4,
        "normal": LAYOUT.normal[:, ::-1],
        "area": LAYOUT.area * 2,
    }
    heard = TactileInput()
    for layout, changes in ((LAYOUT, 1), (LAYOUT, 1), (replace(LAYOUT, **{field: values[field]}), 2), (LAYOUT, 3)):
        assert same(heard.take(serialize_message(fill_array(blank_array(layout), READING))), READING)
        assert heard.changes == changes


def test_a_message_that_lacks_a_value_is_refused_and_the_next_one_is_taken():
    heard = TactileInput()
    message = fill_array(blank_array(LAYOUT), READING)
    whole = serialize_message(message)
    message.pressure = message.pressure[:3]
    with pytest.raises(SensorError, match="pressure"):
        heard.take(serialize_message(message))
    assert same(heard.take(whole), READING)


def test_constants_of_the_message_are_those_of_the_room():
    constants = {name: getattr(ContactEvent, name) for name in EventKind.__members__}
    assert constants == {name: str(kind) for name, kind in EventKind.__members__.items()}


def test_a_touch_is_logged_from_its_first_reading_to_its_last_and_the_log_says_that_nothing_is_lost(
    logger, graph, probe, heard
):
    made_at = probe.press(5.0)
    wait_for(graph, heard, EventKind.MADE)
    broken_at = probe.press(0.0)
    wait_for(graph, heard, EventKind.BROKEN)
    messages, report = logger.finish()
    logged = events(messages["/contact_events"], EventKind.MADE, EventKind.BROKEN)
    assert [(e.sensor, e.kind, e.sequence, round(e.value, 3), e.threshold) for e in logged] == [
        ("probe", "made", made_at, 5.0, 1.0),
        ("probe", "broken", broken_at, 0.0, 0.7),
    ]
    assert logged[0].header.frame_id == LAYOUT.frame
    sequences = [reading.sequence for reading in messages["/tactile/probe"]]
    assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))
    states = {state.sequence: state for state in messages["/contact/probe"]}
    assert {sequence for sequence, state in states.items() if state.in_contact} == set(range(made_at, broken_at))
    assert len(states) < len(sequences)
    assert states[made_at].normal_force == pytest.approx(5.0, rel=1e-6)
    assert states[broken_at - 1].since == logged[0].header.stamp
    assert report.complete, str(report)
    assert (report.events["made"], report.events["broken"]) == (1, 1)
    assert report.sensors["probe"].readings == len(sequences)
    assert "nothing lost" in logger.process.output()


def test_a_command_that_changed_because_of_a_reading_is_joined_to_its_event(logger, graph, probe, heard):
    traces = graph.publisher(CommandTrace, "command_trace", EVENT)
    graph.until(traces.get_subscription_count, "the logger's ear for commands")
    probe.press(3.0)
    made = wait_for(graph, heard, EventKind.MADE)
    stamp = made.header.stamp
    traces.publish(CommandTrace(header=header(1), source="arms", sequence=41))
    for sequence in (42, 43):
        because = {"because": "probe", "because_sequence": made.sequence}
        traces.publish(CommandTrace(header=header(1), source="arms", sequence=sequence, **because))
    joined = graph.until(lambda: [e for e in heard if e.command_source], "an event with its command")
    messages, report = logger.finish()
    (found,) = [event for event in messages["/contact_events"] if event.command_source]
    assert (found.kind, found.sequence, found.command_source, found.command_sequence) == (
        "made",
        made.sequence,
        "arms",
        42,
    )
    assert found.header.stamp.sec == stamp.sec
    assert found.header.stamp.nanosec == stamp.nanosec
    assert len(joined) == 1
    assert report.reactions == 1
    assert report.events["made"] == 1


def test_readings_that_are_missing_are_counted_and_who_lost_them_is_said(logger, graph, probe):
    probe.skip(3, known=2)
    _, _, values = graph.until(
        lambda: logger.sensor("probe") if logger.sensor("probe")[2].get("lost by sequence") == "3" else None,
        "a count of lost readings",
    )
    assert values["of these lost by the sensor"] == "2"
    _, report = logger.finish()
    assert not report.complete
    assert (report.sensors["probe"].lost, report.sensors["probe"].known) == (3, 2)
    assert "LOST 3 of probe by sequence (2 by the sensor itself)" in logger.process.output()


def test_a_pulled_sensor_is_seen_and_logged_and_so_is_its_return(logger, graph, probe, heard):
    last = probe.pull()
    silent = wait_for(graph, heard, EventKind.SILENT)
    assert silent.sequence == last
    assert silent.value >= silent.threshold == 0.25
    level, _, _ = graph.until(
        lambda: logger.sensor("probe") if "silent" in logger.sensor("probe")[1] else None, "diagnostics of silence"
    )
    assert level == b"\x02"
    graph.until(lambda: logger.state()[1] == "silent: probe", "the node to say so")
    probe.plug_in()
    resumed = wait_for(graph, heard, EventKind.RESUMED)
    assert resumed.sequence == last + 1
    messages, report = logger.finish()
    found = [(e.kind, e.sequence) for e in messages["/contact_events"] if e.sensor == "probe"]
    assert found[-2:] == [("silent", last), ("resumed", last + 1)]
    statuses = [row for message in messages["/diagnostics"] for row in message.status]
    assert any(row.name == "contact_logger: probe" and row.level == 2 for row in statuses)
    account = report.sensors["probe"]
    assert (account.silences, account.lost) == (len(found) // 2, 0)
    assert report.complete


def test_dead_taxels_are_on_diagnostics(logger, graph, probe):
    probe.dead = 2
    _, text, _ = graph.until(
        lambda: logger.sensor("probe") if "taxels" in logger.sensor("probe")[1] else None, "dead taxels on diagnostics"
    )
    assert text == "2 of 4 taxels give no value"


def test_a_message_at_odds_with_itself_is_one_line_and_the_next_is_taken(logger, graph, probe, heard):
    for _ in range(5):
        probe.spoil()
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


def test_a_log_survives_kill_9_and_its_name_is_not_used_twice(tmp_path, logger, graph, probe, heard):
    made_at = probe.press(5.0)
    wait_for(graph, heard, EventKind.MADE)
    path = logger.output / "touch.mcap"

    def logged() -> list[int]:
        with path.open("rb") as stream:
            reader = make_reader(stream, decoder_factories=[DecoderFactory()])
            rows = reader.iter_decoded_messages(topics=["/tactile/probe"])
            return [row.decoded_message.sequence for row in rows]

    # It can be read while it is written, some tenths of a second late.
    graph.until(lambda: made_at in logged(), "the reading in the file")
    logger.process.send(signal.SIGKILL)
    logger.process.wait(10.0)
    sequences = logged()
    assert sequences[0] <= made_at <= sequences[-1]
    assert sequences == list(range(sequences[0], sequences[-1] + 1))
    kept = read_bag(logger.output)
    assert "made" in [message.kind for _, message in kept.messages["/contact_events"]]
    assert kept.counts["/touch_sensors"] == 1
    size = path.stat().st_size
    again = Logger(tmp_path, graph)
    try:
        graph.until(lambda: (tmp_path / "touch_2").exists(), "a log of another name", READY)
    finally:
        again.process.stop()
    assert path.stat().st_size == size


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"made_force": 0.1}, "broken_force must not exceed made_force"),
        ({"sensors": "/nowhere/at/all"}, "/nowhere/at/all: no folder of sensors"),
        ({"robot": "r2d2"}, "r2d2"),
    ],
)
def test_wrong_parameters_end_the_node_with_one_line(tmp_path, parameters, said):
    node = NodeProcess("contact_logger", tmp_path / "log", **parameters)
    assert node.wait(READY) == 1
    errors = [line for line in node.output().splitlines() if "ERROR" in line]
    assert len(errors) == 1
    assert said in errors[0]
    node.stop()


def test_a_topic_that_is_logged_as_something_else_is_named(tmp_path):
    folder = tmp_path / "sensors"
    folder.mkdir()
    (folder / "wrist.yaml").write_text(WRIST_ON_A_WRONG_TOPIC)
    node = NodeProcess("contact_logger", tmp_path / "log", sensors=folder, output=tmp_path / "touch")
    assert node.wait(READY) == 1
    assert "sensor 'wrist': topic /joint_states is logged already" in node.output()
    assert "Traceback" not in node.output()
    node.stop()


def test_a_log_that_cannot_be_begun_ends_the_node(tmp_path):
    (tmp_path / "file").touch()
    node = NodeProcess("contact_logger", tmp_path / "log", output=tmp_path / "file/touch", settle=0.1)
    assert node.wait(READY) == 1
    assert "no log: " in node.output()
    node.stop()


@pytest.fixture(scope="module")
def simulation(start):
    """A simulated robot with both cameras; in a fixture, so that a second try does not start another."""
    start("sim_bridge", camera=True, external_camera=True)
    start("robot_state")


def test_a_session_with_both_cameras_and_all_pads_loses_nothing_and_says_so(tmp_path, simulation, graph):
    graph.diagnostics.clear()
    cameras = "['camera','external_camera']"
    sensors = Path(__file__).parents[2] / "config/touch/g1_sim"
    logger = Logger(tmp_path, graph, cameras=cameras, sensors=sensors, settle=2.0)
    try:
        logger.until_logging()
        pads = list(g1().pads)

        def all_there() -> bool:
            return all(int(logger.sensor(name)[2].get("readings", 0)) > 0 for name in pads)

        graph.until(all_there, "every pad", READY)
        graph.until(lambda: float(logger.state()[2].get("logged [s]", 0)) >= 20.0, "a session of 20 s", 120.0)
        messages, report = logger.finish()
    finally:
        logger.process.stop()
    assert report.complete, str(report)
    for name in pads:
        sequences = [reading.sequence for reading in messages[f"/tactile/{name}"]]
        assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))
        assert len(sequences) == report.sensors[name].readings
    stamps = np.array([m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for m in messages["/joint_states"]])
    assert set(np.diff(stamps)) == {5_000_000}
    for camera in ("camera", "external_camera"):
        streams = [f"/{camera}/{stream}/image_raw" for stream in ("color", "aligned_depth_to_color")]
        colour, depth = ([(m.header.stamp.sec, m.header.stamp.nanosec) for m in messages[topic]] for topic in streams)
        # The log begins and ends between two of a pair at the worst.
        assert len(set(colour) ^ set(depth)) <= 2
        assert len(colour) > 10
    assert {"/tf_static", "/robot_description", "/touch_sensors"} <= set(messages)
