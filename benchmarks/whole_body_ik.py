# SPDX-License-Identifier: Apache-2.0
"""What whole-body inverse kinematics costs, beside plain pink and mink on the same targets.

    python benchmarks/whole_body_ik.py [--targets 100]

Targets are where both hands of random postures are that touch neither the scene nor the robot itself: standing in front
of box_lift's table with arms, or arms and waist, moved; and squatting. pink (with daqp) and mink get one task for each
hand and each foot, the centre of mass and the posture, and take full Gauss-Newton steps until the hands are there, as
Supple's are asked to. Supple also frees joints group by group, keeps the centre of mass over the feet and, in the last
columns, checks all spheres. Medians of processor time on one core; mink is installed with
`pip install -r requirements/benchmarks.txt`.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable, Mapping
from functools import partial

import mujoco
import numpy as np
import pink
import pinocchio as pin
from pink.tasks import ComTask, FrameTask, PostureTask

from supple.geometry import pose_error, pose_from_xyyaw
from supple.kinematics.collision import CollisionModel
from supple.kinematics.collision_spheres import link_spheres
from supple.kinematics.ik_batch import IkBatchSolver
from supple.kinematics.model import KinematicModel
from supple.kinematics.solids import Solids
from supple.kinematics.stance import Footing
from supple.robots import g1
from supple.robots.g1 import ARM_GROUPS, STANDING_WAIST_RANGE
from supple.sim.assembly import wxyz
from supple.sim.collision_geometry import robot_solids, scene_solids
from supple.sim.world import World
from supple.tasks import Environment, task_named

ROBOT = g1()
JOINTS = ROBOT.joints
FEET = ("l_sole", "r_sole")
POSITION, ORIENTATION = 2e-3, 0.02
MOST_STEPS = 60
HEIGHTS = (0.35, 0.78)
Targets = Mapping[str, pin.SE3]
Answer = Callable[[Targets], bool]


def posture(rng: np.random.Generator, spread: float, *groups: str) -> np.ndarray:
    """Draw joint positions round the home posture, 5 % away from every limit."""
    lower, upper = JOINTS.lower.copy(), JOINTS.upper.copy()
    for name, interval in STANDING_WAIST_RANGE.items():
        lower[JOINTS.index(name)], upper[JOINTS.index(name)] = interval
    q = JOINTS.home.copy()
    for i in JOINTS.group(*groups):
        room = 0.05 * (upper[i] - lower[i])
        drawn = q[i] + spread * rng.uniform(-0.5, 0.5) * (upper[i] - lower[i])
        q[i] = np.clip(drawn, lower[i] + room, upper[i] - room)
    return q


class Pink:
    """Plain pink: every task at once, daqp as its solver."""

    def __init__(self, base: pin.SE3) -> None:
        self.kinematics = KinematicModel(ROBOT)
        self.model = self.kinematics.model
        self.start = self.kinematics.configuration(base, JOINTS.home)
        self.hands = {e.name: FrameTask(e.frame, 10.0, 4.0, lm_damping=1e-4) for e in ROBOT.effectors.values()}
        self.feet = [FrameTask(name, 30.0, 30.0) for name in FEET]
        self.com, self.posture = ComTask(1e-1), PostureTask(3e-2)

    def __call__(self, targets: Targets) -> bool:
        """Tell whether the hands got there."""
        configuration = pink.Configuration(self.model, self.kinematics.data, self.start, copy_data=False)
        tasks = [*self.hands.values(), *self.feet, self.com, self.posture]
        for task in (*self.feet, self.com, self.posture):
            task.set_target_from_configuration(configuration)
        for name, target in targets.items():
            self.hands[name].set_target(target)
        frames = {name: ROBOT.effector(name).frame for name in targets}
        for _ in range(MOST_STEPS):
            poses = {name: configuration.get_transform_frame_to_world(frames[name]) for name in targets}
            if reached(poses, targets):
                return True
            velocity = pink.solve_ik(configuration, tasks, 1.0, solver="daqp", damping=3e-3, safety_break=False)
            configuration.integrate_inplace(velocity, 1.0)
        return False


class Mink:
    """The same in mink, on MuJoCo's model of the robot; its frames are the links that carry hands and feet."""

    def __init__(self, base: pin.SE3, world: World) -> None:
        import mink

        self.mink, self.model = mink, world.model
        data = mujoco.MjData(world.model)
        data.qpos[:] = world.data.qpos
        world.write_robot(data, base, JOINTS.home)
        self.start = data.qpos.copy()
        self.frames = {e.name: ROBOT.frame(e.frame) for e in ROBOT.effectors.values()}
        self.hands = {
            name: mink.FrameTask(frame.link, "body", 10.0, 4.0, lm_damping=1e-4) for name, frame in self.frames.items()
        }
        self.feet = [mink.FrameTask(ROBOT.frame(name).link, "body", 30.0, 30.0) for name in FEET]
        self.com = mink.ComTask(1e-1)
        self.posture = mink.PostureTask(world.model, 3e-2)
        self.limits = [mink.ConfigurationLimit(world.model)]

    def __call__(self, targets: Targets) -> bool:
        """Tell whether the hands got there."""
        configuration = self.mink.Configuration(self.model, self.start)
        tasks = [*self.hands.values(), *self.feet, self.com, self.posture]
        for task in (*self.feet, self.com, self.posture):
            task.set_target_from_configuration(configuration)
        links = {name: target * self.frames[name].T_link_frame.inverse() for name, target in targets.items()}
        for name, pose in links.items():
            quaternion = wxyz(pin.Quaternion(pose.rotation).coeffs())
            self.hands[name].set_target(self.mink.SE3(np.concatenate([quaternion, pose.translation])))
        for _ in range(MOST_STEPS):
            poses = {}
            for name, frame in self.frames.items():
                body = self.model.body(frame.link).id
                rotation = configuration.data.xmat[body].reshape(3, 3)
                poses[name] = pin.SE3(rotation, configuration.data.xpos[body]) * frame.T_link_frame
            if reached(poses, targets):
                return True
            velocity = self.mink.solve_ik(configuration, tasks, 1.0, "daqp", damping=3e-3, limits=self.limits)
            configuration.integrate_inplace(velocity, 1.0)
        return False


def reached(poses: Targets, targets: Targets) -> bool:
    """Tell whether all hands are within tolerance."""
    errors = [pose_error(poses[name], target) for name, target in targets.items()]
    return all(distance <= POSITION and angle <= ORIENTATION for distance, angle in errors)


def measured(answer: Answer, targets: list[Targets], repeats: int = 3) -> tuple[np.ndarray, int]:
    """Return the least time for each target in [ms] of some repetitions, and how many were reached."""
    times = np.full((repeats, len(targets)), np.inf)
    solved = 0
    for i, target in enumerate(targets):
        for k in range(repeats):
            began = time.process_time()
            found = answer(target)
            times[k, i] = 1e3 * (time.process_time() - began)
        solved += found
    return times.min(axis=0), solved


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--targets", type=int, default=100)
    count = parser.parse_args().targets
    # pink reports every joint that lies a millionth of a radian beyond its limit.
    logging.disable(logging.WARNING)
    task = task_named("box_lift")
    environment = Environment(task)
    layout = task.nominal()
    environment.reset(layout)
    world = environment.world
    # 8 cm between the table's edge and the robot: where the skill of lifting begins.
    base = pose_from_xyyaw(1.37, 0.0, 0.0, ROBOT.standing_height)
    began = time.process_time()
    spheres = link_spheres(robot_solids(world))
    print(f"{len(spheres.radii)} spheres in {time.process_time() - began:.2f} s")
    collisions, solids = CollisionModel(ROBOT, spheres), scene_solids(world)
    kinematics = KinematicModel(ROBOT)
    free, checked = IkBatchSolver(ROBOT), IkBatchSolver(ROBOT, collisions)
    allowance = collisions.touching(collisions.at(base, JOINTS.home, solids))
    squat = Footing(heights=HEIGHTS)

    def hands(q: np.ndarray, place: pin.SE3) -> Targets:
        poses = kinematics.frame_poses(kinematics.configuration(place, q), *(e.frame for e in ROBOT.effectors.values()))
        return dict(zip(ROBOT.effectors, poses, strict=True))

    def clear(place: pin.SE3, q: np.ndarray) -> bool:
        distances = collisions.at(place, q, solids, allowance)
        return min(float(distances.own.min()), float(distances.scene.min())) > -1e-3

    def drawn(rng: np.random.Generator, *groups: str) -> Targets:
        while True:
            q = posture(rng, 0.45, *groups)
            if clear(base, q):
                return hands(q, base)

    def low(rng: np.random.Generator) -> Targets:
        """Both hands where those of a squat with raised arms would be: 10 to 35 cm below the standing ones."""
        while True:
            q = posture(rng, 0.3, *ARM_GROUPS)
            place = pose_from_xyyaw(0.0, 0.0, 0.0, ROBOT.standing_height - rng.uniform(0.1, 0.35))
            targets = hands(q, place)
            if clear(far, q) and min(pose.translation[2] for pose in targets.values()) > 0.25:
                return targets

    far = pose_from_xyyaw(0.0, 0.0, 0.0, ROBOT.standing_height)
    kinds = {
        "arms": (base, None, lambda rng: drawn(rng, *ARM_GROUPS)),
        "arms and waist": (base, None, lambda rng: drawn(rng, "waist", *ARM_GROUPS)),
        "squatting": (far, squat, low),
    }
    print(f"{'median in ms (reached)':24} {'pink':>14} {'mink':>14} {'Supple':>14} {'/ pink':>7} {'with spheres':>16}")
    total: dict[str, list[np.ndarray]] = {}
    for kind, (place, footing, draw) in kinds.items():
        targets = [draw(np.random.default_rng([7, i])) for i in range(count)]

        def found(target: Targets, solver: IkBatchSolver, scene: Solids | None, place=place, footing=footing) -> bool:
            batch = solver.search(
                place,
                JOINTS.home,
                target,
                np.random.default_rng(0),
                footing=footing,
                solids=scene,
                least_margin=-0.03,
                position_tolerance=POSITION,
                orientation_tolerance=ORIENTATION,
            )
            return bool(batch.candidates)

        answers: dict[str, Answer] = {"pink": Pink(place)}
        try:
            answers["mink"] = Mink(place, world)
        except ModuleNotFoundError:
            print("mink is not installed: its column stays empty")
        answers["supple"] = partial(found, solver=free, scene=None)
        answers["checked"] = partial(found, solver=checked, scene=solids)
        rows = {name: measured(answer, targets) for name, answer in answers.items()}
        cells = {name: f"{np.median(times):.2f} ({solved}/{count})" for name, (times, solved) in rows.items()}
        ratio = np.median(rows["supple"][0]) / np.median(rows["pink"][0])
        print(
            f"{kind:24} {cells['pink']:>14} {cells.get('mink', '-'):>14} {cells['supple']:>14} {ratio:7.2f} "
            f"{cells['checked']:>16}"
        )
        for name, (times, _) in rows.items():
            total.setdefault(name, []).append(times)
    medians = {name: float(np.median(np.concatenate(times))) for name, times in total.items()}
    print(f"all: Supple / pink {medians['supple'] / medians['pink']:.2f}, with spheres {medians['checked']:.1f} ms")


if __name__ == "__main__":
    main()
