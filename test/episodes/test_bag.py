# SPDX-License-Identifier: Apache-2.0
"""Bags: what is written is what two independent readers find, and what would spoil a bag is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.interfaces import QosDurability, QosReliability

from supple.episodes import BagWriter, ContactPoint, interface_folder, read_bag
from supple.errors import DatasetError, UnknownNameError
from supple.robots import robot_named

STEP = 20_000_000
START = 5_000_000_000
UPRIGHT = [0.0, 0.0, 0.0, 1.0]


def write_everything(path: Path, steps: int = 5) -> Path:
    rng = np.random.default_rng(0)
    names = robot_named("g1").joints.names
    n = len(names)
    with BagWriter(path) as bag:
        bag.tf(0, {("base_link", "camera_link"): [0.1, 0, 0.4, *UPRIGHT]}, static=True)
        bag.tf(0, {("base_link", "imu_link"): [0, 0, 0.2, *UPRIGHT]}, static=True)
        bag.robot_description("<robot name='g1'/>")
        for i in range(steps):
            stamp = START + i * STEP
            bag.clock(stamp)
            bag.joint_state(stamp, names, rng.normal(size=n), rng.normal(size=n), rng.normal(size=n))
            bag.joint_command(stamp, "upper_body", names[15:], q=rng.normal(size=n - 15), kp=np.full(n - 15, 40.0))
            bag.tf(stamp, {("odom", "base_link"): [1, 2, 0.78, 0, 0, np.sin(0.3), np.cos(0.3)]})
            bag.odometry(stamp, [1, 2, 0.78, 0, 0, np.sqrt(0.5), np.sqrt(0.5)], [0.5, 0, 0], [0, 0, 0.1])
            bag.imu(stamp, UPRIGHT, [0, 0, 0.1], [0, 0, 9.81])
            bag.object_poses(stamp, {"box": [0.4, 0, 0.8, *UPRIGHT]}, {"box": [0.1, 0, 0, 0, 0, 0.2]})
            bag.contacts(stamp, [ContactPoint("left_hand", "box", [0.4, 0.1, 0.8], [0, -1, 0], 25.0, 3.0)] if i else [])
            bag.image(stamp, np.full((4, 6, 3), i, dtype=np.uint8))
            bag.depth(stamp, np.array([[1.5, np.nan, np.inf], [0.25, 2.0, 3.0]]))
            bag.camera_info(stamp, 6, 4, 5.0, 5.0, 3.0, 2.0)
            bag.string("events", f"step {i}", stamp)
    return path


@pytest.fixture(scope="module")
def bag_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_everything(tmp_path_factory.mktemp("bag") / "episode")


def test_read_back(bag_path: Path) -> None:
    bag = read_bag(bag_path)
    assert bag.counts["/tf_static"] == bag.counts["/robot_description"] == 1
    assert {n for t, n in bag.counts.items() if t not in ("/tf_static", "/robot_description")} == {5}
    assert bag.types["/contacts"] == "supple_interfaces/msg/ContactArray"
    assert bag.start_ns == START - 1
    rng = np.random.default_rng(0)
    stamp, first = bag.messages["/joint_states"][0]
    assert stamp == START
    assert (first.header.stamp.sec, first.header.stamp.nanosec) == (5, 0)
    assert first.name == list(robot_named("g1").joints.names)
    np.testing.assert_array_equal(first.position, rng.normal(size=43))
    command = bag.messages["/joint_commands"][0][1]
    assert len(command.q) == len(command.kp) == 28
    assert len(command.v) == len(command.kd) == 0
    contacts = [message.contacts for _, message in bag.messages["/contacts"]]
    assert contacts[0] == []
    assert (contacts[1][0].body2, contacts[1][0].normal_force) == ("box", 25.0)
    depth = bag.messages["/camera/aligned_depth_to_color/image_raw"][0][1]
    assert depth.encoding == "32FC1"
    np.testing.assert_array_equal(
        depth.data.view("<f4").reshape(depth.height, depth.width), np.float32([[1.5, np.nan, np.inf], [0.25, 2.0, 3.0]])
    )
    assert bag.messages["/camera/color/image_raw"][3][1].data.tolist() == [3] * 72
    assert bag.messages["/objects"][0][1].twist[0].angular.z == 0.2


def test_twist_of_odometry_is_in_the_child_frame(bag_path: Path) -> None:
    # The base is turned by 90 degrees to the left and moves along the world's x: to its own right.
    twist = read_bag(bag_path, ["/odom"]).messages["/odom"][0][1].twist.twist
    np.testing.assert_allclose([twist.linear.x, twist.linear.y, twist.angular.z], [0.0, -0.5, 0.1], atol=1e-12)


def test_latched_topics_come_first_and_offer_transient_local(bag_path: Path) -> None:
    with next(bag_path.glob("*.mcap")).open("rb") as stream:
        order = [channel.topic for _, channel, _ in make_reader(stream).iter_messages(log_time_order=False)]
    assert set(order[:2]) == {"/tf_static", "/robot_description"}
    qos = read_bag(bag_path).qos
    for topic in ("/tf_static", "/robot_description"):
        assert qos[topic].durability == QosDurability.TRANSIENT_LOCAL
        assert qos[topic].reliability == QosReliability.RELIABLE
    assert qos["/joint_states"].reliability == QosReliability.BEST_EFFORT
    assert qos["/joint_commands"].durability == QosDurability.VOLATILE
    static = read_bag(bag_path).messages["/tf_static"][0][1]
    assert [t.child_frame_id for t in static.transforms] == ["camera_link", "imu_link"]


def test_an_independent_reader_decodes_every_message(bag_path: Path) -> None:
    ours = read_bag(bag_path)
    found: dict[str, list[object]] = {}
    with next(bag_path.glob("*.mcap")).open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True, decoder_factories=[DecoderFactory()])
        for _, channel, _, message in reader.iter_decoded_messages():
            found.setdefault(channel.topic, []).append(message)
    assert {topic: len(messages) for topic, messages in found.items()} == dict(ours.counts)
    for theirs, (_, mine) in zip(found["/joint_states"], ours.messages["/joint_states"], strict=True):
        np.testing.assert_array_equal(theirs.effort, mine.effort)
    assert found["/contacts"][1].contacts[0].body1 == "left_hand"
    assert found["/robot_description"][0].data == "<robot name='g1'/>"


def test_metadata_is_what_rosbag2_expects(bag_path: Path) -> None:
    info = yaml.safe_load((bag_path / "metadata.yaml").read_text())["rosbag2_bagfile_information"]
    assert (info["version"], info["storage_identifier"]) == (9, "mcap")
    assert (info["compression_mode"], info["compression_format"]) == ("", "")
    assert [file for file in info["relative_file_paths"] if not (bag_path / file).is_file()] == []
    assert info["duration"]["nanoseconds"] == 4 * STEP + 1
    with next(bag_path.glob("*.mcap")).open("rb") as stream:
        summary = make_reader(stream).get_summary()
    assert {chunk.compression for chunk in summary.chunk_indexes} == {"zstd"}


def test_namespace_goes_before_every_topic(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag", namespace="g1") as bag:
        bag.clock(START)
    assert list(read_bag(tmp_path / "bag").types) == ["/g1/clock"]


def test_messages_without_a_stamp_are_dropped_and_counted(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as bag:
        for _ in range(10):
            bag.clock(0)
        for i in range(3):
            bag.clock(1_600_000_000_000_000_000 + i * STEP)
        assert bag.dropped == {"clock": 10}
    contents = read_bag(tmp_path / "bag")
    assert contents.counts == {"/clock": 3}
    assert contents.end_ns - contents.start_ns == 2 * STEP


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda bag: (bag.clock(START), bag.clock(START - 1)), ["'clock'", "go back", str(START)]),
        (lambda bag: (bag.clock(START), bag.clock(START + 10**18)), ["'clock'", "leap"]),
        (
            lambda bag: (bag.clock(START), bag.robot_description("<robot/>")),
            ["'robot_description'", "before the first"],
        ),
        (lambda bag: (bag.clock(START), bag.tf(0, {("a", "b"): [0, 0, 0, *UPRIGHT]}, static=True)), ["'tf_static'"]),
        (lambda bag: bag.tf(START, {("odom", "base"): [0, 0, 0, 0, 0, 0, 0]}), ["odom to base", "no rotation"]),
        (
            lambda bag: bag.joint_state(START, ["a", "b"], [0, np.nan], [0, 0], [0, 0]),
            ["joint_states: q", "index 1", "nan"],
        ),
        (lambda bag: bag.joint_state(START, ["a", "b"], [0], [0, 0], [0, 0]), ["joint_states: q", "(2,)", "(1,)"]),
        (lambda bag: bag.joint_command(START, "x", ["a", "b"], q=[1.0]), ["joint_commands: q", "(2,)"]),
        (lambda bag: bag.camera_info(START, 640, 480, 0.0, 0.0, 320, 240), ["uncalibrated"]),
        (lambda bag: bag.image(START, np.zeros((4, 4, 3))), ["uint8", "float64"]),
        (lambda bag: bag.depth(START, np.zeros((4, 4), dtype=np.uint16)), ["metres", "uint16"]),
        (lambda bag: bag.object_poses(START, {"box": [0, 0, 0, *UPRIGHT]}, {"cup": [0] * 6}), ["cup", "box"]),
        (lambda bag: bag.write("x", "no_msgs/msg/Such", START, None), ["no_msgs/msg/Such"]),
    ],
)
def test_what_would_spoil_a_bag_is_refused_and_nothing_is_left(tmp_path: Path, spoil: object, words: list[str]) -> None:
    with pytest.raises((DatasetError, UnknownNameError)) as caught, BagWriter(tmp_path / "bag") as bag:
        spoil(bag)
    for word in words:
        assert word in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_an_existing_path_is_never_overwritten(bag_path: Path) -> None:
    before = (bag_path / "metadata.yaml").read_bytes()
    with pytest.raises(DatasetError, match="exists already"):
        BagWriter(bag_path)
    assert (bag_path / "metadata.yaml").read_bytes() == before


def test_a_bag_has_one_writer_and_a_killed_ones_remains_are_kept(tmp_path: Path) -> None:
    code = (
        "import sys, time; from supple.episodes import BagWriter\n"
        "bag = BagWriter(sys.argv[1]); bag.clock(5); print('open', flush=True); time.sleep(60)"
    )
    arguments = [sys.executable, "-c", code, str(tmp_path / "bag")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout.readline() == b"open\n"
        with pytest.raises(DatasetError, match="another process"):
            BagWriter(tmp_path / "bag")
        process.kill()
    with BagWriter(tmp_path / "bag") as bag:
        bag.clock(START)
    assert bag.cut_off == tmp_path / "bag.cut_off"
    assert list(bag.cut_off.rglob("*.mcap")) != []
    assert read_bag(tmp_path / "bag").counts == {"/clock": 1}


def test_a_bag_without_messages_can_be_read(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as bag:
        bag.robot_description("<robot/>")
    assert read_bag(tmp_path / "bag").counts == {"/robot_description": 1}


def test_a_damaged_bag_is_one_clear_line(tmp_path: Path) -> None:
    path = write_everything(tmp_path / "bag")
    file = next(path.glob("*.mcap"))
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(DatasetError, match="damaged") as caught:
        read_bag(path)
    assert str(path) in str(caught.value)
    with pytest.raises(DatasetError, match="no bag"):
        read_bag(tmp_path / "nothing")


def test_full_disk_leaves_nothing(tmp_path: Path, tiny_disk: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (480, 640, 3), dtype=np.uint8)

    def write_frames() -> None:
        with BagWriter(tiny_disk / "bag") as bag:
            for i in range(20):
                bag.image(START + i * STEP, noise)

    with pytest.raises(DatasetError, match="disk full"):
        write_frames()
    assert list(tiny_disk.iterdir()) == []


def test_types_are_found_in_a_sourced_workspace_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "share/supple_interfaces/msg").mkdir(parents=True)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    assert interface_folder() == tmp_path / "share/supple_interfaces"
    monkeypatch.delenv("AMENT_PREFIX_PATH")
    assert (interface_folder() / "msg/JointCommand.msg").is_file()
