# SPDX-License-Identifier: Apache-2.0
"""Parameters as a command line gives them: whole numbers for floats, and everything else that does not fit refused."""

from __future__ import annotations

import math

import pytest

from supple.nodes.lifecycle import ParameterError, declare_parameter


@pytest.mark.parametrize(
    ("default", "text", "value"),
    [
        (1.0, "2", 2.0),
        (1.0, "0", 0.0),
        (1.0, "0.5", 0.5),
        (1.0, ".inf", math.inf),
        (0, "7", 7),
        (True, "false", False),
        ("", "D1", "D1"),
        (["a"], "[b, c]", ["b", "c"]),
    ],
)
def test_a_value_that_fits_has_the_type_of_the_default(node_with, default, text, value):
    node = node_with(p=text)
    got = declare_parameter(node, "p", default, "what it means")
    assert got == value
    assert type(got) is type(default)
    assert node.get_parameter("p").value == value
    described = node.describe_parameter("p")
    assert described.read_only
    assert not described.dynamic_typing
    assert described.description == "what it means"


@pytest.mark.parametrize(
    ("default", "text", "message"),
    [
        (1.0, "-1", "got -1.0, expected a number of at least 0"),
        (1.0, "-0.5", "got -0.5, expected a number of at least 0"),
        (1.0, ".nan", "got nan, expected a number of at least 0"),
        (1.0, "fast", "got 'fast', expected a number of at least 0"),
        (1.0, "true", "got True, expected a number of at least 0"),
        (0, "abc", "got 'abc', expected a whole number of at least 0"),
        (0, "1.5", "got 1.5, expected a whole number of at least 0"),
        (0, "-3", "got -3, expected a whole number of at least 0"),
        (True, "maybe", "got 'maybe', expected true or false"),
        (True, "1", "got 1, expected true or false"),
        ("", "5", "got 5, expected a text"),
        (["a"], "b", "got 'b', expected a list of texts"),
        (["a"], "5", "got 5, expected a list of texts"),
    ],
)
def test_a_value_that_does_not_fit_is_named_with_what_is_expected(node_with, default, text, message):
    with pytest.raises(ParameterError) as caught:
        declare_parameter(node_with(p=text), "p", default)
    assert str(caught.value) == f"parameter p of chosen: {message}"


def test_the_smallest_value_can_be_chosen(node_with):
    assert declare_parameter(node_with(p="1"), "p", 50.0, minimum=1.0) == 1.0
    with pytest.raises(ParameterError, match=r"got 0\.5, expected a number of at least 1"):
        declare_parameter(node_with(p="0.5"), "p", 50.0, minimum=1.0)
