# SPDX-License-Identifier: Apache-2.0
"""The momentum observer on motion whose external wrenches are known, computed by Pinocchio and by MuJoCo."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from supple.errors import StateError, UnknownNameError
from supple.geometry import pose_from_xyyaw
from supple.kinematics.model import KinematicModel
from supple.kinematics.momentum_observer import MomentumObserver
from supple.robots import PerfectBody, RobotState, g1
from supple.sim.forces import LinkWrenches
from supple.sim.g1_model import g1_spec
from supple.sim.world import World

ROBOT = g1()
FRAMES = ("l_sole", "r_sole", "l_wrist", "r_wrist")


@pytest.fixture(scope="module")
def world():
    return World(g1_spec(), ROBOT)


def state_at(time, base, linear, angular, q, v, effort):
    """Return a state; ``linear`` and ``angular`` are in the base's own axes."""
    blank = PerfectBody(ROBOT.joints).read()
    return replace(
        blank,
        stamp_ns=round(time * 1e9),
        q=q.copy(),
        v=v.copy(),
        effort=effort.copy(),
        base_position=base.translation.copy(),
        base_quaternion=pin.Quaternion(base.rotation).coeffs().copy(),
        base_linear_velocity=base.rotation @ linear,
        base_angular_velocity=angular.copy(),
    )


class FlyingRobot:
    """The robot in free flight under torques and wrenches of our choice, integrated by Pinocchio's forward dynamics."""

    def __init__(self, rng: np.random.Generator, timestep: float) -> None:
        self.kinematics = KinematicModel(ROBOT)
        self.model = self.kinematics.model
        self.model.armature[self.kinematics.iv] = ROBOT.joints.armature
        self.data = self.model.createData()
        self.timestep, self.time = timestep, 0.0
        middle = 0.5 * (ROBOT.joints.lower + ROBOT.joints.upper)
        base = pin.SE3(pin.exp3(rng.uniform(-1.0, 1.0, 3)), rng.uniform(-1.0, 1.0, 3))
        self.q = self.kinematics.configuration(base, middle + 0.3 * rng.uniform(-0.5, 0.5, len(middle)))
        self.v = 0.5 * rng.normal(size=self.model.nv)
        self.effort = rng.uniform(-1.0, 1.0, len(ROBOT.joints)) * 0.02 * ROBOT.joints.effort

    def step(self, wrenches: dict[str, np.ndarray]) -> None:
        outside = pin.StdVec_Force()
        outside.extend([pin.Force.Zero()] * self.model.njoints)
        for name, wrench in wrenches.items():
            frame = self.model.frames[self.kinematics.frame_id(name)]
            outside[frame.parentJoint] += frame.placement.act(pin.Force(wrench))
        tau = np.zeros(self.model.nv)
        # Friction keeps the light fingers from whirling; the observer is told the sum.
        self.applied = self.effort - 0.05 * self.v[self.kinematics.iv]
        tau[self.kinematics.iv] = self.applied
        acceleration = pin.aba(self.model, self.data, self.q, self.v, tau, outside)
        self.v = self.v + self.timestep * acceleration
        self.q = pin.integrate(self.model, self.q, self.timestep * self.v)
        self.time += self.timestep

    def state(self) -> RobotState:
        base, q = self.kinematics.split(self.q)
        return state_at(self.time, base, self.v[:3], self.v[3:6], q, self.v[self.kinematics.iv], self.applied)


@pytest.mark.parametrize("seed", range(3))
def test_known_wrenches_are_told_apart_in_any_motion(seed):
    """Base turned and tumbling, joints moving, a wrench on all four limbs at once."""
    rng = np.random.default_rng(seed)
    robot = FlyingRobot(rng, 2e-4)
    wrenches = {name: np.r_[rng.uniform(-20.0, 20.0, 3), rng.uniform(-2.0, 2.0, 3)] for name in FRAMES}
    # Limbs swing at up to 17 rad/s here: with a slow filter the wrenches of a moment ago would be told.
    observer = MomentumObserver(ROBOT, cutoff=200.0)
    found = None
    for _ in range(250):
        robot.step(wrenches)
        found = observer.step(robot.state())
    assert found is not None
    assert tuple(found.wrench) == FRAMES
    for name, wanted in wrenches.items():
        np.testing.assert_allclose(found.wrench[name][:3], wanted[:3], atol=0.5, err_msg=name)
        np.testing.assert_allclose(found.wrench[name][3:], wanted[3:], atol=0.05, err_msg=name)
    assert found.unexplained < 0.02


def test_without_touch_there_is_no_wrench():
    robot = FlyingRobot(np.random.default_rng(7), 2e-4)
    observer = MomentumObserver(ROBOT, cutoff=50.0)
    for _ in range(250):
        robot.step({})
        found = observer.step(robot.state())
    assert np.abs(list(found.wrench.values())).max() < 0.3


def test_the_estimate_follows_a_step_at_its_bandwidth():
    """A first-order low-pass has made 63 % of a step after one time constant."""
    robot = FlyingRobot(np.random.default_rng(3), 2e-4)
    cutoff = 20.0
    constant = 1.0 / (2.0 * np.pi * cutoff)
    observer = MomentumObserver(ROBOT, cutoff=cutoff)
    for _ in range(round(4.0 * constant / robot.timestep)):
        robot.step({})
        observer.step(robot.state())
    force = np.array([0.0, 0.0, 30.0, 0.0, 0.0, 0.0])
    for _ in range(round(constant / robot.timestep)):
        robot.step({"l_wrist": force})
        found = observer.step(robot.state())
    assert found.wrench["l_wrist"][2] == pytest.approx(30.0 * (1.0 - np.exp(-1.0)), abs=0.6)


def test_a_push_elsewhere_is_not_hidden():
    robots = [FlyingRobot(np.random.default_rng(5), 2e-4) for _ in range(2)]
    left = []
    for robot, frame in zip(robots, ("l_wrist", "torso"), strict=True):
        observer = MomentumObserver(ROBOT, cutoff=50.0)
        for _ in range(250):
            robot.step({frame: np.array([0.0, 40.0, 0.0, 0.0, 0.0, 0.0])})
            found = observer.step(robot.state())
        left.append(found.unexplained)
    assert left[1] > 5.0 * left[0]


# -- against MuJoCo ----------------------------------------------------------------------------------------------------


def test_the_table_has_the_rotors_of_the_simulated_robot(world):
    compiled = [world.model.dof_armature[world.model.joint(name).dofadr[0]] for name in ROBOT.joints.names]
    np.testing.assert_allclose(ROBOT.joints.armature, compiled, rtol=1e-12)


def test_inertia_with_rotors_is_that_of_the_simulated_robot(world):
    """Kinetic energy of the same motion, whatever the coordinates of the base."""
    rng = np.random.default_rng(0)
    robot = FlyingRobot(rng, 1e-3)
    base, q = robot.kinematics.split(robot.q)
    world.place_robot(base, q)
    twist, v = rng.normal(size=6), rng.normal(size=len(q))
    world.data.qvel[:3], world.data.qvel[3:6] = base.rotation @ twist[:3], twist[3:]
    world.data.qvel[[world.model.joint(name).dofadr[0] for name in ROBOT.joints.names]] = v
    mujoco.mj_forward(world.model, world.data)
    mass = np.zeros((world.model.nv, world.model.nv))
    mujoco.mj_fullM(world.model, world.data, mass)
    ours = np.zeros(robot.model.nv)
    ours[:6], ours[robot.kinematics.iv] = twist, v
    upper = np.triu(pin.crba(robot.model, robot.data, robot.q))
    energy = ours @ upper @ ours - 0.5 * ours @ (np.diag(upper) * ours)
    assert energy == pytest.approx(0.5 * world.data.qvel @ mass @ world.data.qvel, rel=1e-4)


def test_standing_on_stiff_servos_the_feet_carry_what_the_simulator_says(world):
    world.clear()
    world.place_robot(pose_from_xyyaw(0.3, -0.2, 1.0, ROBOT.standing_height), ROBOT.joints.home)
    world.set_state(world.get_state())
    world.hold()
    observer, truth = MomentumObserver(ROBOT), LinkWrenches(world)
    for _ in range(100):
        world.step(1)
        found = observer.step(world.robot_state())
    known = truth.read()
    assert known["l_sole"][2] > 100.0
    for name in FRAMES:
        assert np.linalg.norm(found.wrench[name][:3] - known[name][:3]) < 3.0, name


# -- states that cannot be used ----------------------------------------------------------------------------------------


@pytest.fixture
def observed():
    """An observer that has settled, the state it saw last and what it said."""
    robot, observer = FlyingRobot(np.random.default_rng(2), 1e-3), MomentumObserver(ROBOT, cutoff=50.0)
    for _ in range(40):
        robot.step({})
        found = observer.step(robot.state())
    return observer, robot.state(), found


def test_it_says_nothing_before_it_has_settled(observed):
    robot, observer = FlyingRobot(np.random.default_rng(2), 1e-3), MomentumObserver(ROBOT, cutoff=50.0)
    said = []
    for _ in range(40):
        robot.step({})
        said.append(observer.step(robot.state()) is not None)
    wanted = round(3.0 / (2.0 * np.pi * 50.0) / robot.timestep)
    assert not any(said[:wanted])
    assert all(said[wanted + 2 :])


@pytest.mark.parametrize("later", [-1.0, 0.0, 0.2])
def test_after_a_gap_or_a_step_back_it_begins_anew(observed, later):
    observer, state, found = observed
    assert found is not None
    moved = replace(state, stamp_ns=state.stamp_ns + round(later * 1e9))
    assert observer.step(moved) is None
    assert observer.step(replace(state, stamp_ns=moved.stamp_ns + 1_000_000)) is None


@pytest.mark.parametrize("field", ["q", "v", "effort", "base_linear_velocity", "base_angular_velocity"])
def test_a_state_that_is_not_finite_is_refused_and_changes_nothing(observed, field):
    observer, state, found = observed
    broken = getattr(state, field).copy()
    broken[1] = np.nan
    with pytest.raises(StateError, match="not finite"):
        observer.step(replace(state, stamp_ns=state.stamp_ns + 1_000_000, **{field: broken}))
    again = observer.step(replace(state, stamp_ns=state.stamp_ns + 1_000_000))
    assert again is not None
    assert all(np.all(np.isfinite(wrench)) for wrench in again.wrench.values())
    assert found is not None


def test_what_cannot_be_observed_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean 'l_wrist'"):
        MomentumObserver(ROBOT, frames=["l_wrst"])
    for cutoff in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(StateError, match="bandwidth"):
            MomentumObserver(ROBOT, cutoff=cutoff)
