# SPDX-License-Identifier: Apache-2.0
"""Single attempts: they repeat bit for bit, labels are clean, replays are exact, rejections say why."""

from __future__ import annotations

from typing import ClassVar

import mujoco
import numpy as np
import pytest

from supple.control.whole_body import WholeBodyController
from supple.episodes import DatasetWriter, Ledger
from supple.episodes.validation import validate
from supple.generation import GenerationSettings
from supple.generation.attempt import AttemptRunner
from supple.generation.demonstrations import Demonstration
from supple.generation.generate import _card
from supple.robots.g1 import ARM_GROUPS
from supple.sim.soundness import LIMITS
from supple.tasks import Environment, task_named
from supple.tasks.box_lift import BoxLift

ROBOT = task_named("box_lift").robot
UPPER = ROBOT.joints.group("waist", *ARM_GROUPS, "left_hand", "right_hand")
ARMS = np.flatnonzero(np.isin(UPPER, ROBOT.joints.group(*ARM_GROUPS)))


def made_by(task, seed, **settings):
    """Return what makes attempts at a task from one seed."""
    return AttemptRunner(task, [Demonstration("seed", task, seed)], GenerationSettings(**settings))


def play(environment, episode, actions):
    """Execute actions from the episode's beginning; return every state and whether the task succeeded."""
    controller = WholeBodyController(ROBOT)
    environment.restore(episode.initial)
    states = [environment.world.get_state()]
    for action in actions:
        controller.command(action)
        environment.body.write(controller.step(environment.body.read(), environment.body.control_interval))
        environment.observe_success()
        states.append(environment.world.get_state())
    return np.array(states), environment.outcome()


@pytest.fixture(scope="module")
def environment():
    return Environment(task_named("box_lift"))


def skill_steps(episode):
    """Return the first and last step of noise: where executed and clean actions differ."""
    steps = np.flatnonzero((episode.actions != episode.executed).any(axis=1))
    return steps[0], steps[-1]


def test_attempts_of_the_wide_distribution_end_well_or_say_why(attempts):
    for record, episode in attempts:
        validate(episode, "attempt")
        assert record.sim_seconds == pytest.approx(episode.duration)
        assert (record.outcome == "retained") == (record.origin is None) == episode.outcome.success
        assert record.stage == "success_test" or record.reason


def test_an_attempt_depends_on_its_index_and_seed_alone(job, runner, attempts):
    """The same runner has made others since; a new one has made none."""
    runner.run(5, 3, "D0")
    for candidate in (runner, job.runner()):
        record, episode = job.run(candidate, 1)
        assert episode.differences(attempts[1][1]) == []
        before = attempts[1][0].model_dump(exclude={"wall_seconds", "timings"})
        assert record.model_dump(exclude={"wall_seconds", "timings"}) == before
    assert "initial/state" in attempts[0][1].differences(attempts[1][1])


def test_another_seed_gives_another_episode(job, runner, attempts):
    _, episode = runner.run(1, 1, "D1")
    assert {"initial/state", "actions", "executed"} <= set(episode.differences(attempts[1][1]))


def test_executed_actions_repeat_the_states_bit_for_bit(environment, attempts, retained):
    for record, episode in (*attempts, *retained):
        states, outcome = play(environment, episode, episode.executed)
        np.testing.assert_array_equal(states, episode.states)
        # Whoever replays judges by the success test alone; an attempt may succeed and be rejected for a foot that slid.
        sound = all(record.soundness[name] <= limit for name, limit in LIMITS.items())
        assert outcome.success == (record.outcome == "retained") or (outcome.success and not sound)
        assert dict(outcome.measures) == dict(episode.outcome.measures)


def test_recorded_poses_belong_to_the_recorded_states(environment, retained):
    _, episode = retained[0]
    environment.restore(episode.initial)
    for i in (0, episode.length // 2, episode.length - 30, episode.length):
        environment.world.set_state(episode.states[i])
        for name, pose in environment.effector_poses().items():
            np.testing.assert_allclose(episode.effector_poses[name][i], pose.homogeneous, atol=1e-7)
        for name, pose in environment.object_poses().items():
            np.testing.assert_allclose(episode.object_poses[name][i], pose.homogeneous, atol=1e-7)
        state = environment.body.read()
        np.testing.assert_array_equal(episode.observations["q"][i], state.q.astype(np.float32))
        assert episode.stamps_ns[i] == state.stamp_ns


def test_clean_labels_differ_from_what_was_executed_only_by_noise_on_the_arms(retained):
    for _, episode in retained:
        noise = episode.executed - episode.actions
        others = np.setdiff1d(np.arange(noise.shape[1]), ARMS)
        assert not noise[:, others].any()
        first, last = skill_steps(episode)
        inside = noise[first : last + 1][:, ARMS]
        # Where the limits leave room it is the stated noise; there it is rarely exactly zero.
        assert np.median(np.std(inside, axis=0)) == pytest.approx(BoxLift.skills[0].arm_noise, rel=0.15)
        assert np.abs(np.mean(inside, axis=0)).max() < 4.0 * BoxLift.skills[0].arm_noise / np.sqrt(len(inside))
        assert (inside != 0.0).mean() > 0.95
        assert np.abs(inside).max() < 6.0 * BoxLift.skills[0].arm_noise


def test_there_is_noise_only_while_a_skill_runs(seed, retained):
    skill = seed.skills[0]
    for _, episode in retained:
        first, last = skill_steps(episode)
        assert last - first + 1 == skill.end - skill.start
        for signal in episode.start_signals.values():
            assert not signal[:first].any()
            assert signal[first:].all()
        for signal in episode.signals.values():
            # Finished is said from the step after the skill's last one on, and never taken back.
            assert not signal[: last + 1].any()
            assert signal[last + 1 :].all()
        # The robot stands while the hands work.
        assert not episode.executed[first : last + 1, 31:34].any()


def test_without_noise_clean_and_executed_are_the_same(seed):
    quiet = made_by(task_named("box_lift"), seed, arm_noise=0.0)
    _, episode = quiet.run(0, 0, "D0")
    np.testing.assert_array_equal(episode.actions, episode.executed)


def test_actions_stay_within_the_contract_and_do_not_jump(retained):
    contract = ROBOT.contract
    for _, episode in retained:
        for actions in (episode.actions, episode.executed):
            assert ((actions >= contract.lower) & (actions <= contract.upper)).all()
        # Clean arm targets move like an arm: below 6 rad/s also where stages hand over.
        assert np.abs(np.diff(episode.actions[:, ARMS], axis=0)).max() < 6.0 * contract.control_interval


def test_fingers_replay_the_demonstration(seed, retained):
    fingers = np.flatnonzero(np.isin(UPPER, ROBOT.joints.group("left_hand", "right_hand")))
    skill = seed.skills[0]
    for _, episode in retained:
        first, last = skill_steps(episode)
        np.testing.assert_array_equal(
            episode.actions[first : last + 1, fingers], seed.episode.actions[skill.start : skill.end, fingers]
        )


# -- rejections ------------------------------------------------------------------------------------------------------


class Strict(BoxLift):
    """The same task, but the box must have been up for a minute."""

    hold: ClassVar[float] = 60.0


@pytest.mark.parametrize(
    ("task", "change", "origin", "stage", "said"),
    [
        (BoxLift(), {"walk_timeout": 0.2}, "actuation", "walk", "the walk did not end"),
        (Strict(), {}, "success_test", "success_test", "wanted 60.0 s"),
    ],
)
def test_a_rejection_names_stage_origin_and_reason(seed, retained, task, change, origin, stage, said):
    runner = made_by(task, seed, **change)
    record, episode = runner.run(retained[0][0].attempt, 0, "D0")
    assert (record.outcome, record.origin, record.stage) == ("rejected", origin, stage)
    assert said in record.reason
    assert record.completed == (stage == "success_test")
    assert not episode.outcome.success
    assert episode.outcome.reason == record.reason
    validate(episode, "rejected")


@pytest.mark.parametrize(
    ("limit", "origin", "said"),
    [("foot_slide", "actuation", "a foot slid"), ("penetration", "contact", "inside each other")],
)
def test_an_attempt_that_is_not_sound_is_rejected_although_it_succeeds(job, retained, monkeypatch, limit, origin, said):
    record, episode = retained[0]
    assert record.soundness == dict(episode.soundness)
    assert all(record.soundness[name] <= bound for name, bound in LIMITS.items())
    monkeypatch.setattr("supple.sim.soundness.LIMITS", dict(LIMITS) | {limit: -1e-9})
    again, rejected = job.runner().run(record.attempt, job.seed, "D0")
    assert (again.outcome, again.origin, again.stage) == ("rejected", origin, "success_test")
    assert said in again.reason == rejected.outcome.reason
    # Only the verdict differs.
    assert again.soundness == record.soundness
    assert rejected.differences(episode) == ["outcome"]


class Farther(BoxLift):
    """The box so far across the table that no place to stand brings the hands to it."""

    def sample(self, distribution, rng):
        layout = super().sample(distribution, rng)
        box = layout.objects["box"]
        box.translation = box.translation + np.array([0.55, 0.0, 0.0])
        return layout


def test_a_box_out_of_reach_is_a_matter_of_planning(seed):
    record, episode = made_by(Farther(), seed).run(0, 0, "D0")
    assert (record.origin, record.stage) == ("planning", "plan")
    assert "no place to stand among" in record.reason
    validate(episode, "rejected")


class Exploding(BoxLift):
    """A scene with a wheel that turns ever faster until physics gives up, a second or so after the start."""

    name: ClassVar[str] = BoxLift.name

    def spec(self, visual=False):
        spec = super().spec(visual)
        wheel = spec.worldbody.add_body(name="wheel", pos=[8.0, 0.0, 1.0])
        hinge = wheel.add_joint(name="axle", axis=[0, 1, 0])
        hinge.damping = [-0.08, 0.0, 0.0]
        wheel.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[0.1, 0, 0], pos=[0.01, 0.0, 0.0], mass=1.0)
        return spec


def test_physics_that_explodes_rejects_the_attempt_and_harms_nothing_else(seed, job, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo writes a log where the program runs
    runner = made_by(Exploding(), seed)
    record, episode = runner.run(0, job.seed, job.distribution)
    assert record.outcome == "rejected"
    assert "unstable" in record.reason
    assert record.sim_seconds >= 0.0
    if episode is not None:
        validate(episode, "rejected")
    # What was made so far can be stored, and the next attempt begins in a sound world.
    with DatasetWriter(tmp_path / "data", _card(job, "data"), keep_rejected=True) as writer:
        writer.add(record, episode)
        writer.finalise()
    assert len(Ledger(tmp_path / "data/ledger.jsonl")) == 1
    again, _ = runner.run(0, job.seed, job.distribution)
    assert again.reason == record.reason
