# SPDX-License-Identifier: Apache-2.0
"""Assembly of the G1's MuJoCo model: the vendor's MJCF, Dex3 hands grafted on, servo actuators, floor and camera."""

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin

from supple.errors import SceneError
from supple.kinematics.model import KinematicModel
from supple.robots import g1
from supple.robots.assets import g1_mjcf
from supple.robots.dex3 import PALM_CENTRE, PALM_HALF_SIZE, finger_capsule
from supple.sim.assembly import PHYSICS_TIMESTEP, add_cameras, add_surroundings, make_servos, set_physics, wxyz
from supple.sim.meshes import decimated_meshes

__all__ = ["g1_spec"]

_BOX, _CAPSULE, _MESH = mujoco.mjtGeom.mjGEOM_BOX, mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_MESH
# Rubber-covered hand: torsional friction (condim 4) keeps a box from pivoting between two fingertips.
_HAND_FRICTION = (1.2, 0.02, 0.001)


def _set_inertia(body: mujoco.MjsBody, inertia: pin.Inertia) -> None:
    """Give a body the inertia of a URDF link chain, so that both models weigh the same."""
    matrix = inertia.inertia
    body.explicitinertial = True
    body.mass, body.ipos = inertia.mass, inertia.lever
    # MuJoCo finds the principal axes: NumPy's would differ in their last bits, or signs, from processor to processor.
    body.inertia, body.iquat = np.zeros(3), wxyz(pin.Quaternion.Identity().coeffs())
    body.fullinertia = [*np.diag(matrix), matrix[0, 1], matrix[0, 2], matrix[1, 2]]


def _finger_geom(side: str, joint: str) -> dict[str, object]:
    """Return the collision capsule of a finger link, in the link's frame."""
    shape = finger_capsule(side, joint)
    return {"size": [shape.radius, 0, 0], "fromto": [*shape.start, *shape.end]}


def _add_hand(spec: mujoco.MjSpec, model: KinematicModel, side: str, sign: int, visual: bool) -> None:
    """Replace the rubber hand by a Dex3 hand whose joints and inertias come from the URDF."""
    wrist = spec.body(f"{side}_wrist_yaw_link")
    for geom in list(wrist.geoms):
        if geom.name == f"{side}_hand_collision" or geom.meshname == f"{side}_rubber_hand":
            spec.delete(geom)
    contact = {"contype": 1, "conaffinity": 1, "group": 3, "friction": list(_HAND_FRICTION), "condim": 4}
    contact |= {"mass": 0.0, "rgba": [0.2, 0.6, 0.2, 0.3]}
    x, y, z = PALM_CENTRE
    wrist.add_geom(name=f"{side}_palm", type=_BOX, size=list(PALM_HALF_SIZE), pos=[x, sign * y, z], **contact)
    palm_offset = [0.0415, sign * 0.003, 0.0]
    if visual:
        _add_visual(spec, wrist, f"{side}_hand_palm_link", palm_offset)
    pm, bodies = model.model, {f"{side}_wrist_yaw_joint": wrist}
    for name in (n for n in pm.names if n.startswith(f"{side}_hand_")):
        joint_id = pm.getJointId(name)
        placement, parent = pm.jointPlacements[joint_id], pm.names[pm.parents[joint_id]]
        link = name.replace("_joint", "_link")
        body = bodies[parent].add_body(name=link, pos=placement.translation)
        _set_inertia(body, pm.inertias[joint_id])
        row = model.robot.joints.joints[model.robot.joints.index(name)]
        axis = {"RX": [1, 0, 0], "RY": [0, 1, 0], "RZ": [0, 0, 1]}[pm.joints[joint_id].shortname()[-2:]]
        joint = body.add_joint(name=name, axis=axis, range=[row.lower, row.upper])
        joint.damping, joint.armature = [0.05, 0.0, 0.0], 0.0005
        joint.actfrclimited, joint.actfrcrange = True, [-row.effort, row.effort]
        short = name.removeprefix(f"{side}_hand_").removesuffix("_joint")
        body.add_geom(name=f"{side}_{short}", type=_CAPSULE, **_finger_geom(side, short), **contact)
        if visual:
            _add_visual(spec, body, link, [0.0, 0.0, 0.0])
        bodies[name] = body
        spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)


def _add_visual(spec: mujoco.MjSpec, body: mujoco.MjsBody, mesh: str, pos: list[float]) -> None:
    if spec.mesh(mesh) is None:
        spec.add_mesh(name=mesh, file=f"{mesh}.STL")
    body.add_geom(
        type=_MESH, meshname=mesh, pos=pos, contype=0, conaffinity=0, group=1, mass=0.0, rgba=[0.25, 0.25, 0.27, 1.0]
    )


def _strip_visuals(spec: mujoco.MjSpec) -> None:
    """Drop all meshes: physics does not use them, and loading 25 MB of STL would cost each worker a second."""
    for geom in list(spec.geoms):
        if geom.type == _MESH:
            spec.delete(geom)
    for mesh in list(spec.meshes):
        spec.delete(mesh)


def _drop_double_visuals(spec: mujoco.MjSpec) -> None:
    """The vendor draws many links twice for ray casting; once is enough for a picture."""
    seen = set()
    for geom in list(spec.geoms):
        if geom.type == _MESH:
            key = (geom.parent.name, geom.meshname)
            if key in seen:
                spec.delete(geom)
            seen.add(key)


def _thin_soles(spec: mujoco.MjSpec) -> None:
    """Drop two of a sole's seven capsules.

    They lie between the others, so that the outline of the sole stays within 2 mm of the vendor's; the contacts that
    they add cost a fifth of the physics.
    """
    for side in ("left", "right"):
        for number in (3, 5):
            geom = spec.geom(f"{side}_foot{number}_collision")
            for pair in [pair for pair in spec.pairs if geom.name in (pair.geomname1, pair.geomname2)]:
                spec.delete(pair)
            spec.delete(geom)


def g1_spec(visual: bool = False, timestep: float = PHYSICS_TIMESTEP) -> mujoco.MjSpec:
    """Return the editable model of a G1 with Dex3 hands on a floor; tasks add their objects to it.

    Args:
        visual: With meshes, textures and lights, for pictures; physics is the same without.
        timestep: Physics step in [s].

    Raises:
        SceneError: The installed MuJoCo cannot run it.
    """
    if mujoco.__version__.startswith("4.0.0"):
        raise SceneError("MuJoCo 4.0.0 has a faulty sparse Cholesky factorisation; expected 3.17.x")
    robot = g1()
    kinematics = KinematicModel(robot)
    spec = mujoco.MjSpec.from_file(str(g1_mjcf()))
    if visual:
        _drop_double_visuals(spec)
    else:
        _strip_visuals(spec)
    for side, sign in (("left", 1), ("right", -1)):
        _add_hand(spec, kinematics, side, sign, visual)
    if visual:
        spec.meshdir = str(decimated_meshes([mesh.file for mesh in spec.meshes]))
    for side in ("left", "right"):  # markers of the vendor's that weigh a gram each
        spec.delete(spec.body(f"{side}_foot_contact_point"))
    _set_inertia(spec.body("pelvis"), kinematics.model.inertias[1])
    for name in robot.joints.names[:29]:
        body = spec.joint(name).parent
        _set_inertia(body, kinematics.model.inertias[kinematics.model.getJointId(name)])
    _thin_soles(spec)
    make_servos(spec, robot)
    add_surroundings(spec, visual)
    add_cameras(spec, robot)
    # The vendor's hip capsules start inside the pelvis sphere's reach in a deep squat.
    for side in ("left", "right"):
        spec.add_exclude(name=f"pelvis_{side}_hip", bodyname1="pelvis", bodyname2=f"{side}_hip_roll_link")
    set_physics(spec, timestep)
    return spec
