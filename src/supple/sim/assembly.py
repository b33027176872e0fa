# SPDX-License-Identifier: Apache-2.0
"""What the MuJoCo models of all robots have in common: servos, cameras, floor, light and how physics is computed."""

from __future__ import annotations

import mujoco
import numpy as np
import pinocchio as pin

from supple.errors import SceneError
from supple.robots import Robot

__all__ = ["PHYSICS_TIMESTEP", "add_cameras", "add_surroundings", "make_servos", "set_physics", "wxyz"]

PHYSICS_TIMESTEP = 0.005
"""Physics step in [s]: 200 Hz, as the published environments."""


def wxyz(quaternion: np.ndarray) -> np.ndarray:
    """Return a quaternion (x, y, z, w) in MuJoCo's order (w, x, y, z)."""
    return np.asarray(quaternion)[[3, 0, 1, 2]]


def make_servos(spec: mujoco.MjSpec, robot: Robot) -> None:
    """Turn every actuator into torque = ctrl - kp q - kd v, so that gains and feed-forward come with each command."""
    for joint in robot.joints.joints:
        actuator = spec.actuator(joint.name)
        if actuator is None:
            raise SceneError(f"the MJCF has no actuator for joint {joint.name!r}")
        actuator.gaintype, actuator.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        gain, bias = np.zeros(10), np.zeros(10)
        gain[0], bias[1], bias[2] = 1.0, -joint.kp, -joint.kd
        actuator.gainprm, actuator.biasprm = gain, bias
        actuator.ctrllimited, actuator.forcelimited = False, True
        actuator.forcerange = [-joint.effort, joint.effort]


def add_surroundings(spec: mujoco.MjSpec, visual: bool) -> None:
    """Add the floor; and sky, tiles and light, for pictures."""
    world = spec.worldbody
    floor = world.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0.0, 0.0, 0.05])
    floor.friction = [0.8, 0.005, 0.0001]
    if not visual:
        return
    spec.add_texture(
        name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX, builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=[0.82, 0.88, 0.95], rgb2=[0.55, 0.62, 0.7], width=128, height=128,
    )  # fmt: skip
    spec.add_texture(
        name="tiles", type=mujoco.mjtTexture.mjTEXTURE_2D, builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=[0.72, 0.73, 0.75], rgb2=[0.64, 0.66, 0.69], width=256, height=256,
    )  # fmt: skip
    material = spec.add_material(name="tiles", texrepeat=[2, 2], texuniform=True)
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = "tiles"
    floor.material = "tiles"
    # What no light reaches, e.g. the near side of a screen, is still lit from the camera instead of drawn black.
    spec.visual.headlight.ambient, spec.visual.headlight.diffuse = [0.3] * 3, [0.3] * 3
    for pos, diffuse in (([2.0, -3.0, 4.0], 0.55), ([-2.0, 3.0, 4.0], 0.35)):
        light = world.add_light(pos=pos, dir=[-p for p in pos], type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL)
        light.diffuse = [diffuse] * 3
        light.castshadow = False


def add_cameras(spec: mujoco.MjSpec, robot: Robot) -> None:
    """Add a robot's cameras to its links."""
    for camera in robot.cameras.values():
        frame = robot.frame(camera.frame)
        # MuJoCo looks along -z with y up; the camera's body frame looks along +x with z up.
        to_gl = np.array([[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        quaternion = pin.Quaternion(frame.T_link_frame.rotation @ to_gl).coeffs()
        spec.body(frame.link).add_camera(
            name=camera.name, pos=frame.T_link_frame.translation, quat=wxyz(quaternion), fovy=camera.fovy
        )


def set_physics(spec: mujoco.MjSpec, timestep: float) -> None:
    """Set how physics is computed, with steps in [s]."""
    option = spec.option
    option.timestep, option.iterations = timestep, 50
    option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    # With 49 degrees of freedom MuJoCo would choose a dense Jacobian; a sparse one is a quarter faster here.
    option.jacobian = mujoco.mjtJacobian.mjJAC_SPARSE
    # Elliptic cones with a high friction impedance remove the slow yaw creep of a standing robot.
    option.cone, option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 10.0
    spec.visual.global_.offwidth, spec.visual.global_.offheight = 1280, 960
    spec.visual.quality.offsamples = 0
    spec.visual.map.znear, spec.visual.map.zfar = 0.01, 30.0
