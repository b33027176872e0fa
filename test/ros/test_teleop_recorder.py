# SPDX-License-Identifier: Apache-2.0
"""The operator's node with a real simulator beside it: a whole demonstration, the services, the keys, the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from node_graph import NodeProcess
from std_srvs.srv import Trigger
from supple_interfaces.srv import Mark

from supple.control.whole_body import WholeBodyController
from supple.episodes import load_seed, read_bag
from supple.tasks import Environment, task_named
from supple.tasks.furniture import ERGO_TABLE_TOP


@pytest.fixture
def simulator(tmp_path) -> Iterator[NodeProcess]:
    node = NodeProcess("sim_bridge", tmp_path / "sim_bridge.log", camera=False)
    yield node
    node.stop()


class AtTheKeyboard:
    """The node with the keyboard device, in a terminal of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "teleop_recorder.log"
        self.hands, self.terminal = os.openpty()
        self.before = termios.tcgetattr(self.terminal)
        command = [sys.executable, "-m", "supple.nodes.teleop_recorder", "--ros-args", "-p", "use_sim_time:=true"]
        command += ["-p", f"output:={folder / 'seed.hdf5'}"]
        self._file = self.log.open("wb")
        self.process = subprocess.Popen(command, stdin=self.terminal, stdout=self._file, stderr=self._file)

    def type(self, keys: str) -> None:
        os.write(self.hands, keys.encode())

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._file.close()
        os.close(self.hands)
        os.close(self.terminal)


@pytest.fixture
def keyboard(simulator, tmp_path) -> Iterator[AtTheKeyboard]:
    folder = tmp_path / "recorded"
    folder.mkdir()
    node = AtTheKeyboard(folder)
    yield node
    node.close()


def test_the_scripted_operator_lifts_the_box_over_topics_and_its_seed_is_as_good_as_one_from_the_simulator(
    simulator, tmp_path
):
    out = tmp_path / "recorded/seed.hdf5"
    out.parent.mkdir()
    node = NodeProcess("teleop_recorder", tmp_path / "log", device="scripted", output=out, use_sim_time=True)
    try:
        # Its script ends with `quit`: the node brings the arms home and ends by itself.
        assert node.wait(180.0) == 0, node.output()
    finally:
        node.stop()
    seed = load_seed(out, "g1")
    episode = seed.episode
    assert seed.operator == "scripted"
    assert {(s.name, s.effector, s.reference) for s in seed.skills} == {
        ("lift", "left_hand", "box"),
        ("lift", "right_hand", "box"),
    }
    assert episode.object_poses["box"][-1, 2, 3] > ERGO_TABLE_TOP + 0.1
    assert episode.outcome.success, episode.outcome.reason
    assert np.all(np.diff(episode.stamps_ns) == 20_000_000)
    assert episode.contacts["left_wrist_yaw_link/box"].max() > 2.0
    # The physics state is rebuilt from what was measured: the scene can be put into it, and the actions work from it.
    task = task_named("box_lift")
    environment, controller = Environment(task), WholeBodyController(task.robot)
    environment.restore(episode.initial)
    for action in episode.executed:
        controller.command(action)
        environment.body.write(controller.step(environment.body.read(), environment.body.control_interval))
    assert environment.object_poses()["box"].translation[2] > ERGO_TABLE_TOP + 0.1

    bag = read_bag(out.with_name("seed_bag"), ["/joint_states", "/joint_commands", "/objects"])
    assert "none lost" in seed.notes
    assert bag.counts["/joint_commands"] >= episode.length
    stamps = [m.header.stamp.sec * 10**9 + m.header.stamp.nanosec for _, m in bag.messages["/joint_states"]]
    assert set(np.diff(stamps)) == {5_000_000}
    assert stamps[0] <= episode.stamps_ns[0] + 20_000_000
    assert stamps[-1] >= episode.stamps_ns[-2]
    assert {message.source for _, message in bag.messages["/joint_commands"]} == {"teleop"}
    assert {"/clock", "/odom", "/imu/data", "/contacts", "/command_trace", "/tf"} <= bag.counts.keys()


def test_services_and_keys_record_mark_stop_and_discard_and_an_interrupt_keeps_the_rest(keyboard, graph):
    out = keyboard.folder / "seed.hdf5"

    def trigger(name):
        return graph.call(Trigger, f"teleop_recorder/{name}", Trigger.Request())

    def mark(label):
        return graph.call(Mark, "teleop_recorder/mark", Mark.Request(label=label))

    graph.next("command_trace", lambda trace: trace.source == "teleop" and not trace.refused, 60.0)
    early = mark("lift")
    assert not early.success
    assert "nothing is being recorded" in early.message

    # By service.
    assert trigger("start").success
    assert not trigger("start").success
    graph.run_for(1.0)
    wrong = mark("throw")
    assert not wrong.success
    assert "available: lift, end" in wrong.message
    assert mark("lift").success
    graph.run_for(0.4)
    assert mark("end").success
    graph.run_for(0.2)
    assert trigger("stop").success
    graph.until(out.exists, "the seed file", 60.0)
    by_service = load_seed(out, "g1")
    assert by_service.operator == "keyboard"
    assert not by_service.episode.outcome.success
    assert len({(s.start, s.end) for s in by_service.skills}) == 1
    assert 15 <= by_service.skills[0].end - by_service.skills[0].start <= 60
    assert read_bag(out.with_name("seed_bag"), ["/odom"]).counts["/odom"] > 200

    # By key; the older file is moved aside.
    keyboard.type("r")
    graph.run_for(1.0)
    keyboard.type("m")
    graph.run_for(0.4)
    keyboard.type("n")
    graph.run_for(0.2)
    keyboard.type("t")
    older = out.with_name("seed.before.hdf5")
    graph.until(lambda: older.exists() and out.exists(), "the second seed file", 60.0)
    assert load_seed(older).episode.differences(by_service.episode) == []
    by_key = load_seed(out, "g1")
    assert [m.label for m in by_key.marks] == ["lift", "end"]
    assert by_key.episode.stamps_ns[0] > by_service.episode.stamps_ns[-1]

    # Discarded: nothing new appears, no bag either.
    before = {path.name for path in keyboard.folder.iterdir()}
    assert trigger("start").success
    graph.run_for(0.5)
    assert trigger("discard").success
    graph.run_for(0.5)
    names = {path.name for path in keyboard.folder.iterdir() if not path.name.startswith(".")}
    assert names == {name for name in before if not name.startswith(".")}

    # Interrupted while recording and with the clutch in: kept aside, the terminal put back, exit code 0.
    keyboard.type("r ")
    graph.run_for(1.5)
    keyboard.process.send_signal(signal.SIGINT)
    assert keyboard.process.wait(20.0) == 0, keyboard.said()
    partial = load_seed(out.with_name("seed.partial.hdf5"), require_skills=False)
    assert partial.episode.length >= 50
    assert partial.skills == ()
    assert "seed.partial.hdf5" in keyboard.said()
    assert load_seed(out).episode.differences(by_key.episode) == []
    assert termios.tcgetattr(keyboard.terminal) == keyboard.before


@pytest.mark.parametrize(
    ("parameter", "said"), [("device:=keyboard", "needs a terminal"), ("device:=joystick", "unknown device 'joystick'")]
)
def test_a_device_that_cannot_be_used_ends_the_node_with_one_clear_line(tmp_path, parameter, said):
    command = [sys.executable, "-m", "supple.nodes.teleop_recorder", "--ros-args", "-p", parameter]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
