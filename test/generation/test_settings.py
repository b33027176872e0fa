# SPDX-License-Identifier: Apache-2.0
"""Settings of single skills: what is said of one counts more than of all, and that more than the task's own."""

from __future__ import annotations

import pytest
import yaml
from pydantic import ValidationError

from supple.errors import SettingError
from supple.generation.settings import GenerationSettings, SkillSettings
from supple.tasks import Skill
from supple.yaml_file import read_model

PICK = Skill("pick", "right_hand", "drill", arm_noise=0.02, term_offset_range=(5, 10))
PLACE = Skill("place", "right_hand", "table")


def test_without_settings_a_skill_is_done_as_its_task_says():
    assert GenerationSettings().of_skill(PICK) == PICK


def test_one_skill_counts_more_than_all_and_all_more_than_the_task():
    settings = GenerationSettings(
        arm_noise=0.0, interpolation_steps=7, skills={"pick_right_hand": SkillSettings(arm_noise=0.05)}
    )
    pick, place = settings.of_skill(PICK), settings.of_skill(PLACE)
    assert (pick.arm_noise, pick.interpolation_steps, pick.term_offset_range) == (0.05, 7, (5, 10))
    assert (place.arm_noise, place.interpolation_steps, place.term_offset_range) == (0.0, 7, (0, 0))


def test_what_is_stored_spells_out_every_skill_and_means_the_same():
    settings = GenerationSettings(interpolation_steps=2)
    stored = settings.resolved([PICK, PLACE])
    assert set(stored.skills) == {"pick_right_hand", "place_right_hand"}
    assert stored.skills["pick_right_hand"] == SkillSettings(
        arm_noise=0.02, interpolation_steps=2, term_offset_range=(5, 10)
    )
    for skill in (PICK, PLACE):
        assert stored.of_skill(skill) == settings.of_skill(skill)
    assert stored.resolved([PICK, PLACE]) == stored


def test_a_file_may_hold_settings_and_its_mistakes_are_named(tmp_path):
    path = tmp_path / "settings.yaml"
    path.write_text(yaml.safe_dump({"selection": "nearest_object", "skills": {"pick_right_hand": {"arm_noise": 0.03}}}))
    settings = read_model(path, GenerationSettings, SettingError)
    assert settings.of_skill(PICK).arm_noise == 0.03
    path.write_text("skills: {pick_right_hand: {noise: 0.03}}")
    with pytest.raises(SettingError, match=r"skills.pick_right_hand.noise: unknown field"):
        read_model(path, GenerationSettings, SettingError)


@pytest.mark.parametrize(
    "wrong", [{"term_offset_range": (3, 1)}, {"arm_noise": -0.1}, {"selection_top": 0}, {"selection": "nearest"}]
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(ValidationError):
        GenerationSettings(**wrong)
