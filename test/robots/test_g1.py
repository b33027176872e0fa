# SPDX-License-Identifier: Apache-2.0
"""The G1's table against the vendor's MJCF and URDF and against the walking policy that was trained on it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import mujoco
import numpy as np
import onnxruntime as ort
import pytest

from supple.errors import UnknownNameError
from supple.robots import ActionKind, g1, robot_named
from supple.robots.assets import g1_mjcf, g1_policy
from supple.robots.g1 import STANDING_WAIST_RANGE

ROBOT = g1()
JOINTS = ROBOT.joints
BODY = JOINTS.names[:29]


@pytest.fixture(scope="module")
def vendor():
    """The vendor's MJCF as it is, with the floor that its contact pairs want."""
    spec = mujoco.MjSpec.from_file(str(g1_mjcf()))
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.05])
    return spec.compile()


@pytest.fixture(scope="module")
def limits():
    """Limit elements of the URDF's moving joints, by joint."""
    root = ET.parse(ROBOT.urdf).getroot()
    return {j.get("name"): j.find("limit") for j in root.iter("joint") if j.get("type") in ("revolute", "continuous")}


@pytest.fixture(scope="module", params=["ppo", "fastsac"])
def metadata(request):
    session = ort.InferenceSession(str(g1_policy(request.param)), providers=["CPUExecutionProvider"])
    return {k: json.loads(v) for k, v in session.get_modelmeta().custom_metadata_map.items() if v[0] in "[{"}


def test_body_joints_stand_in_the_order_of_mjcf_and_actuators(vendor):
    joints = [vendor.joint(i).name for i in range(vendor.njnt) if vendor.jnt_type[i] != mujoco.mjtJoint.mjJNT_FREE]
    assert tuple(joints) == BODY
    assert tuple(vendor.actuator(i).name for i in range(vendor.nu)) == BODY


def test_body_joints_stand_in_the_order_of_the_policy(metadata):
    assert tuple(metadata["dof_names"]) == BODY


def test_the_urdf_moves_exactly_the_joints_of_the_table(limits):
    assert set(limits) == set(JOINTS.names)
    assert tuple(name for name in limits if name in BODY) == BODY


def test_position_and_velocity_limits_are_the_urdf_s(limits):
    for row in JOINTS.joints:
        stated = limits[row.name]
        assert (row.lower, row.upper) == pytest.approx(
            (float(stated.get("lower")), float(stated.get("upper"))), abs=1e-9
        )
        assert row.velocity == float(stated.get("velocity"))


def test_torque_limits_are_the_urdf_s_or_those_of_the_policy_s_training(limits, vendor):
    trained = {name: vendor.jnt_actfrcrange[vendor.joint(name).id] for name in BODY}
    for row in JOINTS.joints:
        if row.name in trained:
            assert (-row.effort, row.effort) == pytest.approx(tuple(trained[row.name]))
        else:
            assert row.effort == float(limits[row.name].get("effort"))


def test_position_limits_are_the_mjcf_s_too(vendor):
    for name in BODY:
        row = JOINTS.joints[JOINTS.index(name)]
        np.testing.assert_allclose(vendor.joint(name).range, (row.lower, row.upper), atol=1e-5)


def test_gains_follow_from_the_armature(vendor):
    """10 Hz and damping ratio 2 on the motor's own inertia; stiffened, kd goes with the root."""
    omega = 2.0 * np.pi * 10.0
    stiffening: dict[str, set[float]] = {}
    for name in BODY:
        row = JOINTS.joints[JOINTS.index(name)]
        armature = float(vendor.dof_armature[vendor.joint(name).dofadr[0]])
        factor = row.kp / (armature * omega**2)
        assert row.kd == pytest.approx(np.sqrt(factor) * 4.0 * armature * omega, rel=1e-6), name
        stiffening.setdefault(row.group, set()).add(round(factor, 6))
    assert stiffening["left_leg"] == stiffening["right_leg"] == {1.0}
    assert stiffening["left_arm"] == stiffening["right_arm"]
    # One factor for a whole group, never softer than what the policy was trained with.
    assert all(len(factors) == 1 and min(factors) >= 1.0 for factors in stiffening.values())


def test_leg_gains_are_those_the_policy_was_trained_with(metadata):
    legs = JOINTS.group("left_leg", "right_leg")
    np.testing.assert_allclose(JOINTS.kp[legs], np.array(metadata["kp"])[legs], rtol=1e-6)
    np.testing.assert_allclose(JOINTS.kd[legs], np.array(metadata["kd"])[legs], rtol=1e-6)


def test_home_lies_within_the_limits_and_is_mirrored():
    assert (JOINTS.home >= JOINTS.lower).all()
    assert (JOINTS.home <= JOINTS.upper).all()
    for group in ("leg", "arm", "hand"):
        left, right = JOINTS.group(f"left_{group}"), JOINTS.group(f"right_{group}")
        for a, b in zip(left, right, strict=True):
            one, other = JOINTS.joints[a], JOINTS.joints[b]
            assert one.name.removeprefix("left_") == other.name.removeprefix("right_")
            mirrored = any(axis in one.name for axis in ("_roll_", "_yaw_")) or group == "hand"
            lower, upper = (-other.upper, -other.lower) if mirrored else (other.lower, other.upper)
            # The thumb's first joint turns about the finger axis and is symmetric either way.
            assert (one.lower, one.upper) == pytest.approx((lower, upper)), one.name
            assert one.home == pytest.approx(-other.home if mirrored else other.home), one.name


def test_hand_postures_lie_within_the_limits():
    for effector in ROBOT.effectors.values():
        fingers = JOINTS.group(effector.fingers)
        for name, posture in effector.postures.items():
            assert len(posture) == len(fingers)
            assert (np.array(posture) >= JOINTS.lower[fingers]).all(), (effector.name, name)
            assert (np.array(posture) <= JOINTS.upper[fingers]).all(), (effector.name, name)


def test_the_action_is_31_upper_body_targets_velocity_and_height():
    contract = ROBOT.contract
    targets = contract.of_kind(ActionKind.JOINT_POSITION)
    assert contract.size == 35
    assert [contract.names[i] for i in targets] == [
        n for n in JOINTS.names if "_leg" not in JOINTS.joints[JOINTS.index(n)].group
    ]
    assert contract.of_kind(ActionKind.BASE_VELOCITY).tolist() == [31, 32, 33]
    assert contract.of_kind(ActionKind.BASE_HEIGHT).tolist() == [34]
    arms_and_hands = [i for i in targets if not contract.names[i].startswith("waist")]
    rows = JOINTS.indices([contract.names[i] for i in arms_and_hands])
    np.testing.assert_array_equal(contract.lower[arms_and_hands], JOINTS.lower[rows])
    np.testing.assert_array_equal(contract.upper[arms_and_hands], JOINTS.upper[rows])
    for name, (lower, upper) in STANDING_WAIST_RANGE.items():
        place = contract.names.index(name)
        assert (contract.lower[place], contract.upper[place]) == (lower, upper)
        # The waist's range in an action is what the walking policy stands, within what the joint can do.
        assert JOINTS.lower[JOINTS.index(name)] < lower < upper < JOINTS.upper[JOINTS.index(name)]


def test_frames_bear_the_names_of_rep_120():
    expected = {"base_link", "torso", "l_wrist", "r_wrist", "l_gripper", "r_gripper", "l_sole", "r_sole"}
    assert expected <= set(ROBOT.frames)
    with pytest.raises(UnknownNameError, match="did you mean 'l_wrist'"):
        ROBOT.frame("left_wrist")
    with pytest.raises(UnknownNameError, match="available: left_hand, right_hand"):
        ROBOT.effector("tail")


def test_a_robot_is_found_by_name():
    assert robot_named("g1") is ROBOT
    with pytest.raises(UnknownNameError, match="available: g1"):
        robot_named("h1")
