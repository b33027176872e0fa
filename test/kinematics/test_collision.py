# SPDX-License-Identifier: Apache-2.0
"""Distances of the robot's spheres: who is nearest, and what is excused when a contact is meant."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from supple.errors import UnknownNameError
from supple.geometry import pose_from_xyyaw
from supple.kinematics.collision import CollisionModel
from supple.kinematics.collision_spheres import LinkSpheres
from supple.kinematics.model import KinematicModel
from supple.kinematics.solids import Solid, Solids
from supple.robots import g1

ROBOT = g1()
HOME = ROBOT.joints.home
STANDING = pose_from_xyyaw(0.0, 0.0, 0.0, ROBOT.standing_height)
NOTHING = Solids(())


def hand(q=HOME, name="left_hand"):
    kinematics = KinematicModel(ROBOT)
    return kinematics.frame_poses(kinematics.configuration(STANDING, q), ROBOT.effector(name).frame)[0]


def slab(top, body="table"):
    """A plate with its top at a height in [m], on the outer side of the robot's left leg."""
    return Solid(body, "box", (0.3, 0.17, 0.02), pin.SE3(np.eye(3), np.array([0.3, 0.38, top - 0.02])))


def fingertips(collisions, base=STANDING):
    """How low the spheres of the left fingers reach in [m]."""
    bottom = collisions.at(base, HOME, NOTHING).centres[:, 2] - collisions.spheres.radii
    fingers = np.array([link.startswith("left_hand") for link in collisions.spheres.links])
    return bottom[fingers[collisions.spheres.link]].min()


def test_spheres_move_with_their_links(collisions):
    q = HOME.copy()
    q[ROBOT.joints.index("left_elbow_joint")] += 0.5
    before, after = (collisions.at(STANDING, joints, NOTHING).centres for joints in (HOME, q))
    moved = np.linalg.norm(after - before, axis=1) > 1e-9
    links = {collisions.spheres.links[i] for i in collisions.spheres.link[moved]}
    assert links == {link for link in collisions.spheres.links if link.startswith("left_") and _below_elbow(link)}
    shifted = collisions.at(STANDING * pin.SE3(np.eye(3), np.array([0.5, 0.0, 0.0])), HOME, NOTHING).centres
    np.testing.assert_allclose(shifted - before, np.broadcast_to([0.5, 0.0, 0.0], before.shape), atol=1e-12)


def _below_elbow(link):
    return "elbow" in link or "wrist" in link or "hand" in link


def test_the_home_posture_touches_nothing(collisions):
    nearest = collisions.nearest_own(collisions.at(STANDING, HOME, NOTHING))
    assert nearest.distance > 0.0
    assert collisions.nearest_scene(collisions.at(STANDING, HOME, NOTHING), NOTHING) is None


def test_a_forearm_in_the_belly_and_a_hand_in_the_table_are_named(collisions):
    q = HOME.copy()
    q[ROBOT.joints.index("left_shoulder_yaw_joint")] = -1.5
    q[ROBOT.joints.index("left_elbow_joint")] = 0.0
    own = collisions.nearest_own(collisions.at(STANDING, q, NOTHING))
    assert own.distance < -0.01
    assert {own.link, own.other} & {"torso_link", "pelvis"}
    assert any(_below_elbow(link) and link.startswith("left") for link in (own.link, own.other))
    solids = Solids([slab(hand().translation[2] + 0.02)])
    scene = collisions.nearest_scene(collisions.at(STANDING, HOME, solids), solids)
    assert scene.other == "table"
    assert scene.distance < -0.02


def test_links_of_one_hand_and_neighbours_are_no_collision(collisions):
    spheres = collisions.spheres
    met = {
        tuple(sorted((spheres.links[spheres.link[i]], spheres.links[spheres.link[j]])))
        for i, j in np.argwhere(collisions.meets).tolist()
    }
    assert ("left_hand_index_1_link", "left_hand_thumb_2_link") not in met
    assert ("left_elbow_link", "left_shoulder_yaw_link") not in met
    assert ("left_ankle_roll_link", "left_knee_link") not in met
    assert ("left_hand_index_1_link", "right_hand_index_1_link") in met
    assert ("left_elbow_link", "torso_link") in met
    assert ("left_ankle_roll_link", "right_ankle_roll_link") in met


def test_near_pairs_are_all_of_them_sorted_and_lead_apart(collisions):
    solids = Solids([slab(fingertips(collisions) - 0.02)])
    distances = collisions.at(STANDING, HOME, solids)
    pairs = collisions.near_pairs(distances, solids, 0.1)
    assert [pair.distance for pair in pairs] == sorted(pair.distance for pair in pairs)
    scene, own = [pair for pair in pairs if pair.other is None], [pair for pair in pairs if pair.other is not None]
    assert scene
    assert own
    assert min(pair.distance for pair in scene) == distances.scene.min()
    assert min(pair.distance for pair in own) == distances.own.min()
    clusters = {(collisions.cluster[pair.other], collisions.cluster[pair.sphere]) for pair in own}
    assert len(clusters) == len(own), "one pair for each two things"
    for pair in pairs:
        moved = distances.centres.copy()
        moved[pair.sphere] += 1e-3 * pair.away
        after = collisions.distances(moved, solids)
        now = after.scene[0, pair.sphere] if pair.other is None else after.own[pair.other, pair.sphere]
        assert now == pytest.approx(pair.distance + 1e-3, abs=1e-6)


def test_what_touches_at_the_start_is_excused_just_as_deep_and_no_deeper(collisions):
    solids = Solids([slab(fingertips(collisions) + 0.008)])
    start = collisions.at(STANDING, HOME, solids)
    assert start.scene.min() == pytest.approx(-0.008, abs=2e-3)
    allowance = collisions.touching(start)
    assert collisions.at(STANDING, HOME, solids, allowance).scene.min() == pytest.approx(0.0, abs=1e-12)
    lower = STANDING * pin.SE3(np.eye(3), np.array([0.0, 0.0, -0.01]))
    assert collisions.at(lower, HOME, solids, allowance).scene.min() == pytest.approx(-0.01, abs=1e-9)


def test_what_is_deeper_in_something_than_a_touch_stays_a_collision(collisions):
    solids = Solids([slab(fingertips(collisions) + 0.03)])
    allowance = collisions.touching(collisions.at(STANDING, HOME, solids))
    left = collisions.nearest_scene(collisions.at(STANDING, HOME, solids, allowance), solids)
    assert left.distance == pytest.approx(-0.015, abs=2e-3)


def test_what_a_hand_is_meant_to_press_on_is_excused_at_any_depth_for_that_hand_only(collisions):
    solids = Solids([slab(fingertips(collisions) + 0.06), slab(0.4, "shelf")])
    targets = {"left_hand": hand()}
    allowance = collisions.touching_at(STANDING, HOME, targets, solids, ["table"])
    row = [solid.body for solid in solids.solids].index("table")
    links = {collisions.spheres.links[i] for i in collisions.spheres.link[np.isinf(allowance.scene[row])]}
    assert "left_wrist_yaw_link" in links
    assert all(link.startswith(("left_hand", "left_wrist")) for link in links)
    assert np.isfinite(np.delete(allowance.scene, row, axis=0)).all()
    distances = collisions.at(STANDING, HOME, solids, allowance)
    assert distances.scene.min() > -0.01
    assert np.isfinite(distances.scene.min())
    with pytest.raises(UnknownNameError, match=r"available: shelf, table"):
        collisions.touching_at(STANDING, HOME, targets, solids, ["tabel"])


def test_what_the_hand_is_to_touch_at_its_target_is_excused_for_that_hand_only(collisions):
    target = pin.SE3(hand().rotation, hand().translation + np.array([0.1, 0.05, 0.02]))
    solids = Solids([slab(fingertips(collisions) + 0.035)])
    away = STANDING * pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.3]))
    allowance = collisions.touching_at(away, HOME, {"left_hand": target}, solids)
    links = {collisions.spheres.links[i] for i in collisions.spheres.link[allowance.scene[0] > 0.0]}
    assert links
    assert all(link.startswith(("left_hand", "left_wrist")) for link in links)
    # In the same place, fingers as they are, the hand may be; the spheres are those of the target exactly.
    there = target * hand().inverse() * STANDING
    hands = np.isin(collisions.cluster, collisions.cluster[collisions.spheres.link == _index(collisions)])
    now = collisions.at(there, HOME, solids, allowance)
    assert now.scene[0, hands].min() == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(UnknownNameError, match="left_hand"):
        collisions.touching_at(STANDING, HOME, {"left_hnd": target}, solids)


def _index(collisions):
    return collisions.spheres.links.index("left_wrist_yaw_link")


def test_two_hands_that_are_to_touch_each_other_are_excused(collisions):
    left = hand()
    right = pin.SE3(left.rotation, left.translation + np.array([0.0, -0.1, 0.0]))
    allowance = collisions.touching_at(STANDING, HOME, {"left_hand": left, "right_hand": right}, NOTHING)
    first, second = (
        np.array([link.startswith(side) for link in collisions.spheres.links]) for side in ("left", "right")
    )
    rows = np.ix_(first[collisions.spheres.link], second[collisions.spheres.link])
    assert allowance.own[rows].max() > 0.0
    apart = collisions.touching_at(STANDING, HOME, {"left_hand": left}, NOTHING)
    assert apart.own[rows].max() == 0.0


def test_a_link_that_the_robot_does_not_have_is_named():
    spheres = LinkSpheres(("tail",), np.array([0]), np.zeros((1, 3)), np.ones(1), 0.01)
    with pytest.raises(UnknownNameError, match="tail"):
        CollisionModel(ROBOT, spheres)
