# SPDX-License-Identifier: Apache-2.0
"""A simulated world: states that repeat to the last bit, poses and forces that are true, and no silent resets."""

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from supple.errors import SceneError, StateError, UnknownNameError
from supple.geometry import pose_error, pose_from_xyyaw
from supple.robots import RobotCommand, g1
from supple.sim.g1_model import g1_spec
from supple.sim.world import World

ROBOT = g1()
JOINTS = ROBOT.joints
BOX = 0.2
MASS = 0.8


def scene(**option):
    """The robot, a block fixed to the world, and a free box."""
    spec = g1_spec()
    block = spec.worldbody.add_body(name="block", pos=[2.0, 0.0, 0.0])
    block.add_geom(name="block_top", type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.3, 0.3, 0.4], pos=[0.0, 0.0, 0.4])
    box = spec.worldbody.add_body(name="box", pos=[2.0, 0.0, 1.0])
    box.add_freejoint(name="box_joint")
    box.add_geom(name="box_shell", type=mujoco.mjtGeom.mjGEOM_BOX, size=[BOX / 2] * 3, mass=MASS)
    for name, value in option.items():
        setattr(spec.option, name, value)
    return spec


@pytest.fixture(scope="module")
def compiled():
    return World(scene(), ROBOT)


@pytest.fixture
def world(compiled):
    """The scene with the robot standing at the origin and the box resting on the block."""
    compiled.clear()
    compiled.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, ROBOT.standing_height + 0.015), JOINTS.home)
    compiled.place_object("box", pose_from_xyyaw(2.0, 0.0, 0.0, 0.8 + BOX / 2))
    compiled.set_state(compiled.get_state())
    return compiled


def command(rng):
    """A wild but legal command for all joints."""
    blank = RobotCommand.blank(JOINTS, "test")
    blank.active[:] = True
    blank.q[:] = rng.uniform(JOINTS.lower, JOINTS.upper)
    blank.tau[:] = 0.2 * rng.uniform(-JOINTS.effort, JOINTS.effort)
    blank.kp[:] *= rng.uniform(0.5, 1.5, len(JOINTS))
    return blank


def run(world, seed, ticks=25):
    rng = np.random.default_rng(seed)
    states = []
    for _ in range(ticks):
        world.apply(command(rng))
        world.step(4)
        states.append(world.get_state())
    return np.array(states)


# -- states ----------------------------------------------------------------------------------------------------------


def test_the_same_state_and_commands_give_the_same_states_bit_for_bit(world):
    start = world.get_state()
    first = run(world, 1)
    assert np.ptp(first, axis=0).max() > 0.1
    run(world, 2)
    world.set_state(start)
    np.testing.assert_array_equal(run(world, 1), first)
    other = World(scene(), ROBOT)
    other.set_state(start)
    np.testing.assert_array_equal(run(other, 1), first)


def test_stepping_from_a_state_in_the_middle_repeats_from_there(world):
    states = run(world, 1, 10)
    world.set_state(states[-1])
    onward = run(world, 3, 10)
    run(world, 4, 5)
    world.set_state(states[-1])
    np.testing.assert_array_equal(run(world, 3, 10), onward)


def test_setting_a_state_gives_it_back_with_its_time(world):
    state = run(world, 1, 3)[-1]
    world.clear()
    world.set_state(state)
    np.testing.assert_array_equal(world.get_state(), state)
    assert world.time_ns == 60_000_000


def test_poses_belong_to_the_state_they_are_read_with(world):
    """After a step MuJoCo's poses lag one integration behind; at walking speed that is millimetres."""
    world.place_object("box", pose_from_xyyaw(2.0, 0.0, 0.3, 3.0))
    world.set_state(world.get_state())
    run(world, 1, 15)
    names = ["box", *(body for body in ("pelvis", "torso_link", "left_wrist_yaw_link"))]
    before = {name: world.object_pose(name) for name in names}
    twists = {name: world.object_twist(name) for name in names}
    world.set_state(world.get_state())
    assert np.linalg.norm(world.object_twist("box")[:3]) > 1.0
    for name in names:
        assert pose_error(before[name], world.object_pose(name)) == pytest.approx((0.0, 0.0), abs=1e-7)
        np.testing.assert_allclose(twists[name], world.object_twist(name), atol=1e-9)


@pytest.mark.parametrize("size", [0, 29, -1, 1])
def test_a_state_of_another_scene_is_refused(world, size):
    length = size if size > 1 or size == 0 else world.state_size + size
    with pytest.raises(StateError, match=rf"\({length},\).*\({world.state_size},\)"):
        world.set_state(np.zeros(length))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_state_that_is_not_finite_is_refused_and_changes_nothing(world, value):
    before = world.get_state()
    state = before.copy()
    state[5] = value
    with pytest.raises(StateError, match="not finite at index 5"):
        world.set_state(state)
    np.testing.assert_array_equal(world.get_state(), before)


def test_a_state_is_a_copy(world):
    state = world.get_state()
    kept = state.copy()
    world.step(10)
    np.testing.assert_array_equal(state, kept)


# -- what is measured ------------------------------------------------------------------------------------------------


def test_the_robot_s_state_is_in_table_order_and_the_agreed_frames(world):
    q = np.linspace(0.0, 1.0, len(JOINTS)) * (JOINTS.upper - JOINTS.lower) + JOINTS.lower
    base = pin.SE3(pin.rpy.rpyToMatrix(0.1, -0.2, 2.5), np.array([1.0, 2.0, 3.0]))
    world.place_robot(base, q)
    world.set_state(world.get_state())
    state = world.robot_state()
    np.testing.assert_array_equal(state.q, q)
    np.testing.assert_allclose(state.T_world_base.homogeneous, base.homogeneous, atol=1e-12)
    # Turning with the angular velocity read, in the base frame, brings about the orientation of the next state.
    world.data.qvel[3:6] = 0.3, -0.5, 0.7
    world.step()
    after = world.robot_state()
    turned = pin.log3(base.rotation.T @ after.T_world_base.rotation) / world.model.opt.timestep
    np.testing.assert_allclose(turned, after.base_angular_velocity, atol=1e-6)
    moved = (after.base_position - base.translation) / world.model.opt.timestep
    np.testing.assert_allclose(moved, after.base_linear_velocity, atol=1e-9)


def test_a_standing_pelvis_feels_plus_g_upwards(world):
    """REP-145: at rest an accelerometer reads +g on z. Held by the servos, the robot stands for a moment."""
    for _ in range(10):
        world.step(4)
    state = world.robot_state()
    assert (state.T_world_base.rotation @ state.base_acceleration)[2] == pytest.approx(9.81, abs=1.5)
    falling = World(scene(), ROBOT)
    falling.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, 3.0), JOINTS.home)
    falling.set_state(falling.get_state())
    falling.step(2)
    assert np.linalg.norm(falling.robot_state().base_acceleration) < 0.5


def test_a_resting_box_weighs_what_it_weighs(world):
    for mass in (MASS, 2.0, 0.3):
        world.set_mass("box", mass)
        world.set_state(world.get_state())
        world.step(200)
        normal, tangential = world.contact_forces([("box", "block")])["box/block"]
        assert normal == pytest.approx(mass * 9.81, rel=0.05)
        assert tangential < 0.05 * normal
        points = [c for c in world.contacts() if {c.body1, c.body2} == {"box", "block"}]
        assert sum(point.normal_force for point in points) == pytest.approx(normal)
        for point in points:
            up = point.normal[2] if point.body1 == "block" else -point.normal[2]
            assert up == pytest.approx(1.0, abs=1e-3)
            assert 0.0 <= point.depth < 2e-3
            assert point.position[2] == pytest.approx(0.8, abs=2e-3)
    world.set_mass("box", MASS)


def test_the_feet_carry_the_robot(world):
    """Summed over both feet, half a second after set-down, the floor carries about the robot's weight."""
    world.step(40)
    pairs = [("left_ankle_roll_link", "world"), ("right_ankle_roll_link", "world")]
    contacts = [c for c in world.contacts() if any("ankle" in body for body in (c.body1, c.body2))]
    normal = sum(contact.normal_force for contact in contacts)
    weight = 9.81 * float(world.model.body_subtreemass[world.body_id("pelvis")])
    assert normal == pytest.approx(weight, rel=0.15)
    assert sum(world.contact_forces([pair])[f"{pair[0]}/world"][0] for pair in pairs) == pytest.approx(normal)


def test_depth_is_how_far_bodies_overlap(world):
    for depth in (0.004, 0.012):
        world.place_object("box", pose_from_xyyaw(2.0, 0.0, 0.0, 0.8 + BOX / 2 - depth))
        world.set_state(world.get_state())
        points = [c for c in world.contacts() if {c.body1, c.body2} == {"box", "block"}]
        assert len(points) >= 4
        for point in points:
            assert point.depth == pytest.approx(depth, abs=1e-6)
    assert world.touching("box", "block")
    assert world.contacts(ignore=[("block", "box")]) == [
        c for c in world.contacts() if {c.body1, c.body2} != {"box", "block"}
    ]


def test_bodies_apart_do_not_touch(world):
    world.place_object("box", pose_from_xyyaw(2.0, 0.0, 0.0, 1.5))
    world.set_state(world.get_state())
    assert not world.touching("box", "block")
    assert world.contact_forces([("box", "block")]) == {"box/block": (0.0, 0.0)}


def test_contact_of_a_hand_counts_for_the_arm_it_hangs_on(world):
    fingertip = world.object_pose("left_hand_index_1_link")
    place = pin.SE3(np.eye(3), fingertip.translation + np.array([0.0, 0.0, 0.0]))
    world.place_object("box", place)
    world.set_state(world.get_state())
    assert world.touching("left_wrist_yaw_link", "box")
    assert not world.touching("right_wrist_yaw_link", "box")
    assert world.touching("box", "left_wrist_yaw_link")


# -- changing the scene ----------------------------------------------------------------------------------------------


def test_objects_stand_where_they_are_placed(world):
    pose = pin.SE3(pin.rpy.rpyToMatrix(0.3, 0.2, -1.0), np.array([1.0, 2.0, 0.5]))
    for name, fixed in (("box", False), ("block", True)):
        assert world.is_fixed(name) is fixed
        world.place_object(name, pose)
        world.set_state(world.get_state())
        assert pose_error(world.object_pose(name), pose) == pytest.approx((0.0, 0.0), abs=1e-7)
    world.place_object("block", pose_from_xyyaw(2.0, 0.0, 0.0))


def test_setting_a_mass_twice_leaves_no_trace(world):
    body = world.body_id("box")
    before = world.model.body_mass[body], world.model.body_inertia[body].copy()
    for mass in (0.7, 0.31, MASS):
        world.set_mass("box", mass)
    assert world.model.body_mass[body] == before[0]
    np.testing.assert_array_equal(world.model.body_inertia[body], before[1])
    for mass in (0.0, -1.0, np.nan):
        with pytest.raises(SceneError, match="mass of 'box'"):
            world.set_mass("box", mass)


def test_setting_a_mass_leaves_the_state_alone():
    """Also a joint whose spring rests elsewhere than it stands."""
    spec = scene()
    door = spec.worldbody.add_body(name="door", pos=[5.0, 0.0, 1.0])
    door.add_joint(name="hinge", axis=[0, 0, 1], springref=1.0, stiffness=[1.0, 0.0, 0.0])
    door.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.3, 0.02, 0.5], mass=1.0)
    world = World(spec, ROBOT)
    world.place_object("box", pose_from_xyyaw(2.0, 0.0, 0.0, 1.5))
    before = world.get_state()
    world.set_mass("box", 0.5)
    np.testing.assert_array_equal(world.get_state(), before)


def test_a_push_moves_the_box_as_newton_says(world):
    world.place_object("box", pose_from_xyyaw(2.0, 0.0, 0.0, 5.0))
    world.set_state(world.get_state())
    centre = world.object_pose("box").translation
    world.push("box", np.array([4.0, 0.0, MASS * 9.81]), centre)
    world.step(20)
    np.testing.assert_allclose(world.object_twist("box")[:3], [4.0 / MASS * 0.1, 0.0, 0.0], atol=1e-3)
    np.testing.assert_allclose(world.object_twist("box")[3:], 0.0, atol=1e-6)
    world.set_state(world.get_state())
    velocity = world.object_twist("box")[2]
    world.step(20)
    assert world.object_twist("box")[2] == pytest.approx(velocity - 0.981, abs=1e-2), "a new state ends the push"


def test_an_unknown_body_is_named(world):
    with pytest.raises(UnknownNameError, match="did you mean 'block'"):
        world.object_pose("blok")


def test_the_fingerprint_does_not_hang_on_the_last_bits_of_a_processor():
    exact, rounded = World(scene(), ROBOT), scene()
    for body in rounded.bodies:
        body.mass, body.fullinertia = body.mass * (1.0 + 2e-16), body.fullinertia * (1.0 - 2e-16)
    assert World(rounded, ROBOT).model_hash == exact.model_hash


def test_the_fingerprint_tells_scenes_apart_but_not_materials_and_places(world):
    mark = world.model_hash
    world.set_mass("box", 1.1)
    world.place_object("block", pose_from_xyyaw(3.0, 0.0, 0.0))
    assert world.model_hash == mark
    assert World(scene(), ROBOT).model_hash == mark
    world.set_mass("box", MASS)
    world.place_object("block", pose_from_xyyaw(2.0, 0.0, 0.0))
    heavier, larger, slipperier = scene(), scene(), scene()
    heavier.geom("box_shell").mass = 2.0
    larger.geom("box_shell").size = [0.11, 0.1, 0.1]
    slipperier.geom("box_shell").friction = [0.1, 0.005, 0.0001]
    found = {World(spec, ROBOT).model_hash for spec in (heavier, larger, slipperier, scene(timestep=0.002))}
    assert len(found | {mark}) == 5


# -- instability -----------------------------------------------------------------------------------------------------


def test_an_absurd_command_raises_instead_of_resetting_in_silence(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log where the program runs
    absurd = RobotCommand.blank(JOINTS, "test")
    absurd.active[:] = True
    absurd.kp[:] = 1e12
    world.apply(absurd)
    with pytest.raises(SceneError, match="unstable"):
        world.step(4)


@pytest.mark.parametrize("at", [3, -3])
def test_an_exploding_state_raises_and_the_next_one_is_clean(world, at, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = world.get_state()
    first = run(world, 1, 3)
    bad = good.copy()
    bad[at] = 1e11
    world.set_state(bad)
    with pytest.raises(SceneError, match=r"unstable .* after t = 0\.000 s"):
        world.step(4)
    with pytest.raises(SceneError):
        world.step(1)
    world.set_state(good)
    np.testing.assert_array_equal(run(world, 1, 3), first)


def test_a_scene_that_runs_away_raises(tmp_path, monkeypatch):
    """A hinge with negative damping turns ever faster."""
    monkeypatch.chdir(tmp_path)
    spec = scene()
    wheel = spec.worldbody.add_body(name="wheel", pos=[5.0, 0.0, 1.0])
    hinge = wheel.add_joint(name="axle", axis=[0, 0, 1])
    hinge.damping = [-5.0, 0.0, 0.0]
    wheel.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.1, 0, 0], mass=1.0)
    world = World(spec, ROBOT)
    world.data.qvel[world.model.joint("axle").dofadr[0]] = 1.0
    with pytest.raises(SceneError, match="unstable"):
        world.step(800)


def test_a_scene_that_does_not_compile_says_so():
    spec = scene()
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[-1.0, 0.0, 0.0])
    with pytest.raises(SceneError, match="does not compile"):
        World(spec, ROBOT)
