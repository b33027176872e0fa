# SPDX-License-Identifier: Apache-2.0
"""Touch of the simulated robot on topics: readings without a gap, true wrenches, faults by parameter, markers."""

from __future__ import annotations

import numpy as np
import pytest
from geometry_msgs.msg import WrenchStamped
from node_graph import Graph, seconds
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.qos import QoSProfile, ReliabilityPolicy
from supple_interfaces.msg import TactileArray
from visualization_msgs.msg import MarkerArray

from supple.nodes.qos import EVENT
from supple.robots import g1
from supple.sim.skin import layout_of

PADS = g1().pads
DEEP = QoSProfile(depth=4000, reliability=ReliabilityPolicy.BEST_EFFORT)
PULLED = "right_thumb_2"
# One of each kind.
HEARD = ("left_palm_0", "left_index_1", "right_thumb_1", PULLED)


@pytest.fixture(scope="module")
def bridge(start, graph) -> Graph:
    # Slowly: checked field by field, a reading costs the client more than the simulator.
    slow = {"real_time_factor": 0.2, "answer_timeout": 0.0}
    start("sim_bridge", camera=False, tactile_dead="left_palm_0:3", tactile_noise=0.0, **slow)
    for name in HEARD:
        graph.listen(TactileArray, f"tactile/{name}", DEEP)
    for name in g1().wrench_frames:
        graph.listen(WrenchStamped, f"true_wrench/{name}", DEEP)
    for topic in list(graph.received):
        if topic.startswith(("tactile/", "true_wrench/")):
            graph.latest(topic)
    return graph


def set_silent(graph: Graph, text: str):
    value = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=text)
    request = SetParameters.Request(parameters=[Parameter(name="tactile_silent", value=value)])
    (result,) = graph.call(SetParameters, "sim_bridge/set_parameters", request).results
    return result


def test_every_pad_and_every_wrench_has_a_topic(bridge) -> None:
    topics = [f"tactile/{name}" for name in PADS] + [f"true_wrench/{name}" for name in g1().wrench_frames]
    for topic in topics:
        bridge.until(lambda topic=topic: bridge.node.count_publishers(topic) == 1, f"a publisher of {topic}")


def test_a_pad_reads_a_hundred_times_a_second_and_nothing_is_lost(bridge) -> None:
    begin = {name: len(bridge.received[f"tactile/{name}"]) for name in HEARD}
    bridge.run_for(2.0)
    for name in HEARD:
        messages = bridge.received[f"tactile/{name}"][begin[name] :]
        assert len(messages) > 190
        assert set(np.diff(seconds(messages))) == {10_000_000}
        assert set(np.diff([message.sequence for message in messages])) == {1}
        assert {message.missed for message in messages} == {0}


@pytest.mark.parametrize("name", HEARD)
def test_a_message_says_where_the_taxels_are_and_what_they_feel(bridge, name) -> None:
    message, layout = bridge.latest(f"tactile/{name}"), layout_of(PADS[name])
    assert (message.sensor, message.header.frame_id, message.unit) == (name, PADS[name].link, "Pa")
    for field in ("position", "normal"):
        rows = [[point.x, point.y, point.z] for point in getattr(message, field)]
        np.testing.assert_array_equal(rows, getattr(layout, field))
    np.testing.assert_array_equal(message.area, layout.area)
    dead = [3] if name == "left_palm_0" else []
    assert np.flatnonzero(np.isnan(message.pressure)).tolist() == dead
    assert np.flatnonzero(np.array(message.status) == TactileArray.DEAD).tolist() == dead
    # Nothing touches the hands of a robot that hangs in the gantry, and there is no noise.
    assert np.nansum(np.abs(message.pressure)) == 0.0


def test_true_wrenches_are_in_the_frames_of_feet_and_wrists(bridge) -> None:
    forces = {}
    for name in g1().wrench_frames:
        message = bridge.latest(f"true_wrench/{name}")
        assert message.header.frame_id == name
        force = message.wrench.force
        forces[name] = np.array([force.x, force.y, force.z])
        assert np.isfinite(forces[name]).all()
    assert np.linalg.norm(forces["l_wrist"]) == np.linalg.norm(forces["r_wrist"]) == 0.0


def test_a_sensor_that_is_pulled_falls_silent_and_comes_back_with_its_count(bridge) -> None:
    messages = bridge.received[f"tactile/{PULLED}"]
    assert set_silent(bridge, PULLED).successful
    bridge.run_for(0.2)
    quiet_from, others = len(messages), len(bridge.received["tactile/left_index_1"])
    bridge.run_for(0.6)
    assert len(messages) == quiet_from
    assert len(bridge.received["tactile/left_index_1"]) > others + 50
    assert set_silent(bridge, "").successful
    bridge.until(lambda: len(messages) > quiet_from, "a reading of the sensor that was pulled")
    before, after = messages[quiet_from - 1], messages[quiet_from]
    assert after.missed == after.sequence - before.sequence - 1 > 50


def test_a_sensor_that_does_not_exist_cannot_be_pulled(bridge) -> None:
    result = set_silent(bridge, "right_tumb_2")
    assert not result.successful
    assert "unknown tactile sensor 'right_tumb_2'; did you mean 'right_thumb_2'" in result.reason


def test_readings_go_on_after_a_reset_with_their_count(bridge) -> None:
    messages = bridge.received["tactile/left_index_1"]
    begin = len(messages) - 1
    assert bridge.reset().success
    bridge.run_for(0.3)
    assert set(np.diff([message.sequence for message in messages[begin:]])) == {1}
    assert (np.diff(seconds(messages[begin:])) > 0).all()


def test_markers_show_taxels_of_every_pad_in_colour(bridge) -> None:
    bridge.listen(MarkerArray, "markers", EVENT)
    message = bridge.next("markers", lambda m: any(marker.ns == "taxels" for marker in m.markers))
    (taxels,) = (marker for marker in message.markers if marker.ns == "taxels")
    assert len(taxels.points) == len(taxels.colors) == 12 * len(PADS)
    black = [i for i, colour in enumerate(taxels.colors) if colour.r == colour.g == colour.b == 0.0]
    assert black == [3], "one taxel of the first pad is dead"
    heights = [point.z for point in taxels.points]
    assert 0.5 < min(heights) < max(heights) < 1.5, "as high as the hands of a robot that stands"


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"tactile_rate": 0.0}, "parameter tactile_rate of sim_bridge: Input should be greater than 0, got 0.0"),
        ({"tactile_dead_fraction": 2.0}, "parameter tactile_dead_fraction of sim_bridge"),
        ({"tactile_rate": 500.0}, "tactile rate of 500 Hz, expected at most one per step: 200 Hz"),
        ({"tactile_dead": "left_indx_1:2"}, "unknown tactile sensor 'left_indx_1'; did you mean 'left_index_1'"),
        ({"tactile_silent": "left_palm_9"}, "unknown tactile sensor 'left_palm_9'"),
    ],
)
def test_parameters_that_make_no_sense_end_the_node_with_one_line(start, parameters, said) -> None:
    node = start("sim_bridge", camera=False, **parameters)
    assert node.wait(60.0) == 1
    lines = [line for line in node.output().splitlines() if said in line]
    assert len(lines) == 1
    assert "Traceback" not in node.output()
