# SPDX-License-Identifier: Apache-2.0
"""Files that say what objects look like: the one that ships is good, and what is wrong with another is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from supple.errors import SettingError
from supple.perception.geometric import GeometricMasks
from supple.perception.looks import Looks

SHIPPED = Path(__file__).resolve().parents[2] / "config/perception/box_lift.yaml"


def test_the_file_that_ships_makes_a_source():
    looks = Looks.read(SHIPPED)
    source = looks.source()
    assert isinstance(source, GeometricMasks)
    assert list(source.objects) == ["box", "table"]
    assert source.objects["box"].size == (0.172, 0.231, 0.168)
    assert source.objects["table"].support


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("objects: {cup: {colour: [[1, 2, 3]]}}", r"objects\.cup\.colour: unknown field; did you mean 'colors'"),
        ("object: {}", "unknown field; did you mean 'objects'|objects: missing"),
        ("objects: {}", "objects"),
        ("objects: {cup: {size: [0.1, 0.1]}}", r"objects\.cup\.size"),
        ("objects: {cup: {size: [0.1, 0.1, .nan]}}", r"objects\.cup\.size\.2"),
        ("objects: {cup: {colors: [[1, 2, 300]]}}", r"objects\.cup\.colors\.0\.2"),
        ("objects: {cup: {}}", "needs a colour or a size"),
        ("objects: {cup: {colors: [[0, 0, 0]]}}", "not black"),
        ("objects: {cup: {size: [0.1, 0.1, 0.1]}}\nnear: 2.0\nfar: 1.0", "near"),
        ("objects: [cup", "no valid YAML"),
        ("", "expected a mapping of fields, got NoneType"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, message):
    path = tmp_path / "looks.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingError, match=message) as caught:
        Looks.read(path)
    assert str(path) in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SettingError, match=r"nowhere\.yaml: cannot be read"):
        Looks.read(tmp_path / "nowhere.yaml")
