# SPDX-License-Identifier: Apache-2.0
"""An exported bag shows what was recorded: times, frames, contacts, commands, shapes and pictures agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory

from supple.episodes import BagContents, Episode, InitialState, Outcome, read_bag
from supple.episodes.recorder import EpisodeRecorder
from supple.errors import DatasetError, ReplayError, StateError, UnknownNameError
from supple.geometry import pose_from_quaternion, pose_from_xyyaw
from supple.replay.bag_export import COMMAND_SOURCE, FIRST_STAMP_NS, export_bag
from supple.robots import RobotCommand
from supple.tasks import Environment, task_named

STEPS = 30
INTERVAL_NS = 20_000_000
BOX_SIZE = np.array([0.172, 0.231, 0.168])
CAMERA = ("/camera/color/image_raw", "/camera/aligned_depth_to_color/image_raw")


def stand_at_the_table(steps: int = STEPS) -> Episode:
    """Return an episode of a robot that holds its posture half a metre before the box."""
    task = task_named("box_lift")
    environment, robot = Environment(task), task.robot
    base = pose_from_xyyaw(1.25, 0.0, 0.0, robot.standing_height + 0.015)
    initial = environment.reset(replace(task.nominal(), T_world_base=base))
    recorder = EpisodeRecorder(robot, initial)
    rng = np.random.default_rng(0)
    hold = RobotCommand.blank(robot.joints, "test")
    hold = replace(hold, q=environment.body.read().q, active=np.ones(len(robot.joints), dtype=bool))
    environment.record(recorder)
    for _ in range(steps):
        clean = rng.uniform(robot.contract.lower, robot.contract.upper)
        recorder.act(clean, 0.5 * clean, environment.effector_poses())
        environment.body.write(hold)
        environment.record(recorder)
    return recorder.finish(
        task=task.name, distribution="D0", attempt=0, seed=0, source="", outcome=Outcome(False), versions={}
    )


@pytest.fixture(scope="module")
def episode() -> Episode:
    return stand_at_the_table()


@pytest.fixture(scope="module")
def bag_path(episode: Episode, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_bag(episode, tmp_path_factory.mktemp("bag") / "episode")


@pytest.fixture(scope="module")
def bag(bag_path: Path) -> BagContents:
    return read_bag(bag_path)


def pose_of(translation, rotation) -> pin.SE3:
    xyz = [translation.x, translation.y, translation.z]
    return pose_from_quaternion(xyz, [rotation.x, rotation.y, rotation.z, rotation.w])


def frames_at(bag: BagContents, index: int) -> dict[str, pin.SE3]:
    """Return the pose of every frame in odom, found by nothing but tf and tf_static."""
    static, moving = bag.messages["/tf_static"][0][1], bag.messages["/tf"][index][1]
    rows = [*static.transforms, *moving.transforms]
    children = Counter(t.child_frame_id for t in rows)
    assert max(children.values()) == 1, "a frame has two parents"
    parent = {
        t.child_frame_id: (t.header.frame_id, pose_of(t.transform.translation, t.transform.rotation)) for t in rows
    }
    found = {}
    for child in parent:
        pose, frame = pin.SE3.Identity(), child
        while frame in parent:
            frame, step = parent[frame]
            pose = step * pose
        assert frame == "odom", f"{child} hangs on {frame}"
        found[child] = pose
    return found


def simulated(episode: Episode, index: int) -> Environment:
    environment = Environment(task_named(episode.task))
    environment.restore(episode.initial)
    environment.world.set_state(episode.states[index])
    return environment


def vector(message) -> np.ndarray:
    return np.array([message.x, message.y, message.z])


def test_every_state_and_action_is_there(bag: BagContents, episode: Episode) -> None:
    # 0.6 s at 15 Hz: the periods that begin at 0 and then every 1/15 s.
    pictures = 10
    assert dict(bag.counts) == {
        "/robot_description": 1,
        "/tf_static": 1,
        **dict.fromkeys(["/clock", "/joint_states", "/odom", "/imu/data", "/tf", "/objects", "/contacts"], STEPS + 1),
        **dict.fromkeys(["/joint_commands", "/cmd_vel", "/base_height"], STEPS),
        **dict.fromkeys([*CAMERA, *(topic.replace("image_raw", "camera_info") for topic in CAMERA)], pictures),
        "/markers": pictures,
    }
    stamps = [stamp for stamp, _ in bag.messages["/clock"]]
    assert stamps == [FIRST_STAMP_NS + i * INTERVAL_NS for i in range(STEPS + 1)]
    for topic, messages in bag.messages.items():
        for stamp, message in messages:
            if hasattr(message, "header"):
                assert (message.header.stamp.sec, message.header.stamp.nanosec) == divmod(stamp, 10**9), topic
    assert episode.stamps_ns[0] == 0, "this episode must test that stamps are moved"


def test_intervals_are_kept_wherever_an_episode_begins(episode: Episode, tmp_path: Path) -> None:
    later = replace(episode, stamps_ns=episode.stamps_ns + 520_000_000)
    contents = read_bag(export_bag(later, tmp_path / "bag", images=False), ["/clock"])
    stamps = [stamp for stamp, _ in contents.messages["/clock"]]
    np.testing.assert_array_equal(np.array(stamps) - stamps[0], episode.stamps_ns)
    assert stamps[0] == FIRST_STAMP_NS


def test_joints_commands_and_odometry_are_those_of_the_episode(bag: BagContents, episode: Episode) -> None:
    robot = task_named("box_lift").robot
    for index in (0, STEPS):
        state = simulated(episode, index).world.robot_state()
        joints, odom, imu = (bag.messages[t][index][1] for t in ("/joint_states", "/odom", "/imu/data"))
        assert joints.name == list(robot.joints.names)
        np.testing.assert_array_equal(joints.position, state.q)
        np.testing.assert_array_equal(joints.velocity, state.v)
        np.testing.assert_array_equal(np.float32(joints.effort), episode.observations["effort"][index])
        np.testing.assert_allclose(vector(odom.pose.pose.position), state.base_position, atol=1e-12)
        world_velocity = state.T_world_base.rotation @ vector(odom.twist.twist.linear)
        np.testing.assert_allclose(world_velocity, state.base_linear_velocity, atol=1e-12)
        np.testing.assert_allclose(vector(imu.angular_velocity), state.base_angular_velocity, atol=1e-12)
    for index in (0, STEPS - 1):
        action = dict(zip(episode.contract.names, episode.executed[index], strict=True))
        command = bag.messages["/joint_commands"][index][1]
        assert command.source == COMMAND_SOURCE
        assert len(command.name) == 31
        np.testing.assert_array_equal(command.q, [action[name] for name in command.name])
        velocity, height = (bag.messages[t][index][1] for t in ("/cmd_vel", "/base_height"))
        sent = [velocity.twist.linear.x, velocity.twist.linear.y, velocity.twist.angular.z, height.data]
        names = ["base_velocity_x", "base_velocity_y", "base_velocity_yaw", "base_height"]
        np.testing.assert_array_equal(sent, [action[name] for name in names])


def test_frames_form_one_tree_that_agrees_with_the_simulation(bag: BagContents, episode: Episode) -> None:
    robot = task_named("box_lift").robot
    for index in (0, STEPS // 2, STEPS):
        frames, environment = frames_at(bag, index), simulated(episode, index)
        assert {"base_footprint", "camera_color_optical_frame", "camera_depth_optical_frame"} <= set(frames)
        expected = {name: environment.world.link_pose(name) for name in robot.frames}
        for name, pose in (expected | environment.object_poses()).items():
            np.testing.assert_allclose(frames[name].homogeneous, pose.homogeneous, atol=1e-5, err_msg=name)
        forward = frames["camera_color_optical_frame"].rotation[:, 2]
        np.testing.assert_allclose(forward, expected["camera_link"].rotation[:, 0], atol=1e-9)
        footprint = frames["base_footprint"]
        np.testing.assert_allclose(footprint.translation, [*expected["base_link"].translation[:2], 0.0], atol=1e-9)
        np.testing.assert_allclose(footprint.rotation[2], [0.0, 0.0, 1.0], atol=1e-9)


def test_description_has_exactly_the_robots_frames(bag: BagContents) -> None:
    model = pin.buildModelFromXML(bag.messages["/robot_description"][0][1].data, pin.JointModelFreeFlyer())
    links = {frame.name for frame in model.frames if frame.type == pin.FrameType.BODY}
    assert links == set(frames_at(bag, 0)) - {"base_footprint", *task_named("box_lift").objects}


def test_contact_points_lie_on_the_box_and_carry_it(bag: BagContents, episode: Episode) -> None:
    frames = frames_at(bag, STEPS)
    contacts = bag.messages["/contacts"][STEPS][1].contacts
    below = [c for c in contacts if {c.body1, c.body2} == {"table", "box"}]
    assert len(below) >= 3
    for contact in below:
        corner = np.abs(frames["box"].actInv(pin.SE3(np.eye(3), vector(contact.position))).translation)
        assert corner[2] < 1e-3
        assert np.all(corner[:2] < 0.5 * BOX_SIZE[:2] + 1e-3)
        assert vector(contact.normal)[2] == pytest.approx(1.0 if contact.body2 == "box" else -1.0, abs=1e-3)
    weight = episode.initial.materials["box.mass"] * 9.81
    assert sum(c.normal_force for c in below) == pytest.approx(weight, rel=0.02)
    feet = {name for c in contacts for name in (c.body1, c.body2) if "ankle_roll" in name}
    assert feet == {"left_ankle_roll_link", "right_ankle_roll_link"}


def test_forces_come_from_the_torques_of_their_moment(bag: BagContents, episode: Episode) -> None:
    # Servos that merely hold the present posture give no torque: the floor would then carry a third of the robot.
    world = simulated(episode, STEPS).world
    weight = float(world.model.body_mass[world.robot_bodies()].sum()) * 9.81
    contacts = bag.messages["/contacts"][STEPS][1].contacts
    assert sum(c.normal_force for c in contacts if "world" in (c.body1, c.body2)) == pytest.approx(weight, rel=0.1)


def test_markers_show_the_scene_whole_each_time(bag: BagContents) -> None:
    stamps = [stamp for stamp, _ in bag.messages["/clock"]]
    for stamp, message in bag.messages["/markers"]:
        first, *shown = message.markers
        assert first.action == 3
        assert all(m.action == 0 and m.header.frame_id == "odom" for m in shown)
        assert len({(m.ns, m.id) for m in shown}) == len(shown)
        frames = frames_at(bag, stamps.index(stamp))
        shell = next(m for m in shown if m.ns == "box" and m.scale.z > 0.1)
        np.testing.assert_allclose(vector(shell.scale), BOX_SIZE, atol=1e-9)
        pose = frames["box"] * pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.5 * BOX_SIZE[2]]))
        np.testing.assert_allclose(
            pose_of(shell.pose.position, shell.pose.orientation).homogeneous, pose.homogeneous, atol=1e-9
        )
        tops = [m.pose.position.z + 0.5 * m.scale.z for m in shown if m.ns == "table" and m.scale.x == 0.9]
        assert tops == [pytest.approx(0.8)]
        contacts = bag.messages["/contacts"][stamps.index(stamp)][1].contacts
        spheres = [m for m in shown if m.ns == "contacts"]
        assert sum(len(m.points) for m in spheres) == len(contacts)
    last = bag.messages["/markers"][-1][1].markers
    assert sum(m.ns == "forces" for m in last) >= 4


def test_pictures_show_the_box_where_the_frames_say(bag: BagContents) -> None:
    stamps = [stamp for stamp, _ in bag.messages["/clock"]]
    for (stamp, colour), (_, depth) in zip(*(bag.messages[topic] for topic in CAMERA), strict=True):
        info = next(m for s, m in bag.messages["/camera/color/camera_info"] if s == stamp)
        assert colour.encoding == "rgb8"
        assert depth.encoding == "32FC1"
        assert colour.header.frame_id == depth.header.frame_id == info.header.frame_id == "camera_color_optical_frame"
        frames = frames_at(bag, stamps.index(stamp))
        in_camera = frames["camera_color_optical_frame"].inverse() * frames["box"]
        metres = depth.data.view("<f4").reshape(info.height, info.width)
        pixels = colour.data.reshape(info.height, info.width, 3)
        for corner in ([0.06, 0.08], [-0.06, 0.08], [0.06, -0.08], [-0.06, -0.08]):
            point = in_camera.act(np.array([*corner, BOX_SIZE[2]]))
            column, row, _ = np.round(info.k.reshape(3, 3) @ point / point[2]).astype(int)
            assert metres[row, column] == pytest.approx(point[2], abs=2e-3)
            red, green, blue = pixels[row, column].astype(int)
            assert red > green > blue, "cardboard is brown"


def test_an_independent_reader_decodes_every_message(bag_path: Path, bag: BagContents) -> None:
    count: Counter[str] = Counter()
    with next(bag_path.glob("*.mcap")).open("rb") as stream:
        reader = make_reader(stream, validate_crcs=True, decoder_factories=[DecoderFactory()])
        for _, channel, _, message in reader.iter_decoded_messages():
            count[channel.topic] += 1
            if channel.topic == "/markers":
                assert message.markers[-1].ns == "forces" or len(message.markers) > 8
    assert count == bag.counts


def test_without_pictures_and_at_another_rate(episode: Episode, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    path = export_bag(
        episode, tmp_path / "bag", images=False, rate=5.0, on_progress=lambda done, total: seen.append((done, total))
    )
    counts: Mapping[str, int] = read_bag(path, []).counts
    assert not [topic for topic in counts if topic.startswith("/camera")]
    assert counts["/markers"] == 4
    assert seen == [(i, STEPS + 1) for i in range(1, STEPS + 2)]


@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (lambda e: replace(e, task="box_lfit"), UnknownNameError, ["box_lfit", "box_lift"]),
        (lambda e: replace(e, states=e.states[:-1]), DatasetError, ["states"]),
        (
            lambda e: replace(e, initial=InitialState(e.initial.state, "5f3a", e.initial.objects, e.initial.materials)),
            StateError,
            ["5f3a", "another task"],
        ),
    ],
)
def test_an_episode_that_cannot_be_shown_is_refused(episode: Episode, tmp_path: Path, spoil, error, words) -> None:
    with pytest.raises(error) as caught:
        export_bag(spoil(episode), tmp_path / "bag", images=False)
    for word in words:
        assert word in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_bad_wishes_are_refused_and_nothing_is_overwritten(episode: Episode, tmp_path: Path) -> None:
    with pytest.raises(ReplayError, match="positive"):
        export_bag(episode, tmp_path / "bag", rate=0.0)
    (tmp_path / "bag").mkdir()
    with pytest.raises(DatasetError, match="exists already"):
        export_bag(episode, tmp_path / "bag", images=False)
    assert list((tmp_path / "bag").iterdir()) == []


def test_an_interrupted_export_leaves_nothing(episode: Episode, tmp_path: Path) -> None:
    def stop(done: int, _total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_bag(episode, tmp_path / "bag", images=False, on_progress=stop)
    assert list(tmp_path.iterdir()) == []
