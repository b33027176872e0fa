# SPDX-License-Identifier: Apache-2.0
"""What the standing controller is worth: heights, pushes, payloads, ten minutes, hand-overs, its cost.

    python benchmarks/standing.py [heights] [pushes] [payload] [endurance] [hand_over] [cost] [--minutes 10]

Everything is measured in MuJoCo on the simulated G1 with its hands (physics 200 Hz, control 50 Hz); without a name, all
parts run (about five minutes).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping

import mujoco
import numpy as np

from supple.control.standing import LegMode, StandingController
from supple.control.whole_body import WholeBodyController
from supple.geometry import pose_from_xyyaw, xyyaw_of
from supple.robots import g1
from supple.robots.dex3 import PALM_CENTRE
from supple.sim.body import SimBody
from supple.sim.g1_model import g1_spec
from supple.sim.world import World

ROBOT = g1()
DT = ROBOT.contract.control_interval
FEET = ("left_ankle_roll_link", "right_ankle_roll_link")


def arms(pitch: float, roll: float, elbow: float) -> np.ndarray:
    """Return a posture (43,) with both arms alike; a negative pitch raises them to the front."""
    q = ROBOT.joints.home.copy()
    for side, sign in (("left", 1.0), ("right", -1.0)):
        q[ROBOT.joints.group(f"{side}_arm")] = [pitch, sign * roll, 0.0, elbow, 0.0, 0.0, 0.0]
    return q


CLEAR = arms(-0.3, 0.4, 0.1)
STRETCHED = arms(-0.9, 0.15, 0.9)


class Stand:
    """A robot that stands by the standing controller alone, arms included.

    Args:
        posture: Where its arms are, shape (43,).
        payload: Mass in the palm by side, in [kg], unknown to the controller.
    """

    def __init__(self, posture: np.ndarray, payload: Mapping[str, float] | None = None) -> None:
        spec = g1_spec()
        for side, mass in (payload or {}).items():
            load = spec.body(f"{side}_wrist_yaw_link").add_body(name=f"{side}_load", pos=[PALM_CENTRE[0], 0.0, 0.0])
            load.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.03, 0, 0], mass=mass, contype=0, conaffinity=0)
        self.world = World(spec, ROBOT)
        self.world.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, ROBOT.standing_height + 0.015), ROBOT.joints.home)
        self.world.set_state(self.world.get_state())
        self.body = SimBody(self.world, DT)
        self.body.reset()
        self.controller = StandingController(ROBOT)
        self.controller.set_posture(posture)
        self.run(3.0)
        self.feet = self.foot_positions()

    def foot_positions(self) -> np.ndarray:
        """Return the feet's positions in the world in [m], shape (2, 3)."""
        return np.array([self.world.object_pose(name).translation for name in FEET])

    def tick(self) -> None:
        """Pass one control interval."""
        self.body.write(self.controller.step(self.body.read(), DT))

    def run(self, seconds: float) -> dict[str, float]:
        """Let time pass; return the largest deviations on the way in [mm] and [deg], and whether the robot stood."""
        most = dict.fromkeys(("com", "tilt", "slide"), 0.0)
        for _ in range(round(seconds / DT)):
            self.tick()
            support = self.controller.support
            off = support.com - self.controller.com_reference
            most["com"] = max(most["com"], 1e3 * float(np.abs(off).max()))
            most["tilt"] = max(most["tilt"], float(np.degrees(support.foot_tilt)))
            if hasattr(self, "feet"):
                moved = np.linalg.norm((self.foot_positions() - self.feet)[:, :2], axis=1)
                most["slide"] = max(most["slide"], 1e3 * float(moved.max()))
        most["stands"] = float(self.upright)
        return most

    @property
    def upright(self) -> bool:
        """Whether the robot has not fallen."""
        pose = self.world.object_pose(ROBOT.base_link)
        return bool(pose.translation[2] > 0.25 and pose.rotation[2, 2] > 0.5)

    def push(self, force: np.ndarray, seconds: float = 0.2) -> None:
        """Push the torso, 15 cm above its origin, with a force in [N]."""
        for _ in range(round(seconds / DT)):
            torso = self.world.object_pose("torso_link").translation
            self.world.push("torso_link", force, torso + np.array([0.0, 0.0, 0.15]))
            self.tick()
        self.world.data.xfrc_applied[:] = 0.0


def heights() -> None:
    """Squat from 0.78 to 0.35 m and back, holding each height."""
    print(f"{'height m':>9} {'reached':>8} {'com off mm':>11} {'sole tilt deg':>14} {'slide mm':>9} {'pitch rad':>10}")
    stand = Stand(CLEAR)
    for height in (0.78, 0.7, 0.6, 0.5, 0.4, 0.35, 0.5, 0.65, 0.78, 0.35, 0.78):
        stand.controller.set_height(height)
        most = stand.run(5.0)
        support = stand.controller.support
        pitch = float(np.arcsin(support.base_rotation[0, 2]))
        print(
            f"{height:9.2f} {support.height:8.4f} {most['com']:11.1f} {most['tilt']:14.2f} {most['slide']:9.1f} "
            f"{pitch:10.2f}{'' if most['stands'] else '  FELL'}"
        )


def pushes() -> None:
    """Push the torso for 0.2 s from four sides at two heights."""
    print(f"{'height m':>9} {'push N':>7}  from behind, right, front, left: largest sole tilt in deg, or FELL")
    for height in (0.765, 0.5):
        for newton in (40.0, 50.0, 60.0, 70.0):
            row = []
            for angle in np.radians([0.0, 90.0, 180.0, 270.0]):
                stand = Stand(CLEAR)
                stand.controller.set_height(height)
                stand.run(3.0)
                stand.push(newton * np.array([np.cos(angle), np.sin(angle), 0.0]))
                most = stand.run(5.0)
                row.append(f"{most['tilt']:6.1f}" if most["stands"] else "  FELL")
            print(f"{height:9.3f} {newton:7.0f} {' '.join(row)}")


def payload() -> None:
    """Hold masses with stretched arms, unknown to the controller; then keep the hands in place while squatting."""
    columns = ("load kg", "height m", "reached", "com mm", "found N", "hands off mm", "slide mm")
    print("{:>8} {:>9} {:>8} {:>7} {:>8} {:>13} {:>9}".format(*columns))
    for masses in ({"left": 1.0, "right": 1.0}, {"left": 2.0}, {"left": 2.0, "right": 2.0}):
        stand = Stand(STRETCHED, masses)
        names = {"left_hand": "l_gripper", "right_hand": "r_gripper"}
        targets = {hand: stand.world.link_pose(frame) for hand, frame in names.items()}
        for hand, pose in targets.items():
            stand.controller.set_hand(hand, pose)
        for height in (0.765, 0.65):
            stand.controller.set_height(height)
            most = stand.run(10.0)
            off = max(
                np.linalg.norm(stand.world.link_pose(names[h]).translation - t.translation) for h, t in targets.items()
            )
            found = -sum(load[2] for load in stand.controller.loads.values())
            support = stand.controller.support
            label = "+".join(f"{mass:g}" for mass in masses.values())
            print(
                f"{label:>8} {height:9.3f} {support.height:8.4f} {1e3 * support.com[0]:7.1f} {found:8.1f} "
                f"{1e3 * off:13.1f} {most['slide']:9.1f}{'' if most['stands'] else '  FELL'}"
            )


def endurance(minutes: float) -> None:
    """Stand for minutes and tell how far base and feet went."""
    for height in (0.765, 0.5):
        stand = Stand(CLEAR)
        stand.controller.set_height(height)
        stand.run(5.0)
        before, feet = stand.body.read().T_world_base, stand.foot_positions()
        most = stand.run(60.0 * minutes)
        after = stand.body.read().T_world_base
        drift = 1e3 * np.linalg.norm((after.translation - before.translation)[:2])
        turn = float(np.degrees(xyyaw_of(after)[2] - xyyaw_of(before)[2]))
        lift = 1e3 * (after.translation[2] - before.translation[2])
        slid = 1e3 * np.linalg.norm((stand.foot_positions() - feet)[:, :2], axis=1).max()
        print(
            f"{minutes:g} min at {height} m: base drifted {drift:.2f} mm, turned {turn:.3f} deg, rose {lift:.2f} mm, "
            f"feet slid {slid:.2f} mm, com within {most['com']:.1f} mm{'' if most['stands'] else '  FELL'}"
        )


def hand_over(count: int = 12) -> None:
    """Walk, squat, walk again, from random walks; count how often it works and how far the feet slid."""
    rng = np.random.default_rng(0)
    controller = WholeBodyController(ROBOT)
    upper = controller.upper_body.indices
    good, slides, waits, rises = 0, [], [], []
    for _ in range(count):
        stand = World(g1_spec(), ROBOT)
        stand.place_robot(pose_from_xyyaw(0.0, 0.0, 0.0, ROBOT.standing_height + 0.015), CLEAR)
        stand.set_state(stand.get_state())
        body = SimBody(stand, DT)
        body.reset()
        controller.reset()
        velocity = rng.uniform([-0.2, -0.15, -0.5], [0.5, 0.15, 0.5])
        low = float(rng.uniform(0.38, 0.7))
        feet: list[np.ndarray] = []
        modes: list[LegMode] = []
        for seconds, height, wanted in (
            (float(rng.uniform(2.0, 4.0)), ROBOT.standing_height, velocity),
            (8.0, low, np.zeros(3)),
            (6.0, ROBOT.standing_height, velocity),
        ):
            controller.command(controller.action(CLEAR[upper], wanted, height))
            for _ in range(round(seconds / DT)):
                body.write(controller.step(body.read(), DT))
                modes.append(controller.mode)
                if controller.mode is LegMode.STANDING:
                    feet.append(np.array([stand.object_pose(name).translation[:2] for name in FEET]))
        upright = stand.object_pose(ROBOT.base_link).rotation[2, 2] > 0.8
        good += bool(upright and feet and controller.mode is LegMode.WALKING)
        if feet:
            slides.append(1e3 * float(np.linalg.norm(np.array(feet) - feet[0], axis=2).max()))
        waits.append(DT * modes.count(LegMode.STOPPING))
        rises.append(DT * modes.count(LegMode.RISING))
    print(f"hand-overs walk, squat, walk: {good} of {count}; feet slid at most {max(slides):.1f} mm while standing")
    print(f"from command to squat {np.median(waits):.1f} s (at most {max(waits):.1f}), rising {np.median(rises):.1f} s")


def cost() -> None:
    """Time one tick of the standing controller and of the walking policy in the same run."""
    stand = Stand(CLEAR)
    whole = WholeBodyController(ROBOT)
    state = stand.body.read()

    def median(step) -> float:
        times = []
        for _ in range(300):
            began = time.perf_counter()
            step(state, DT)
            times.append(time.perf_counter() - began)
        return 1e3 * float(np.median(times))

    standing, walking = median(stand.controller.step), median(whole.walking.step)
    began = time.perf_counter()
    stand.run(20.0)
    factor = 20.0 / (time.perf_counter() - began)
    print(f"one tick: standing controller {standing:.2f} ms, walking policy {walking:.2f} ms")
    print(f"simulated seconds per wall second while standing: {factor:.1f}")


def main() -> None:
    """Run the parts asked for."""
    parts = {"heights": heights, "pushes": pushes, "payload": payload, "hand_over": hand_over, "cost": cost}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*parts, "endurance", []], help="what to measure; all by default")
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to stand")
    arguments = parser.parse_args()
    for name in arguments.parts or [*parts, "endurance"]:
        print(f"\n{name}")
        if name == "endurance":
            endurance(arguments.minutes)
        else:
            parts[name]()


if __name__ == "__main__":
    main()
