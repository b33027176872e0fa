# SPDX-License-Identifier: Apache-2.0
"""Generation on a Ray cluster: the same dataset as on one machine, also when a worker or a machine is lost."""

from __future__ import annotations

import importlib.util
import os
import secrets
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from supple.episodes import Ledger
from supple.errors import SceneError, SettingError
from supple.generation import attempts_on_ray, generate, ray_engine

ATTEMPTS = 3
BRIEF_ATTEMPTS = 20
OBJECT_STORE = 100_000_000

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install -r requirements/ray.txt"
)


@pytest.fixture(scope="module")
def ray_environment(tmp_path_factory):
    """What Ray and its workers find in their environment; sockets have short names only."""
    folder = tmp_path_factory.mktemp("r")
    (folder / "ray").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_TMPDIR", str(folder))
        # Ray listens on every interface; and it is not to leave a token in the home folder.
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex())
        # Workers need Supple, and keep what else they need.
        patch.setenv("PYTHONPATH", str(Path(ray_engine.__file__).parents[2]), prepend=os.pathsep)
        yield folder


@pytest.fixture(scope="module")
def cluster(ray_environment):
    """A cluster of two nodes with one CPU each, to which this process is connected."""
    import ray
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": OBJECT_STORE, "plasma_directory": str(ray_environment)}
    # Ray takes 127.0.0.1 for the address that other machines know.
    node["node_ip_address"] = "127.0.0.2"
    cluster = Cluster(initialize_head=True, head_node_args=node | {"include_dashboard": False})
    cluster.add_node(**node)
    ray.init(address=cluster.address, _node_ip_address="127.0.0.2", log_to_driver=False, logging_level="ERROR")
    cluster.wait_for_nodes()
    cluster.node = node
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def brief_job(quick_job):
    """Attempts that fail after a fraction of a second, with episodes too large to travel in a message."""
    return replace(quick_job, settings=quick_job.settings.model_copy(update={"settle_time": 1.0}))


@pytest.fixture(scope="module")
def made_here(brief_job, tmp_path_factory):
    """The dataset of brief attempts, made in this process."""
    folder = tmp_path_factory.mktemp("here") / "data"
    generate(brief_job, folder, attempts=BRIEF_ATTEMPTS)
    return folder


def processes():
    """Return the number, parent, session and name of every process that runs."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            state, parent, _, session = (place / "stat").read_text().rpartition(")")[2].split()[:4]
            if state not in "ZX":
                found.append((int(place.name), int(parent), int(session), (place / "cmdline").read_bytes()))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def busy_workers(nodes):
    """Return the processes of these nodes that are at an attempt."""
    raylets = {info.process.pid for node in nodes for info in node.all_processes["raylet"]}
    return [pid for pid, parent, _, name in processes() if parent in raylets and name.startswith(b"ray::attempt")]


def seen(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def lines(folder):
    return [
        record.model_dump(exclude={"wall_seconds", "timings"}) for record in Ledger(folder / "ledger.jsonl").records
    ]


def assert_same(folder, other):
    for name in ("demos.hdf5", "rejected.hdf5"):
        assert (folder / name).exists() == (other / name).exists(), name
        if (folder / name).exists():
            assert (folder / name).read_bytes() == (other / name).read_bytes(), name
    assert lines(folder) == lines(other)


@pytest.fixture
def second_node(cluster):
    """The one that can be lost."""
    if not cluster.worker_nodes:
        cluster.add_node(**cluster.node)
        cluster.wait_for_nodes()
    return next(iter(cluster.worker_nodes))


@needs_ray
def test_a_machine_lost_in_the_middle_of_an_attempt_loses_and_repeats_nothing(job, cluster, second_node, tmp_path):
    made = []

    def watch(record, _):
        made.append(record.attempt)
        if second_node in cluster.worker_nodes and seen(lambda: busy_workers([second_node]), seconds=3.0):
            cluster.remove_node(second_node, allow_graceful=False)

    generate(job, tmp_path / "ray", attempts=ATTEMPTS, workers=2, engine=attempts_on_ray, on_attempt=watch)
    assert second_node not in cluster.worker_nodes, "it was never at an attempt"
    assert made == list(range(ATTEMPTS))
    generate(job, tmp_path / "here", attempts=ATTEMPTS)
    assert_same(tmp_path / "ray", tmp_path / "here")


@needs_ray
def test_a_worker_killed_and_then_a_result_lost_with_its_machine_are_made_again(
    brief_job, cluster, second_node, made_here, tmp_path
):
    made = []

    def watch(record, _):
        made.append(record.attempt)
        if len(made) == 1:
            assert seen(lambda: busy_workers(cluster.list_all_nodes())), "no worker is at an attempt"
            os.kill(busy_workers(cluster.list_all_nodes())[0], signal.SIGKILL)
        elif second_node in cluster.worker_nodes and seen(lambda: busy_workers([second_node]), seconds=3.0):
            # Results are fetched by whoever waits here.
            assert seen(lambda: not busy_workers([second_node])), "an attempt does not end"
            cluster.remove_node(second_node, allow_graceful=False)

    generate(brief_job, tmp_path / "ray", attempts=BRIEF_ATTEMPTS, workers=2, engine=attempts_on_ray, on_attempt=watch)
    assert second_node not in cluster.worker_nodes, "it was never at an attempt"
    assert made == list(range(BRIEF_ATTEMPTS))
    assert_same(tmp_path / "ray", made_here)


@needs_ray
def test_a_machine_without_supple_is_named(quick_job, cluster, tmp_path):
    import ray

    def hold():
        time.sleep(600)

    # Both nodes are kept busy, so that the attempt goes to the third.
    held = [ray.remote(num_cpus=1)(hold).remote() for _ in cluster.list_all_nodes()]
    assert seen(lambda: not ray.available_resources().get("CPU"))
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys\nsys.path.remove({str(Path(ray_engine.__file__).parents[2])!r})\n"
    )
    bare = cluster.add_node(**cluster.node, env_vars={"PYTHONPATH": str(tmp_path)})
    try:
        with pytest.raises(SettingError, match=r"installed on every node .*: .+ cannot import it \(No module named"):
            generate(quick_job, tmp_path / "data", attempts=1, engine=attempts_on_ray)
    finally:
        for task in held:
            ray.cancel(task, force=True)
        cluster.remove_node(bare, allow_graceful=False)


def command(folder, settings, *options):
    """Return the command that makes brief attempts with Ray."""
    words = ["generate", "box_lift", "--attempts", BRIEF_ATTEMPTS, "--workers", 2, "--engine", "ray", *options]
    words += ["--distribution", "D1", "--keep-rejected", "--settings", settings, "--out", folder]
    return [sys.executable, "-c", "from supple.cli.main import app; app()", *map(str, words)]


@needs_ray
@pytest.mark.parametrize("where", ["a running cluster", "this machine"])
def test_ctrl_c_keeps_what_was_made_and_the_same_command_carries_on(
    where, brief_job, ray_environment, made_here, request, tmp_path
):
    options = []
    if where == "a running cluster":
        cluster = request.getfixturevalue("cluster")
        options = ["--address", cluster.address]
    folder, ledger = tmp_path / "data", tmp_path / "data/ledger.jsonl"
    settings = tmp_path / "settings.yaml"
    settings.write_text(brief_job.settings.model_dump_json())
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command(folder, settings, *options), stdout=log, stderr=log, start_new_session=True)
        try:
            assert seen(
                lambda: process.poll() is not None or (ledger.exists() and ledger.read_bytes().count(b"\n") > 1)
            )
            os.killpg(process.pid, signal.SIGINT)
            assert process.wait(120) == 130, (tmp_path / "log").read_text()
        finally:
            process.kill()
    said = " ".join((tmp_path / "log").read_text().split())
    assert "interrupted; what was made is safe in" in said
    assert "Traceback" not in said
    assert seen(lambda: process.pid not in [session for _, _, session, _ in processes()]), "something outlives it"
    made = ledger.read_bytes()
    assert 1 <= made.count(b"\n") < BRIEF_ATTEMPTS
    if where == "a running cluster":
        assert seen(lambda: not busy_workers(cluster.list_all_nodes())), "workers outlive the interrupted run"
        subprocess.run(command(folder, settings, *options), check=True, timeout=180)
    else:
        generate(brief_job, folder, attempts=BRIEF_ATTEMPTS)
    assert ledger.read_bytes().startswith(made)
    assert_same(folder, made_here)


@needs_ray
def test_an_address_where_nobody_listens_is_refused_at_once(brief_job, tmp_path):
    settings = tmp_path / "settings.yaml"
    settings.write_text(brief_job.settings.model_dump_json())
    words = command(tmp_path / "data", settings, "--address", "127.0.0.2:9")
    ended = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 1
    assert "error: no Ray cluster at 127.0.0.2:9: " in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.stderr


@needs_ray
def test_an_attempt_that_kills_its_worker_twice_ends_the_run(quick_job, cluster, tmp_path):
    # Long enough to be caught at it.
    slow = replace(quick_job, settings=quick_job.settings.model_copy(update={"settle_time": 600.0}))
    results = attempts_on_ray(slow, [7], 1)
    with pytest.raises(SceneError, match="twice while attempt 7"):
        next(watched(results, cluster))


def watched(results, cluster):
    """Kill the worker again and again while results are awaited."""
    import threading

    stop = threading.Event()

    def kill():
        while not stop.is_set():
            for pid in busy_workers(cluster.list_all_nodes()):
                os.kill(pid, signal.SIGKILL)
            stop.wait(0.1)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield from results
    finally:
        stop.set()
        thread.join()


@needs_ray
def test_episodes_wanted_are_made_and_no_more(quick_job, cluster, tmp_path):
    summary = generate(quick_job, tmp_path / "ray", episodes=1, workers=2, engine=attempts_on_ray)
    generate(quick_job, tmp_path / "here", episodes=1)
    assert not summary.complete
    assert_same(tmp_path / "ray", tmp_path / "here")


@needs_ray
def test_nothing_wanted_starts_nothing(quick_job, cluster, tmp_path):
    assert generate(quick_job, tmp_path / "data", attempts=0, workers=2, engine=attempts_on_ray).complete


def test_without_ray_it_is_said_what_to_install(quick_job, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(SettingError, match=r"pip install 'supple\[ray\]'"):
        generate(quick_job, tmp_path / "data", attempts=1, engine=partial(attempts_on_ray, address="auto"))
