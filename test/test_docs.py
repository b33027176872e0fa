# SPDX-License-Identifier: Apache-2.0
"""The documentation says what the code says: tables, names, commands, links."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import yaml

from supple.cli.main import app
from supple.episodes.ledger import AttemptRecord, Origin
from supple.generation import GenerationSettings, GenerationSummary
from supple.replay.verdict import Verdict
from supple.robots import ActionKind, g1

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *ROOT.glob("*.md")])
NODES = ROOT / "src/supple/nodes"

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def section(page: str, title: str) -> str:
    """Return the text below a heading, up to the next one of the same rank or above."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
    assert found, f"{page} has no heading {title!r}"
    rest = text[found.end() :]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def tables(text: str) -> Iterator[list[list[str]]]:
    """Yield each table as rows of cells, heading first."""
    for block in re.findall(r"(?:^\|.*\|\n)+", text + "\n", re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in block.splitlines()]
        yield [rows[0], *rows[2:]]


def table(text: str, *heading: str) -> list[list[str]]:
    """Return the rows of the one table whose heading begins with the given cells."""
    found = [rows[1:] for rows in tables(text) if tuple(rows[0][: len(heading)]) == heading]
    assert len(found) == 1, f"{len(found)} tables begin with {heading}"
    return found[0]


def codes(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


# -- links -----------------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page as GitHub makes them, and those it sets itself."""
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    found = set(re.findall(r'<a id="([^"]+)"', text))
    for title in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", title.lower())
        found.add(plain.strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_lead_somewhere(page):
    text = _FENCE.sub("", page.read_text(encoding="utf-8"))
    broken = []
    for link in _LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_the_index_leads_to_every_page():
    linked = set(_LINK.findall((DOCS / "README.md").read_text(encoding="utf-8")))
    assert {page.name for page in DOCS.glob("*.md")} - {"README.md"} <= linked


# -- commands --------------------------------------------------------------------------------------------------------


def shown_commands() -> Iterator[tuple[str, str]]:
    """Yield page and line of each ``supple …`` in a code block that is meant to be typed."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for line in re.findall(r"^(?: {4}|)((?:supple) [a-z].*)$", text, re.MULTILINE):
            yield name_of(page), line


@pytest.mark.parametrize(("page", "line"), sorted(set(shown_commands())))
def test_shown_commands_exist_with_their_options(page, line):
    words = shlex.split(line, comments=True)
    command, rest = typer.main.get_command(app), words[1:]
    while hasattr(command, "get_command") and rest and not rest[0].startswith("--"):
        found = command.get_command(None, rest[0])
        assert found is not None, f"{page}: no command {rest[0]!r}"
        command, rest = found, rest[1:]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert {word.split("=")[0] for word in rest if word.startswith("--")} - {"--help"} <= options


# -- tables ----------------------------------------------------------------------------------------------------------


def joint_rows() -> list[list[str]]:
    """Return the joint table as the page shows it (the sum turns -0.0 into 0.0)."""
    return [
        [
            f"`{joint.name}`",
            joint.group,
            f"{joint.lower + 0.0:.4f}",
            f"{joint.upper + 0.0:.4f}",
            f"{joint.velocity:g}",
            f"{joint.effort:g}",
            f"{joint.kp:.1f}",
            f"{joint.kd:.2f}",
            f"{joint.home:g}",
        ]
        for joint in g1().joints.joints
    ]


def test_joint_table():
    shown = table(section("conventions.md", "The robot: Unitree G1 with two Dex3 hands"), "joint", "group")
    assert shown == joint_rows()


def test_frames():
    shown = {codes(row[0])[0]: codes(row[1]) for row in table(section("conventions.md", "Frames"), "frame")}
    fixed = {name: links[0] for name, links in shown.items() if links}
    assert fixed == {frame.name: frame.link for frame in g1().frames.values()}


def test_action_contract():
    contract = g1().contract
    counted = {kind.value: 0 for kind in ActionKind}
    for entries, count, kind, unit, frame, limits in table(section("conventions.md", "The action contract"), "entries"):
        patterns = [pattern.replace("*", ".*") for pattern in codes(entries)]
        terms = [t for t in contract.terms if any(re.fullmatch(pattern, t.name) for pattern in patterns)]
        if entries.count("_hand_") == 0:
            terms = [t for t in terms if "_hand_" not in t.name]
        assert len(terms) == int(count), entries
        assert {(t.kind.value, t.unit, t.frame) for t in terms} == {(kind, unit, frame)}
        if "…" in limits:
            assert {(t.lower, t.upper) for t in terms} == {tuple(float(part) for part in limits.split("…"))}
        counted[kind] += len(terms)
    assert sum(counted.values()) == contract.size
    text = section("conventions.md", "The action contract")
    assert f"{contract.size} numbers every {1e3 * contract.control_interval:.0f} ms" in text


def test_settings():
    shown = {codes(row[0])[0]: yaml.safe_load(row[1]) for row in table(section("generation.md", "Settings"), "setting")}
    assert shown == GenerationSettings().model_dump()


def test_ledger_fields_and_origins():
    fields = [codes(row[0])[0] for row in table(section("generation.md", "The ledger"), "field")]
    assert fields == list(AttemptRecord.model_fields)
    rows = table(section("generation.md", "Where rejections come from"), "`origin`")
    assert sorted(name for row in rows for name in codes(row[0])) == sorted(Origin)


def test_shown_json_has_the_keys_of_the_code():
    blocks = re.findall(r"^```json\n(.*?)^```$", section("generation.md", "JSON"), re.MULTILINE | re.DOTALL)
    generated, replayed, examined = (json.loads(block) for block in blocks)
    GenerationSummary.model_validate(generated)
    assert list(generated) == list(GenerationSummary.model_fields)
    Verdict.model_validate(replayed)
    assert list(replayed) == list(Verdict.model_fields)
    assert set(examined) == {"ok", "checks"}


# -- topics: read from the source, since nothing outside nodes and test/ros imports rclpy ------------------------------


def profiles() -> dict[str, list[str]]:
    """Return depth, reliability and durability of each profile as ``qos.py`` states them."""
    words = {"_RELIABLE": "reliable", "_BEST_EFFORT": "best effort"}
    words |= {"_VOLATILE": "volatile", "_TRANSIENT_LOCAL": "transient local"}
    found = {}
    for node in ast.parse((NODES / "qos.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            depth, reliability, durability = (ast.unparse(argument) for argument in node.value.args)
            found[ast.unparse(node.targets[0])] = [words[reliability], words[durability], depth]
    return found


def endpoints(function: str) -> set[tuple[str, str]]:
    """Return (topic, profile) of every publisher or subscription that the nodes make under a written-out name."""
    found = set()
    for path in NODES.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func).split(".")[-1].removeprefix("create_")
            texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            names = [a.id for a in node.args if isinstance(a, ast.Name) and a.id.isupper()]
            if called == function and texts and names:
                found.add((texts[0], names[-1]))
    return found


def test_profiles():
    shown = {row[0]: row[1:] for row in table(section("conventions.md", "Topics"), "profile")}
    assert shown == profiles()


@pytest.mark.parametrize(("function", "column"), [("publisher", 4), ("subscription", 5)])
def test_topics_and_their_profiles(function, column):
    rows = table(section("conventions.md", "Topics"), "topic")
    shown = {(topic, row[column]) for row in rows for topic in codes(row[0]) if row[column]}
    in_code = endpoints(function)
    assert len(in_code) > 4
    assert in_code <= shown
