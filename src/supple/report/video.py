# SPDX-License-Identifier: Apache-2.0
"""Pictures and videos of episodes, drawn from their stored states."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import imageio_ffmpeg
import mujoco
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from supple.episodes import Episode
from supple.episodes.atomic import replacing
from supple.errors import DatasetError, StateError
from supple.sim.camera import Camera, RenderContext, orbit_camera
from supple.tasks import Environment, task_named

__all__ = ["OUTSIDE", "Clip", "EpisodeRenderer", "encode_video", "write_episode_video", "write_grid_video"]

OUTSIDE = "outside"
"""View of a camera beside the robot that follows it; any other name is a camera of the model."""

_FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS
_GREEN, _ORANGE, _GREY = (64, 190, 120), (240, 140, 50), (160, 165, 175)
_GAP = 18
_SMOOTHING = 1.5
_DISTANCE, _AZIMUTH, _ELEVATION, _LOOK_HEIGHT, _LOOK_AHEAD = 2.8, 72.0, -16.0, 0.75, 0.55


@dataclass(frozen=True)
class Clip:
    """What one tile of a video shows.

    Attributes:
        episode: The episode.
        title: Text on top of the tile.
        retained: Colours a mark before the title: green if true, orange if false, grey if None.
        note: Smaller text at the bottom, e.g. the reason of a rejection.
        view: ``"outside"`` or the name of a camera of the model.
    """

    episode: Episode
    title: str
    retained: bool | None = None
    note: str = ""
    view: str = OUTSIDE


class EpisodeRenderer:
    """Draws stored states of one task's episodes; a context manager.

    Args:
        task: Name of the task.
        width: Picture width in [px].
        height: Picture height in [px].

    Raises:
        UnknownNameError: There is no such task.
        SceneError: Nothing can be rendered on this machine.
    """

    def __init__(self, task: str, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._environment = Environment(task_named(task), visual=True)
        self._world = self._environment.world
        self._context = RenderContext(self._world.model)
        self._view = orbit_camera((0.0, 0.0, _LOOK_HEIGHT), _DISTANCE, _AZIMUTH, _ELEVATION)
        self._cameras = {OUTSIDE: Camera(self._world.model, self._view, width, height, self._context)}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release graphics memory; may be called twice."""
        self._context.close()

    def open(self, episode: Episode, view: str = OUTSIDE) -> _Reel:
        """Prepare an episode for drawing.

        Raises:
            StateError: It was recorded in another scene.
            UnknownNameError: The model has no camera of that name.
        """
        if episode.task != self._environment.task.name:
            raise StateError(f"expected an episode of {self._environment.task.name!r}, got one of {episode.task!r}")
        if view not in self._cameras:
            self._cameras[view] = Camera(self._world.model, view, self.width, self.height, self._context)
        self._environment.restore(episode.initial)
        model = self._world.model
        # Fixed objects are moved in the model itself; with these two arrays one model serves many episodes in turn.
        return _Reel(episode, view, model.body_pos.copy(), model.body_quat.copy(), _path(episode))

    def picture(self, reel: _Reel, index: int) -> NDArray[np.uint8]:
        """Return the picture of state ``index``, uint8, shape (height, width, 3)."""
        model, data = self._world.model, self._world.data
        model.body_pos[:], model.body_quat[:] = reel.body_pos, reel.body_quat
        mujoco.mj_setState(model, data, reel.episode.states[index], _FULL)
        # No more than what drawing needs: dynamics and contacts would take longer than the picture.
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)
        mujoco.mj_flex(model, data)
        if reel.view == OUTSIDE:
            self._view.lookat[:] = (*reel.path[index], _LOOK_HEIGHT)
        return self._cameras[reel.view].rgb(data)

    def filmstrip(self, episode: Episode, count: int, view: str = OUTSIDE) -> list[tuple[float, NDArray[np.uint8]]]:
        """Return pictures at evenly spaced moments from the first state to the last, each with its time in [s]."""
        reel = self.open(episode, view)
        indices = np.unique(np.linspace(0, len(episode.states) - 1, count).round().astype(int))
        times = (episode.stamps_ns - episode.stamps_ns[0]) * 1e-9
        return [(float(times[index]), self.picture(reel, int(index))) for index in indices]


@dataclass(frozen=True, eq=False)
class _Reel:
    """An episode ready to be drawn: what of the model belongs to it, and where the outside camera looks."""

    episode: Episode
    view: str
    body_pos: NDArray[np.float64]
    body_quat: NDArray[np.float64]
    path: NDArray[np.float64]


def _path(episode: Episode) -> NDArray[np.float64]:
    """Return where the outside camera looks at each state (N + 1, 2): ahead of the robot, without its sway."""
    base = np.asarray(episode.observations["base_pose"], dtype=np.float64)
    z, w = base[:, 5], base[:, 6]
    yaw = np.arctan2(2.0 * (w * z + base[:, 3] * base[:, 4]), 1.0 - 2.0 * (base[:, 4] ** 2 + z**2))
    points = base[:, :2] + _LOOK_AHEAD * np.column_stack([np.cos(yaw), np.sin(yaw)])
    step = float(np.median(np.diff(episode.stamps_ns))) * 1e-9 if len(points) > 1 else 1.0
    reach = max(1, round(_SMOOTHING / max(step, 1e-6)))
    # The mean of a window that keeps its size at both ends by repeating the first and the last point.
    padded = np.pad(points, ((reach, reach), (0, 0)), mode="edge")
    total = np.cumsum(np.vstack([np.zeros(2), padded]), axis=0)
    smooth: NDArray[np.float64] = (total[2 * reach + 1 :] - total[: -2 * reach - 1]) / (2 * reach + 1)
    return smooth


def write_grid_video(
    path: Path | str,
    clips: Sequence[Clip],
    *,
    columns: int = 3,
    fps: float = 10.0,
    tile: tuple[int, int] = (320, 240),
) -> Path:
    """Write an MP4 (H.264) of several episodes side by side, in real time; shorter ones hold their last picture.

    Args:
        path: The file to write; it appears whole or not at all.
        clips: What to show, row by row; all of one task.
        columns: Tiles per row.
        fps: Frames per second in [Hz].
        tile: Width and height of a tile in [px], even numbers.

    Raises:
        DatasetError: No clip, odd sizes, episodes of several tasks, or the video cannot be written.
        StateError: An episode was recorded in another scene.
        SceneError: Nothing can be rendered on this machine.
    """
    path = Path(path)
    if not clips:
        raise DatasetError(f"{path}: a video needs at least one episode, got none")
    if any(size < 2 or size % 2 for size in tile):
        raise DatasetError(f"{path}: expected an even width and height, got {tile[0]} x {tile[1]}")
    if tasks := {clip.episode.task for clip in clips} - {clips[0].episode.task}:
        raise DatasetError(f"{path}: episodes of several tasks: {', '.join(sorted({clips[0].episode.task, *tasks}))}")
    columns = min(columns, len(clips))
    rows = math.ceil(len(clips) / columns)
    with EpisodeRenderer(clips[0].episode.task, *tile) as renderer:
        # Opened before anything is written, so that an episode of another scene leaves no trace.
        reels = [renderer.open(clip.episode, clip.view) for clip in clips]
        encode_video(
            path, (columns * tile[0], rows * tile[1]), fps, _frames(renderer, clips, reels, columns, rows, fps)
        )
    return path


def write_episode_video(
    path: Path | str,
    episode: Episode,
    *,
    title: str = "",
    view: str = OUTSIDE,
    fps: float = 25.0,
    size: tuple[int, int] = (960, 720),
) -> Path:
    """Write an MP4 (H.264) of one episode in real time.

    Args:
        path: The file to write; it appears whole or not at all.
        episode: The episode.
        title: Text on top; the task and the attempt if empty.
        view: ``"outside"`` or the name of a camera of the model.
        fps: Frames per second in [Hz].
        size: Width and height in [px], even numbers.

    Raises:
        DatasetError: Odd sizes, or the video cannot be written.
        StateError: The episode was recorded in another scene.
        SceneError: Nothing can be rendered on this machine.
    """
    title = title or f"{episode.task} {episode.distribution}, attempt {episode.attempt}"
    note = "" if episode.outcome.success else episode.outcome.reason
    clip = Clip(episode, title, episode.outcome.success, note, view)
    return write_grid_video(path, [clip], columns=1, fps=fps, tile=size)


def _frames(
    renderer: EpisodeRenderer, clips: Sequence[Clip], reels: Sequence[_Reel], columns: int, rows: int, fps: float
) -> Iterator[NDArray[np.uint8]]:
    width, height = renderer.width, renderer.height
    labels = [_Label(clip, width, height) for clip in clips]
    times = [(clip.episode.stamps_ns - clip.episode.stamps_ns[0]) * 1e-9 for clip in clips]
    canvas = np.full((rows * height, columns * width, 3), 32, np.uint8)
    shown = [-1] * len(clips)
    for frame in range(math.ceil(max(float(stamps[-1]) for stamps in times) * fps - 1e-6) + 1):
        now = frame / fps + 1e-9
        for i, (reel, label, stamps) in enumerate(zip(reels, labels, times, strict=True)):
            index = int(np.searchsorted(stamps, now, side="right")) - 1
            if index == shown[i]:
                continue
            shown[i] = index
            row, column = divmod(i, columns)
            area = canvas[row * height : (row + 1) * height, column * width : (column + 1) * width]
            area[:] = label.write(renderer.picture(reel, index), float(stamps[index]))
            area[:, -1], area[-1] = _GAP, _GAP
        yield canvas


class _Label:
    """Writes a clip's title, clock and note onto its pictures."""

    def __init__(self, clip: Clip, width: int, height: int) -> None:
        scale = height / 240
        self._small = ImageFont.load_default(max(9, round(10 * scale)))
        font = ImageFont.load_default(max(10, round(12 * scale)))
        self._bar, pad, mark = round(22 * scale), round(7 * scale), round(8 * scale)
        self._corner = (width - pad, self._bar // 2)
        layer = Image.new("RGBA", (width, height), (0, 0, 0, 0))
        draw = ImageDraw.Draw(layer)
        draw.rectangle((0, 0, width, self._bar), fill=(18, 22, 28, 200))
        colour = _GREY if clip.retained is None else _GREEN if clip.retained else _ORANGE
        top = (self._bar - mark) // 2
        draw.ellipse((pad, top, pad + mark, top + mark), fill=(*colour, 255))
        clock = draw.textlength("88.8 s", font=self._small)
        left = 2 * pad + mark
        title = _shortened(clip.title, font, draw, width - left - 2 * pad - clock)
        draw.text((left, self._bar // 2), title, font=font, fill=(255, 255, 255, 255), anchor="lm")
        if clip.note:
            draw.rectangle((0, height - self._bar, width, height), fill=(18, 22, 28, 170))
            note = _shortened(clip.note, self._small, draw, width - 2 * pad)
            draw.text((pad, height - self._bar // 2), note, font=self._small, fill=(235, 238, 242, 255), anchor="lm")
        self._layer = layer

    def write(self, picture: NDArray[np.uint8], time: float) -> NDArray[np.uint8]:
        image = Image.fromarray(picture)
        image.paste(self._layer, (0, 0), self._layer)
        ImageDraw.Draw(image).text(self._corner, f"{time:.1f} s", font=self._small, fill=(225, 228, 232), anchor="rm")
        return np.asarray(image)


def _shortened(
    text: str, font: ImageFont.FreeTypeFont | ImageFont.ImageFont, draw: ImageDraw.ImageDraw, room: float
) -> str:
    """Return as much of a text as fits into a width in [px]."""
    line = " ".join(text.split())
    if draw.textlength(line, font=font) <= room:
        return line
    while line and draw.textlength(f"{line}…", font=font) > room:
        line = line[:-1]
    return f"{line.rstrip()}…"


def encode_video(path: Path, size: tuple[int, int], fps: float, frames: Iterator[NDArray[np.uint8]]) -> None:
    """Write pictures as an MP4 (H.264).

    Args:
        path: The file to write; it appears whole or not at all.
        size: Width and height in [px], even numbers.
        fps: Frames per second in [Hz].
        frames: The pictures, uint8, shape (height, width, 3).

    Raises:
        DatasetError: The video cannot be written.
    """
    options = ["-f", "mp4", "-preset", "veryfast", "-crf", "25", "-movflags", "+faststart"]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as temporary:
            writer = imageio_ffmpeg.write_frames(
                str(temporary), size, fps=fps, codec="libx264", quality=None, macro_block_size=2,
                ffmpeg_log_level="error", output_params=options,
            )  # fmt: skip
            writer.send(None)
            try:
                for frame in frames:
                    writer.send(frame)
            finally:
                writer.close()
    except OSError as error:
        raise DatasetError(f"{path}: the video cannot be written: {error}") from error
