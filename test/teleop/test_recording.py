# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import numpy as np
import pytest

from supple.control.whole_body import WholeBodyController
from supple.episodes import Mark, Outcome, load_seed, validate_seed
from supple.episodes.atomic import free_path
from supple.errors import SeedError, TeleopError
from supple.geometry import pose_from_matrix
from supple.robots import PerfectBody
from supple.tasks import Environment
from supple.teleop.device import OperatorInput
from supple.teleop.recording import record_in_simulation
from supple.teleop.scripted import ScriptedOperator
from supple.teleop.take import Take, mark_labels, save_take, skills_from_marks


class Edited(ScriptedOperator):
    """The scripted operator with some events added, changed or left out, and what it was told."""

    def __init__(self, task, change):
        self.said = []
        super().__init__(task.robot, task.name, self.said.append)
        self._change, self.ticks = change, 0

    def read(self, view):
        given = super().read(view)
        self.ticks += 1
        events = tuple(self._change(self.ticks, given.events))
        return OperatorInput(given.poses, given.fingers, given.velocity, given.clutch, events)


def test_a_demonstration_succeeds_and_is_a_valid_seed_with_the_skills_of_the_task(task, demonstration):
    validate_seed(demonstration, "demonstration")
    assert demonstration.operator == "scripted"
    assert demonstration.episode.outcome.success
    assert {(s.name, s.effector, s.reference) for s in demonstration.skills} == {
        (s.name, s.effector, s.reference) for s in task.skills
    }
    assert [mark.label for mark in demonstration.marks] == ["lift", "end"]


def test_replaying_the_executed_actions_reproduces_every_state_bit_for_bit(task, demonstration):
    episode = demonstration.episode
    environment, controller = Environment(task), WholeBodyController(task.robot)
    environment.restore(episode.initial)
    assert np.array_equal(environment.world.get_state(), episode.states[0])
    for step, action in enumerate(episode.executed):
        controller.command(action)
        environment.body.write(controller.step(environment.body.read(), environment.body.control_interval))
        environment.observe_success()
        assert np.array_equal(environment.world.get_state(), episode.states[step + 1]), f"step {step}"
    assert environment.outcome() == episode.outcome


def test_the_recorded_hands_go_where_they_were_sent(demonstration):
    episode = demonstration.episode
    skill = demonstration.skills[0]
    # Before they press: a squeezed box keeps each hand away from its target.
    rows = slice(skill.start, skill.start + 40)
    for name, targets in episode.target_poses.items():
        distance = np.linalg.norm((targets[rows] - episode.effector_poses[name][rows])[:, :3, 3], axis=1)
        assert distance.max() < 0.03
        pose_from_matrix(targets[skill.start])


def test_marks_that_do_not_make_up_the_skills_lose_nothing(task, tmp_path):
    device = Edited(task, lambda _, events: [event for event in events if not event.startswith("mark:lift")])
    seed = record_in_simulation(task, device, out=tmp_path / "seed.hdf5")
    assert seed.skills == ()
    assert seed.episode.outcome.success
    assert "'lift' of box_lift was marked never" in seed.notes
    assert any("annotate" in text for text in device.said)
    with pytest.raises(SeedError, match="no skill is marked"):
        load_seed(tmp_path / "seed.hdf5")
    assert load_seed(tmp_path / "seed.hdf5", require_skills=False).marks == seed.marks


def test_a_second_start_does_not_throw_the_recording_away(task):
    device = Edited(task, lambda tick, events: (*events, "start") if tick == 200 else events)
    assert record_in_simulation(task, device).episode.length > 700
    assert any("already recording" in text for text in device.said)


def test_unknown_doubled_and_early_marks_are_refused_and_said(task):
    extra = {10: "mark:lift", 100: "mark:throw", 800: "mark:lift"}
    device = Edited(task, lambda tick, events: (*events, extra[tick]) if tick in extra else events)
    seed = record_in_simulation(task, device)
    assert [mark.label for mark in seed.marks] == ["lift", "end"]
    assert any("nothing is being recorded" in text for text in device.said)
    assert any("'throw' is no skill" in text for text in device.said)
    assert any("marked already" in text for text in device.said)


def test_discarding_while_recording_leaves_nothing(task, tmp_path):
    device = Edited(task, lambda tick, events: ("discard", "quit") if tick == 300 else events)
    with pytest.raises(TeleopError, match="the operator quit: nothing was recorded"):
        record_in_simulation(task, device, out=tmp_path / "seed.hdf5")
    assert list(tmp_path.iterdir()) == []


def test_discarding_the_second_take_keeps_the_first(task, tmp_path):
    def change(tick, events):
        if tick == 150:
            return ("stop",)
        return {200: ("start",), 300: ("discard", "quit")}.get(tick, events)

    device = Edited(task, change)
    seed = record_in_simulation(task, device, out=tmp_path / "seed.hdf5")
    assert seed.episode.length < 150
    kept = load_seed(tmp_path / "seed.hdf5", require_skills=False)
    assert kept.episode.differences(seed.episode) == []


def test_a_session_that_runs_out_of_time_keeps_its_recording(task, tmp_path):
    device = ScriptedOperator(task.robot, task.name)
    with pytest.raises(TeleopError, match=r"ended after 4 s: .*seed\.partial\.hdf5"):
        record_in_simulation(task, device, out=tmp_path / "seed.hdf5", timeout=4.0)


def test_a_folder_that_cannot_be_written_is_reported_and_tried_again(task, tmp_path):
    blocked = tmp_path / "folder"
    blocked.write_text("in the way")

    def change(tick, events):
        if tick == 250:
            blocked.unlink()
        return {200: ("stop",), 300: ("stop", "quit")}.get(tick, events)

    device = Edited(task, change)
    seed = record_in_simulation(task, device, out=blocked / "seed.hdf5")
    assert any("was not written" in text and "stop again" in text for text in device.said)
    assert load_seed(blocked / "seed.hdf5", require_skills=False).episode.differences(seed.episode) == []


def test_a_seed_that_cannot_be_written_until_the_end_is_an_error(task, tmp_path):
    blocked = tmp_path / "folder"
    blocked.write_text("in the way")
    device = Edited(task, lambda tick, events: ("stop", "quit") if tick == 200 else events)
    with pytest.raises(SeedError, match="was not written"):
        record_in_simulation(task, device, out=blocked / "seed.hdf5")


# -- takes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("marks", "said"),
    [
        ([("grasp", 3)], "'grasp' at step 3 is no skill of box_lift"),
        ([], "'lift' of box_lift was marked never"),
        ([("lift", 3), ("lift", 5)], "'lift' of box_lift was marked 2 times"),
        ([("lift", 5), ("end", 5)], "'lift' of left_hand has no length"),
        ([("lift", 20)], "no length: marked from step 20 to 20"),
    ],
)
def test_marks_that_make_no_sense_are_refused(task, marks, said):
    with pytest.raises(SeedError, match=said):
        skills_from_marks(task, [Mark(*mark) for mark in marks], 20)


def test_a_skill_ends_at_the_next_mark_or_at_the_end(task):
    assert mark_labels(task) == ("lift",)
    assert {(s.effector, s.start, s.end) for s in skills_from_marks(task, [Mark("lift", 3)], 20)} == {
        ("left_hand", 3, 20),
        ("right_hand", 3, 20),
    }
    assert {s.end for s in skills_from_marks(task, [Mark("lift", 3), Mark("end", 9)], 20)} == {9}


def test_a_mark_before_the_first_action_is_refused(task, demonstration):
    take = Take(task, demonstration.episode.initial, "test", "in a test")
    with pytest.raises(TeleopError, match="before the first recorded action"):
        take.mark("lift")
    assert not take.worth_keeping


def test_a_take_without_its_last_state_is_not_complete(task, demonstration):
    episode, body = demonstration.episode, PerfectBody(task.robot.joints)
    take = Take(task, episode.initial, "test", "in a test")
    poses = {name: pose_from_matrix(rows[0]) for name, rows in episode.effector_poses.items()}
    for _ in range(2):
        take.observe(body.read(), episode.states[0], poses, {}, {})
        assert take.complete
        take.act(episode.actions[0], poses)
        assert not take.complete
        body.write(WholeBodyController(task.robot).step(body.read(), 0.02))
    take.observe(body.read(), episode.states[0], poses, {}, {})
    seed, problem = take.finish(Outcome(False))
    assert seed.episode.length == take.steps == 2
    assert "never" in problem


def test_a_file_is_moved_aside_as_often_as_needed(demonstration, tmp_path):
    path = tmp_path / "seed.hdf5"
    assert save_take(path, demonstration) is None
    assert save_take(path, demonstration) == tmp_path / "seed.before.hdf5"
    assert save_take(path, demonstration) == tmp_path / "seed.before_2.hdf5"
    assert free_path(path) == tmp_path / "seed_2.hdf5"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["seed.before.hdf5", "seed.before_2.hdf5", "seed.hdf5"]
