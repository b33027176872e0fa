# SPDX-License-Identifier: Apache-2.0
"""``supple calibrate``: where a camera sits on the robot, and the board to find that out with."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from PIL import Image
from rich.markup import escape
from rich.table import Table

from supple import __version__
from supple.cli.output import console, guarded, print_json
from supple.cli.places import find_board
from supple.episodes.atomic import write_atomically
from supple.errors import ExtrinsicsError
from supple.evaluation.calibration_bag import CalibrationBag, gather_points, gather_views, read_points
from supple.perception.boards import Board
from supple.perception.calibration import CalibrationLimits, Solution, solve_board_on_robot, solve_known_points
from supple.perception.extrinsics import CameraExtrinsics

__all__ = ["calibrate_app"]

_INCH = 0.0254

calibrate_app = typer.Typer(
    help="Find out where a camera sits on the robot.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@calibrate_app.command("camera")
@guarded
def camera_command(
    bag: Annotated[Path, typer.Argument(help="Bag with colour pictures, camera_info and tf.")],
    parent: Annotated[str, typer.Option(help="Frame of the robot that the camera is fixed to.")],
    out: Annotated[Path, typer.Option(help="YAML file to write; an existing one is replaced.")],
    board: Annotated[str | None, typer.Option(help="Board in the pictures: a name or a YAML file.")] = None,
    board_on: Annotated[
        str | None,
        typer.Option(help="Frame that the board is fixed to: a hand's link, or the world if the camera moves."),
    ] = None,
    points: Annotated[Path | None, typer.Option(help="YAML list of robot points found in the pictures.")] = None,
    image: Annotated[str | None, typer.Option(help="Topic of the pictures, if there are several.")] = None,
    max_residual: Annotated[float, typer.Option(min=0.1, help="Largest residual accepted, in px.")] = 3.0,
    json: Annotated[bool, typer.Option("--json", help="Print the extrinsics as one JSON object, last.")] = False,
) -> None:
    """Solve a camera's place on the robot from a board that moves with it, or from known points of it."""
    if (board is None) == (points is None):
        raise ExtrinsicsError("give either --board NAME with --board-on FRAME, or --points FILE")
    limits = CalibrationLimits(residual=max_residual)
    pictures = CalibrationBag(bag, image)
    if points is not None:
        known = read_points(points)
        positions = gather_points(pictures, known, parent)
        depths = np.array([np.nan if point.depth is None else point.depth for point in known])
        pixels = np.array([point.pixel for point in known]).reshape(-1, 2)
        solution = solve_known_points(positions, pixels, pictures.intrinsics, depths, limits)
        method, names = "known points", [f"point {i}" for i in range(len(known))]
    else:
        if board_on is None:
            raise ExtrinsicsError("--board needs --board-on FRAME: the frame that the board is fixed to")
        found = gather_views(pictures, Board.read(find_board(str(board))), parent, board_on)
        _tell(len(found.views), found.left_out)
        solution = solve_board_on_robot(found.views, pictures.intrinsics, limits)
        method, names = f"board on {board_on}", [view.name for view in found.views]
    lens = pictures.intrinsics
    extrinsics = CameraExtrinsics.of(
        solution.T_parent_camera,
        camera=pictures.camera,
        parent=parent,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        method=method,
        residual=solution.residual,
        intrinsics={"fx": lens.fx, "fy": lens.fy, "cx": lens.cx, "cy": lens.cy},
        source=bag.resolve().name,
        versions={"supple": __version__, "opencv": version("opencv-python-headless"), "numpy": np.__version__},
    )
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, extrinsics.yaml().encode())
    _show(extrinsics, solution, names)
    console.print(f"written to {out}")
    if json:
        print_json(extrinsics)


@calibrate_app.command("board")
@guarded
def board_command(
    board: Annotated[str, typer.Argument(help="A board: a name or a YAML file.")],
    out: Annotated[Path, typer.Option(help="PNG or PDF file to write.")],
    dpi: Annotated[int, typer.Option(min=72, max=1200, help="Dots per inch.")] = 300,
) -> None:
    """Write a board to print at its true size (scale 100 %)."""
    picture = Image.fromarray(Board.read(find_board(board)).picture(dpi / _INCH))
    if out.suffix.lower() not in (".png", ".pdf"):
        raise ExtrinsicsError(f"{out}: expected a file that ends in .png or .pdf")
    out.parent.mkdir(parents=True, exist_ok=True)
    picture.save(out, dpi=(dpi, dpi), resolution=dpi)
    width, height = (size * _INCH / dpi * 1e3 for size in picture.size)
    console.print(
        f"{out}: {width:.0f} x {height:.0f} mm; print at 100 %, measure a square, correct it in the YAML file"
    )


def _tell(views: int, left_out: Mapping[str, int]) -> None:
    rest = ", ".join(f"{count} {reason}" for reason, count in left_out.items())
    console.print(f"{views} views of the board" + (f"; pictures left out: {rest}" if rest else ""))


def _show(extrinsics: CameraExtrinsics, solution: Solution, names: list[str]) -> None:
    found, rpy = extrinsics.residual, np.degrees(_rpy(solution))
    table = Table("", "")
    table.show_header = False
    place = ", ".join(f"{x:.4f}" for x in extrinsics.translation)
    table.add_row("camera", escape(f"{extrinsics.camera} on {extrinsics.parent}"))
    table.add_row("position", f"{place} m, to {1e3 * found.translation_std:.2f} mm")
    table.add_row(
        "roll, pitch, yaw", f"{', '.join(f'{x:.2f}' for x in rpy)} deg, to {np.degrees(found.rotation_std):.3f} deg"
    )
    table.add_row("residual", f"{found.rms_px:.2f} px rms, {found.max_px:.2f} px at most, {found.points} points")
    if found.rms_depth is not None:
        table.add_row("residual of depth", f"{1e3 * found.rms_depth:.1f} mm rms")
    worst = np.argsort(-solution.errors_px)[:3]
    table.add_row("largest", escape(", ".join(f"{names[i]} {solution.errors_px[i]:.2f} px" for i in worst)))
    console.print(table)


def _rpy(solution: Solution) -> np.ndarray:
    """Return roll, pitch and yaw in [rad] of the camera's body frame (x forward) in its parent."""
    from_optical = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])
    R = solution.T_parent_camera.rotation @ from_optical
    return np.array(
        [np.arctan2(R[2, 1], R[2, 2]), np.arcsin(np.clip(-R[2, 0], -1.0, 1.0)), np.arctan2(R[1, 0], R[0, 0])]
    )
