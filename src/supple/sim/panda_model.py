# SPDX-License-Identifier: Apache-2.0
"""Assembly of the Panda's MuJoCo model from its URDF: bolted down, with servos, and fingers that close as one."""

from __future__ import annotations

import mujoco
import numpy as np

from supple.robots import panda
from supple.robots.assets import panda_meshes
from supple.robots.panda import FINGERTIP, PANDA_SIDES
from supple.sim.assembly import PHYSICS_TIMESTEP, add_surroundings, make_servos, set_physics

__all__ = ["panda_spec"]

# Rubber tips, and torsional friction (condim 4) against pivoting, as the G1's hands have them.
_TIP_FRICTION = (1.2, 0.02, 0.001)


def panda_spec(visual: bool = False, timestep: float = PHYSICS_TIMESTEP) -> mujoco.MjSpec:
    """Return the editable model of a Panda on a floor; whoever wants objects adds them to it.

    Its shapes are the collision meshes and boxes of the URDF, in pictures as well.

    Args:
        visual: With sky, tiles and light, for pictures; physics is the same without.
        timestep: Physics step in [s].
    """
    robot = panda()
    files = sorted(panda_meshes().glob("*.stl"))
    spec = mujoco.MjSpec.from_string(robot.urdf.read_text(), assets={path.name: path.read_bytes() for path in files})
    # Links without a joint stay bodies of their own: frames are named after them.
    spec.compiler.fusestatic = False
    # Of a URDF MuJoCo would drop sky and tiles as well.
    spec.compiler.discardvisual = False
    for side in PANDA_SIDES:
        _name_fingertip(spec.body(f"panda_{side}finger"), side)
    for row in robot.joints.joints:
        joint = spec.joint(row.name)
        # The URDF's damping stands for friction, which a servo's own damping drowns.
        joint.armature, joint.damping = row.armature, [0.0, 0.0, 0.0]
        joint.actfrclimited, joint.actfrcrange = True, [-row.effort, row.effort]
        spec.add_actuator(name=row.name, target=row.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    # One motor drives both fingers.
    fingers = [robot.joints.names[i] for i in robot.joints.group("fingers")]
    coupling = spec.add_equality(name="fingers", type=mujoco.mjtEq.mjEQ_JOINT, name1=fingers[0], name2=fingers[1])
    coupling.data[:5] = [0.0, 1.0, 0.0, 0.0, 0.0]
    # The hulls of these links overlap where the links themselves do not.
    spec.add_exclude(name="elbow_hand", bodyname1="panda_link5", bodyname2="panda_link7")
    spec.add_exclude(name="shoulder", bodyname1=robot.base_link, bodyname2="panda_link2")
    make_servos(spec, robot)
    add_surroundings(spec, visual)
    spec.add_exclude(name="bolted", bodyname1="world", bodyname2=robot.base_link)
    set_physics(spec, timestep)
    return spec


def _name_fingertip(body: mujoco.MjsBody, side: str) -> None:
    """Give a finger's rubber tip its name and the friction of rubber."""
    sign = 1.0 if side == "left" else -1.0
    middle = np.array([FINGERTIP[0], sign * FINGERTIP[1], FINGERTIP[2]])
    tip = next(geom for geom in body.geoms if np.allclose(geom.pos, middle, atol=1e-6))
    tip.name, tip.friction, tip.condim = f"{side}_fingertip", list(_TIP_FRICTION), 4
