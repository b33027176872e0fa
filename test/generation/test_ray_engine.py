# SPDX-License-Identifier: Apache-2.0
"""Generation on a Ray cluster: the same dataset as on one machine, also when a worker or a machine is lost."""

from __future__ import annotations

import importlib.util
import os
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
OBJECT_STORE = 100_000_000

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install -r requirements/ray.txt"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster of two nodes with one CPU each, to which this process is connected."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Workers need Supple, and keep what else they need.
    paths = [str(Path(ray_engine.__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    import ray
    from ray.cluster_utils import Cluster

    # Sockets have short names only.
    folder = tmp_path_factory.mktemp("r")
    (folder / "ray").mkdir()
    os.environ["RAY_TMPDIR"] = str(folder)
    node = {"num_cpus": 1, "object_store_memory": OBJECT_STORE, "plasma_directory": str(folder)}
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
def made_here(job, tmp_path_factory):
    """The same dataset, made in this process."""
    folder = tmp_path_factory.mktemp("here") / "data"
    generate(job, folder, attempts=ATTEMPTS)
    return folder


def busy_workers(cluster):
    """Return the processes that are at an attempt, of this cluster alone."""
    raylets = {info.process.pid for node in cluster.list_all_nodes() for info in node.all_processes["raylet"]}
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            if parent in raylets and (place / "cmdline").read_bytes().startswith(b"ray::_attempt"):
                found.append(int(place.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def kill_one(cluster):
    end = time.monotonic() + 60
    while not (found := busy_workers(cluster)):
        assert time.monotonic() < end, "no worker is at an attempt"
        time.sleep(0.02)
    os.kill(found[0], signal.SIGKILL)


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


@needs_ray
def test_two_nodes_make_the_same_bytes_though_a_worker_is_killed(job, cluster, made_here, tmp_path):
    made = []

    def watch(record, _):
        made.append(record.attempt)
        if len(made) == 1:
            kill_one(cluster)

    generate(job, tmp_path / "ray", attempts=ATTEMPTS, workers=2, engine=attempts_on_ray, on_attempt=watch)
    assert made == list(range(ATTEMPTS))
    assert_same(tmp_path / "ray", made_here)


@needs_ray
def test_a_machine_that_is_lost_is_replaced_by_what_is_left(job, cluster, made_here, tmp_path):
    """Both are at an attempt when one of them goes down, with its worker and its store of results."""
    made = []

    def watch(record, _):
        made.append(record.attempt)
        if len(made) == 1:
            cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)

    try:
        generate(job, tmp_path / "ray", attempts=ATTEMPTS, workers=2, engine=attempts_on_ray, on_attempt=watch)
    finally:
        cluster.add_node(**cluster.node)
        cluster.wait_for_nodes()
    assert made == list(range(ATTEMPTS))
    assert_same(tmp_path / "ray", made_here)


def command_at(address, folder):
    options = ["--attempts", str(ATTEMPTS), "--workers", "2", "--engine", "ray", "--address", address]
    command = [sys.executable, "-c", "from supple.cli.main import app; app()", "generate", "box_lift"]
    return [*command, "--distribution", "D1", "--keep-rejected", *options, "--out", str(folder)]


@needs_ray
def test_a_running_cluster_is_joined_interrupted_and_joined_again(cluster, made_here, tmp_path):
    folder = tmp_path / "ray"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command_at(cluster.address, folder), stdout=log, stderr=subprocess.STDOUT)
        try:
            end = time.monotonic() + 120
            while not busy_workers(cluster):
                assert time.monotonic() < end, (tmp_path / "log").read_text()
                assert process.poll() is None, (tmp_path / "log").read_text()
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        finally:
            process.kill()
    said = " ".join((tmp_path / "log").read_text().split())
    assert "interrupted; what was made is safe" in said
    assert "Traceback" not in said
    again = subprocess.run(
        command_at(cluster.address, folder), capture_output=True, text=True, timeout=180, check=False
    )
    assert again.returncode == 0, again.stderr
    assert_same(folder, made_here)


@needs_ray
def test_an_address_where_nobody_listens_is_refused_at_once(tmp_path):
    command = command_at("127.0.0.1:9", tmp_path / "data")
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    assert "no Ray cluster at 127.0.0.1:9" in " ".join(ended.stderr.split())
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
            for pid in busy_workers(cluster):
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
