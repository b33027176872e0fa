# SPDX-License-Identifier: Apache-2.0
"""Attempts on a Ray cluster, results always in order of attempt; the same dataset as on one machine."""

from __future__ import annotations

import importlib
import os
import pickle
import platform
import socket
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from supple.episodes.versions import current_versions
from supple.errors import SceneError, SettingError, SuppleError
from supple.generation.attempt import AttemptRunner
from supple.generation.engine import Job, Result, picklable_mappings

__all__ = ["attempts_on_ray"]

_OBJECT_STORE = 200_000_000
_AHEAD = 4
_ANSWER_TIMEOUT = 5.0


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise SettingError(
            f"the engine 'ray' needs Ray; install it with: pip install 'supple[ray]' ({error})"
        ) from error


@lru_cache(maxsize=1)
def _worker(order: bytes) -> tuple[Job, AttemptRunner]:
    picklable_mappings()
    job, images = pickle.loads(order)
    # The seeds come along, since other machines do not have the files; their folders' names may be part of theirs.
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for i, (path, image) in enumerate(zip(job.seed_files, images, strict=True)):
            files.append(Path(folder, str(i), path.parent.name, path.name))
            files[-1].parent.mkdir(parents=True)
            files[-1].write_bytes(image)
        return job, replace(job, seed_file=files[0], further_seed_files=tuple(files[1:])).runner()


def _on_worker(versions: dict[str, str], order: bytes, index: int) -> bytes:
    # Compared before the order is unpacked, which another Supple may not be able to read.
    here = current_versions()
    if differences := [
        f"{name}: {here.get(name, 'missing')} on {platform.node()}, {versions.get(name, 'missing')} here"
        for name in sorted(here.keys() | versions.keys())
        if here.get(name) != versions.get(name)
    ]:
        raise SceneError("the cluster would make another dataset than this machine: " + "; ".join(differences))
    job, runner = _worker(order)
    return pickle.dumps(job.run(runner, index))


def _task() -> Callable[[dict[str, str], bytes, int], bytes]:
    """Return what makes one attempt, as a function that also reaches a machine without Supple, and names it."""

    def attempt(versions: dict[str, str], order: bytes, index: int) -> bytes:
        try:
            module = importlib.import_module("supple.generation.ray_engine")
        except ImportError as error:
            raise ImportError(f"{platform.node()} cannot import it ({error})") from error
        made: bytes = module._on_worker(versions, order, index)
        return made

    return attempt


def _require_answer(address: str) -> None:
    """Refuse an address at which nobody listens; Ray itself would wait for minutes, and talk about it.

    Raises:
        SettingError: Nobody answers there.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return  # e.g. "auto", which Ray looks up, or what it refuses at once
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_TIMEOUT).close()
    except (OSError, OverflowError) as error:
        raise SettingError(f"no Ray cluster at {address}: {error}") from error


@contextmanager
def _connected(ray: Any, address: str | None, workers: int) -> Iterator[None]:
    if ray.is_initialized():
        # Whoever connected before decides on which cluster, and when to leave it.
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
        try:
            if address is None:
                ray.init(
                    address="local",
                    num_cpus=workers,
                    include_dashboard=False,
                    object_store_memory=_OBJECT_STORE,
                    _node_ip_address="127.0.0.2",
                    _temp_dir=folder,
                    _plasma_directory=folder,
                    **quiet,
                )
            else:
                _require_answer(address)
                ray.init(address=address, **quiet)
        except SettingError:
            raise
        except Exception as error:  # Ray raises plain ones, too.
            reason = " ".join(str(error).split())
            if address is None:
                raise SettingError(f"Ray does not start on this machine: {reason}") from error
            if isinstance(error, ConnectionError):
                reason += (
                    " (this machine must be one of its nodes, see ray start --address; "
                    "one that asks for a token needs RAY_AUTH_MODE=token)"
                )
            raise SettingError(f"no Ray cluster to work with at {address}: {reason}") from error
        try:
            yield
        finally:
            ray.shutdown()


def attempts_on_ray(job: Job, indices: Iterable[int], workers: int, *, address: str | None = None) -> Iterator[Result]:
    """Make attempts on a Ray cluster and yield their results in the order of the indices.

    An attempt whose worker or machine is lost is made again elsewhere, at its place in the order.

    Args:
        job: What to make; its seed files are sent along.
        indices: Attempts to make; may be endless, it is read only a little ahead.
        workers: Most attempts under way at once; each takes one CPU of the cluster.
        address: The cluster, e.g. ``"10.0.0.1:6379"`` or ``"auto"``; one of this machine alone is started if absent.

    Raises:
        SettingError: Ray is not installed, there is no such cluster, or a machine of it lacks Supple.
        SceneError: A worker died twice over the same attempt, or has other versions than this machine.
    """
    ray = _ray()
    lost = (
        ray.exceptions.NodeDiedError,
        ray.exceptions.ObjectLostError,
        ray.exceptions.OutOfMemoryError,
        ray.exceptions.WorkerCrashedError,
    )
    picklable_mappings()
    with _connected(ray, address, workers):
        # Ray would make lost attempts again by itself, but without telling how often.
        submit = ray.remote(num_cpus=1, max_retries=0)(_task()).options(name="attempt").remote
        images = [path.read_bytes() for path in job.seed_files]
        versions, order = current_versions(), ray.put(pickle.dumps((job, images)))
        source = iter(indices)
        waiting: deque[int] = deque()
        running: dict[Any, int] = {}
        done: dict[int, Result] = {}
        deaths: dict[int, int] = {}
        try:
            while True:
                while len(running) < workers and len(waiting) < _AHEAD * workers:
                    index = next(source, None)
                    if index is None:
                        break
                    waiting.append(index)
                    running[submit(versions, order, index)] = index
                if not waiting:
                    return
                if waiting[0] in done:
                    yield done.pop(waiting.popleft())
                    continue
                for reference in ray.wait(list(running))[0]:
                    index = running.pop(reference)
                    try:
                        done[index] = pickle.loads(ray.get(reference))
                    except lost as error:
                        deaths[index] = deaths.get(index, 0) + 1
                        if deaths[index] > 1:
                            raise SceneError(
                                f"a worker process died twice while attempt {index} was under way"
                            ) from error
                        running[submit(versions, order, index)] = index
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, SuppleError):
                raise error.cause from error
            if isinstance(error.cause, ImportError):
                raise SettingError(f"Supple must be installed on every node of the cluster: {error.cause}") from error
            raise
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
