# SPDX-License-Identifier: Apache-2.0
"""Running processes together: output, signals, and how it all ends."""

from __future__ import annotations

import fcntl
import io
import os
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console

from supple.launching import LaunchError, NodeProcess, resolve, run

RUNNER = """
import os, sys
from supple.launching import resolve, run
sys.exit(run(resolve(sys.argv[1], {}, os.environ), environment=os.environ, grace=float(sys.argv[2])))
"""
POLITE = """
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: (print('got SIGINT', flush=True), sys.exit(0)))
print('ready', flush=True)
while True:
    time.sleep(0.05)
"""
NEEDS_TERM = """
import signal, time
signal.signal(signal.SIGINT, lambda *_: print('ignored SIGINT', flush=True))
print('ready', flush=True)
while True:
    time.sleep(0.05)
"""
STUBBORN = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print('ready', flush=True)
while True:
    signal.pause()
"""
# Holds a lock on a file as long as it lives, and writes there what ends it; the alarm is for a runner that fails. A
# killed runner with threads signals once for each that dies as the parent, so that a handler might be cut short.
LOCKED = """
import fcntl, signal
signal.alarm(60)
signal.pthread_sigmask(signal.SIG_BLOCK, {{signal.SIGINT}})
file = open({path!r}, 'w')
fcntl.flock(file, fcntl.LOCK_EX)
print('ready', flush=True)
print(signal.Signals(signal.sigwait({{signal.SIGINT}})).name, end='', file=file)
"""


@pytest.fixture
def node(prefix):
    """Return a function that makes the line of a node from the code of its executable."""

    def make(name: str, code: str, more: str = "") -> str:
        prefix.executable(name, code)
        return f'<node pkg="demo" exec="{name}" name="{name}" {more}/>'

    return make


@pytest.fixture
def run_here(prefix):
    """Return a function that runs lines of a launch file in this process: exit code and output."""

    def do(*lines: str) -> tuple[int, str]:
        path = prefix.file("main.launch.xml", "\n".join(lines))
        output = io.StringIO()
        console = Console(file=output, width=200)
        code = run(resolve(path, {}, prefix.environment), prefix.environment, console, grace=2.0)
        return code, output.getvalue()

    return do


@pytest.fixture
def start(prefix):
    """Return a function that runs lines of a launch file in a process of its own and waits for its nodes."""
    started = []

    def do(*lines: str, grace: float = 10.0) -> subprocess.Popen:
        path = prefix.file("main.launch.xml", "\n".join(lines))
        process = subprocess.Popen(
            [sys.executable, "-c", RUNNER, str(path), str(grace)],
            env={**os.environ, **prefix.environment, "COLUMNS": "200"},
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        ready = 0
        while ready < len(lines):
            line = process.stdout.readline()
            assert line, "the runner ended before its nodes were ready"
            ready += "ready" in line
        return process

    yield do
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


def finish(process: subprocess.Popen) -> tuple[int, str]:
    output, _ = process.communicate(timeout=60)
    return process.returncode, output


def test_output_carries_the_name_of_its_node(node, run_here):
    code, output = run_here(node("a", "print('one')\nprint('two')"), node("b", "import sys\nsys.stderr.write('three')"))
    assert code == 0
    lines = output.splitlines()
    assert lines.index("[/a] one") < lines.index("[/a] two")
    assert "[/b] three" in lines


def test_output_that_looks_like_markup_is_shown_as_it_is(node, run_here):
    _, output = run_here(node("a", "print('[bold]x[/bold] [/nothing]')"))
    assert "[/a] [bold]x[/bold] [/nothing]" in output


def test_first_failure_is_the_exit_code_and_others_go_on(node, run_here):
    code, output = run_here(
        node("bad", "raise SystemExit(3)"), node("good", "import time\ntime.sleep(0.5)\nprint('still here')")
    )
    assert code == 3
    assert "/bad ended with exit code 3" in output
    assert "[/good] still here" in output


def test_death_by_signal_is_a_failure(node, run_here):
    code, output = run_here(node("bad", "import os\nos.abort()"))
    assert code == 128 + signal.SIGABRT
    assert f"exit code {128 + signal.SIGABRT}" in output


@pytest.mark.parametrize("code", [0, 4])
def test_end_of_a_needed_node_stops_all_with_its_exit_code(node, run_here, code):
    got, output = run_here(
        node("other", POLITE),
        node("needed", f"import time\ntime.sleep(0.5)\nraise SystemExit({code})", 'on_exit="shutdown"'),
    )
    assert got == code
    assert "on_exit" in output
    assert "[/other] got SIGINT" in output


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_reaches_every_node_once_as_sigint(node, start, number):
    process = start(node("a", POLITE), node("b", POLITE))
    process.send_signal(number)
    code, output = finish(process)
    assert code == 0
    assert output.count("[/a] got SIGINT") == output.count("[/b] got SIGINT") == 1
    assert number.name in output


def test_ctrl_c_of_a_terminal_reaches_nodes_once(node, start):
    process = start(node("a", NEEDS_TERM), grace=1.0)
    # The runner is told as a terminal tells it; its nodes are in sessions of their own.
    assert os.getpgid(process.pid) == os.getpgid(0)
    process.send_signal(signal.SIGINT)
    code, output = finish(process)
    assert code == 0
    assert output.count("ignored SIGINT") == 1
    assert "/a did not end within 1 s of SIGINT; sending SIGTERM" in output


def test_node_that_had_to_be_killed_is_named(node, start):
    process = start(node("a", POLITE), node("mule", STUBBORN), grace=0.5)
    process.send_signal(signal.SIGINT)
    code, output = finish(process)
    assert code == 1
    assert "/mule did not end within 0.5 s of SIGTERM; sending SIGKILL" in output
    assert "/a did not end" not in output


def test_node_that_asks_for_a_longer_grace_gets_it(node, start):
    slow = POLITE.replace("sys.exit(0)", "time.sleep(3.0), print('all written', flush=True), sys.exit(0)")
    patient = node("slow", slow).replace("<node ", '<node sigterm_timeout="300" ')
    process = start(patient, node("a", NEEDS_TERM), grace=0.5)
    process.send_signal(signal.SIGINT)
    code, output = finish(process)
    assert code == 0
    assert "[/slow] all written" in output
    assert "/slow did not end" not in output
    assert "/a did not end within 0.5 s of SIGINT; sending SIGTERM" in output


def test_second_interrupt_does_not_wait(node, start):
    process = start(node("a", NEEDS_TERM), grace=600.0)
    process.send_signal(signal.SIGINT)
    while "ignored SIGINT" not in process.stdout.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    code, output = finish(process)
    assert code == 0
    assert "sending SIGTERM" in output


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent died")
def test_nodes_are_interrupted_when_the_runner_is_killed(node, start, tmp_path):
    paths = [tmp_path / "a.lock", tmp_path / "b.lock"]
    process = start(*(node(path.stem, LOCKED.format(path=str(path))) for path in paths))
    process.kill()
    for path in paths:
        with path.open() as file:
            deadline = time.monotonic() + 20.0
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    assert time.monotonic() < deadline, f"node {path.stem} outlives the runner"
                    time.sleep(0.02)
            assert file.read() == "SIGINT"


def test_two_nodes_without_names_from_one_file_both_run(prefix, run_here):
    prefix.file("other.launch.xml", '<node pkg="demo" exec="talker"/>')
    code, output = run_here('<include file="other.launch.xml"/>', '<include file="other.launch.xml"/>')
    assert code == 0
    assert output.count("[talker] hello") == 2


def test_process_that_cannot_start_stops_those_that_did(prefix):
    prefix.executable("polite", POLITE)
    broken = prefix.path / "lib/demo/broken"
    broken.write_text("#!/no/such/interpreter\n")
    broken.chmod(0o755)
    processes = [
        NodeProcess("/polite", (str(prefix.path / "lib/demo/polite"),), "main.launch.xml:2"),
        NodeProcess("/broken", (str(broken),), "main.launch.xml:3"),
    ]
    output = io.StringIO()
    with pytest.raises(LaunchError, match=r"main.launch.xml:3: cannot start .*broken"):
        run(processes, prefix.environment, Console(file=output, width=200), grace=2.0)
    assert "/polite ended" in output.getvalue()


def test_handlers_of_signals_are_put_back(node, run_here):
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    run_here(node("a", "print('x')"))
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
