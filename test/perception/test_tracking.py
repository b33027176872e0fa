# SPDX-License-Identifier: Apache-2.0
"""Names that stay on their objects, and occlusion that is said instead of filled in."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from drawn import CAMERA, INTERVAL_NS, Patch, draw
from hypothesis import given, settings
from hypothesis import strategies as st

from supple.errors import FrameError, SettingError
from supple.perception.frames import RgbdFrame
from supple.perception.geometric import GeometricMasks, ObjectModel
from supple.perception.tracking import MaskTracker, TrackedMasks, Visibility

RED, BLUE = (200, 60, 50), (40, 90, 200)
LEFT, RIGHT = Patch(60, 90), Patch(200, 90)


def run(tracker, scenes, rename=lambda index, masks: masks):
    """Track a list of scenes and return the tracks of each frame."""
    tracks = []
    for index, patches in enumerate(scenes):
        frame, masks = draw(patches, index)
        tracks.append(tracker.update(frame, rename(index, {n: m for n, m in masks.items() if m.any()})))
    return tracks


def test_whole_objects_are_seen_whole():
    tracks = run(MaskTracker(), [{"a": LEFT, "b": RIGHT}] * 3)
    frame, masks = draw({"a": LEFT, "b": RIGHT})
    for seen in tracks:
        assert {name: (t.visibility, t.visible_fraction) for name, t in seen.items()} == {
            "a": (Visibility.SEEN, 1.0),
            "b": (Visibility.SEEN, 1.0),
        }
        assert all(np.array_equal(seen[name].mask, masks[name]) for name in masks)
    rows, columns = np.nonzero(masks["a"])
    middle = [(columns.mean() - CAMERA.cx) / CAMERA.fx, (rows.mean() - CAMERA.cy) / CAMERA.fy, 1.0]
    assert tracks[-1]["a"].position == pytest.approx(middle, abs=0.01)
    assert tracks[-1]["a"].seen_ns == frame.stamp_ns + 2 * INTERVAL_NS


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.booleans(), min_size=3, max_size=12),
    st.tuples(st.integers(-8, 8), st.integers(-6, 6)),
    st.tuples(st.integers(-8, 8), st.integers(-6, 6)),
    st.booleans(),
)
def test_names_stay_where_they_were_however_the_source_swaps_them(swaps, step_a, step_b, same_color):
    scenes = []
    for index in range(len(swaps) + 1):
        a = replace(LEFT, column=60 + index * step_a[0] // 2, row=90 + index * step_a[1])
        b = replace(RIGHT, column=200 + index * step_b[0] // 2, row=90 + index * step_b[1])
        scenes.append({"a": a, "b": b if same_color else replace(b, color=BLUE)})

    def rename(index, masks):
        other = {"a": "b", "b": "a"}
        return {other[name]: mask for name, mask in masks.items()} if index and swaps[index - 1] else masks

    tracker = MaskTracker()
    for index, tracks in enumerate(run(tracker, scenes, rename)):
        _, truth = draw(scenes[index])
        assert all(np.array_equal(tracks[name].mask, truth[name]) for name in ("a", "b"))
    assert tracker.renamed == 2 * sum(swaps)
    assert tracker.rejected == 0


def test_a_name_given_to_the_other_object_does_not_jump_there():
    def rename(index, masks):
        # A hand covers a, and the source calls b by its name.
        return {"a": masks["b"]} if index == 2 else masks

    tracks = run(MaskTracker(), [{"a": LEFT, "b": RIGHT}] * 4, rename)
    _, truth = draw({"a": LEFT, "b": RIGHT})
    assert tracks[2]["a"].mask is None
    assert (tracks[2]["a"].visibility, tracks[2]["a"].visible_fraction) == (Visibility.OCCLUDED, 0.0)
    assert np.array_equal(tracks[2]["b"].mask, truth["b"])
    assert np.array_equal(tracks[3]["a"].mask, truth["a"])


def test_a_mask_that_turns_up_elsewhere_is_given_to_none_until_the_object_is_lost():
    tracker = MaskTracker(lost_after=0.3)
    far = replace(LEFT, column=230, row=20)
    tracks = run(tracker, [{"a": LEFT}] * 2 + [{"a": far}] * 8)
    states = [seen["a"].visibility for seen in tracks]
    assert states[:2] == [Visibility.SEEN] * 2
    assert states[2:6] == [Visibility.OCCLUDED] * 4
    assert states[6:] == [Visibility.SEEN] * 4
    assert tracker.rejected == 4
    assert np.array_equal(tracks[-1]["a"].mask, draw({"a": far})[1]["a"])


def test_a_lost_object_is_not_found_again_in_something_of_other_looks():
    scenes = [{"a": LEFT}] * 2 + [{}] * 8 + [{"a": replace(LEFT, color=BLUE)}] * 2 + [{"a": LEFT}]
    states = [seen["a"].visibility for seen in run(MaskTracker(lost_after=0.3), scenes)]
    assert states[-4:] == [Visibility.LOST] * 3 + [Visibility.SEEN]
    assert states[2] == Visibility.OCCLUDED


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_what_is_hidden_is_reported_and_not_filled_in(share):
    hidden = round(share * LEFT.width)
    bar = Patch(60, 60, hidden, 120, depth=0.6, color=(70, 70, 75))
    scenes = [{"a": LEFT}, {"a": LEFT, "bar": bar}, {"a": LEFT}]
    tracks = run(MaskTracker(), scenes, lambda index, masks: {"a": masks["a"]})
    seen = tracks[1]["a"]
    assert seen.visible_fraction == pytest.approx(1.0 - hidden / LEFT.width)
    assert seen.visibility == Visibility.OCCLUDED
    assert np.array_equal(seen.mask, draw(scenes[1])[1]["a"])
    assert (tracks[2]["a"].visibility, tracks[2]["a"].visible_fraction) == (Visibility.SEEN, 1.0)


def test_what_the_pictures_edge_cuts_off_counts_as_hidden():
    scenes = [{"a": replace(LEFT, column=column)} for column in (10, 0, -15, -30)]
    fractions = [seen["a"].visible_fraction for seen in run(MaskTracker(), scenes)]
    assert fractions == pytest.approx([1.0, 1.0, 0.75, 0.5])


def test_a_fraction_of_what_was_never_seen_whole_is_unknown():
    bar = Patch(50, 60, 30, 120, depth=0.6, color=(70, 70, 75))
    tracks = run(MaskTracker(), [{"a": LEFT, "bar": bar}, {"a": LEFT}], lambda _, masks: {"a": masks["a"]})
    assert math.isnan(tracks[0]["a"].visible_fraction)
    assert tracks[0]["a"].visibility == Visibility.SEEN
    assert tracks[1]["a"].visible_fraction == 1.0


def test_coming_nearer_hides_nothing_and_uncovers_nothing():
    bar = Patch(0, 0, 1, 1)
    near = Patch(40, 70, 120, 100, depth=0.5)
    cover = Patch(40, 70, 60, 100, depth=0.3, color=(70, 70, 75))
    scenes = [{"a": Patch(70, 95, 60, 50, depth=1.0), "bar": bar}, {"a": near, "bar": cover}]
    tracks = run(MaskTracker(max_speed=20.0, reach=1.0), scenes, lambda _, masks: {"a": masks["a"]})
    # Half of what is now four times as large in pixels.
    assert tracks[1]["a"].visible_fraction == pytest.approx(0.5)


def test_a_jump_back_of_the_clock_forgets_everything():
    tracker = MaskTracker()
    run(tracker, [{"a": LEFT, "b": RIGHT}] * 3)
    frame, masks = draw({"a": replace(LEFT, column=200)}, 1)
    tracks = tracker.update(frame, masks)
    assert list(tracks) == ["a"]
    assert tracks["a"].visibility == Visibility.SEEN
    assert tracker.resets == 1


def test_a_mask_without_depth_places_nothing():
    tracker = MaskTracker()
    run(tracker, [{"a": LEFT}] * 2)
    frame, masks = draw({"a": LEFT}, 2)
    blind = RgbdFrame(frame.stamp_ns, frame.rgb, np.full_like(frame.depth, np.nan), CAMERA)
    track = tracker.update(blind, masks)["a"]
    assert (track.visibility, track.mask) == (Visibility.OCCLUDED, None)


def test_masks_that_do_not_fit_are_refused_and_change_nothing():
    tracker = MaskTracker()
    run(tracker, [{"a": LEFT}] * 2)
    frame, masks = draw({"a": LEFT}, 2)
    with pytest.raises(FrameError, match=r"mask\.a"):
        tracker.update(frame, {"a": masks["a"][:-1]})
    assert tracker.update(frame, masks)["a"].visibility == Visibility.SEEN


@pytest.mark.parametrize("name", ["max_speed", "margin", "reach", "lost_after", "whole"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_settings_out_of_range_are_refused(name, value):
    with pytest.raises(SettingError, match=name):
        MaskTracker(**{name: value})


def test_twins_keep_their_names_when_one_is_hidden(tabletop):
    twin = ObjectModel(((204, 38, 31),), (0.06, 0.06, 0.06))
    source = TrackedMasks(GeometricMasks({"first": twin, "second": twin}))
    tabletop.put("red", 0.6, 0.2)
    tabletop.put("other_red", 0.6, -0.2)
    before = source.masks(tabletop.frame())
    owner = {name: max(("red", "other_red"), key=lambda body: np.sum(mask & tabletop.truth(body)))
             for name, mask in before.items()}  # fmt: skip
    assert sorted(owner.values()) == ["other_red", "red"]
    for hidden in ("red", "other_red"):
        y = 0.2 if hidden == "red" else -0.2
        tabletop.put("box", 0.45, y, above=0.05)
        masks = source.masks(tabletop.frame())
        assert not tabletop.truth(hidden).any()
        gone = next(name for name, body in owner.items() if body == hidden)
        (kept,) = set(owner) - {gone}
        assert set(masks) == {kept}
        assert np.sum(masks[kept] & tabletop.truth(owner[kept])) > 0.9 * masks[kept].sum()
        assert source.tracks[gone].visibility == Visibility.OCCLUDED
        tabletop.put("box", 0.0, 0.0, above=-2.0)
        back = source.masks(tabletop.frame())
        assert all(np.sum(back[name] & tabletop.truth(owner[name])) > 0.9 * back[name].sum() for name in owner)
