# SPDX-License-Identifier: Apache-2.0
"""One owner per joint group; what happens when it falls silent."""

from __future__ import annotations

import numpy as np
import pytest

from supple.control.arbitration import ArbitrationTimes, CommandArbiter, GroupState, OwnershipError
from supple.errors import StateError
from supple.robots import RobotCommand
from supple.robots.g1 import g1_joints

JOINTS = g1_joints()
SECOND = 1_000_000_000


def command(source: str, *groups: str, stamp: float = 0.0, q: float = 0.1) -> RobotCommand:
    blank = RobotCommand.blank(JOINTS, source, round(stamp * SECOND))
    at = JOINTS.group(*groups)
    blank.q[at], blank.v[at] = q, 0.5
    blank.active[at] = True
    return blank


@pytest.fixture
def arbiter() -> CommandArbiter:
    arbiter = CommandArbiter(JOINTS, ArbitrationTimes(hold_after=0.1, lapse_after=0.5, damp_after=1.0))
    arbiter.reset(JOINTS.home, 0)
    return arbiter


def test_a_group_nobody_commands_holds_the_posture_of_the_reset(arbiter):
    posture = JOINTS.home + 0.01
    arbiter.reset(posture, 5 * SECOND)
    merged = arbiter.merged(100 * SECOND)
    np.testing.assert_array_equal(merged.q, posture)
    np.testing.assert_array_equal(merged.kp, JOINTS.kp)
    assert arbiter.state("waist", 100 * SECOND) is GroupState.FREE


def test_two_sources_share_the_robot_by_groups(arbiter):
    arbiter.offer(command("locomotion", "left_leg", "right_leg", q=0.1), 0)
    arbiter.offer(command("manipulation", "waist", "left_arm", q=0.2), 0)
    merged = arbiter.merged(0)
    assert set(merged.q[JOINTS.group("left_leg", "right_leg")]) == {0.1}
    assert set(merged.q[JOINTS.group("waist", "left_arm")]) == {0.2}
    assert arbiter.owners(0) == {
        "left_leg": "locomotion", "right_leg": "locomotion", "waist": "manipulation", "left_arm": "manipulation",
    }  # fmt: skip


def test_a_second_owner_is_refused_by_name_and_changes_nothing(arbiter):
    arbiter.offer(command("locomotion", "left_leg", "right_leg"), 0)
    before = arbiter.merged(0)
    # The arm is free, but a command is taken as a whole or not at all.
    with pytest.raises(OwnershipError, match=r"'intruder' refused: right_leg owned by 'locomotion'"):
        arbiter.offer(command("intruder", "right_leg", "left_arm", q=0.4), 10_000_000)
    np.testing.assert_array_equal(arbiter.merged(0).q, before.q)
    assert "left_arm" not in arbiter.owners(10_000_000)


def test_a_silent_owner_is_held_then_may_be_replaced_then_is_damped(arbiter):
    arbiter.offer(command("locomotion", "left_leg"), 0)
    leg = JOINTS.group("left_leg")

    assert arbiter.state("left_leg", round(0.05 * SECOND)) is GroupState.OWNED
    assert np.all(arbiter.merged(round(0.05 * SECOND)).v[leg] == 0.5)

    held = arbiter.merged(round(0.2 * SECOND))
    assert arbiter.state("left_leg", round(0.2 * SECOND)) is GroupState.HOLDING
    assert np.all(held.q[leg] == 0.1)
    assert np.all(held.v[leg] == 0.0), "a held target must not go on moving"
    np.testing.assert_array_equal(held.kp[leg], JOINTS.kp[leg])
    with pytest.raises(OwnershipError):
        arbiter.offer(command("other", "left_leg", stamp=0.2), round(0.2 * SECOND))

    damped = arbiter.merged(round(1.0 * SECOND))
    assert arbiter.state("left_leg", round(1.0 * SECOND)) is GroupState.DAMPED
    assert np.all(damped.kp[leg] == 0.0)
    assert np.all(damped.kd[leg] > 0.0)
    assert np.all(damped.kp[JOINTS.group("right_leg")] > 0.0), "a group that nobody commanded is not damped"

    arbiter.offer(command("other", "left_leg", stamp=1.1, q=0.3), round(1.1 * SECOND))
    assert arbiter.owners(round(1.1 * SECOND)) == {"left_leg": "other"}
    assert np.all(arbiter.merged(round(1.1 * SECOND)).q[leg] == 0.3)


def test_after_an_emergency_stop_only_a_reset_helps(arbiter):
    arbiter.offer(command("locomotion", "left_leg"), 0)
    arbiter.stop("emergency stop")
    assert np.all(arbiter.merged(0).kp == 0.0)
    with pytest.raises(OwnershipError, match="emergency stop; reset first"):
        arbiter.offer(command("locomotion", "left_leg"), 1)
    arbiter.reset(JOINTS.home, 2)
    arbiter.offer(command("locomotion", "left_leg", stamp=1.0), 2)
    assert np.all(arbiter.merged(2).kp > 0.0)


def test_a_command_that_answers_a_state_from_before_the_reset_is_refused(arbiter):
    arbiter.reset(JOINTS.home, 3 * SECOND)
    with pytest.raises(StateError, match=r"'locomotion' answers a state from 0\.500 s before the reset"):
        arbiter.offer(command("locomotion", "left_leg", stamp=2.5), 3 * SECOND)
    assert arbiter.owners(3 * SECOND) == {}


@pytest.mark.parametrize("key", ["q", "v", "tau", "kp", "kd"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused_with_the_joint(arbiter, key, value):
    bad = command("locomotion", "left_leg")
    getattr(bad, key)[JOINTS.index("left_knee_joint")] = value
    with pytest.raises(StateError, match=f"{key} is not finite for left_knee_joint"):
        arbiter.offer(bad, 0)
    assert np.all(np.isfinite(arbiter.merged(0).q))


def test_a_command_that_addresses_nothing_is_refused(arbiter):
    with pytest.raises(StateError, match="addresses no joint"):
        arbiter.offer(RobotCommand.blank(JOINTS, "idle"), 0)


@pytest.mark.parametrize("times", [(0.0, 0.5, 1.0), (0.2, 0.1, 1.0), (0.1, 2.0, 1.0)])
def test_times_out_of_order_are_refused(times):
    with pytest.raises(StateError, match="0 < hold_after <= lapse_after <= damp_after"):
        ArbitrationTimes(*times)
