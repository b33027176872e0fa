# SPDX-License-Identifier: Apache-2.0
"""Batches of whole-body configurations: as little moved as needed, every requirement met, and failures that say why."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from supple.errors import SettingError, StateError, UnknownNameError
from supple.geometry import pose_error, pose_from_xyyaw, xyyaw_of
from supple.kinematics.balance import SOLES, support_margin
from supple.kinematics.collision import Allowance
from supple.kinematics.ik_batch import STAGES, IkBatchSolver
from supple.kinematics.model import KinematicModel
from supple.kinematics.solids import Solid, Solids
from supple.kinematics.stance import Footing
from supple.robots import g1
from supple.robots.g1 import ANKLE_COUPLING, ARM_GROUPS, HAND_GROUPS, LEG_GROUPS, STANDING_WAIST_RANGE

ROBOT = g1()
JOINTS = ROBOT.joints
HOME = JOINTS.home
STANDING = pose_from_xyyaw(0.0, 0.0, 0.0, ROBOT.standing_height)
SQUAT = Footing(heights=(0.35, 0.78))
KINEMATICS = KinematicModel(ROBOT)


@pytest.fixture(scope="module")
def solver(collisions):
    return IkBatchSolver(ROBOT, collisions)


def poses(base, q, *names):
    return KINEMATICS.frame_poses(KINEMATICS.configuration(base, q), *names)


def hands(base, q):
    frames = {name: effector.frame for name, effector in ROBOT.effectors.items()}
    return dict(zip(frames, poses(base, q, *frames.values()), strict=True))


def shifted(pose, *offset):
    return pin.SE3(pose.rotation, pose.translation + np.array(offset))


def posture(rng, collisions, groups, spread=0.4):
    """Draw a posture round home that keeps away from limits and touches nothing."""
    lower, upper = JOINTS.lower.copy(), JOINTS.upper.copy()
    for name, interval in STANDING_WAIST_RANGE.items():
        lower[JOINTS.index(name)], upper[JOINTS.index(name)] = interval
    moving = JOINTS.group(*groups)
    while True:
        q = HOME.copy()
        q[moving] += 0.5 * spread * rng.uniform(-1.0, 1.0, len(moving)) * (upper - lower)[moving]
        q[moving] = np.clip(q[moving], 0.95 * lower[moving], 0.95 * upper[moving])
        if collisions.at(STANDING, q, Solids(())).own.min() > 0.005:
            return q


def low_targets(rng):
    """Both hands ahead and below what standing arms reach."""
    return {
        f"{side}_hand": pin.SE3(
            pin.rpy.rpyToMatrix(0.0, rng.uniform(0.0, 0.5), 0.0),
            np.array([rng.uniform(0.25, 0.35), sign * rng.uniform(0.2, 0.28), rng.uniform(0.35, 0.6)]),
        )
        for side, sign in (("left", 1.0), ("right", -1.0))
    }


def check(candidate, targets, collisions, footing=None, solids=None, allowance=None, least_margin=0.0):
    """Everything that was required, from the answer's base pose and joints alone."""
    base, q = candidate.T_world_base, candidate.q
    reached = hands(base, q)
    errors = np.array([pose_error(reached[name], target) for name, target in targets.items()])
    assert errors[:, 0].max() <= 2e-3 + 1e-9
    assert errors[:, 1].max() <= 0.02 + 1e-9
    assert candidate.position_error == pytest.approx(errors[:, 0].max(), abs=1e-6)
    assert candidate.orientation_error == pytest.approx(errors[:, 1].max(), abs=1e-6)
    joints = [group for group in candidate.freed if group != "base"]
    moved = JOINTS.group(*joints)
    still = np.setdiff1d(np.arange(len(JOINTS)), moved)
    np.testing.assert_array_equal(q[still], HOME[still])
    assert (q[moved] >= JOINTS.lower[moved] - 1e-9).all()
    assert (q[moved] <= JOINTS.upper[moved] + 1e-9).all()
    margin = support_margin(KINEMATICS, KINEMATICS.configuration(base, q))
    assert candidate.support_margin == pytest.approx(margin, abs=5e-4)
    assert margin >= least_margin - 2e-3
    distances = collisions.at(base, q, solids or Solids(()), allowance)
    assert distances.own.min() >= -1e-3 - 1e-9
    assert not distances.scene.size or distances.scene.min() >= -1e-3 - 1e-9
    if "base" not in candidate.freed:
        np.testing.assert_array_equal(base.homogeneous, STANDING.homogeneous)
    if footing is None or footing.heights is None:
        assert base.translation[2] == pytest.approx(ROBOT.standing_height, abs=1e-9)
        return
    if "left_leg" in candidate.freed:
        for side in ("left", "right"):
            pitch, roll = (q[JOINTS.index(f"{side}_ankle_{axis}_joint")] for axis in ("pitch", "roll"))
            assert pitch >= JOINTS.lower[JOINTS.index(f"{side}_ankle_pitch_joint")] + ANKLE_COUPLING * abs(roll) - 2e-3
        assert footing.heights[0] - 1e-9 <= base.translation[2] <= footing.heights[1] + 1e-9
        assert abs(base.rotation[2, 1]) < 1e-9, "the base keeps its roll"
        if not footing.step:
            for before, after in zip(poses(STANDING, HOME, *SOLES), poses(base, q, *SOLES), strict=True):
                distance, angle = pose_error(before, after)
                assert distance <= 1e-3
                assert angle <= 5e-3


@pytest.mark.parametrize("groups", [ARM_GROUPS, ("waist", *ARM_GROUPS)])
def test_targets_of_clear_postures_are_reached_and_every_requirement_is_met(solver, collisions, groups):
    rng = np.random.default_rng(1)
    missed = 0
    for _ in range(25):
        targets = hands(STANDING, posture(rng, collisions, groups))
        batch = solver.search(STANDING, HOME, targets, rng, least_margin=-0.05)
        assert len(batch.candidates) == (batch.group is not None)
        missed += batch.group is None
        for candidate in batch.candidates:
            check(candidate, targets, collisions, least_margin=-0.05)
    assert missed <= 1


def test_no_more_is_freed_than_needed(solver):
    at_home = hands(STANDING, HOME)
    expected = {
        "arms": {"left_hand": shifted(at_home["left_hand"], 0.05, 0.02, 0.1)},
        "arms + torso": {"left_hand": shifted(at_home["left_hand"], 0.33, 0.0, 0.1)},
        "arms + legs/base": {"left_hand": shifted(at_home["left_hand"], 0.6, 0.0, 0.1)},
    }
    for group, targets in expected.items():
        rng = np.random.default_rng(0)
        batch = solver.search(STANDING, HOME, targets, rng, footing=Footing(step=True), least_margin=-0.05)
        assert batch.group == group
        (candidate,) = batch.candidates
        assert (
            candidate.freed
            == {
                "arms": ("left_arm",),
                "arms + torso": ("left_arm", "waist"),
                "arms + legs/base": ("base", "left_arm"),
            }[group]
        )
        # What the earlier stages found lacking is what is told when they are all there is.
        if group == "arms + legs/base":
            there = solver.search(STANDING, HOME, targets, np.random.default_rng(0), least_margin=-0.05)
            assert there.group is None
            assert there.shortfall.requirement == "position"
            assert there.shortfall.subject == "left_hand"
    assert [*expected, "all"] == list(STAGES)


def test_all_is_freed_when_neither_torso_nor_legs_alone_do(solver, collisions):
    """A hand far out and down to one side of where the feet must stay: a squat with a turned, bent waist."""
    target = {"left_hand": pin.SE3(pin.rpy.rpyToMatrix(0.04, 0.34, 0.24), np.array([0.19, 0.69, 0.39]))}
    rng = np.random.default_rng(0)
    batch = solver.search(STANDING, HOME, target, rng, footing=SQUAT)
    assert batch.group == "all"
    assert set(batch.candidates[0].freed) == {"base", "waist", *LEG_GROUPS, *ARM_GROUPS}
    check(batch.candidates[0], target, collisions, SQUAT)


def test_a_squat_keeps_the_feet_where_they_are(solver, collisions):
    rng = np.random.default_rng(2)
    for _ in range(15):
        targets = low_targets(rng)
        batch = solver.search(STANDING, HOME, targets, rng, footing=SQUAT)
        assert batch.group in STAGES[2:], batch.shortfall
        (candidate,) = batch.candidates
        check(candidate, targets, collisions, SQUAT)
        assert candidate.T_world_base.translation[2] < 0.7


def test_a_squat_elsewhere_takes_both_feet_along(solver, collisions):
    rng = np.random.default_rng(3)
    footing = Footing(step=True, heights=(0.35, 0.78))
    for _ in range(5):
        there = pose_from_xyyaw(*rng.uniform(-0.5, 0.5, 2), rng.uniform(-0.5, 0.5))
        targets = {name: there * target for name, target in low_targets(rng).items()}
        batch = solver.search(STANDING, HOME, targets, rng, footing=footing)
        assert batch.candidates, batch.shortfall
        (candidate,) = batch.candidates
        check(candidate, targets, collisions, footing)
        left, right = poses(candidate.T_world_base, candidate.q, *SOLES)
        before = poses(STANDING, HOME, *SOLES)
        distance, angle = pose_error(before[0].actInv(before[1]), left.actInv(right))
        assert distance < 2e-3
        assert angle < 0.01
        for sole, old in zip((left, right), before, strict=True):
            assert sole.translation[2] == pytest.approx(old.translation[2], abs=1e-3)


def test_feet_can_be_given(solver, collisions):
    feet = tuple(pose_from_xyyaw(0.06, y, yaw) for y, yaw in ((0.16, 0.1), (-0.14, -0.1)))
    footing = Footing(heights=(0.5, 0.78), feet=feet)
    targets = {"right_hand": shifted(hands(STANDING, HOME)["right_hand"], 0.05, 0.0, -0.25)}
    batch = solver.search(STANDING, HOME, targets, np.random.default_rng(0), footing=footing)
    (candidate,) = batch.candidates
    for pose, foot in zip(poses(candidate.T_world_base, candidate.q, *SOLES), feet, strict=True):
        distance, angle = pose_error(pose, foot)
        assert distance <= 1e-3
        assert angle <= 5e-3


def test_several_candidates_differ_and_all_serve(solver, collisions):
    targets = {"left_hand": shifted(hands(STANDING, HOME)["left_hand"], 0.1, 0.05, 0.15)}
    batch = solver.search(STANDING, HOME, targets, np.random.default_rng(0), seeds=12, wanted=4)
    assert len(batch.candidates) == 4
    assert batch.tried <= 12
    for candidate in batch.candidates:
        check(candidate, targets, collisions)
    arm = JOINTS.group("left_arm")
    others = [np.abs(candidate.q[arm] - batch.candidates[0].q[arm]).max() for candidate in batch.candidates[1:]]
    assert min(others) > 0.02


def test_the_same_seed_gives_the_same_answer_to_the_last_bit(solver, collisions):
    targets = low_targets(np.random.default_rng(5))
    first = solver.search(STANDING, HOME, targets, np.random.default_rng(9), footing=SQUAT, wanted=2)
    solver.search(STANDING, HOME, low_targets(np.random.default_rng(6)), np.random.default_rng(1), footing=SQUAT)
    again = IkBatchSolver(ROBOT, collisions).search(
        STANDING, HOME, targets, np.random.default_rng(9), footing=SQUAT, wanted=2
    )
    assert len(first.candidates) == len(again.candidates) > 0
    for one, other in zip(first.candidates, again.candidates, strict=True):
        np.testing.assert_array_equal(one.q, other.q)
        np.testing.assert_array_equal(one.T_world_base.homogeneous, other.T_world_base.homogeneous)


# -- collisions ------------------------------------------------------------------------------------------------------


def test_a_configuration_in_the_way_is_left_for_another_one(collisions, solver):
    """Of the arm's redundant postures those clear of an obstacle at the elbow are found."""
    targets = {"left_hand": shifted(hands(STANDING, HOME)["left_hand"], 0.0, 0.0, 0.1)}
    free = solver.search(STANDING, HOME, targets, np.random.default_rng(0))
    elbow = poses(free.candidates[0].T_world_base, free.candidates[0].q, "left_elbow_link")[0]
    # The forearm's own place in the free answer, less what the start touches.
    solids = Solids([Solid("pillar", "sphere", (0.02, 0.0, 0.0), shifted(elbow, 0.0, 0.05, -0.03))])
    nothing = Allowance(np.zeros((1, len(collisions.spheres.radii))), np.zeros(collisions.meets.shape))
    blocked = collisions.at(free.candidates[0].T_world_base, free.candidates[0].q, solids)
    assert blocked.scene.min() < -2e-3
    found = solver.search(STANDING, HOME, targets, np.random.default_rng(0), solids=solids, allowance=nothing, seeds=8)
    assert found.candidates, found.shortfall
    check(found.candidates[0], targets, collisions, solids=solids, allowance=nothing)


def test_a_contact_that_is_meant_is_no_collision(collisions, solver):
    """A palm on a table: refused without excuse, fine with it."""
    target = shifted(hands(STANDING, HOME)["left_hand"], 0.05, 0.05, 0.0)
    here = collisions.at(STANDING, HOME, Solids(())).centres[:, 2] - collisions.spheres.radii
    fingers = [link.startswith("left_hand") for link in collisions.spheres.links]
    top = here[np.array(fingers)[collisions.spheres.link]].min() + 0.012
    table = Solids([Solid("table", "box", (0.2, 0.15, 0.02), pin.SE3(np.eye(3), np.array([0.35, 0.38, top - 0.02])))])
    targets = {"left_hand": target}
    excused = solver.search(STANDING, HOME, targets, np.random.default_rng(0), solids=table)
    assert excused.candidates, excused.shortfall
    nothing = Allowance(np.zeros((1, len(collisions.spheres.radii))), np.zeros(collisions.meets.shape))
    refused = solver.search(STANDING, HOME, targets, np.random.default_rng(0), solids=table, allowance=nothing)
    assert refused.group is None
    assert refused.shortfall.requirement == "scene_collision"
    assert "table" in refused.shortfall.subject
    assert 0.0 < refused.shortfall.amount < 0.05


def test_a_hand_that_is_sent_into_something_fails_on_it_unless_it_is_to_press_there(solver):
    target = hands(STANDING, HOME)["left_hand"]
    place = target.translation + np.array([0.05, 0.11, 0.0])
    block = Solids([Solid("block", "box", (0.1, 0.1, 0.1), pin.SE3(np.eye(3), place))])
    batch = solver.search(STANDING, shifted_arms(), {"left_hand": target}, np.random.default_rng(0), solids=block)
    assert batch.group is None
    assert batch.shortfall.requirement == "scene_collision"
    assert batch.shortfall.subject.endswith("and block")
    assert str(batch.shortfall).endswith("cm")
    pressing = solver.search(
        STANDING, shifted_arms(), {"left_hand": target}, np.random.default_rng(0), solids=block, contacts=["block"]
    )
    assert pressing.candidates, pressing.shortfall


def shifted_arms():
    q = HOME.copy()
    q[JOINTS.index("left_shoulder_roll_joint")] = 1.2
    return q


def test_a_hand_in_the_own_chest_is_a_self_collision(solver):
    chest = poses(STANDING, HOME, "torso_link")[0]
    target = {"left_hand": pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, -0.8), chest.translation + np.array([0.0, 0.0, 0.15]))}
    batch = solver.search(STANDING, HOME, target, np.random.default_rng(0))
    assert batch.group is None
    assert batch.shortfall.requirement == "self_collision"
    assert "torso_link" in batch.shortfall.subject
    assert "left_hand" in batch.shortfall.subject
    assert "overlap by" in str(batch.shortfall)
    assert IkBatchSolver(ROBOT).search(STANDING, HOME, target, np.random.default_rng(0)).candidates


# -- failures --------------------------------------------------------------------------------------------------------


def test_a_target_out_of_reach_tells_by_how_much(solver):
    target = {"right_hand": pin.SE3(np.eye(3), np.array([2.0, -0.2, 1.0]))}
    batch = solver.search(STANDING, HOME, target, np.random.default_rng(0))
    assert batch.group is None
    assert not batch.candidates
    assert batch.shortfall.requirement == "position"
    assert batch.shortfall.subject == "right_hand"
    assert 1.0 < batch.shortfall.amount < 1.6
    assert "right_hand ends 1" in str(batch.shortfall)


def test_a_balance_that_nobody_can_keep_is_told(solver):
    target = {"left_hand": shifted(hands(STANDING, HOME)["left_hand"], 0.05, 0.0, 0.1)}
    batch = solver.search(STANDING, HOME, target, np.random.default_rng(0), footing=SQUAT, least_margin=0.3)
    assert batch.group is None
    assert batch.shortfall.requirement == "balance"
    assert 0.1 < batch.shortfall.amount < 0.35
    assert "centre of mass" in str(batch.shortfall)


def test_balance_is_kept_where_reaching_alone_would_lose_it(solver, collisions):
    """Far ahead on given feet: the base goes back while the hands go forward."""
    targets = {name: shifted(pose, 0.3, 0.0, -0.3) for name, pose in hands(STANDING, HOME).items()}
    careless = solver.search(STANDING, HOME, targets, np.random.default_rng(0), footing=SQUAT, least_margin=-1.0)
    careful = solver.search(STANDING, HOME, targets, np.random.default_rng(0), footing=SQUAT, least_margin=0.02)
    assert careless.candidates
    assert careful.candidates, careful.shortfall
    assert careless.candidates[0].support_margin < 0.02 <= careful.candidates[0].support_margin + 1e-9
    check(careful.candidates[0], targets, collisions, SQUAT, least_margin=0.02)


def test_fingers_and_the_other_arm_are_left_alone(solver):
    start = HOME.copy()
    still = JOINTS.group(*HAND_GROUPS, "right_arm")
    start[still] += 0.03
    target = {"left_hand": shifted(hands(STANDING, HOME)["left_hand"], 0.1, 0.0, 0.1)}
    (candidate,) = solver.search(STANDING, start, target, np.random.default_rng(0)).candidates
    np.testing.assert_array_equal(candidate.q[still], start[still])


def test_a_place_is_found_for_a_target_across_the_room(solver):
    target = {"left_hand": pin.SE3(np.eye(3), np.array([2.0, 1.0, 0.9]))}
    batch = solver.search(STANDING, HOME, target, np.random.default_rng(0), footing=Footing(step=True))
    (candidate,) = batch.candidates
    assert "base" in candidate.freed
    assert np.linalg.norm(xyyaw_of(candidate.T_world_base)[:2] - [2.0, 1.0]) < 0.8


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(solver, value):
    good = hands(STANDING, HOME)["left_hand"]
    rng = np.random.default_rng(0)
    with pytest.raises(StateError, match="left_hand"):
        solver.search(STANDING, HOME, {"left_hand": shifted(good, value, 0.0, 0.0)}, rng)
    q = HOME.copy()
    q[JOINTS.index("left_elbow_joint")] = value
    with pytest.raises(StateError, match="left_elbow_joint"):
        solver.search(STANDING, q, {"left_hand": good}, rng)
    with pytest.raises(StateError, match="posture"):
        solver.search(STANDING, HOME, {"left_hand": good}, rng, posture=q)


def test_unknown_hands_and_empty_searches_are_named(solver):
    good = hands(STANDING, HOME)["left_hand"]
    with pytest.raises(UnknownNameError, match=r"available: .*left_hand"):
        solver.search(STANDING, HOME, {"tail": good}, np.random.default_rng(0))
    with pytest.raises(SettingError, match="seeds 0"):
        solver.search(STANDING, HOME, {"left_hand": good}, np.random.default_rng(0), seeds=0)
