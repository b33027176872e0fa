# SPDX-License-Identifier: Apache-2.0
"""Following a path: no stop on the way, a precise one at the end, and a new path where the robot was carried off."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from supple.control.base_motion import FACING_DISTANCE, WaypointController, WaypointStatus
from supple.control.path_following import FloorPath, PathFollower, waypoint_walk
from supple.control.whole_body import WholeBodyController
from supple.errors import StateError
from supple.geometry import pose_from_xyyaw, wrap_angle, xyyaw_of
from supple.robots import g1

ROBOT = g1()
DT = ROBOT.contract.control_interval
# Ahead, then in an arc to the left, then straight on: 2.4 m in 8 s.
TIMES = np.linspace(0.0, 8.0, 41)
YAWS = np.interp(TIMES, [0.0, 3.0, 5.0, 8.0], [0.0, 0.0, np.pi / 2, np.pi / 2])
SPEED = 0.3 * np.minimum(1.0, np.minimum(TIMES, TIMES[-1] - TIMES))
PATH = FloorPath(
    np.c_[np.cumsum(SPEED * np.cos(YAWS)) * 0.2, np.cumsum(SPEED * np.sin(YAWS)) * 0.2, YAWS], TIMES
)  # fmt: skip


@pytest.fixture(scope="module")
def controller():
    return WholeBodyController(ROBOT)


def follow(body, controller, follower, seconds=40.0, every_tick=lambda state: None):
    """Follow until arrival; return the states."""
    controller.reset()
    arms = ROBOT.joints.home[controller.upper_body.indices]
    state = body.read()
    states = [state]
    for _ in range(round(seconds / DT)):
        velocity = follower.step(state, DT)
        if follower.status is WaypointStatus.ARRIVED:
            break
        action, _ = ROBOT.contract.clamp(controller.action(arms, velocity))
        controller.command(action)
        body.write(controller.step(state, DT))
        every_tick(state)
        state = body.read()
        states.append(state)
    return states


def test_a_path_is_walked_without_a_stop_and_ended_precisely(body, controller):
    follower = PathFollower(ROBOT, stance=controller.stance)
    assert follower.status is WaypointStatus.ARRIVED
    follower.start(PATH)
    settled = []
    states = follow(
        body, controller, follower, every_tick=lambda _: settled.append(follower.status is WaypointStatus.SETTLING)
    )
    assert follower.status is WaypointStatus.ARRIVED
    assert follower.replans == 0
    places = np.array([xyyaw_of(state.T_world_base) for state in states])
    error = places[-1] - PATH.waypoints[-1]
    assert np.hypot(*error[:2]) <= 0.03
    assert abs(wrap_angle(error[2])) <= 0.035
    # The pelvis sways, and rounds the bend a little wide.
    off = np.hypot(*(places[:, None, :2] - PATH.waypoints[None, :, :2]).transpose(2, 0, 1)).min(axis=1)
    assert off[round(2.0 / DT) :].max() < 0.2
    assert not any(settled[: round(8.0 / DT)])
    offset, turn = follower.error(places[-1])
    assert np.hypot(*offset) <= 0.03
    assert abs(turn) <= 0.035


def test_a_robot_that_was_carried_off_asks_for_a_new_path_from_where_it_is(body, controller):
    asked = []

    def replan(pose):
        asked.append(pose)
        return FloorPath(np.array([pose, pose + np.array([0.1, 0.0, 0.0])]), np.array([0.0, 1.0]))

    follower = PathFollower(ROBOT, stance=controller.stance, replan=replan)
    follower.start(FloorPath(PATH.waypoints + np.array([0.0, 0.7, 0.0]), PATH.times))
    states = follow(body, controller, follower)
    assert follower.replans == len(asked) == 1
    start, end = xyyaw_of(states[0].T_world_base), xyyaw_of(states[-1].T_world_base)
    assert np.hypot(*(asked[0] - start)[:2]) < 0.1
    assert np.hypot(*(end - asked[0] - [0.1, 0.0, 0.0])[:2]) <= 0.031


def test_without_a_planner_it_goes_back_to_its_path(body, controller):
    follower = PathFollower(ROBOT, stance=controller.stance)
    there = np.array([0.0, 0.5, 0.0])
    follower.start(FloorPath(np.array([there, there + np.array([0.3, 0.0, 0.0])]), np.array([0.0, 1.0])))
    states = follow(body, controller, follower)
    error = xyyaw_of(states[-1].T_world_base) - there - [0.3, 0.0, 0.0]
    assert np.hypot(*error[:2]) <= 0.03


@pytest.mark.parametrize("goal", [(2.0, 1.0, -0.5), (-1.0, 0.3, 2.0), (0.3, 0.1, 1.0)])
def test_the_walk_to_a_way_point_is_foreseen(body, controller, goal):
    """What is checked for obstacles before a walk is the walk that the way point controller then makes."""
    waypoint = WaypointController(ROBOT, 0.05, 0.06, stance=controller.stance)
    waypoint.start(pose_from_xyyaw(*goal))
    states = follow(body, controller, waypoint)
    assert waypoint.status is WaypointStatus.ARRIVED
    keys = waypoint_walk(xyyaw_of(states[0].T_world_base), goal)
    assert len(keys) == (4 if np.hypot(*goal[:2]) > FACING_DISTANCE else 2)
    line = np.vstack([np.linspace(a[:2], b[:2], 40) for a, b in itertools.pairwise(keys)])
    places = np.array([xyyaw_of(state.T_world_base)[:2] for state in states])
    off = np.hypot(*(places[:, None] - line[None]).transpose(2, 0, 1)).min(axis=1)
    # The first steps carry it aside by 20 cm and more.
    assert off.max() < 0.4
    assert off[round(4.0 / DT) :].max() < 0.25


@pytest.mark.parametrize(
    ("waypoints", "times", "said"),
    [
        (np.zeros((3, 2)), np.arange(3.0), r"\(n, 3\) way points"),
        (np.zeros((3, 3)), np.arange(2.0), r"\(n, 3\) way points"),
        (np.full((2, 3), np.nan), np.arange(2.0), "way point 0 is not finite"),
        (np.zeros((2, 3)), np.array([0.0, 0.0]), "times that increase from 0"),
        (np.zeros((2, 3)), np.array([1.0, 2.0]), "times that increase from 0"),
    ],
)
def test_a_path_that_is_none_is_refused(waypoints, times, said):
    with pytest.raises(StateError, match=said):
        FloorPath(waypoints, times)
