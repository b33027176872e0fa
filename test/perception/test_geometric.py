# SPDX-License-Identifier: Apache-2.0
"""Masks from colour and geometry, against the simulator's: objects apart, hands left out, nothing filled in."""

from __future__ import annotations

from pathlib import Path

import cv2
import mujoco
import numpy as np
import pytest

from supple.episodes.seed_store import load_seed
from supple.errors import FrameError, SettingError
from supple.perception.frames import Intrinsics, RgbdFrame
from supple.perception.geometric import GeometricMasks, ObjectModel
from supple.sim.camera import Camera
from supple.tasks import Environment, task_named

ROOT = Path(__file__).resolve().parents[2]
CARDBOARD, RED, BLUE, WOOD, DARK = (184, 135, 84), (204, 38, 31), (51, 140, 191), (199, 161, 115), (51, 51, 56)
BOX = ObjectModel((CARDBOARD,), (0.16, 0.22, 0.16))
CUBE = ObjectModel((RED,), (0.06, 0.06, 0.06))
BIG_CUBE = ObjectModel((RED,), (0.12, 0.12, 0.12))
CAN = ObjectModel((BLUE,), (0.08, 0.08, 0.12))
TABLE = ObjectModel((WOOD,), support=True)
EVERYTHING = {"box": BOX, "red": CUBE, "big_red": BIG_CUBE, "can": CAN, "table": TABLE}


def score(mask: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """Return which share of a mask is right and which share of the truth it has."""
    both = np.sum(mask & truth)
    return both / mask.sum(), both / truth.sum()


def check(masks, tabletop, names, precision=0.95, recall=0.9):
    for name in names:
        assert name in masks, f"{name} is not seen"
        got = score(masks[name], tabletop.truth(name))
        assert got[0] >= precision, f"{name}: {got}"
        assert got[1] >= recall, f"{name}: {got}"
    total = sum(mask.astype(int) for mask in masks.values())
    assert total.max() == 1


@pytest.mark.parametrize("seed", range(6))
def test_objects_on_a_table_are_found_wherever_they_stand(tabletop, seed):
    rng = np.random.default_rng(seed)
    places = [(x, y) for x in (0.55, 0.85) for y in (-0.38, 0.0, 0.38)]
    for name, place in zip(("box", "red", "big_red", "can"), rng.permutation(places), strict=False):
        tabletop.put(name, *(place + rng.uniform(-0.04, 0.04, 2)), rng.uniform(-np.pi, np.pi))
    masks = GeometricMasks(EVERYTHING).masks(tabletop.frame())
    check(masks, tabletop, ["box", "red", "big_red", "can"])
    check(masks, tabletop, ["table"], 0.98, 0.85)


@pytest.mark.parametrize("seed", range(3))
def test_noise_and_missing_depth_cost_little(tabletop, seed):
    rng = np.random.default_rng(seed)
    for name, place in {"box": (0.6, 0.0), "red": (0.6, -0.3), "big_red": (0.85, 0.3), "can": (0.55, 0.3)}.items():
        tabletop.put(name, *place, rng.uniform(-np.pi, np.pi))
    frame = tabletop.frame(rng)
    masks = GeometricMasks(EVERYTHING).masks(frame)
    check(masks, tabletop, ["box", "red", "big_red", "can"], 0.94, 0.85)
    # A speck without depth in the middle of an object is still the object.
    holes = np.isnan(frame.depth)
    assert holes[masks["box"]].sum() > 0.01 * masks["box"].sum()


@pytest.mark.parametrize(("missing", "recall"), [(0.4, 0.93), (0.6, 0.9), (0.8, 0.6)])
def test_depth_may_be_missing_over_most_of_the_picture(tabletop, missing, recall):
    tabletop.put("box", 0.6, 0.0, 0.4)
    tabletop.put("can", 0.6, 0.3)
    frame = tabletop.frame()
    depth = frame.depth.copy()
    depth[np.random.default_rng(0).random(depth.shape) < missing] = np.nan
    masks = GeometricMasks(EVERYTHING).masks(RgbdFrame(0, frame.rgb, depth, frame.intrinsics))
    check(masks, tabletop, ["box"], 0.97, recall)
    check(masks, tabletop, ["can", "table"], 0.97, recall - 0.2)


@pytest.mark.parametrize("missing", [0.4, 0.7])
def test_blotches_without_depth_cut_nothing_apart(tabletop, missing):
    tabletop.put("box", 0.6, 0.0, 0.4)
    frame = tabletop.frame()
    soft = cv2.GaussianBlur(np.random.default_rng(1).standard_normal(frame.shape).astype(np.float32), (0, 0), 6.0)
    depth = np.where(soft < np.quantile(soft, missing), np.float32(np.nan), frame.depth)
    masks = GeometricMasks(EVERYTHING).masks(RgbdFrame(0, frame.rgb, depth, frame.intrinsics))
    for name, least in (("box", 0.85), ("table", 0.75)):
        truth, measured = tabletop.truth(name), np.isfinite(depth)
        assert score(masks[name], truth)[0] > 0.97
        assert score(masks[name] & measured, truth & measured)[1] > least


def test_an_object_that_is_not_there_has_no_mask(tabletop):
    tabletop.put("can", 0.6, 0.0)
    assert set(GeometricMasks(EVERYTHING).masks(tabletop.frame())) == {"can", "table"}


def test_cubes_of_one_colour_are_told_apart_by_size(tabletop):
    models = {"big_red": BIG_CUBE, "red": CUBE}
    for first, second in ((0.2, -0.2), (-0.2, 0.2)):
        tabletop.put("red", 0.6, first)
        tabletop.put("big_red", 0.7, second)
        check(GeometricMasks(models).masks(tabletop.frame()), tabletop, ["red", "big_red"])


def test_what_is_too_large_for_an_object_is_not_taken_for_it(tabletop):
    tabletop.put("beam", 0.7, 0.0, 0.7)
    tabletop.put("big_red", 0.6, 0.35)
    assert GeometricMasks({"box": BOX, "red": CUBE}).masks(tabletop.frame()) == {}


def test_a_hand_that_touches_an_object_is_not_part_of_it(tabletop):
    tabletop.put("box", 0.6, 0.0)
    tabletop.lay("hand", (0.6, 0.126, 0.83), "x")
    masks = GeometricMasks(EVERYTHING).masks(tabletop.frame())
    check(masks, tabletop, ["box"])
    assert not np.any(masks["box"] & tabletop.truth("hand"))


def test_an_object_behind_a_finger_keeps_both_halves_and_nothing_is_filled_in(tabletop):
    tabletop.put("box", 0.6, 0.0)
    tabletop.lay("hand", (0.5, 0.0, 0.98), "x")
    frame = tabletop.frame()
    truth = tabletop.truth("box")
    columns = np.flatnonzero(truth.any(axis=0))
    middle = (columns[0] + columns[-1]) // 2
    left, right = truth.copy(), truth.copy()
    left[:, middle:], right[:, :middle] = False, False
    mask = GeometricMasks({"box": BOX}).masks(frame)["box"]
    assert np.sum(tabletop.truth("hand")[:, columns[0] : columns[-1]]) > 1000
    assert score(mask, truth)[0] >= 0.98
    assert min(np.sum(mask & half) / np.sum(half) for half in (left, right)) > 0.9


def test_two_alike_things_with_the_table_between_them_are_not_joined(tabletop):
    tabletop.put("red", 0.6, 0.04)
    tabletop.put("other_red", 0.6, -0.04)
    mask = GeometricMasks({"red": ObjectModel((RED,), (0.15, 0.15, 0.15))}).masks(tabletop.frame())["red"]
    shares = sorted(np.sum(mask & tabletop.truth(name)) / np.sum(tabletop.truth(name)) for name in ("red", "other_red"))
    assert shares[0] == 0.0
    assert shares[1] > 0.95


def test_an_object_known_by_size_alone_is_found_without_the_hand(tabletop):
    tabletop.put("box", 0.65, -0.1)
    tabletop.lay("hand", (0.5, 0.3, 0.9), "x")
    model = {"box": ObjectModel(size=(0.16, 0.22, 0.16))}
    check(GeometricMasks(model, ignored=(DARK,)).masks(tabletop.frame()), tabletop, ["box"], 0.9, 0.95)


def test_an_object_known_by_colour_alone_is_its_largest_patch(tabletop):
    tabletop.put("red", 0.6, 0.2)
    tabletop.put("big_red", 0.7, -0.2)
    masks = GeometricMasks({"big_red": ObjectModel((RED,))}).masks(tabletop.frame())
    check(masks, tabletop, ["big_red"])


def test_up_tells_a_support_from_a_wall(tabletop):
    tabletop.put("can", 0.6, 0.0)
    frame = tabletop.frame()
    source = GeometricMasks({"table": ObjectModel(support=True), "can": CAN})
    source.up = tabletop.up
    check(source.masks(frame), tabletop, ["table"], 0.95, 0.85)
    # With gravity along the table there is no level surface.
    source.up = np.array([1.0, 0.0, 0.0])
    assert set(source.masks(frame)) == {"can"}


def test_a_support_of_another_size_or_colour_is_not_taken(tabletop):
    frame = tabletop.frame()
    assert GeometricMasks({"table": ObjectModel(size=(0.3, 0.4, 0.05), support=True)}).masks(frame) == {}
    assert GeometricMasks({"table": ObjectModel((RED,), support=True)}).masks(frame) == {}


def test_the_same_frame_gives_the_same_masks(tabletop):
    tabletop.put("box", 0.6, 0.0, 0.3)
    frame = tabletop.frame(np.random.default_rng(0))
    first, second = GeometricMasks(EVERYTHING), GeometricMasks(EVERYTHING)
    first.masks(tabletop.frame())
    one, two = first.masks(frame), second.masks(frame)
    assert list(one) == list(two)
    assert all(np.array_equal(one[name], two[name]) for name in one)


def test_without_depth_nothing_is_seen(tabletop):
    tabletop.put("box", 0.6, 0.0)
    frame = tabletop.frame()
    blind = RgbdFrame(0, frame.rgb, np.full_like(frame.depth, np.nan), frame.intrinsics)
    assert GeometricMasks(EVERYTHING).masks(blind) == {}
    assert GeometricMasks({"box": BOX}, near=2.0, far=2.5).masks(frame) == {}


def test_odd_sizes_are_no_matter(tabletop):
    tabletop.put("box", 0.6, 0.0)
    frame, k = tabletop.frame(), tabletop.intrinsics
    rows, columns = np.s_[:479], np.s_[:637]
    cut = RgbdFrame(
        0, frame.rgb[rows, columns], frame.depth[rows, columns], Intrinsics(k.fx, k.fy, k.cx, k.cy, 637, 479)
    )
    mask = GeometricMasks(EVERYTHING).masks(cut)["box"]
    assert mask.shape == (479, 637)
    assert min(score(mask, tabletop.truth("box")[rows, columns])) > 0.95


def test_a_frame_too_small_is_refused():
    tiny = RgbdFrame(0, np.zeros((4, 4, 3), np.uint8), np.ones((4, 4), np.float32), Intrinsics(9, 9, 2, 2, 4, 4))
    with pytest.raises(FrameError, match="4 x 4 pixels are too few"):
        GeometricMasks(EVERYTHING).masks(tiny)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ObjectModel(), "needs a colour or a size"),
        (lambda: ObjectModel(size=(0.1, 0.0, 0.1)), "three extents"),
        (lambda: ObjectModel(size=(100.0, 231.0, 168.0)), "three extents of 0 to 10 m"),
        (lambda: ObjectModel(((0, 0, 0),)), "not black"),
        (lambda: ObjectModel(((300, 0, 0),)), "0 to 255"),
        (lambda: ObjectModel((RED,), tolerance=0.0), "tolerance"),
        (lambda: GeometricMasks({}), "no object"),
        (lambda: GeometricMasks({"box": BOX}, near=1.0, far=0.5), "near"),
    ],
)
def test_models_that_make_no_sense_are_refused(make, said):
    with pytest.raises(SettingError, match=said):
        make()


@pytest.fixture(scope="module")
def demonstration():
    """The recorded demonstration of box_lift as the robot's head camera sees it."""
    episode = load_seed(ROOT / "seeds/box_lift.hdf5").episode
    environment = Environment(task_named("box_lift"), visual=True)
    environment.restore(episode.initial)
    with Camera(environment.world.model, "camera", 640, 480) as camera:
        yield episode, environment.world, camera


@pytest.mark.parametrize("part", [0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0])
def test_box_and_table_are_found_from_walking_up_to_lifting(demonstration, part):
    episode, world, camera = demonstration
    state = episode.states[round(part * episode.length)]
    mujoco.mj_setState(world.model, world.data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    mujoco.mj_forward(world.model, world.data)
    drawn, labels = camera.render(world.data), camera.labels(world.data, ["box", "table", "pelvis"])
    depth = np.where(np.isfinite(drawn.depth), drawn.depth, np.nan).astype(np.float32)
    frame = RgbdFrame(0, drawn.rgb, depth, Intrinsics(*camera.intrinsics, 640, 480))
    box = ObjectModel((CARDBOARD, (217, 199, 153)), (0.172, 0.231, 0.168))
    masks = GeometricMasks({"box": box, "table": TABLE}).masks(frame)
    precision, recall = score(masks["box"], labels == 1)
    assert precision > 0.96
    assert recall > 0.95
    # The truth includes legs and screen; the support is the top alone.
    assert score(masks["table"], labels == 2)[0] > 0.99
    assert not np.any(masks["table"] & (labels == 3))
