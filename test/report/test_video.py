# SPDX-License-Identifier: Apache-2.0
"""Videos show the stored states, have the size, length and format that players want, and appear whole or not at all."""

from __future__ import annotations

from dataclasses import replace

import imageio_ffmpeg
import numpy as np
import pytest

from supple.episodes import InitialState
from supple.errors import DatasetError, StateError, UnknownNameError
from supple.report import Clip, EpisodeRenderer, write_episode_video, write_grid_video

TILE = (96, 72)


def read(path):
    """Return the header and all frames of a video, (frames, height, width, 3)."""
    frames = imageio_ffmpeg.read_frames(str(path))
    header = next(frames)
    width, height = header["size"]
    return header, np.array([np.frombuffer(f, np.uint8).reshape(height, width, 3) for f in frames])


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """Return the mean absolute difference of two pictures, 0 to 255."""
    return float(np.abs(one.astype(int) - other.astype(int)).mean())


def test_grid_video_has_size_length_and_format(tmp_path, walks):
    clips = [
        Clip(walks[0], "attempt 0", True),
        Clip(walks[1], "attempt 1", True),
        Clip(walks[2], "attempt 2", False, "no"),
    ]
    path = write_grid_video(tmp_path / "made" / "grid.mp4", clips, columns=2, fps=10.0, tile=TILE)
    header, frames = read(path)
    assert header["size"] == (2 * TILE[0], 2 * TILE[1])
    assert header["codec"] == "h264"
    assert header["pix_fmt"].startswith("yuv420p")
    assert header["fps"] == pytest.approx(10.0)
    assert len(frames) == 9  # the longest lasts 0.8 s; both ends are shown
    data = path.read_bytes()
    assert data.index(b"moov") < data.index(b"mdat"), "a browser must not need the end of the file to start"
    assert list(tmp_path.rglob("*.tmp")) == []


def test_shorter_episodes_hold_their_last_picture(tmp_path, walks):
    path = write_grid_video(tmp_path / "grid.mp4", [Clip(walks[0], "a"), Clip(walks[1], "b")], fps=10.0, tile=TILE)
    _, frames = read(path)
    left, right = frames[:, 24:, : TILE[0]].astype(int), frames[:, 24:, TILE[0] :].astype(int)
    change = [np.abs(np.diff(tile, axis=0)).mean(axis=(1, 2, 3)) for tile in (left, right)]
    assert change[0][:4].min() > 0.5  # 0.4 s long
    assert change[0][5:].max() < 0.5
    assert change[1].min() > 0.5


def test_tiles_of_one_scene_do_not_mix_their_fixed_objects(walks):
    with EpisodeRenderer("box_lift", 160, 120) as renderer:
        reels = [renderer.open(walks[0]), renderer.open(walks[1])]
        both = [renderer.picture(reel, 3) for reel in reels]
    for i, expected in enumerate(both):
        with EpisodeRenderer("box_lift", 160, 120) as alone:
            # The near and far plane follow the extent of the scene, so a few edges fall on other pixels.
            assert difference(alone.picture(alone.open(walks[i]), 3), expected) < 0.05
    assert difference(*both) > 2.0


def test_filmstrip_spans_the_episode(walks):
    with EpisodeRenderer("box_lift", 64, 48) as renderer:
        strip = renderer.filmstrip(walks[0], 5)
        assert [time for time, _ in strip] == pytest.approx([0.0, 0.1, 0.2, 0.3, 0.4])
        assert all(picture.shape == (48, 64, 3) for _, picture in strip)
        head = renderer.filmstrip(walks[0], 2, view="camera")
        assert not np.array_equal(head[0][1], strip[0][1])


def test_single_episode_video(tmp_path, walks):
    header, frames = read(write_episode_video(tmp_path / "one.mp4", walks[2], fps=10.0, size=(128, 96), view="camera"))
    assert header["size"] == (128, 96)
    assert len(frames) == 7


def test_bad_requests_are_refused_and_leave_nothing(tmp_path, walks):
    path = tmp_path / "grid.mp4"
    with pytest.raises(DatasetError, match="at least one episode"):
        write_grid_video(path, [])
    with pytest.raises(DatasetError, match="even width and height, got 97 x 72"):
        write_grid_video(path, [Clip(walks[0], "a")], tile=(97, 72))
    with pytest.raises(DatasetError, match="several tasks: box_lift, pour"):
        write_grid_video(path, [Clip(walks[0], "a"), Clip(replace(walks[0], task="pour"), "b")])
    elsewhere = replace(walks[0], initial=InitialState(walks[0].initial.state, "another"))
    with pytest.raises(StateError, match="another"):
        write_grid_video(path, [Clip(elsewhere, "a")], tile=TILE)
    with pytest.raises(UnknownNameError, match="'rear'"):
        write_grid_video(path, [Clip(walks[0], "a", view="rear")], tile=TILE)
    (tmp_path / "file").touch()
    with pytest.raises(DatasetError, match="cannot be written"):
        write_grid_video(tmp_path / "file" / "grid.mp4", [Clip(walks[0], "a")], tile=TILE)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
