# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from supple.episodes import Mark, load_seed, save_seed
from supple.errors import SeedError
from supple.teleop.annotation import annotate, annotation_rows, edit_marks, suggest_marks


@pytest.fixture
def path(demonstration, tmp_path):
    return save_seed(tmp_path / "seed.hdf5", demonstration)


def test_reading_changes_nothing(path, demonstration):
    before = path.read_bytes()
    seed = annotate(path)
    assert seed.marks == demonstration.marks
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_rows_show_marks_and_skills_with_their_times(demonstration):
    rows = annotation_rows(demonstration)
    assert [(row.kind, row.label) for row in rows] == [
        ("mark", "lift"),
        ("mark", "end"),
        ("skill", "lift"),
        ("skill", "lift"),
    ]
    skill, row = demonstration.skills[0], rows[2]
    assert (row.effector, row.reference, row.start, row.end) == (
        skill.effector,
        skill.reference,
        skill.start,
        skill.end,
    )
    assert row.start_time == pytest.approx(skill.start * 0.02)
    assert row.end_time == pytest.approx(skill.end * 0.02)


@pytest.mark.parametrize(
    ("place", "step"), [(600, 600), ("600", 600), ("12.0s", 600), ("12s", 600), ("+5", 5), ("-0.2s", -10)]
)
def test_a_mark_moves_to_a_step_a_time_or_by_a_shift(path, demonstration, place, step):
    old = demonstration.marks[0].step
    expected = step if str(place)[0] not in "+-" else old + step
    seed = annotate(path, set={"lift": place})
    assert {skill.start for skill in seed.skills} == {expected}
    stored = load_seed(path)
    assert (stored.skills, stored.marks) == (seed.skills, seed.marks)
    assert stored.episode.differences(demonstration.episode) == []


def test_the_old_file_is_kept_and_another_one_can_be_written(path, tmp_path):
    before = path.read_bytes()
    annotate(path, set={"lift": 600})
    assert (tmp_path / "seed.hdf5.bak").read_bytes() == before
    after = path.read_bytes()
    out = tmp_path / "other.hdf5"
    annotate(path, out, set={"lift": 610})
    assert path.read_bytes() == after
    assert load_seed(out).skills[0].start == 610


def test_marks_are_added_removed_and_counted(path, demonstration):
    assert {s.end for s in annotate(path, remove=["end"]).skills} == {demonstration.episode.length}
    start = demonstration.marks[0].step
    first, second, other = start + 120, start + 170, start + 160
    assert {s.end for s in annotate(path, set={"end": first}).skills} == {first}
    seed = annotate(path, set={"end:2": second})
    assert [(mark.label, mark.step) for mark in seed.marks][1:] == [("end", first), ("end", second)]
    with pytest.raises(SeedError, match=rf"'end' occurs 2 times.*end:1 at step {first}"):
        annotate(path, set={"end": start + 20})
    assert [mark.step for mark in annotate(path, set={"end:2": other}, remove=["end:1"]).marks][1:] == [other]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ({"set": {"throw": 5}}, r"'throw' is no skill of box_lift \(available: lift, end\)"),
        ({"remove": ["throw"]}, "'throw' is no skill"),
        ({"set": {"lift": 99999}}, "outside the demonstration"),
        ({"set": {"lift": "99s"}}, "outside the demonstration"),
        ({"set": {"lift": "-999"}}, "outside the demonstration"),
        ({"set": {"lift": "soon"}}, "expected a step"),
        ({"set": {"lift": "3.5"}}, "expected a step"),
        ({"set": {"end:2": "+5"}}, "needs a mark that is there"),
        ({"set": {"end:9": 5}}, "count them from 1"),
        ({"remove": ["end:2"]}, "no mark 'end:2' to remove"),
        ({"remove": ["lift"]}, "was marked never"),
        ({"set": {"lift": 10, "end": 10}}, "has no length"),
    ],
)
def test_an_edit_that_makes_no_sense_changes_no_file(path, edit, said):
    before = path.read_bytes()
    with pytest.raises(SeedError, match=said):
        annotate(path, **edit)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_an_unmarked_recording_gets_its_skills_afterwards(demonstration, tmp_path):
    notes = "recorded in simulation; without skills: skill 'lift' of box_lift was marked never, expected once"
    path = save_seed(tmp_path / "seed.hdf5", replace(demonstration, skills=(), marks=(), notes=notes))
    seed = annotate(path, set={"lift": 640, "end": "16.3s"})
    assert {(s.start, s.end) for s in seed.skills} == {(640, 815)}
    assert "without skills" not in load_seed(path).notes


def test_editing_keeps_marks_in_order_of_time(task, demonstration):
    marks = edit_marks(task, demonstration.episode, [Mark("end", 700)], {"lift": 650}, [])
    assert [mark.label for mark in marks] == ["lift", "end"]


def plausible(suggestions, seed):
    """The skill begins beside a box that still stands, with room for the hands, and ends with the box up."""
    (start, end), episode = suggestions, seed.episode
    assert (start.label, end.label) == ("lift", "end")
    box = episode.object_poses["box"][:, :3, 3]
    assert np.linalg.norm(box[start.step] - box[0]) < 0.01
    assert box[end.step, 2] - box[0, 2] > 0.1
    for name in ("left_wrist_yaw_link/box", "right_wrist_yaw_link/box"):
        assert seed.episode.contacts.get(name, np.zeros((1, 2)))[: start.step].sum() == 0.0


def test_suggestions_come_from_contact_and_speed_and_lie_near_what_was_marked(demonstration):
    suggestions = suggest_marks(replace(demonstration, marks=(), skills=()))
    plausible(suggestions, demonstration)
    assert "touches box" in suggestions[0].reason


def test_without_recorded_contacts_the_object_s_motion_serves(demonstration):
    episode = replace(demonstration.episode, contacts={})
    suggestions = suggest_marks(replace(demonstration, episode=episode))
    assert "box moves" in suggestions[0].reason
    plausible(suggestions, demonstration)


def test_where_nothing_happens_nothing_is_suggested(demonstration, tmp_path):
    still = {name: np.repeat(rows[:1], len(rows), axis=0) for name, rows in demonstration.episode.object_poses.items()}
    seed = replace(demonstration, episode=replace(demonstration.episode, contacts={}, object_poses=still))
    assert suggest_marks(seed) == []
    with pytest.raises(SeedError, match="no mark can be suggested"):
        annotate(save_seed(tmp_path / "seed.hdf5", seed), suggest=True)


def test_suggested_marks_are_written_only_when_asked_and_say_so(path, demonstration):
    start = suggest_marks(demonstration)[0].step
    seed = annotate(path, suggest=True, set={"end": start + 150})
    assert [mark.step for mark in seed.marks[:2]] == [start, start + 150]
    assert "suggested" in load_seed(path).notes
