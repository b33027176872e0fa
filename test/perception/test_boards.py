# SPDX-License-Identifier: Apache-2.0
"""Boards are found to a fraction of a pixel, the right way round, and described without ambiguity."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from supple.errors import ExtrinsicsError
from supple.perception.boards import Board

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = sorted((ROOT / "config/boards").glob("*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_shipped_boards_are_found_in_their_own_picture(path, turns):
    board = Board.read(path)
    scale = 2000.0
    picture = board.picture(scale)
    sight = board.find(np.ascontiguousarray(np.rot90(picture, turns)))
    assert sight is not None
    assert sight.points.shape == ((board.columns - 1) * (board.rows - 1), 3)
    expected = sight.points[:, :2] * scale + round(board.square * scale) // 2 - 0.5
    height, width = picture.shape
    u, v = expected.T
    turned = [(u, v), (v, width - 1 - u), (width - 1 - u, height - 1 - v), (height - 1 - v, u)][turns]
    assert np.abs(sight.pixels - np.column_stack(turned)).max() < 0.1


def test_charuco_is_found_when_partly_hidden_and_a_chessboard_is_not():
    charuco, chessboard = (Board.read(path) for path in SHIPPED)
    for board, corners in ((charuco, (6, 20)), (chessboard, None)):
        picture = np.repeat(board.picture(2000.0)[..., None], 3, axis=2)
        picture[:, : picture.shape[1] * 2 // 5] = 128
        sight = board.find(picture)
        if corners is None:
            assert sight is None
        else:
            assert corners[0] <= len(sight.points) < corners[1]
            assert sight.points[:, 0].min() > 2 * board.square


def test_no_board_is_not_found():
    rng = np.random.default_rng(0)
    for path in SHIPPED:
        assert Board.read(path).find(rng.integers(0, 255, (120, 160), dtype=np.uint8)) is None


@pytest.mark.parametrize("image", [np.zeros((0, 4), np.uint8), np.zeros((4, 4), np.float32), np.zeros(4, np.uint8)])
def test_what_is_no_picture_is_refused(image):
    with pytest.raises(ExtrinsicsError, match="expected a uint8 picture"):
        Board.read(SHIPPED[0]).find(image)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_boards_fit_on_a_sheet_of_a4_with_their_margin(path):
    height, width = (side / 2000.0 for side in Board.read(path).picture(2000.0).shape)
    assert width <= 0.297
    assert height <= 0.210


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: charuco\ncolumns: 7\nrows: 5\nsquare: .04\nmarker: .05", "marker: expected a length below"),
        ("kind: charuco\ncolumns: 7\nrows: 5\nsquare: .04", "marker: expected a length below .* got None"),
        (
            "kind: charuco\ncolumns: 7\nrows: 5\nsquare: .04\nmarker: .03\ndictionary: DICT_4X4_51",
            "did you mean 'DICT_4X4_50'",
        ),
        (
            "kind: charuco\ncolumns: 20\nrows: 20\nsquare: .04\nmarker: .03",
            "20 x 20 squares take 200 markers, 'DICT_4X4_50' has 50",
        ),
        ("kind: chessboard\ncolumns: 9\nrows: 6\nsquare: .04\nmarker: .03", "marker: a chessboard has no markers"),
        ("kind: chessboard\ncolumns: 8\nrows: 6\nsquare: .04", "turned by 180 deg"),
        ("kind: chessboard\ncolumns: 6\nrows: 6\nsquare: .04", "turned by 90 deg"),
        (
            "kind: chessboard\ncolumns: 9\nrows: 6\nsqare: .04",
            "sqare: unknown field; did you mean 'square'",
        ),
        ("kind: chessboard\ncolumns: 9\nrows: 6\nsquare: 28", "square: .* less than or equal to 1"),
        ("[1, 2", "no valid YAML"),
        ("", "expected a mapping of fields, got NoneType"),
    ],
)
def test_descriptions_that_mean_no_board_are_refused(tmp_path, text, said):
    path = tmp_path / "board.yaml"
    path.write_text(text)
    with pytest.raises(ExtrinsicsError, match=said) as caught:
        Board.read(path)
    assert str(path) in str(caught.value)


def test_missing_description_is_named(tmp_path):
    with pytest.raises(ExtrinsicsError, match=r"nothing\.yaml: cannot be read"):
        Board.read(tmp_path / "nothing.yaml")
