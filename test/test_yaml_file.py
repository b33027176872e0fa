# SPDX-License-Identifier: Apache-2.0
"""YAML files: what cannot be read is refused in one line that names the file, by the error that the caller asks for."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ConfigDict

from supple.errors import DatasetError, SensorError, SettingError
from supple.yaml_file import read_model, read_yaml


def test_plain_data_come_back(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("b: [1, 2.5]\nc: grün\n", encoding="utf-8")
    assert read_yaml(path, SensorError) == {"b": [1, 2.5], "c": "grün"}
    assert read_yaml(str(path), SensorError) == read_yaml(path, SensorError)


@pytest.mark.parametrize("refusal", [SensorError, DatasetError])
@pytest.mark.parametrize("content", [b"a: [1, 2\nb: }", b"\xff\xfe\x00", b"a: !!python/object:os.system {}"])
def test_what_is_no_yaml_is_refused_in_one_line(tmp_path, content, refusal):
    path = tmp_path / "broken.yaml"
    path.write_bytes(content)
    with pytest.raises(refusal, match=r"broken\.yaml: no valid YAML: ") as caught:
        read_yaml(path, refusal)
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(SensorError, match=r"nothing\.yaml: cannot be read: No such file"):
        read_yaml(tmp_path / "nothing.yaml", SensorError)
    with pytest.raises(SensorError, match="cannot be read: Is a directory"):
        read_yaml(tmp_path, SensorError)


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid")

    mass: float


class Whole(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    parts: dict[str, Part] = {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a", "expected a mapping of fields, got list"),
        ("{}", "name: missing"),
        ("nmae: a", "nmae: unknown field; did you mean 'name'? (known: name, parts)"),
        ("{name: a, parts: {arm: {mass: heavy}}}", "parts.arm.mass: Input should be a valid number, unable to parse"),
        (
            "{name: a, parts: {arm: {mass: 1, mas: 2}}}",
            "parts.arm.mas: unknown field; did you mean 'mass'? (known: mass)",
        ),
    ],
)
def test_what_is_wrong_with_a_model_is_one_line_with_file_and_field(tmp_path, text, problem):
    path = tmp_path / "whole.yaml"
    path.write_text(text)
    with pytest.raises(SettingError) as caught:
        read_model(path, Whole, SettingError)
    assert str(caught.value).startswith(f"{path}: {problem}")
    assert "\n" not in str(caught.value)


def test_a_sound_model_is_read(tmp_path):
    path = tmp_path / "whole.yaml"
    path.write_text("{name: a, parts: {arm: {mass: 1.5}}}")
    assert read_model(path, Whole, SettingError).parts["arm"].mass == 1.5


@pytest.mark.parametrize("text", ["name: a\nname: b", "parts: {arm: {mass: 1.0, mass: 2.0}}"])
def test_a_key_that_stands_twice_is_refused(tmp_path, text):
    path = tmp_path / "twice.yaml"
    path.write_text(text)
    with pytest.raises(SettingError, match=r"key '(name|mass)' stands twice"):
        read_yaml(path, SettingError)


def test_a_merged_mapping_may_be_overridden(tmp_path):
    path = tmp_path / "merged.yaml"
    path.write_text("base: &base {a: 1, b: 2}\nother: {<<: *base, b: 3}")
    assert read_yaml(path, SettingError)["other"] == {"a": 1, "b": 3}
