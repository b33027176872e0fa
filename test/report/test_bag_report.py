# SPDX-License-Identifier: Apache-2.0
"""The page of a bag shows what touched what, when, under the pictures, and says what the bag lacks."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
from typer.testing import CliRunner

sys.path.append(str(Path(__file__).parent))

import touch_bag

from supple.cli.main import app
from supple.episodes import BagWriter, read_bag
from supple.errors import DatasetError
from supple.report.bag_report import is_bag, write_bag_report
from supple.report.bag_signals import read_signals


@pytest.fixture(scope="module")
def bag(tmp_path_factory) -> Path:
    return touch_bag.write_bag(tmp_path_factory.mktemp("bags") / "touch")


@pytest.fixture(scope="module")
def page(bag, tmp_path_factory) -> str:
    paths = write_bag_report(bag, tmp_path_factory.mktemp("page"))
    assert paths.notes == ()
    return paths.html.read_text("utf-8")


@pytest.fixture(scope="module")
def signals(bag):
    return read_signals(bag, read_bag(bag, ()))


def frames_of(path: Path) -> list[np.ndarray]:
    reader = imageio_ffmpeg.read_frames(str(path))
    width, height = next(reader)["size"]
    return [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]


def test_contacts_of_one_hand_are_one_force(signals):
    assert set(signals.contacts) == {"floor and left foot", "box and left hand"}
    expected = [touch_bag.force_at(t) for t in np.round(signals.contact_times, 6)]
    assert signals.contacts["box and left hand"] == pytest.approx(expected)
    assert signals.contacts["floor and left foot"] == pytest.approx(150.0)


def test_force_of_a_pad_is_pressure_times_area_of_living_taxels(signals):
    palm = signals.sensors["left_palm"]
    assert palm.unit == "N"
    assert palm.force == pytest.approx([touch_bag.force_at(t) for t in np.round(palm.times, 6)], rel=1e-5)
    raw = signals.sensors["right_palm"]
    assert (raw.unit, raw.force.max()) == ("raw", pytest.approx(21.0))


def test_lost_readings_are_counted_by_their_sequence(signals):
    palm = signals.sensors["left_palm"]
    assert palm.lost == 1
    assert palm.longest_gap == pytest.approx(0.02, abs=1e-6)
    assert signals.sensors["right_palm"].lost == 0
    assert signals.sensors["right_palm"].times[-1] == pytest.approx(touch_bag.SILENT_FROM - 0.01)


def test_states_wrenches_and_events_keep_their_times(signals):
    palm = signals.sensors["left_palm"]
    touched = palm.state_times[palm.in_contact]
    assert (touched[0], touched[-1]) == (pytest.approx(touch_bag.MADE), pytest.approx(touch_bag.BROKEN - 0.01))
    assert palm.state_times[palm.slipping][0] == pytest.approx(touch_bag.SLIP)
    assert not (palm.slipping & palm.held).any()
    times, force = signals.wrenches["/wrench/left_wrist_yaw_link"]
    assert force == pytest.approx([touch_bag.force_at(t) for t in np.round(times, 6)])
    assert [(e.time, e.sensor, e.kind, e.command) for e in signals.events] == [
        (pytest.approx(1.0), "left_palm", "made", "compliant_policy 41"),
        (pytest.approx(2.0), "left_palm", "slip", ""),
        (pytest.approx(3.0), "left_palm", "broken", ""),
        (pytest.approx(3.0), "right_palm", "silent", ""),
    ]


def test_page_charts_it_under_the_video(page):
    video, charts = page.index("<video"), page.index("Force and contact over time")
    assert video < charts < page.index("<h2>Events")
    assert "touched from 1.00 to 3.00 s" in page
    assert "slipping from 2.00 to 2.20 s" in page
    assert len(re.findall(r"held from", page)) == 2
    assert "box and left hand from 1.00 to 3.00 s" in page
    assert "made at 1.000 s: 12 N, threshold 0.5 N, changed command compliant_policy 41" in page
    assert 'class="event made changed"' in page
    assert "silent at 3.000 s: 0.5 s" in page
    # One for each chart: contacts, floor, two sensors, wrenches; each follows the video.
    assert page.count('<line class="now" data-left=') == 5
    assert "currentTime" in page


def test_line_of_a_sensor_ends_where_its_readings_do(page):
    raw = page[page.index("Force on right_palm") :]
    path = re.search(r'<path class="line s0" d="M([^"]*)"', raw)
    last = float(path[1].replace("L", " ").split()[-2])
    left, scale = (float(re.search(rf'data-{name}="([\d.]+)"', raw)[1]) for name in ("left", "scale"))
    assert (last - left) / scale == pytest.approx(touch_bag.SILENT_FROM - 0.01, abs=0.01)


def test_page_tells_losses_and_topics(page):
    text = " ".join(re.sub(r"<[^>]*>", " ", page.split("<h2>Sensors")[1]).split())
    assert "left palm 400 1 20 12 N 50 %" in text
    assert "right palm 250 0 10 21" in text
    assert "/tactile/left_palm supple_interfaces/TactileArray 400" in text
    assert "/camera/color/image_raw sensor_msgs/Image 21 5.0" in text


def test_video_shows_each_picture_at_its_time(bag, tmp_path):
    frames = frames_of(write_bag_report(bag, tmp_path).video)
    # Odd sizes are made even: the encoder wants that.
    assert frames[0].shape == (48, 64, 3)
    assert len(frames) == pytest.approx(15 * touch_bag.DURATION, abs=2)
    brightness = np.array([frame.mean() for frame in frames])
    for time in (0.5, 1.5, 2.9):
        latest = np.floor(time * 5) / 5
        assert brightness[round(time * 15)] == pytest.approx(100 * latest / 2, abs=6)


def test_bag_without_pictures_or_touch_says_so(tmp_path):
    with BagWriter(tmp_path / "plain") as writer:
        writer.clock(10**9)
        writer.clock(2 * 10**9)
    paths = write_bag_report(tmp_path / "plain", tmp_path / "out")
    page = paths.html.read_text("utf-8")
    assert paths.video is None
    assert any("no colour pictures" in note for note in paths.notes)
    assert any("Nothing is charted" in note for note in paths.notes)
    assert "<script>" not in page
    assert all(note in page for note in paths.notes)


def test_pictures_that_cannot_be_read_are_said(tmp_path):
    with BagWriter(tmp_path / "odd") as writer:
        message = writer.types.types["sensor_msgs/msg/Image"]
        time = writer.types.types["builtin_interfaces/msg/Time"](sec=1, nanosec=0)
        header = writer.types.types["std_msgs/msg/Header"](stamp=time, frame_id="camera")
        image = message(header, 2, 2, "bayer_rggb8", 0, 2, np.zeros(4, np.uint8))
        writer.write("camera/color/image_raw", "sensor_msgs/msg/Image", 10**9, image)
    paths = write_bag_report(tmp_path / "odd", tmp_path / "out")
    assert any("/camera/color/image_raw.encoding: 'bayer_rggb8'" in note for note in paths.notes)
    assert paths.video is None
    assert not list((tmp_path / "out").glob("*.mp4"))


def test_inspect_takes_a_bag(bag, tmp_path):
    done = CliRunner().invoke(app, ["inspect", str(bag), "--out", str(tmp_path / "report"), "--no-video", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout.splitlines()[-1])
    assert found == {"html": str(tmp_path / "report/report.html"), "video": None}
    assert "Tactile sensors" in (tmp_path / "report/report.html").read_text("utf-8")


def test_bags_are_told_from_datasets(bag, dataset, tmp_path):
    assert is_bag(bag)
    assert not is_bag(dataset)
    assert not is_bag(tmp_path)
    # A log whose process was killed has no metadata yet.
    shutil.copytree(bag, tmp_path / "cut")
    (tmp_path / "cut/metadata.yaml").unlink()
    assert is_bag(tmp_path / "cut")


def test_damaged_bags_are_refused_and_leave_nothing(bag, tmp_path):
    shutil.copytree(bag, tmp_path / "bag")
    file = next((tmp_path / "bag").glob("*.mcap"))
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(DatasetError, match="damaged"):
        write_bag_report(tmp_path / "bag", tmp_path / "out")
    assert not (tmp_path / "out").exists()
