# SPDX-License-Identifier: Apache-2.0
"""A MuJoCo simulation of one robot among objects: stepping, full states, object poses and contacts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass

import mujoco
import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from supple.errors import SceneError, StateError, UnknownNameError
from supple.geometry import quaternion_of
from supple.robots import Robot, RobotCommand, RobotState
from supple.sim.assembly import wxyz

__all__ = ["Contact", "World"]

Array = NDArray[np.float64]
_CONTACT_FIELDS = ("friction", "contype", "conaffinity", "condim", "solref", "solimp", "margin", "priority", "solmix")
_GEOM_FIELDS = tuple(f"geom_{name}" for name in ("type", "size", "pos", "quat", *_CONTACT_FIELDS))
_MODEL_FIELDS = (
    *(f"body_{name}" for name in ["mass", "inertia", "ipos", "iquat", "pos", "quat"]),
    *(f"jnt_{name}" for name in ["range", "axis", "pos", "actfrcrange", "stiffness", "solref", "solimp"]),
    *(f"dof_{name}" for name in ["armature", "damping", "frictionloss"]),
    *(f"pair_{name}" for name in ["friction", "solref", "solimp"]),
    "actuator_forcerange",
    "tendon_range",
)
_FULL = mujoco.mjtState.mjSTATE_FULLPHYSICS
# MuJoCo answers the first three with a silent reset and the last with no control at all.
_UNSTABLE = np.array(
    [
        mujoco.mjtWarning.mjWARN_BADQPOS.value,
        mujoco.mjtWarning.mjWARN_BADQVEL.value,
        mujoco.mjtWarning.mjWARN_BADQACC.value,
        mujoco.mjtWarning.mjWARN_BADCTRL.value,
    ]
)


@dataclass(frozen=True)
class Contact:
    """One contact point.

    Attributes:
        body1: First body.
        body2: Second body.
        position: Contact point in the world frame in [m], shape (3,).
        normal: Unit normal from the first body to the second, world frame, shape (3,).
        normal_force: Force along the normal in [N].
        tangential_force: Friction force in [N].
        depth: Penetration in [m], positive when the bodies overlap.
    """

    body1: str
    body2: str
    position: Array
    normal: Array
    normal_force: float
    tangential_force: float
    depth: float


class World:
    """One compiled scene with its state.

    Args:
        spec: The scene; it is compiled here.
        robot: The robot in it.

    Raises:
        SceneError: The scene does not compile.
    """

    def __init__(self, spec: mujoco.MjSpec, robot: Robot) -> None:
        self.robot = robot
        try:
            self.model: mujoco.MjModel = spec.compile()
        except ValueError as error:
            raise SceneError(f"the scene does not compile: {error}") from error
        self.data = mujoco.MjData(self.model)
        names = robot.joints.names
        self._iq = np.array([self.model.joint(name).qposadr[0] for name in names])
        self._iv = np.array([self.model.joint(name).dofadr[0] for name in names])
        self._iu = np.array([self.model.actuator(name).id for name in names])
        self._base = self.model.body(robot.base_link).id
        if not robot.fixed_base:
            joint = self.model.body_jntadr[self._base]
            self._base_q = int(self.model.jnt_qposadr[joint])
            self._base_v = int(self.model.jnt_dofadr[joint])
            accelerometer = int(self.model.sensor("base_accel").adr[0])
            self._accelerometer = slice(accelerometer, accelerometer + 3)
        self._state_size = mujoco.mj_stateSize(self.model, _FULL)
        self._body_of = {self.model.body(i).name: i for i in range(self.model.nbody)}
        self._mask_of: dict[str, NDArray[np.bool_]] = {}
        self._pair_masks_of: dict[tuple[tuple[str, str], ...], NDArray[np.bool_]] = {}
        self._compiled_inertia: dict[int, tuple[float, Array]] = {}
        # Taken once, as compiled: where fixed objects stand and what was drawn for materials is kept with each episode.
        self._hash = self._fingerprint()

    # -- time and state ------------------------------------------------------------------------------------------

    @property
    def time_ns(self) -> int:
        """Simulation time in [ns]."""
        return round(self.data.time * 1e9)

    @property
    def state_size(self) -> int:
        """Length of a full physics state vector."""
        return self._state_size

    @property
    def model_hash(self) -> str:
        """Fingerprint of the compiled physics and the table's gains; meshes and fixed objects' places do not count."""
        return self._hash

    def _fingerprint(self) -> str:
        model, option = self.model, self.model.opt
        shapes = model.geom_type != mujoco.mjtGeom.mjGEOM_MESH
        arrays = [getattr(model, name)[shapes] for name in _GEOM_FIELDS]
        arrays += [getattr(model, name) for name in _MODEL_FIELDS]
        arrays.append([option.timestep, option.impratio, option.integrator, option.cone, option.iterations])
        # Gains come with commands, but whoever replays takes them from the table.
        arrays += [option.gravity, self.robot.joints.kp, self.robot.joints.kd, self.robot.joints.home]
        digest = hashlib.sha256()
        for array in arrays:
            # Principal axes come out of linear algebra whose last bits depend on the processor; adding 0 makes -0 to 0.
            digest.update((np.round(np.asarray(array, dtype=np.float64), 9) + 0.0).astype(np.float32).tobytes())
        return digest.hexdigest()[:16]

    def get_state(self) -> Array:
        """Return the full physics state: time, positions, velocities, shape (state_size,)."""
        state = np.empty(self._state_size)
        mujoco.mj_getState(self.model, self.data, state, _FULL)
        return state

    def set_state(self, state: Array) -> None:
        """Put the scene into a full physics state; stepping from it is then reproducible to the last bit.

        Raises:
            StateError: Wrong length (another scene) or not finite.
        """
        value = np.asarray(state, dtype=np.float64)
        if value.shape != (self._state_size,):
            raise StateError(f"state of shape {value.shape} for a scene that has ({self._state_size},): another scene?")
        if not np.all(np.isfinite(value)):
            raise StateError(f"state is not finite at index {int(np.flatnonzero(~np.isfinite(value))[0])}")
        # A reset also clears the solver's warm start, which is no part of the physics but changes its last bits.
        mujoco.mj_resetData(self.model, self.data)
        mujoco.mj_setState(self.model, self.data, value, _FULL)
        self.hold()
        mujoco.mj_forward(self.model, self.data)
        self.data.qacc_warmstart[:] = 0.0

    def clear(self) -> None:
        """Put everything back to how the scene was compiled, before placing objects anew."""
        mujoco.mj_resetData(self.model, self.data)

    def set_mass(self, body: str, mass: float) -> None:
        """Change a body's mass in [kg], its inertia in proportion; call it before the state is set.

        Raises:
            SceneError: The mass is not positive.
        """
        if not mass > 0.0:
            raise SceneError(f"mass of {body!r} must be positive, got {mass}")
        index = self.body_id(body)
        # From the compiled values each time: repeated scaling would change the last bits, and with them the episode.
        compiled_mass, compiled_inertia = self._compiled_inertia.setdefault(
            index, (float(self.model.body_mass[index]), self.model.body_inertia[index].copy())
        )
        self.model.body_mass[index] = mass
        self.model.body_inertia[index] = compiled_inertia * (mass / compiled_mass)
        # It leaves the data it works on in the springs' rest position.
        mujoco.mj_setConst(self.model, mujoco.MjData(self.model))

    def hold(self) -> None:
        """Let every servo hold the present joint positions with the table's gains."""
        joints = self.robot.joints
        self._servo(self.data.qpos[self._iq], np.zeros(len(joints)), np.zeros(len(joints)), joints.kp, joints.kd)

    def step(self, steps: int = 1) -> None:
        """Advance physics by some steps.

        Raises:
            SceneError: The simulation became unstable; MuJoCo would otherwise reset it silently.
        """
        began = self.data.time
        mujoco.mj_step(self.model, self.data, nstep=steps)
        counts = self.data.warning.number
        if counts[_UNSTABLE].any():
            kind = mujoco.mjtWarning(int(_UNSTABLE[counts[_UNSTABLE] > 0][0]))
            name = kind.name.removeprefix("mjWARN_")
            # The time itself was lost with MuJoCo's own reset.
            raise SceneError(f"physics became unstable ({name}) within {steps} steps after t = {began:.3f} s")
        # A step leaves poses where they were before its last integration; they are to belong to the state.
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        mujoco.mj_comVel(self.model, self.data)

    # -- the robot -----------------------------------------------------------------------------------------------

    def place_robot(self, T_world_base: pin.SE3, q: Array) -> None:
        """Put the robot at a base pose with joint positions (n,) in table order, at rest."""
        self.write_robot(self.data, T_world_base, q)
        if not self.robot.fixed_base:
            self.data.qvel[self._base_v : self._base_v + 6] = 0.0
        self.data.qvel[self._iv] = 0.0

    def write_robot(self, data: mujoco.MjData, T_world_base: pin.SE3, q: Array) -> None:
        """Write base pose and joint positions (n,) into the positions of any data of this model.

        A base that is bolted down is moved in the model itself.
        """
        quaternion = wxyz(quaternion_of(T_world_base))
        if self.robot.fixed_base:
            self.model.body_pos[self._base], self.model.body_quat[self._base] = T_world_base.translation, quaternion
        else:
            data.qpos[self._base_q : self._base_q + 3] = T_world_base.translation
            data.qpos[self._base_q + 3 : self._base_q + 7] = quaternion
        data.qpos[self._iq] = q

    def robot_bodies(self) -> NDArray[np.bool_]:
        """Return a mask over all bodies: those of the robot."""
        return self._mask(self.robot.base_link).copy()

    def attached_to(self, body: str) -> NDArray[np.bool_]:
        """Return a mask over all bodies: the named one and everything that hangs on it."""
        return self._mask(body).copy()

    def robot_state(self) -> RobotState:
        """Return the robot's state as its sensors and a perfect odometry would give it."""
        data = self.data
        if self.robot.fixed_base:
            pose, twist = np.concatenate([data.xpos[self._base], data.xquat[self._base]]), np.zeros(6)
            acceleration = -self.model.opt.gravity @ data.xmat[self._base].reshape(3, 3)
        else:
            pose, twist = data.qpos[self._base_q : self._base_q + 7], data.qvel[self._base_v : self._base_v + 6]
            acceleration = data.sensordata[self._accelerometer].copy()
        return RobotState(
            stamp_ns=self.time_ns,
            q=data.qpos[self._iq],
            v=data.qvel[self._iv],
            effort=data.actuator_force[self._iu],
            base_position=pose[:3].copy(),
            base_quaternion=pose[[4, 5, 6, 3]],
            base_linear_velocity=twist[:3].copy(),
            base_angular_velocity=twist[3:].copy(),
            base_acceleration=acceleration,
        )

    def _servo(self, q: Array, v: Array, tau: Array, kp: Array, kd: Array) -> None:
        self.model.actuator_biasprm[self._iu, 1] = -kp
        self.model.actuator_biasprm[self._iu, 2] = -kd
        self.data.ctrl[self._iu] = kp * q + kd * v + tau

    def apply(self, command: RobotCommand) -> None:
        """Set the servos of all joints; the command must address every joint and be finite."""
        self._servo(command.q, command.v, command.tau, command.kp, command.kd)

    # -- objects and contacts --------------------------------------------------------------------------------------

    def body_id(self, name: str) -> int:
        """Return MuJoCo's index of a body."""
        if name not in self._body_of:
            raise UnknownNameError("body", name, self._body_of)
        return self._body_of[name]

    def object_pose(self, name: str) -> pin.SE3:
        """Return the world pose of a body's frame."""
        index = self.body_id(name)
        return pin.SE3(self.data.xmat[index].reshape(3, 3), self.data.xpos[index])

    def is_fixed(self, name: str) -> bool:
        """Tell whether a body is fixed to the world, so that its pose is no part of the physics state."""
        return bool(self.model.body_jntadr[self.body_id(name)] < 0)

    def object_twist(self, name: str) -> Array:
        """Return the velocity of a body: linear at its origin and angular, both in the world frame, shape (6,)."""
        result = np.zeros(6)
        mujoco.mj_objectVelocity(self.model, self.data, mujoco.mjtObj.mjOBJ_XBODY, self.body_id(name), result, 0)
        return result[[3, 4, 5, 0, 1, 2]]

    def place_object(self, name: str, T_world_object: pin.SE3) -> None:
        """Put a free body at a pose, at rest; a fixed body is moved in the model itself."""
        index = self.body_id(name)
        joint = self.model.body_jntadr[index]
        if joint < 0:
            quaternion = wxyz(quaternion_of(T_world_object))
            self.model.body_pos[index], self.model.body_quat[index] = T_world_object.translation, quaternion
            return
        self.write_object(self.data, name, T_world_object)
        velocity = self.model.jnt_dofadr[joint]
        self.data.qvel[velocity : velocity + 6] = 0.0

    def write_object(self, data: mujoco.MjData, name: str, T_world_object: pin.SE3) -> None:
        """Write the pose of a free body into the positions of any data of this model."""
        start = self.model.jnt_qposadr[self.model.body_jntadr[self.body_id(name)]]
        data.qpos[start : start + 3] = T_world_object.translation
        data.qpos[start + 3 : start + 7] = wxyz(quaternion_of(T_world_object))

    def _bodies_below(self, root: str) -> NDArray[np.bool_]:
        """Return a mask over all bodies: the named one and everything attached to it."""
        mask = np.zeros(self.model.nbody, dtype=bool)
        mask[self.body_id(root)] = True
        for i in range(1, self.model.nbody):
            mask[i] |= mask[self.model.body_parentid[i]]
        return mask

    def _mask(self, root: str) -> NDArray[np.bool_]:
        if root not in self._mask_of:
            self._mask_of[root] = self._bodies_below(root)
        return self._mask_of[root]

    def _pair_masks(self, pairs: tuple[tuple[str, str], ...]) -> NDArray[np.bool_]:
        """Return a mask over all pairs of geoms for each pair of bodies, each with what hangs on it."""
        if pairs not in self._pair_masks_of:
            bodies = self.model.geom_bodyid
            sides = [(self._mask(first)[bodies], self._mask(second)[bodies]) for first, second in pairs]
            masks = np.array([np.outer(a, b) | np.outer(b, a) for a, b in sides], dtype=bool)
            self._pair_masks_of[pairs] = masks.reshape(len(pairs), self.model.ngeom, self.model.ngeom)
        return self._pair_masks_of[pairs]

    def contact_forces(self, pairs: Iterable[tuple[str, str]]) -> dict[str, tuple[float, float]]:
        """Return the summed normal and tangential contact force in [N] between pairs of bodies and what hangs on them.

        Args:
            pairs: Names of bodies; the result is keyed ``"first/second"``.
        """
        wrench = np.zeros(6)
        pairs = tuple(pairs)
        sums = [[0.0, 0.0] for _ in pairs]
        for pair, contact in np.argwhere(self._between(pairs)).tolist():
            mujoco.mj_contactForce(self.model, self.data, contact, wrench)
            normal, *across = wrench[:3].tolist()
            sums[pair][0] += normal
            sums[pair][1] += math.hypot(*across)
        return {
            f"{first}/{second}": (normal, tangential)
            for (first, second), (normal, tangential) in zip(pairs, sums, strict=True)
        }

    def touching(self, first: str, second: str) -> bool:
        """Tell whether two bodies (and what hangs on them) are in contact."""
        return bool(self._between(((first, second),)).any())

    def _between(self, pairs: tuple[tuple[str, str], ...]) -> NDArray[np.bool_]:
        """Return which contacts lie between two bodies, and what hangs on them, and can carry force.

        Shape (pairs, contacts).
        """
        contact = self.data.contact
        geoms = contact.geom
        return self._pair_masks(pairs)[:, geoms[:, 0], geoms[:, 1]] & (contact.efc_address >= 0)

    def carried_objects(self, names: Iterable[str]) -> dict[str, str]:
        """Return which of some free bodies the robot carries: touched by it and by nothing else.

        Args:
            names: Bodies to ask about.

        Returns:
            The wrist link of the hand that carries each, by the body's name; several hands may touch it, the first one
            of the robot's effectors counts.
        """
        wrists = [self.robot.frame(effector.frame).link for effector in self.robot.effectors.values()]
        bodies = self.model.geom_bodyid[self.data.contact.geom[self.data.contact.efc_address >= 0]]
        robot = self._mask(self.robot.base_link)
        found = {}
        for name in names:
            mine = self._mask(name)[bodies]
            others = bodies[:, ::-1][mine]
            hands = [link for link in wrists if self._mask(link)[others].any()]
            if hands and robot[others].all() and not self.is_fixed(name):
                found[name] = hands[0]
        return found

    def contacts(self, ignore: Iterable[tuple[str, str]] = ()) -> list[Contact]:
        """Return all contact points that carry force, except those between the ignored pairs of bodies."""
        ignored = {frozenset(pair) for pair in ignore}
        found = []
        wrench = np.zeros(6)
        for i in range(self.data.ncon):
            contact = self.data.contact[i]
            if contact.efc_address < 0:
                continue
            names = [self.model.body(self.model.geom_bodyid[geom]).name for geom in contact.geom]
            if frozenset(names) in ignored:
                continue
            mujoco.mj_contactForce(self.model, self.data, i, wrench)
            tangential = float(np.hypot(wrench[1], wrench[2]))
            normal, position = contact.frame[:3].copy(), contact.pos.copy()
            found.append(
                Contact(names[0], names[1], position, normal, float(wrench[0]), tangential, -float(contact.dist))
            )
        return found

    def link_pose(self, frame: str) -> pin.SE3:
        """Return the world pose of one of the robot's named frames, as simulated."""
        row = self.robot.frame(frame)
        return self.object_pose(row.link) * row.T_link_frame

    def push(self, body: str, force: Array, point: Array) -> None:
        """Apply a force in [N] at a world point in [m] until told otherwise, its moment included."""
        index = self.body_id(body)
        self.data.xfrc_applied[index, :3] = force
        self.data.xfrc_applied[index, 3:] = np.cross(point - self.data.xipos[index], force)
