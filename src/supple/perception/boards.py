# SPDX-License-Identifier: Apache-2.0
"""Calibration boards: what is printed on them, and where their corners are in a picture."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

import cv2
import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from supple.errors import ExtrinsicsError
from supple.yaml_file import read_model

__all__ = ["Board", "BoardSight"]

# Below six corners a pose from one picture is guesswork.
_FEWEST_CORNERS = 6


@dataclass(frozen=True, eq=False)
class BoardSight:
    """A board as seen in one picture.

    Attributes:
        points: Corners in the board's frame in [m], shape (n, 3), z = 0.
        pixels: The same corners in the picture in [px], shape (n, 2); pixel centres have integer coordinates.
    """

    points: NDArray[np.float64]
    pixels: NDArray[np.float64]


class Board(BaseModel):
    """A flat board with a pattern of squares.

    Its frame has x along the columns, y along the rows (downwards in print) and z into the board, as OpenCV has it.

    Attributes:
        kind: ``"charuco"`` (squares with markers, may be partly hidden) or ``"chessboard"`` (must be seen whole).
        columns: Number of squares along x.
        rows: Number of squares along y.
        square: Side of a square in [m], as measured on the print.
        marker: Side of a marker in [m]; ChArUco only.
        dictionary: OpenCV's name of the markers' dictionary; ChArUco only.
        legacy: Whether the board was printed by OpenCV before 4.6, which began even rows differently.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: Literal["charuco", "chessboard"]
    columns: int = Field(ge=3, le=60)
    rows: int = Field(ge=3, le=60)
    square: float = Field(gt=0.0, le=1.0)
    marker: float | None = Field(default=None, gt=0.0)
    dictionary: str = "DICT_4X4_50"
    legacy: bool = False

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.kind == "charuco":
            if self.marker is None or not self.marker < self.square:
                raise ValueError(f"marker: expected a length below the square's {self.square} m, got {self.marker}")
            known = [name for name in dir(cv2.aruco) if name.startswith("DICT_")]
            if self.dictionary not in known:
                close = difflib.get_close_matches(self.dictionary, known, n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise ValueError(f"dictionary: unknown {self.dictionary!r}{hint}")
            dictionary = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, self.dictionary))
            there, wanted = len(dictionary.bytesList), self.columns * self.rows // 2
            if wanted > there:
                raise ValueError(
                    f"dictionary: {self.columns} x {self.rows} squares take {wanted} markers, "
                    f"{self.dictionary!r} has {there}"
                )
        elif self.marker is not None:
            raise ValueError(f"marker: a chessboard has no markers, got {self.marker}; is the kind 'charuco'?")
        elif self.columns == self.rows:
            raise ValueError("columns, rows: a chessboard with as many columns as rows looks the same turned by 90 deg")
        elif (self.columns + self.rows) % 2 == 0:
            raise ValueError("columns, rows: with both even or both odd a chessboard looks the same turned by 180 deg")
        return self

    @classmethod
    def read(cls, path: Path | str) -> Board:
        """Read a board's description.

        Raises:
            ExtrinsicsError: Missing, no YAML, or a field is missing, unknown or malformed; names it.
        """
        return read_model(path, cls, ExtrinsicsError)

    def find(self, image: NDArray[np.uint8]) -> BoardSight | None:
        """Find the board in a picture.

        Args:
            image: Grey or RGB, uint8, shape (height, width) or (height, width, 3).

        Returns:
            Its corners, or None if fewer than six are seen (a chessboard: not all).

        Raises:
            ExtrinsicsError: Another shape or type.
        """
        if image.dtype != np.uint8 or image.ndim not in (2, 3) or 0 in image.shape:
            raise ExtrinsicsError(f"expected a uint8 picture, grey or RGB, got {image.dtype} of shape {image.shape}")
        grey = image if image.ndim == 2 else np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.uint8)
        return self._charuco(grey) if self.kind == "charuco" else self._chessboard(grey)

    def picture(self, pixels_per_metre: float) -> NDArray[np.uint8]:
        """Return the board for printing, grey, with a white margin of half a square.

        Args:
            pixels_per_metre: Resolution of the print.
        """
        square = max(8, round(self.square * pixels_per_metre))
        margin = square // 2
        size = (self.columns * square + 2 * margin, self.rows * square + 2 * margin)
        if self.kind == "charuco":
            return np.asarray(self._board().generateImage(size, marginSize=margin), np.uint8)
        row, column = np.indices((self.rows * square, self.columns * square)) // square
        inside = np.where((row + column) % 2, 255, 0).astype(np.uint8)
        return np.pad(inside, margin, constant_values=255)

    def _board(self) -> cv2.aruco.CharucoBoard:
        dictionary = cv2.aruco.getPredefinedDictionary(getattr(cv2.aruco, self.dictionary))
        board = cv2.aruco.CharucoBoard((self.columns, self.rows), self.square, float(self.marker or 0.0), dictionary)
        board.setLegacyPattern(self.legacy)
        return board

    def _charuco(self, grey: NDArray[np.uint8]) -> BoardSight | None:
        board = self._board()
        corners, ids, _, _ = cv2.aruco.CharucoDetector(board).detectBoard(grey)
        if ids is None or len(ids) < _FEWEST_CORNERS:
            return None
        points = np.asarray(board.getChessboardCorners(), np.float64)[np.asarray(ids).ravel()]
        return BoardSight(points, np.asarray(corners, np.float64).reshape(-1, 2))

    def _chessboard(self, grey: NDArray[np.uint8]) -> BoardSight | None:
        inner = (self.columns - 1, self.rows - 1)
        found, corners = cv2.findChessboardCornersSB(grey, inner, flags=cv2.CALIB_CB_ACCURACY)
        if not found:
            return None
        pixels = np.asarray(corners, np.float64).reshape(-1, 2)
        # The finder begins at either end; the first square between corners is black, its neighbour white.
        grid = pixels.reshape(inner[1], inner[0], 2)
        first, second = (
            grid[0:2, start : start + 2].mean(axis=(0, 1)).round().astype(int) for start in (0, 1)
        )  # fmt: skip
        if grey[first[1], first[0]] > grey[second[1], second[0]]:
            pixels = pixels[::-1]
        row, column = np.divmod(np.arange(len(pixels)), inner[0])
        points = self.square * np.column_stack([column + 1.0, row + 1.0, np.zeros(len(row))])
        return BoardSight(points, pixels.copy())
