# SPDX-License-Identifier: Apache-2.0
"""The logger of touch with real DDS: readings, events, reactions, health, and a log that survives its process."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from node_graph import NodeProcess
from supple_interfaces.msg import CommandTrace, ContactEvent
from touch_probe import LAYOUT, READY, Logger, events, wait_for

from supple.contact.events import EventKind
from supple.episodes import read_bag
from supple.nodes.conversion import header
from supple.nodes.qos import EVENT
from supple.robots import g1

WRIST_ON_A_WRONG_TOPIC = """
kind: wrench
name: wrist
topic: joint_states
frame: r_wrist
rate: 100.0
unit: N
"""


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
