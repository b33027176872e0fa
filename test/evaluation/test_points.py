# SPDX-License-Identifier: Apache-2.0
"""Points are measured against the truth: good ones look good, and each kind of fault shows in the figure it spoils."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from supple.cli.main import app
from supple.errors import UnknownNameError
from supple.evaluation.degradation import CONDITIONS
from supple.evaluation.points import PointEvaluation, PointRow, PointSettings, evaluate_points
from supple.report.point_quality import POINT_COLUMNS, point_cells, write_point_report


@pytest.fixture(scope="module")
def evaluation() -> PointEvaluation:
    return evaluate_points(PointSettings(views=2))


def row(evaluation: PointEvaluation, condition: str, level: float, name: str = "box") -> PointRow:
    (found,) = (r for r in evaluation.rows if (r.condition, r.level, r.object) == (condition, level, name))
    return found


def test_every_level_of_every_condition_is_there_for_every_object(evaluation):
    expected = [(c.name, level, name) for c in CONDITIONS for level in c.levels for name in ("box", "table")]
    assert [(r.condition, r.level, r.object) for r in evaluation.rows] == expected
    assert {r.views for r in evaluation.rows} == {2}
    assert [p.title.rsplit(" ", 2)[0] for p in evaluation.pictures][1:2] == ["occlusion"]
    assert len(evaluation.pictures) == len(CONDITIONS)


@pytest.mark.parametrize("name", ["box", "table"])
def test_perfect_pictures_give_points_on_the_surface(evaluation, name):
    nominal = row(evaluation, "distance", 0.8, name)
    # Depth in whole millimetres is off by a quarter of one on average, at most by half.
    assert nominal.error < 3e-4
    assert nominal.error_95 < 6e-4
    assert nominal.precision == 1.0
    assert nominal.coverage > 0.93
    assert (nominal.found, nominal.points) == (2, 128)
    assert nominal.error < nominal.chamfer


def test_levels_of_zero_are_the_same_picture(evaluation):
    nominal = row(evaluation, "distance", 0.8)
    for condition in CONDITIONS:
        if condition.levels[0] == 0:
            same = row(evaluation, condition.name, 0)
            assert (same.error, same.coverage, same.chamfer) == (nominal.error, nominal.coverage, nominal.chamfer)


def test_occlusion_costs_coverage_and_no_precision(evaluation):
    shares = [row(evaluation, "occlusion", level).coverage for level in (0, 20, 40, 60, 80)]
    assert all(before > after + 0.05 for before, after in pairwise(shares))
    assert row(evaluation, "occlusion", 80).precision == 1.0
    # Nothing is filled in: what is hidden has no points near by.
    assert shares[-1] < 0.5


def test_noise_costs_precision_and_is_seen_by_the_extractor(evaluation):
    errors = [row(evaluation, "noise", level, "table").error for level in (0, 1, 2, 4)]
    assert errors == sorted(errors)
    assert errors[-1] > 8 * errors[0]
    told = [row(evaluation, "noise", level, "table").depth_noise for level in (1, 2, 4)]
    assert told[1] / told[0] == pytest.approx(2.0, rel=0.25)
    assert told[2] / told[1] == pytest.approx(2.0, rel=0.25)


def test_flying_pixels_make_no_points(evaluation):
    assert row(evaluation, "flying pixels", 4).error_95 < 1e-3


def test_miscalibration_moves_points_by_as_much(evaluation):
    for level in (5, 10, 20):
        found = row(evaluation, "translation", level)
        # Across a face the whole shift shows, along it nothing.
        assert 0.2e-3 * level < found.error < 1e-3 * level
        assert found.error_95 < 1.05e-3 * level
    lever = 0.9 * np.radians(2.0)
    assert row(evaluation, "rotation", 2).error < lever
    assert row(evaluation, "rotation", 2).error > 4 * row(evaluation, "rotation", 0.25).error
    assert row(evaluation, "focal length", 5).error > row(evaluation, "focal length", 1).error


def test_pictures_show_the_points_and_how_wrong_they_are(evaluation):
    def share_red(title: str) -> float:
        (picture,) = (p for p in evaluation.pictures if p.title.startswith(title))
        r, g = (picture.rgb[..., i].astype(int) for i in (0, 1))
        points = np.abs(r - g) > 80
        assert points.sum() > 500
        return float((r > g)[points].mean())

    assert share_red("rotation") > 0.5
    assert share_red("distance") < 0.05


def test_conditions_can_be_chosen_and_unknown_ones_are_named():
    found = evaluate_points(PointSettings(views=1, conditions=("focal length",), points_per_object=16))
    assert {r.condition for r in found.rows} == {"focal length"}
    assert {r.points for r in found.rows} == {16}
    with pytest.raises(UnknownNameError, match="did you mean 'noise'"):
        evaluate_points(PointSettings(conditions=("nois",)))
    with pytest.raises(UnknownNameError, match="task"):
        evaluate_points(PointSettings(task="box_lft"))
    with pytest.raises(UnknownNameError, match=r"available: D0, D1"):
        evaluate_points(PointSettings(distribution="D9"))


def test_same_seed_gives_the_same_figures():
    settings = PointSettings(views=1, conditions=("noise", "missing depth"))
    assert evaluate_points(settings).rows == evaluate_points(settings).rows


def test_masks_that_find_nothing_cover_nothing():
    class Blind:
        def masks(self, frame):
            return {}

    found = evaluate_points(PointSettings(views=1, conditions=("focal length",)), Blind())
    for r in found.rows:
        assert (r.found, r.points, r.coverage, r.error, r.chamfer) == (0, 0.0, 0.0, None, None)
        assert point_cells(r)[4:] == ["", "", "", "0", "", ""]


def test_page_holds_charts_pictures_and_figures(evaluation, tmp_path):
    html = write_point_report(evaluation, tmp_path / "sub/points.html", "of the simulator")
    page = html.read_text("utf-8")
    assert page.count("<img ") == len(CONDITIONS)
    assert page.count("<svg ") == 2 * len(CONDITIONS)
    assert all(condition.note in page.replace("&#39;", "'") for condition in CONDITIONS)
    assert not re.search(r"https?:", re.sub(r"base64,[A-Za-z0-9+/=]+", "", page))
    assert "box, mean" in page
    nominal = row(evaluation, "distance", 0.8)
    assert f'<td class="n">{1e3 * nominal.error:.2f}</td>' in page


def test_command_prints_a_table_and_writes_pictures(tmp_path):
    arguments = [
        "evaluate",
        "points",
        "--condition",
        "occlusion",
        "--views",
        "1",
        "--out",
        str(tmp_path / "q"),
        "--json",
    ]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found["rows"]) == 10
    assert found["settings"]["conditions"] == ["occlusion"]
    assert all(heading in done.stderr for heading in POINT_COLUMNS)
    assert (tmp_path / "q/points.html").is_file()
    with Image.open(tmp_path / "q/occlusion_80_percent.png") as picture:
        assert picture.size == (640, 480)


def test_command_refuses_unknown_names_in_one_line(tmp_path):
    done = CliRunner().invoke(app, ["evaluate", "points", "--condition", "oclusion"])
    assert done.exit_code == 1
    assert "did you mean 'occlusion'" in " ".join(done.stderr.split())
