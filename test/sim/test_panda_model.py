# SPDX-License-Identifier: Apache-2.0
"""The Panda: both models agree, it holds its posture, its pads feel what it grips, its wrist tells what hangs on it."""

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from supple.contact.detection import ContactDetector
from supple.geometry import pose_error, pose_from_xyyaw
from supple.kinematics.model import KinematicModel
from supple.kinematics.momentum_observer import MomentumObserver
from supple.robots import RobotCommand, panda, robot_named
from supple.sim.body import SimBody
from supple.sim.forces import contact_forces
from supple.sim.panda_model import panda_spec
from supple.sim.skin import TactileSkin
from supple.sim.tactile import TactileSensors, TactileSettings
from supple.sim.world import World

ROBOT = panda()
ARM, FINGERS = ROBOT.joints.group("arm"), ROBOT.joints.group("fingers")
SIDES = ("left", "right")
BASE = pose_from_xyyaw(0.3, -0.2, 0.7)
# Half the extents of what is gripped, across the fingers last.
HALF = (0.015, 0.02, 0.02)


def scene() -> mujoco.MjSpec:
    spec = panda_spec()
    body = spec.worldbody.add_body(name="block", pos=[2.0, 0.0, 0.02])
    body.add_freejoint(name="block_joint")
    body.add_geom(
        name="block", type=mujoco.mjtGeom.mjGEOM_BOX, size=HALF, mass=0.2, friction=[1.0, 0.02, 0.001], condim=4
    )
    return spec


@pytest.fixture(scope="module")
def compiled():
    return World(scene(), ROBOT)


@pytest.fixture(scope="module")
def model():
    return KinematicModel(ROBOT)


@pytest.fixture
def world(compiled):
    compiled.clear()
    compiled.place_robot(BASE, ROBOT.joints.home)
    compiled.set_state(compiled.get_state())
    return compiled


class Arm:
    """The arm held in its home posture against gravity, the fingers by a force."""

    def __init__(self, world: World, model: KinematicModel) -> None:
        self.world, self._model = world, model
        self.body = SimBody(world, 0.02)
        self.body.reset()

    def hold(self, seconds: float, grip: float | None = None, watch=lambda: None) -> None:
        """Hold the posture, and press with each finger with ``grip`` in [N]; without one keep the fingers open."""
        for _ in range(round(seconds / 0.02)):
            state = self.body.read()
            command = RobotCommand.blank(ROBOT.joints, "test", state.stamp_ns)
            command.active[:] = True
            command.tau[:] = self._model.gravity_torques(self._model.configuration(state.T_world_base, state.q))
            if grip is not None:
                command.kp[FINGERS], command.tau[FINGERS] = 0.0, -grip
            self.body.write(command)
            watch()


@pytest.fixture
def gripping(world, model):
    """The arm with the block between its fingers, pressed with 10 N each, on nothing else."""
    between = world.link_pose("gripper")
    turned = pin.SE3(pin.rpy.rpyToMatrix(-0.5 * np.pi, 0.0, 0.0), np.zeros(3))
    world.place_object("block", between * turned)
    q = ROBOT.joints.home.copy()
    q[FINGERS] = HALF[2] + 0.001
    world.place_robot(BASE, q)
    world.set_state(world.get_state())
    arm = Arm(world, model)
    arm.hold(1.0, grip=10.0)
    return arm


def test_it_is_known_by_its_name():
    assert robot_named("panda") is ROBOT


def test_frames_limits_and_mass_agree_in_any_configuration(world, model):
    rng = np.random.default_rng(0)
    assert set(model.model.names[2:]) == set(ROBOT.joints.names)
    for _ in range(50):
        base, q = pin.SE3(pin.exp3(rng.uniform(-2, 2, 3)), rng.uniform(-3, 3, 3)), ROBOT.joints.lower.copy()
        q = rng.uniform(ROBOT.joints.lower, ROBOT.joints.upper)
        world.place_robot(base, q)
        world.set_state(world.get_state())
        poses = model.frame_poses(model.configuration(base, q), *ROBOT.frames, "panda_leftfinger", "panda_rightfinger")
        found = [world.link_pose(name) for name in ROBOT.frames]
        found += [world.object_pose(f"panda_{side}finger") for side in SIDES]
        for expected, actual in zip(poses, found, strict=True):
            distance, angle = pose_error(actual, expected)
            assert distance < 1e-5
            assert angle < 1e-5
        np.testing.assert_allclose(world.robot_state().q, q, atol=1e-12)
    for i, name in enumerate(ROBOT.joints.names):
        limits = ROBOT.joints.lower[i], ROBOT.joints.upper[i]
        np.testing.assert_allclose(world.model.joint(name).range, limits, atol=1e-9)
    bodies = world.attached_to(ROBOT.base_link)
    mass = sum(inertia.mass for inertia in model.model.inertias)
    assert world.model.body_mass[bodies].sum() == pytest.approx(mass, abs=1e-9)


def test_it_stands_still_in_its_home_posture_and_feels_gravity(world, model):
    Arm(world, model).hold(1.0)
    state = world.robot_state()
    assert np.abs(state.q - ROBOT.joints.home).max() < 1e-4
    np.testing.assert_allclose(state.base_acceleration, [0.0, 0.0, 9.81])
    assert pose_error(state.T_world_base, BASE)[0] < 1e-12
    assert not state.base_linear_velocity.any()
    robot = world.robot_bodies()
    assert not [c for c in world.contacts() if robot[world.body_id(c.body1)] and robot[world.body_id(c.body2)]]


def test_both_fingers_close_as_one(world, model):
    arm = Arm(world, model)
    gaps = []
    arm.hold(0.6, grip=5.0, watch=lambda: gaps.append(np.diff(world.robot_state().q[FINGERS]).item()))
    assert np.abs(gaps).max() < 5e-4
    assert world.robot_state().q[FINGERS].max() < 1e-3


def test_pads_feel_the_force_with_which_the_fingers_press(gripping):
    world, skin = gripping.world, TactileSkin(gripping.world)
    touches = skin.touches(contact_forces(world))
    for side in SIDES:
        touch, layout = touches[f"{side}_finger"], skin.layouts[f"{side}_finger"]
        simulated = world.contact_forces([(f"panda_{side}finger", "block")])[f"panda_{side}finger/block"]
        assert touch.bodies == ("block",)
        assert layout.area @ touch.pressure == pytest.approx(simulated[0], rel=0.02)
        assert touch.normal_force == pytest.approx(10.0, rel=0.1)
        # Friction of both carries the block.
        assert touch.tangential_force == pytest.approx(0.5 * 0.2 * 9.81, rel=0.2)
    assert sum(layout.area.sum() for layout in skin.layouts.values()) == pytest.approx(2 * 0.0175 * 0.0185)


def test_readings_tell_grip_and_release(gripping):
    world = gripping.world
    sensors = TactileSensors(world, TactileSettings(rate=50.0), np.random.default_rng(0))
    detectors = {name: ContactDetector(layout) for name, layout in sensors.layouts.items()}
    said: list[tuple[bool, ...]] = []

    def read() -> None:
        readings = sensors.advance(world.time_ns)
        said.append(tuple(detectors[name].update(reading).in_contact for name, reading in readings))

    gripping.hold(0.4, grip=10.0, watch=read)
    assert said[-1] == (True, True)
    gripping.hold(0.6, watch=read)
    assert said[-1] == (False, False)
    assert world.object_pose("block").translation[2] < 0.5 * world.link_pose("gripper").translation[2]


def test_the_wrist_tells_the_weight_that_hangs_on_it(gripping):
    observer = MomentumObserver(ROBOT)
    found: list[np.ndarray] = []

    def observe() -> None:
        if (wrenches := observer.step(gripping.world.robot_state())) is not None:
            found.append(wrenches.wrench["wrist"])

    gripping.hold(1.0, grip=10.0, watch=observe)
    force = gripping.world.link_pose("wrist").rotation @ found[-1][:3]
    np.testing.assert_allclose(force, [0.0, 0.0, -0.2 * 9.81], atol=0.05)
