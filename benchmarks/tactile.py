# SPDX-License-Identifier: Apache-2.0
"""What the simulated touch costs beside physics, and how near its centre of pressure comes to the point of contact.

    python benchmarks/tactile.py [--repeats 300]

Plays the seed of box_lift and takes all 18 pads and the four wrenches while nothing touches the hands and while they
hold the box; then presses balls on random places of fingertips and palms. Prints medians on one core.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin

from supple.control.whole_body import WholeBodyController
from supple.episodes import load_seed
from supple.geometry import pose_from_xyyaw
from supple.robots import g1
from supple.sim.forces import LinkWrenches, contact_forces
from supple.sim.g1_model import g1_spec
from supple.sim.skin import TactileSkin
from supple.sim.tactile import TactileSensors, TactileSettings
from supple.sim.world import World
from supple.tasks import Environment, task_named

SEED = Path(__file__).resolve().parents[1] / "seeds/box_lift.hdf5"
FREE, HOLDING = 300, 850
BALL = 0.008


def median_ms(action: Callable[[], object], repeats: int) -> float:
    """Return the median time of an action in [ms]."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return 1e3 * float(np.median(times))


def costs(repeats: int) -> None:
    """Print what readings and wrenches take, beside a step of physics."""
    episode = load_seed(SEED).episode
    task = task_named(episode.task)
    environment = Environment(task)
    environment.restore(episode.initial)
    world, controller = environment.world, WholeBodyController(task.robot)
    sensors, wrenches = TactileSensors(world, TactileSettings(), np.random.default_rng(0)), LinkWrenches(world)
    print(f"{'median in ms':40} {'free':>8} {'holding':>8}")
    rows: dict[str, list[float]] = {}
    for step, action in enumerate(episode.executed[: HOLDING + 1]):
        if step in (FREE, HOLDING):
            stamps = iter(range(0, 10**18, 10_000_000))
            rows.setdefault("contacts as arrays", []).append(median_ms(lambda: contact_forces(world), repeats))
            contacts = contact_forces(world)
            for name, work in (
                ("readings of 18 pads (216 taxels)", lambda c=contacts, s=stamps: sensors.advance(next(s), c)),
                ("truth of 18 pads", lambda c=contacts: sensors.skin.touches(c)),
                ("4 wrenches", lambda c=contacts: wrenches.read(c)),
            ):
                rows.setdefault(name, []).append(median_ms(work, repeats))
            state = world.get_state()
            rows.setdefault("one step of physics (5 ms)", []).append(median_ms(lambda: world.step(1), 50))
            world.set_state(state)
        controller.command(action)
        environment.body.write(controller.step(environment.body.read(), task.robot.contract.control_interval))
    for name, values in rows.items():
        print(f"{name:40} " + " ".join(f"{value:8.3f}" for value in values))


def places(repeats: int) -> None:
    """Print how far the centre of pressure of a ball lies from where it touches."""
    robot, rng = g1(), np.random.default_rng(0)
    spec = g1_spec()
    ball = spec.worldbody.add_body(name="ball", pos=[3.0, 0.0, 1.0])
    ball.add_freejoint(name="ball_joint")
    ball.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[BALL, 0, 0], mass=1.0)
    world = World(spec, robot)
    world.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, 1.5), robot.joints.home)
    mujoco.mj_kinematics(world.model, world.data)
    skin = TactileSkin(world)
    for kind, names in (
        ("fingertips", ("left_index_1", "right_middle_1", "left_thumb_2")),
        ("palms", ("left_palm_0", "right_palm_2")),
    ):
        errors = []
        for _ in range(repeats):
            pad = robot.pads[names[rng.integers(len(names))]]
            # Any place between the middles of the taxels at the rim.
            fine = pad.patch.grid(pad.rows * 20, pad.columns * 20)
            row, column = rng.integers(10, pad.rows * 20 - 10), rng.integers(10, pad.columns * 20 - 10)
            at = row * pad.columns * 20 + column
            link = world.object_pose(pad.link)
            centre = fine.position[at] + (BALL - 0.0008) * fine.normal[at]
            world.place_object("ball", link * pin.SE3(np.eye(3), centre))
            world.set_state(world.get_state())
            touch, layout = skin.touches()[pad.name], skin.layouts[pad.name]
            if touch.normal_force > 0.0:
                found = (touch.pressure * layout.area) @ layout.position / touch.normal_force
                errors.append(1e3 * float(np.linalg.norm(found - fine.position[at])))
        size = 1e3 * float(np.sqrt(robot.pads[names[0]].taxels().area.mean()))
        print(
            f"centre of pressure, {kind}: {np.median(errors):.1f} mm median, {np.percentile(errors, 95):.1f} mm p95 "
            f"({len(errors)} of {repeats} felt, taxels of {size:.0f} mm)"
        )


def main() -> None:
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=300)
    repeats = parser.parse_args().repeats
    costs(repeats)
    places(repeats)


if __name__ == "__main__":
    main()
