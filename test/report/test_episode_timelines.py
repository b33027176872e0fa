# SPDX-License-Identifier: Apache-2.0
"""Bars of contact begin and end where contact does, and never reach across a time when nobody looked."""

from __future__ import annotations

import numpy as np
import pytest

from supple.report.episode_timelines import body_label, contact_spans, episode_timelines, pair_label


def spans(times, held, **more):
    return [(s.start, s.end) for s in contact_spans(np.array(times, float), np.array(held, bool), **more)]


def test_spans_are_the_runs_of_what_held():
    assert spans([0, 1, 2, 3, 4], [0, 1, 1, 0, 1]) == [(1.0, 3.0), (4.0, 4.0)]
    assert spans([0, 1, 2], [1, 1, 1]) == [(0.0, 2.0)]
    assert spans([0, 1, 2], [0, 0, 0]) == []
    assert spans([], []) == []


def test_spans_break_where_nobody_looked():
    assert spans([0, 1, 2, 9, 10], [1, 1, 1, 1, 0], gap=2.0) == [(0.0, 2.0), (9.0, 10.0)]


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("left_wrist_yaw_link", "left hand"),
        ("right_hand_index_1_link", "right hand"),
        ("left_ankle_roll_link", "left foot"),
        ("world", "floor"),
        ("torso_link", "torso"),
        ("red_box", "red box"),
    ],
)
def test_bodies_have_names_for_people(name, label):
    assert body_label(name) == label
    assert pair_label(f"{name}/box") == f"{label} and box"


def test_episodes_share_their_axes(walks):
    shown = episode_timelines([(f"attempt {e.attempt}", e.outcome.success, e) for e in walks])
    ends = {part.split('"')[0] for lane in shown["lanes"] for part in lane["svg"].split('data-end="')[1:]}
    assert ends == {f"{max(e.duration for e in walks):.6g}"}
    assert [lane["kind"] for lane in shown["lanes"]] == ["retained", "retained", "rejected"]
    assert [name for _, name in shown["legend"]] == [pair_label(pair) for pair in walks[0].contacts]


def test_nothing_to_show_is_no_chart():
    assert episode_timelines([]) == {"lanes": [], "legend": []}
