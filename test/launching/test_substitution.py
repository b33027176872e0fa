# SPDX-License-Identifier: Apache-2.0
"""Substitutions of launch XML."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple.launching.document import LaunchError
from supple.launching.substitution import Scope, substitute

SCOPE = Scope({"robot": "g1", "which": "robot"}, {"HOME": "/h", "EMPTY": ""}, Path("/folder"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", ""),
        ("plain (text) with ) brackets", "plain (text) with ) brackets"),
        ("$(var robot)", "g1"),
        ("a/$(var robot)/b", "a/g1/b"),
        ("$( var  robot )", "g1"),
        ("$(var $(var which))", "g1"),
        ("$(env HOME)", "/h"),
        ("$(env EMPTY fallback)", ""),
        ("$(env ABSENT fallback)", "fallback"),
        ("$(env ABSENT 'two words')", "two words"),
        ("$(env ABSENT '')", ""),
        ("$(env ABSENT $(var robot)-x)", "g1-x"),
        ("$(env ABSENT 'a)b')", "a)b"),
        ("$(dirname)/x.yaml", "/folder/x.yaml"),
        (r"\$(var robot)", "$(var robot)"),
        ("cost: 5$", "cost: 5$"),
    ],
)
def test_value(text, value):
    assert substitute(text, SCOPE) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("$(var robto)", "unknown variable 'robto'; did you mean 'robot'? (available: robot, which)"),
        ("$(varr robot)", "did you mean 'var'?"),
        ("$(find robot)", "unknown substitution $(find …)"),
        ("$()", "unknown substitution"),
        ("$(var)", "takes 1 words; got 0"),
        ("$(env A b c)", "takes 1 or 2 words; got 3"),
        ("$(dirname x)", "takes 0 words; got 1"),
        ("$(var robot", "bracket is not closed"),
        ("$(env A 'b)", "quote is not closed"),
        ("$(env ABSENT)", "'ABSENT' is not set"),
        ("$(find-pkg-share demo)", "'demo' is not installed"),
    ],
)
def test_error(text, said):
    with pytest.raises(LaunchError) as caught:
        substitute(text, SCOPE)
    assert said in str(caught.value)


@given(st.text().filter(lambda text: "$(" not in text and "\\$" not in text))
def test_text_without_substitutions_stays_as_it_is(text):
    assert substitute(text, SCOPE) == text


@given(st.text(), st.text())
def test_values_are_not_read_again(before, value):
    before = before.replace("$", "").replace("\\", "")
    scope = Scope({"name": value}, {}, Path("/folder"))
    assert substitute(before + "$(var name)", scope) == before + value
