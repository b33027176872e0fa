# SPDX-License-Identifier: Apache-2.0
"""From launch files to commands, and what is said about files that cannot be used."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from supple.launching import LaunchError, find_launch_file, parse_arguments, resolve
from supple.launching.document import Element
from supple.launching.resolve import _yaml


def commands(prefix, body, **arguments):
    path = prefix.file("main.launch.xml", body)
    return [list(process.command[1:]) for process in resolve(path, arguments, prefix.environment)]


def refusal(prefix, body, **arguments):
    with pytest.raises(LaunchError) as caught:
        commands(prefix, body, **arguments)
    return str(caught.value)


def test_node_with_everything(prefix):
    (prefix.launch / "p.yaml").write_text("/**: {ros__parameters: {rate: 5}}")
    body = """
      <arg name="robot" default="g1" description="which"/>
      <node pkg="demo" exec="talker" name="sim" namespace="$(var robot)" args="--file 'a b' -v"
            output="screen" on_exit="shutdown" sigterm_timeout="45" sigkill_timeout="1.5">
        <param name="rate" value="200.0"/>
        <param from="$(dirname)/p.yaml"/>
        <param name="late" value="true"/>
        <remap from="joint_states" to="/all/joint_states"/>
      </node>
    """
    (process,) = resolve(prefix.file("main.launch.xml", body), {}, prefix.environment)
    assert process.name == "/g1/sim"
    assert process.shutdown_on_exit
    assert (process.sigterm_timeout, process.sigkill_timeout) == (45.0, 1.5)
    assert process.source.endswith("main.launch.xml:4")
    assert list(process.command) == [
        *[str(prefix.path / "lib/demo/talker"), "--file", "a b", "-v", "--ros-args"],
        *["-r", "__node:=sim", "-r", "__ns:=/g1", "-p", "rate:=200.0"],
        *["--params-file", str(prefix.launch / "p.yaml"), "-p", "late:=true", "-r", "joint_states:=/all/joint_states"],
    ]


def test_node_without_anything_has_no_ros_arguments(prefix):
    assert commands(prefix, '<node pkg="demo" exec="talker"/>') == [[]]


def test_namespaces_add_up_inside_their_group(prefix):
    body = """
      <group>
        <push-ros-namespace namespace="a"/>
        <group><push_ros_namespace namespace="b/c"/><node pkg="demo" exec="talker" name="n" namespace="d"/></group>
        <node pkg="demo" exec="talker" name="n"/>
        <node pkg="demo" exec="talker" name="n" namespace="/top"/>
      </group>
      <node pkg="demo" exec="talker" name="n"/>
    """
    namespaces = [[word[6:] for word in command if word.startswith("__ns:=")] for command in commands(prefix, body)]
    assert namespaces == [["/a/b/c/d"], ["/a"], ["/top"], []]


@pytest.mark.parametrize(
    ("condition", "started"),
    [
        ('if="true"', True),
        ('if="False"', False),
        ('if="1"', True),
        ('unless="true"', False),
        ('unless="0"', True),
        ('if="$(var on)"', False),
    ],
)
@pytest.mark.parametrize(
    "body",
    [
        '<node pkg="demo" exec="talker" {}/>',
        '<group {}><node pkg="demo" exec="talker"/></group>',
        '<include file="other.launch.xml" {}/>',
    ],
)
def test_conditions(prefix, body, condition, started):
    prefix.file("other.launch.xml", '<node pkg="demo" exec="talker"/>')
    body = '<arg name="on" default="false"/>' + body.format(condition)
    assert len(commands(prefix, body)) == int(started)


def test_conditions_on_parameters_and_remaps(prefix):
    body = """
      <node pkg="demo" exec="talker">
        <param name="a" value="1" if="false"/><remap from="b" to="c" unless="true"/>
        <param name="d" value="2" if="true"/>
      </node>
    """
    assert commands(prefix, body) == [["--ros-args", "-p", "d:=2"]]


def test_let_inside_a_group_stays_inside(prefix):
    body = """
      <let name="x" value="outer"/>
      <group><let name="x" value="inner"/><node pkg="demo" exec="talker" args="$(var x)"/></group>
      <node pkg="demo" exec="talker" args="$(var x)"/>
    """
    assert commands(prefix, body) == [["inner"], ["outer"]]


def test_include_gets_arguments_namespace_and_what_is_known(prefix):
    prefix.file(
        "other.launch.xml",
        """
        <arg name="a" default="own"/><arg name="b" default="own"/><arg name="c" default="own"/>
        <let name="a_seen" value="leaks?"/>
        <node pkg="demo" exec="talker" args="$(var a) $(var b) $(var c)"/>
        """,
    )
    body = """
      <arg name="b" default="parent"/>
      <group>
        <push-ros-namespace namespace="ns"/>
        <include file="$(find-pkg-share demo)/launch/other.launch.xml"><arg name="a" value="given"/></include>
      </group>
    """
    # As for ros2 launch, a variable of the including file wins over the default of an argument of the same name.
    assert commands(prefix, body) == [["given", "parent", "own", "--ros-args", "-r", "__ns:=/ns"]]
    assert commands(prefix, body, c="top", b="top") == [["given", "top", "top", "--ros-args", "-r", "__ns:=/ns"]]
    assert "unknown variable 'a_seen'" in refusal(prefix, body + '<let name="x" value="$(var a_seen)"/>')


@pytest.mark.parametrize(
    ("text", "passed"),
    [
        ("1", "1"),
        ("1.0", "1.0"),
        ("-2.5", "-2.5"),
        ("true", "true"),
        ("'1'", '"1"'),
        ("hello", '"hello"'),
        ("", '""'),
        ("a: b", '"a: b"'),
        ("2024-01-01", '"2024-01-01"'),
        ("null", '"null"'),
        (".inf", ".inf"),
        ("[1, 2]", "[1, 2]"),
        ("[a, 'b c']", '["a", "b c"]'),
        ("°", '"°"'),
    ],
)
def test_parameter_values_keep_the_type_that_launch_files_give_them(prefix, text, passed):
    body = f'<node pkg="demo" exec="talker"><param name="p" value="{text}"/></node>'
    assert commands(prefix, body) == [["--ros-args", "-p", f"p:={passed}"]]


# Control characters cannot stand in XML, nor in YAML.
texts = st.text(st.characters(exclude_categories=("Cc", "Cs", "Cn", "Co"), exclude_characters="\ufeff"))
scalars = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | texts


@given(scalars | st.lists(st.booleans(), min_size=1) | st.lists(texts, min_size=1))
def test_written_parameter_values_read_back_as_themselves(value):
    element = Element("param", {}, None, 1)
    read = yaml.safe_load(_yaml(element, "p", "", value))
    # PyYAML wants a sign in exponents, ROS does not.
    read = float(read) if isinstance(value, float) and isinstance(read, str) else read
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            '<nod pkg="demo" exec="talker"/>',
            "main.launch.xml:2: unknown tag <nod> inside <launch>; did you mean 'node'?",
        ),
        ('\n<node pkg="demo" exec="talker" nam="x"/>', ":3: <node>: unknown attribute 'nam'; did you mean 'name'?"),
        ('<node exec="talker"/>', "attribute 'pkg' is missing; got exec"),
        ('<node pkg="demo" exec="talkr"/>', "has no executable 'talkr'; did you mean 'talker'?"),
        ('<node pkg="demoo" exec="talker"/>', "'demoo' is not installed; did you mean 'demo'?"),
        ('<node pkg="demo" exec="talker" respawn="true"/>', "respawn is not supported"),
        ('<node pkg="demo" exec="talker" respawn="maybe"/>', "expected true, false, 1 or 0"),
        ('<node pkg="demo" exec="talker" output="scren"/>', "did you mean 'screen'?"),
        ('<node pkg="demo" exec="talker" on_exit="restart"/>', "expected 'shutdown'"),
        ('<node pkg="demo" exec="talker" sigterm_timeout="soon"/>', "'soon'; expected a time in seconds"),
        ('<node pkg="demo" exec="talker" sigkill_timeout="0"/>', "'0'; expected a time in seconds"),
        ('<node pkg="demo" exec="talker" name="a/b"/>', "'a/b' is not a ROS name"),
        ('<node pkg="demo" exec="talker" namespace="a b"/>', "'a b' is not a ROS name"),
        ('<node pkg="demo" exec="talker" if="true" unless="true"/>', "both 'if' and 'unless'"),
        ('<node pkg="demo" exec="talker"><parm name="a" value="1"/></node>', "did you mean 'param'?"),
        ('<node pkg="demo" exec="talker"><param name="a"/></node>', "attribute 'value' is missing"),
        ('<node pkg="demo" exec="talker"><param name="a" value="[1, x]"/></node>', "not a list of one type"),
        ('<node pkg="demo" exec="talker"><param name="a" value="[1"/></node>', "not a YAML value"),
        ('<node pkg="demo" exec="talker"><param from="absent.yaml"/></node>', "no parameter file 'absent.yaml'"),
        ('<node pkg="demo" exec="talker"><remap from="a"/></node>', "attribute 'to' is missing"),
        ('<node pkg="demo" exec="talker" args="$(var x)"/>', "attribute 'args': unknown variable 'x'"),
        ('<arg name="needed"/>', "'needed' has no default; give one as needed:=VALUE"),
        ('<arg name="x" default="c"><choice value="a"/><choice value="b"/></arg>', "'x' is 'c' (available: a, b)"),
        ('<include file="othr.launch.xml"/>', "did you mean 'other.launch.xml'?"),
        ('<include file="other.launch.xml"><arg name="spede" value="1"/></include>', "did you mean 'speed'?"),
        ('<include file="main.launch.xml"/>', "includes itself"),
        (
            '<node pkg="demo" exec="talker" name="n"/>\n<node pkg="demo" exec="talker" name="n"/>',
            "started a second time",
        ),
        ("<group>words</group>", "text 'words' inside <group>"),
        ("<group>", ":3: not well-formed XML: mismatched tag"),
    ],
)
def test_refusal_says_where_and_what(prefix, body, said):
    prefix.file("other.launch.xml", '<arg name="speed" default="1"/>')
    message = refusal(prefix, body)
    assert said in message
    assert "launch.xml:" in message


def test_argument_that_no_file_declares_is_refused(prefix):
    message = refusal(prefix, '<arg name="robot" default="g1"/>', robto="g1")
    assert "no launch argument 'robto'; did you mean 'robot'? (available: robot)" in message


def test_other_roots_and_missing_files_are_refused(tmp_path):
    path = tmp_path / "a.launch.xml"
    path.write_text("<lunch/>")
    with pytest.raises(LaunchError, match="the root is <lunch>; expected <launch>"):
        resolve(path, {}, {})
    with pytest.raises(LaunchError, match="cannot be read"):
        resolve(tmp_path / "absent.launch.xml", {}, {})


def test_arguments_on_the_command_line():
    assert parse_arguments(["a:=1", "b:=x:=y", "c:="]) == {"a": "1", "b": "x:=y", "c": ""}
    with pytest.raises(LaunchError, match="'a=1' is not of the form name:=value"):
        parse_arguments(["a=1"])
    with pytest.raises(LaunchError, match="given twice"):
        parse_arguments(["a:=1", "a:=2"])


def test_launch_files_are_found_by_path_or_by_name_in_supple(prefix, tmp_path):
    (prefix.path / "share/ament_index/resource_index/packages/supple").touch()
    folder = prefix.path / "share/supple/launch"
    folder.mkdir(parents=True)
    (folder / "sim.launch.xml").write_text("<launch/>")
    (tmp_path / "mine.launch.xml").write_text("<launch/>")
    environment = prefix.environment
    assert find_launch_file(tmp_path / "mine.launch.xml", environment) == tmp_path / "mine.launch.xml"
    assert find_launch_file("sim.launch.xml", environment) == folder / "sim.launch.xml"
    with pytest.raises(LaunchError, match=r"did you mean 'sim\.launch\.xml'"):
        find_launch_file("sin.launch.xml", environment)
