# SPDX-License-Identifier: Apache-2.0
"""A self-contained HTML page, and cells for a table, about how good extracted points are."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from supple.episodes.atomic import write_atomically
from supple.errors import DatasetError
from supple.evaluation.degradation import CONDITIONS
from supple.evaluation.points import PointEvaluation, PointRow
from supple.report.charts import Curve, curves
from supple.report.page import render

__all__ = ["POINT_COLUMNS", "POINT_UNITS", "point_cells", "write_point_report"]

POINT_COLUMNS = ("level", "object", "found", "points", "error", "95 %", "precise", "covered", "chamfer", "noise")
"""Headings of a table of rows of one condition."""

POINT_UNITS = "error, its 95th percentile, chamfer distance and noise in mm; precise and covered in %"
"""What the numbers in such a table are."""

_QUALITY = 85


def point_cells(row: PointRow) -> list[str]:
    """Return one row of a table with the headings ``POINT_COLUMNS``."""
    return [
        f"{row.level:g} {row.unit}",
        row.object,
        f"{row.found}/{row.views}",
        f"{row.points:.0f}",
        _number(row.error, 1e3, 2),
        _number(row.error_95, 1e3, 2),
        _number(row.precision, 100.0, 0),
        f"{100.0 * row.coverage:.0f}",
        _number(row.chamfer, 1e3, 1),
        _number(row.depth_noise, 1e3, 2),
    ]


def _number(value: float | None, scale: float, digits: int) -> str:
    return "" if value is None else f"{scale * value:.{digits}f}"


def write_point_report(evaluation: PointEvaluation, html: Path | str, masks: str) -> Path:
    """Write a page about an evaluation that needs no other file and no network.

    Args:
        evaluation: What was measured.
        html: The page.
        masks: Where the masks came from, for people.

    Raises:
        DatasetError: It cannot be written.
    """
    html, settings, rows = Path(html), evaluation.settings, evaluation.rows
    objects = list(dict.fromkeys(row.object for row in rows))
    names = list(dict.fromkeys(row.condition for row in rows))
    page = render(
        "points.html",
        title=f"{settings.task} {settings.distribution}",
        facts=[
            ("views", str(settings.views)),
            ("points per object", str(settings.points_per_object)),
            ("picture", f"{settings.width} x {settings.height}, {settings.fovy:g} deg"),
            ("masks", masks),
            ("random seed", str(settings.seed)),
        ],
        tolerance=f"{1e3 * settings.tolerance:g}",
        legend=[(f"s{i % 5}", name) for i, name in enumerate(objects)],
        conditions=[_condition(evaluation, name, objects) for name in names],
        columns=("condition", *POINT_COLUMNS),
        units=POINT_UNITS,
        rows=[[row.condition, *point_cells(row)] for row in rows],
    )
    try:
        html.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(html, page.encode())
    except OSError as error:
        raise DatasetError(f"{html}: cannot be written: {error.strerror or error}") from error
    return html


def _condition(evaluation: PointEvaluation, name: str, objects: Sequence[str]) -> dict[str, Any]:
    condition = next(known for known in CONDITIONS if known.name == name)
    errors, shares = [], []
    for i, own in enumerate(objects):
        rows = [row for row in evaluation.rows if row.condition == name and row.object == own]
        levels, style = np.array([row.level for row in rows]), f"s{i % 5}"
        errors += [
            Curve(levels, _column([row.error for row in rows], 1e3), style, f"{own}, mean"),
            Curve(levels, _column([row.error_95 for row in rows], 1e3), style, f"{own}, 95 %", True),
        ]
        shares += [
            Curve(levels, _column([row.coverage for row in rows], 100.0), style, f"{own}, coverage"),
            Curve(levels, _column([row.precision for row in rows], 100.0), style, f"{own}, precision", True),
        ]
    title, label = name[0].upper() + name[1:], f"{name} [{condition.unit}]"
    picture = next((found for found in evaluation.pictures if found.title.startswith(f"{name} ")), None)
    return {
        "title": title,
        "note": condition.note,
        "errors": curves(errors, f"Error by {name}", label, "error [mm]"),
        "shares": curves(shares, f"Coverage and precision by {name}", label, "[%]", top=100.0),
        "picture": _embedded(picture.rgb) if picture else "",
        "caption": picture.title if picture else "",
    }


def _column(values: Sequence[float | None], scale: float) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else scale * value for value in values])


def _embedded(picture: NDArray[np.uint8]) -> str:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, format="JPEG", quality=_QUALITY)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()
