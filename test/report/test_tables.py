# SPDX-License-Identifier: Apache-2.0
"""Tables for the terminal, reasons grouped, and initial states as numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest
import simulated_attempts as simulated
from rich.console import Console

from supple.episodes import AttemptRecord, Ledger, worst_soundness
from supple.report import counts_table, origins_table, reasons_table
from supple.report.reasons import grouped_reasons
from supple.report.soundness import soundness_line, soundness_rows, soundness_table
from supple.report.variables import planar_poses, variables


def printed(table) -> str:
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    with console.file:
        console.print(table)
    return " ".join(console.export_text().split())


@pytest.fixture
def ledger(tmp_path):
    rows = [simulated.unplanned(i) for i in range(4)]
    rows[1] = rows[1].model_copy(update={"reason": rows[1].reason.replace("1.20", "0.97")})
    rows[3] = rows[3].model_copy(update={"reason": "[bold]no[/bold] grasp"})
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b"".join(row.line() for row in rows))
    return Ledger(path)


def test_tables_tell_what_the_ledger_holds(ledger, tmp_path):
    assert "rejected │ 4 │ 100 % │ 51 to 100 %" in printed(counts_table(ledger))
    assert "planning │ 4 │ 100 %" in printed(origins_table(ledger))
    reasons = printed(reasons_table(ledger))
    assert "3 │ planning │ the left hand cannot reach <box> & co. from x = 1.20 m" in reasons
    assert "[bold]no[/bold] grasp" in reasons
    assert "1 other reasons" in printed(reasons_table(ledger, limit=1))
    empty = Ledger(tmp_path / "none.jsonl")
    assert "attempted │ 0" in printed(counts_table(empty))
    printed(origins_table(empty))
    printed(reasons_table(empty))


def test_reasons_that_differ_in_numbers_are_one(ledger):
    first, second = grouped_reasons(ledger.records)
    assert first.attempts == (0, 1, 2)
    assert first.stages == ("plan",)
    assert second.example == "[bold]no[/bold] grasp"


def pose(x, y, yaw):
    return [x, y, 0.8, 0.0, 0.0, float(np.sin(yaw / 2)), float(np.cos(yaw / 2))]


def test_poses_may_be_kept_with_a_yaw_alone():
    long = begun(robot=pose(1.0, 0.0, 0.3), box=pose(2.0, 1.0, 0.5))
    short = begun(**{"robot": [1.0, 0.0, 0.8, 0.3], "object/box": [2.0, 1.0, 0.9, 0.5]})
    for one, other in zip(planar_poses([long]), planar_poses([short]), strict=True):
        assert (one.name, one.frame) == (other.name, other.frame)
        assert one.values == pytest.approx(other.values)


def begun(**initial):
    return simulated.unplanned(0).model_copy(update={"initial": initial})


def test_poses_are_relative_to_robot_and_table():
    records = [
        begun(robot=pose(1.0, 0.0, np.pi / 2), box=pose(1.0, 2.0, np.pi / 2 + 0.1), table=pose(0.0, 2.0, np.pi)),
        begun(box=pose(0.0, 0.0, 0.0)),
    ]
    found = {(p.name, p.frame): p.values for p in planar_poses(records, ("box", "table"))}
    assert found["box", "robot"][0] == pytest.approx([2.0, 0.0, 0.1])
    assert found["box", "table"][0] == pytest.approx([-1.0, 0.0, 0.1 - np.pi / 2])
    assert found["table", "robot"][0] == pytest.approx([2.0, 1.0, np.pi / 2])
    assert np.isnan(found["box", "robot"][1]).all()
    alone = planar_poses([records[1]])
    assert [(p.name, p.frame) for p in alone] == [("box", "world")]


def test_yaws_on_both_sides_of_the_cut_are_neighbours():
    records = [begun(table=pose(2.0, 0.0, np.pi + offset)) for offset in (-0.2, 0.1, 0.3)]
    yaw = planar_poses(records)[0].values[:, 2]
    assert np.ptp(yaw) == pytest.approx(0.5)


def test_variables_name_unit_and_whether_they_vary():
    records = [begun(table=pose(2.0, 0.1 * i, 0.0), **{"material/box.mass": [0.5 + 0.1 * i]}) for i in range(3)]
    found = {v.label: v for v in variables(records, planar_poses(records))}
    assert found["box mass"].unit == "kg"
    assert found["box mass"].varies
    assert found["table y"].varies
    assert not found["table x"].varies
    assert found["table yaw"].unit == "°"


def measured(attempt: int, outcome: str, **soundness: float):
    """Return a record that was retained, or rejected, with what was measured."""
    fate = {"origin": "actuation", "reason": "a foot slid"} if outcome == "rejected" else {}
    row = simulated.unplanned(attempt).model_dump() | {"origin": None, "reason": "", "outcome": outcome} | fate
    return AttemptRecord.model_validate(row | {"completed": True, "soundness": soundness})


def test_soundness_tells_the_worst_of_retained_attempts_beside_the_limit():
    records = [
        simulated.unplanned(0),
        measured(1, "retained", tilt=0.1, foot_slide=0.004, penetration=0.0012, intended_penetration=0.007),
        measured(2, "rejected", tilt=0.2, foot_slide=0.031, penetration=0.0013, intended_penetration=0.006),
        measured(3, "retained", tilt=0.2, foot_slide=0.012, penetration=0.0, intended_penetration=0.006),
    ]
    rows = {row.label: row for row in soundness_rows(records)}
    slide = rows["foot slide while standing"]
    assert (slide.limit, slide.median, slide.worst, slide.attempt, slide.beyond) == ("2 cm", "0.80 cm", "1.20 cm", 3, 1)
    assert (rows["penetration"].worst, rows["penetration"].attempt, rows["penetration"].beyond) == ("1.2 mm", 1, 0)
    assert rows["intended penetration"].limit == "none"
    assert "foot slide while standing │ 2 cm │ 0.80 cm │ 1.20 cm │ 3 │ 1" in printed(soundness_table(records))
    worst = worst_soundness(records)
    assert worst == {"tilt": 0.2, "foot_slide": 0.012, "penetration": 0.0012, "intended_penetration": 0.007}
    assert "foot slide while standing 1.20 cm (limit 2 cm), penetration 1.2 mm (limit 5 mm)" in soundness_line(worst)


def test_ledgers_from_before_soundness_was_measured_tell_nothing_of_it(ledger):
    old = json.loads(simulated.unplanned(0).line())
    del old["soundness"]
    record = AttemptRecord.model_validate(old)
    assert record.soundness == {}
    assert soundness_rows([record, *ledger.records]) == []
    assert soundness_line(worst_soundness([record, *ledger.records])) == ""
