# SPDX-License-Identifier: Apache-2.0
"""A ROS domain for this process alone, and nodes that several tests share."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed; run: make setup")

# Whatever runs beside this on the machine has another number, and so hears nothing of it.
os.environ["ROS_DOMAIN_ID"] = str(1 + os.getpid() % 231)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ["ROS_PYTHON_CHECK_FIELDS"] = "1"
os.environ.setdefault("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp")
_ROOT = Path(__file__).parents[2]
os.environ["FASTDDS_DEFAULT_PROFILES_FILE"] = str(_ROOT / "config/fastdds_localhost.xml")
os.environ["PYTHONPATH"] = os.pathsep.join([str(_ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
sys.path.append(str(Path(__file__).parent))

import rclpy  # noqa: E402 - the middleware reads the environment when it is imported
from node_graph import Graph, NodeProcess  # noqa: E402
from rclpy.node import Node  # noqa: E402
from supple_interfaces.msg import ContactEvent  # noqa: E402
from touch_probe import READY, Logger, Probe  # noqa: E402

from supple.nodes.qos import EVENT  # noqa: E402

Start = Callable[..., NodeProcess]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here speaks DDS."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.ros)
            # Real discovery on a busy machine: one more try, which the summary counts as a rerun.
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="module", autouse=True)
def no_collection() -> Iterator[None]:
    """Collect garbage between modules only.

    Tests keep every message, hundreds of thousands of them. To look through them all, the collector would stop this
    process for a second, in which messages pass it by.
    """
    gc.disable()
    yield
    gc.enable()
    gc.collect()


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Start nodes; they end with the module, and what they said is shown if a test fails."""
    folder = tmp_path_factory.mktemp("nodes")
    running: list[NodeProcess] = []

    def start_node(executable: str, name: str = "", remap: Mapping[str, str] | None = None, **parameters: object):
        node = NodeProcess(executable, folder / f"{len(running)}_{executable}.log", name, remap, **parameters)
        running.append(node)
        return node

    start_node.nodes = running
    yield start_node
    for node in running:
        node.stop()
        sys.stderr.write(f"--- {node.executable} ended with {node.process.returncode}\n{node.output()}")


@pytest.fixture(scope="module")
def context() -> Iterator[rclpy.Context]:
    """Where nodes of this process live."""
    context = rclpy.Context()
    rclpy.init(args=[], context=context)
    yield context
    rclpy.try_shutdown(context=context)


@pytest.fixture
def node_with(context: rclpy.Context) -> Iterator[Callable[..., Node]]:
    """Return a function that makes a node whose command line sets parameters."""
    made = []

    def make(**parameters: object) -> Node:
        arguments = ["--ros-args"]
        for name, value in parameters.items():
            arguments += ["-p", f"{name}:={value}"]
        made.append(Node("chosen", context=context, cli_args=arguments, start_parameter_services=False))
        return made[-1]

    yield make
    for node in made:
        node.destroy_node()


@pytest.fixture(scope="module")
def graph() -> Iterator[Graph]:
    """A client in this process."""
    graph = Graph(f"client_{os.getpid()}")
    yield graph
    graph.close()


@pytest.fixture(scope="module")
def stack(start: Start, graph: Graph) -> Graph:
    """Simulator and both executors, standing, as fast as they can."""
    start("sim_bridge", camera=False, real_time_factor=0.0)
    start("robot_state")
    start("locomotion_executor")
    start("manipulation_executor")
    graph.until(lambda: len(graph.owners()) == 7, "an owner of every joint group", 40.0)
    return graph


@pytest.fixture(scope="module")
def heard(graph: Graph) -> list[ContactEvent]:
    """Every event of touch."""
    return graph.listen(ContactEvent, "contact_events", EVENT)


@pytest.fixture
def probe(graph: Graph) -> Iterator[Probe]:
    """A sensor that sends what the test wants."""
    probe = Probe(graph)
    yield probe
    probe.close()


@pytest.fixture
def logger(tmp_path: Path, graph: Graph, probe: Probe, heard: list[ContactEvent]) -> Iterator[Logger]:
    """The logger of touch, with a healthy probe."""
    graph.diagnostics.clear()
    heard.clear()
    node = Logger(tmp_path, graph)
    node.until_logging()
    graph.until(lambda: node.sensor("probe")[1] == "ok", "a healthy probe", READY)
    yield node
    node.process.stop()
