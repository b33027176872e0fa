# SPDX-License-Identifier: Apache-2.0
"""Files of sensors: what one line wrong says, and that numbers end where and as what they should."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from supple.contact.readings import TaxelStatus
from supple.contact.sensors import Dex3Hand, TactileSensor, WrenchSensor, load_sensor, load_sensors
from supple.errors import SensorError
from supple.robots import g1

ROBOT = g1()
SETS = Path(__file__).resolve().parents[2] / "config/touch"

SKIN = """
kind: tactile
name: forearm_skin
description: strip of eight
frame: left_elbow_link
placement: {position: [0.1, 0.0, 0.02], rpy: [0.0, 0.0, 1.5707963267948966]}
rate: 50.0
unit: raw
grid: {rows: 2, columns: 4, pitch: [0.01, 0.02]}
calibration: {date: 2026-03-01, method: dead weights, offset: 200.0, scale: 12.5, residual: 80.0}
no_value: [65535.0]
saturation: 4000.0
"""
FORCE = """
kind: wrench
name: left_ft
topic: ft/left
frame: l_wrist
placement: {position: [0.0, 0.0, -0.05], rpy: [3.141592653589793, 0.0, 0.0]}
rate: 500.0
unit: N
calibration: {date: 2026-03-01, method: hanging freely, bias: [1.0, 0.0, 2.0, 0.0, 0.1, 0.0]}
"""


@pytest.fixture
def write(tmp_path):
    def write(text: str, name: str = "sensor.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def changed(text: str, **fields: object) -> str:
    """Return the file with some fields replaced, or taken out where None."""
    data = yaml.safe_load(text) | fields
    return yaml.safe_dump({key: value for key, value in data.items() if value is not None})


# -- what is shipped ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "unit"), [("g1", "raw"), ("g1_sim", "Pa")])
def test_shipped_sets_have_every_pad_and_limb_of_the_robot(name, unit):
    sensors = load_sensors(SETS / name, ROBOT)
    tactile = {sensor.name: sensor for sensor in sensors if isinstance(sensor, TactileSensor)}
    assert set(tactile) == set(ROBOT.pads)
    assert {sensor.name for sensor in sensors if isinstance(sensor, WrenchSensor)} == set(ROBOT.wrench_frames)
    for sensor in tactile.values():
        assert sensor.message_topic == f"tactile/{sensor.name}"
        assert sensor.layout.unit == sensor.unit_of_readings == unit
        grid = ROBOT.pads[sensor.name].taxels()
        assert sensor.layout.frame == ROBOT.pads[sensor.name].link
        np.testing.assert_allclose(sensor.layout.position, grid.position, atol=1e-12)
        np.testing.assert_allclose(sensor.layout.normal, grid.normal, atol=1e-12)
        np.testing.assert_allclose(sensor.layout.area, grid.area, rtol=1e-12)


def test_every_folder_of_sensors_is_tested():
    assert {path.name for path in SETS.iterdir()} == {"g1", "g1_sim"}


# -- one file adds a sensor --------------------------------------------------------------------------------------------


def test_adding_a_file_adds_a_sensor(tmp_path, write):
    for path in (SETS / "g1_sim").iterdir():
        write(path.read_text(encoding="utf-8"), path.name)
    before = {sensor.name for sensor in load_sensors(tmp_path, ROBOT)}
    write(SKIN, "skin.yaml")
    assert {sensor.name for sensor in load_sensors(tmp_path, ROBOT)} == before | {"forearm_skin"}


def test_taxels_of_a_grid_lie_where_the_placement_puts_them(write):
    (sensor,) = load_sensor(write(SKIN), ROBOT)
    layout = sensor.layout
    assert (layout.name, layout.frame, layout.unit, len(layout)) == ("forearm_skin", "left_elbow_link", "Pa", 8)
    # Turned by a quarter about z: the grid's x is the link's y.
    first = np.array([0.1 + 0.01, -0.015, 0.02])
    np.testing.assert_allclose(layout.position[0], first, atol=1e-12)
    np.testing.assert_allclose(layout.position[1] - layout.position[0], [0.0, 0.01, 0.0], atol=1e-12)
    np.testing.assert_allclose(layout.position[4] - layout.position[0], [-0.02, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(layout.position.mean(axis=0), [0.1, 0.0, 0.02], atol=1e-12)
    np.testing.assert_allclose(layout.normal, np.tile([0.0, 0.0, 1.0], (8, 1)), atol=1e-12)
    np.testing.assert_allclose(layout.area, 2e-4)


def test_raw_numbers_become_pressure_and_what_is_no_measurement_is_marked(write):
    (sensor,) = load_sensor(write(changed(SKIN, lowest=100.0)), ROBOT)
    raw = [200.0, 240.0, 65535.0, 4000.0, np.nan, 99.0, 5000.0, 200.0]
    reading = sensor.reading(17, 3, 1, raw, [0, 0, 0, 0, 0, 0, 0, TaxelStatus.DEAD])
    assert (reading.stamp_ns, reading.sequence, reading.missed) == (17, 3, 1)
    np.testing.assert_array_equal(reading.pressure, [0.0, 500.0, np.nan, 47500.0, np.nan, np.nan, 60000.0, np.nan])
    ok, dead, saturated = TaxelStatus.OK, TaxelStatus.DEAD, TaxelStatus.SATURATED
    np.testing.assert_array_equal(reading.status, [ok, ok, dead, saturated, dead, dead, saturated, dead])


def test_calibration_of_each_taxel(write):
    data = yaml.safe_load(SKIN)
    data["calibration"] |= {"offset": [float(i) for i in range(8)], "scale": [10.0 + i for i in range(8)]}
    (sensor,) = load_sensor(write(yaml.safe_dump(data)), ROBOT)
    np.testing.assert_allclose(sensor.reading(0, 0, 0, np.arange(8.0) + 2.0).pressure, 2.0 * (10.0 + np.arange(8.0)))


def test_an_uncalibrated_sensor_says_nothing_about_forces(write):
    (sensor,) = load_sensor(write(changed(SKIN, calibration=None)), ROBOT)
    assert sensor.layout.unit == "raw"
    np.testing.assert_array_equal(sensor.reading(0, 0, 0, np.full(8, 200.0)).pressure, 200.0)
    with pytest.raises(SensorError, match="calibrated"):
        sensor.layout.normal_forces(np.zeros(8))


def test_taxels_one_by_one(write):
    taxels = {"position": [[0.0, 0.0, 0.01], [0.0, 0.01, 0.0]], "normal": [[0, 0, 1], [0, 1, 0]], "area": [1e-4, 2e-4]}
    text = changed(SKIN, grid=None, taxels=taxels, placement=None, calibration=None)
    layout = load_sensor(write(text), ROBOT)[0].layout
    np.testing.assert_allclose(layout.position, taxels["position"])
    np.testing.assert_allclose(layout.normal, taxels["normal"])
    np.testing.assert_allclose(layout.area, taxels["area"])


def test_a_wrench_comes_out_at_the_frame_and_in_its_axes(write):
    (sensor,) = load_sensor(write(FORCE), ROBOT)
    assert sensor.message_topic == "ft/left"
    # The sensor hangs head down 5 cm below the frame: its z is the frame's -z.
    found = sensor.wrench([11.0, 0.0, 7.0, 0.0, 0.1, 0.0])
    np.testing.assert_allclose(found, [10.0, 0.0, -5.0, 0.0, -0.5, 0.0], atol=1e-12)


matrices = st.lists(st.floats(-5.0, 5.0), min_size=36, max_size=36)
wrenches = st.lists(st.floats(-100.0, 100.0), min_size=6, max_size=6)
vectors = st.tuples(*[st.floats(-2.0, 2.0)] * 3)


@given(matrices, wrenches, wrenches, vectors, vectors)
def test_power_does_not_depend_on_where_a_wrench_is_told(matrix, raw, bias, position, rpy):
    """For any motion of the link, the wrench at the sensor and that at the frame do the same work."""
    rows = tuple(tuple(row) for row in np.reshape(matrix, (6, 6)).tolist())
    calibration = {"date": "2026-03-01", "method": "least squares", "bias": bias, "matrix": rows}
    sensor = WrenchSensor(
        name="any", frame="l_wrist", rate=1.0, unit="N", calibration=calibration,
        placement={"position": position, "rpy": rpy},
    )  # fmt: skip
    at_sensor = np.reshape(matrix, (6, 6)) @ (np.array(raw) - np.array(bias))
    twist = pin.Motion(np.array([0.3, -1.0, 0.5, 0.2, 2.0, -0.7]))
    there = sensor.placement.T_frame_sensor.actInv(twist).vector @ at_sensor
    assert sensor.wrench(raw) @ twist.vector == pytest.approx(there, rel=1e-9, abs=1e-6)


def documented_files():
    text = (SETS.parents[1] / "docs/touch.md").read_text(encoding="utf-8")
    return re.findall(r"^```yaml\n(.*?)^```$", text.split("## Adding a sensor")[1], re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("kind", ["tactile", "wrench"])
def test_what_the_documentation_shows_is_a_sensor(write, kind):
    (shown,) = [text for text in documented_files() if f"kind: {kind}\n" in text]
    (sensor,) = load_sensor(write(shown), ROBOT)
    assert sensor.kind == kind
    assert sensor.rate > 0.0


def test_every_field_is_documented():
    text = (SETS.parents[1] / "docs/touch.md").read_text(encoding="utf-8").split("## Adding a sensor")[1]
    rows = [row.split("|")[1:3] for row in re.findall(r"^\| `.*\|$", text.split("## ")[0], re.MULTILINE)]
    kinds = {"tactile": TactileSensor, "wrench": WrenchSensor, "dex3": Dex3Hand}
    shown = {name: set() for name in kinds}
    for fields, of in rows:
        named = [kind for kind in kinds if f"`{kind}`" in of.split("(")[0]] or list(kinds)
        for kind in named:
            shown[kind] |= {field for field in re.findall(r"`(\w+)`", fields) if field in kinds[kind].model_fields}
    assert shown == {name: set(kind.model_fields) for name, kind in kinds.items()}


# -- what is wrong is named --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (changed(SKIN, gird={"rows": 1}), "unknown key 'gird'; did you mean 'grid'"),
        (
            changed(SKIN, grid={"rows": 2, "colums": 4, "pitch": [0.01, 0.01]}),
            "grid: unknown key 'colums'; did you mean",
        ),
        (changed(SKIN, kind="tactil"), "kind: unknown kind 'tactil'; did you mean 'tactile'"),
        (changed(SKIN, kind=None), "kind: unknown kind 'None'"),
        (
            changed(SKIN, frame="left_elbw_link"),
            "frame: unknown frame 'left_elbw_link'; did you mean 'left_elbow_link'",
        ),
        (changed(SKIN, rate=None), "rate: missing"),
        (changed(SKIN, rate=0.0), "rate: Input should be greater than 0"),
        (changed(SKIN, rate="100"), "rate: Input should be a valid number, got '100'"),
        (changed(SKIN, rate=True), "rate: Input should be a valid number, got True"),
        (changed(SKIN, rate=float("nan")), "rate: Input should be a finite number"),
        (changed(SKIN, unit="kPa"), "unit: Input should be 'Pa' or 'raw'"),
        (changed(SKIN, unit="Pa"), "a sensor that sends Pa needs no calibration"),
        (changed(SKIN, grid=None), "expected either 'grid' or 'taxels'"),
        (changed(SKIN, taxels={"position": [[0, 0, 0]], "area": 1e-4}), "expected either 'grid' or 'taxels'"),
        (changed(SKIN, name="fore arm"), "name: String should match"),
        (changed(SKIN, grid={"rows": 2, "columns": 0, "pitch": [0.01, 0.01]}), "grid.columns: Input should be greater"),
        (changed(SKIN, calibration={"method": "a", "scale": 1.0}), "calibration.date: missing"),
        (changed(SKIN, calibration={"date": "2026-01-01", "method": "a", "scale": 0.0}), "a scale of 0 loses"),
        (
            changed(SKIN, calibration={"date": "2026-01-01", "method": "a", "scale": [1.0, 2.0]}),
            "2 numbers for 8 taxels",
        ),
        (changed(FORCE, calibration={"date": "2026-01-01", "method": "a", "bias": [0, 0, 0]}), "calibration.bias"),
        (changed(FORCE, unit="lbf"), "unit: Input should be 'N'"),
        ("kind: dex3\nrate: 100.0\nunit: raw\npress: [left_plam_0]\n", "unknown pad 'left_plam_0'; did you mean"),
        ("kind: dex3\nrate: 100.0\nunit: raw\npress: [left_palm_0, left_palm_0]\n", "given twice: left_palm_0"),
        ("[]", "expected a mapping of fields, got list"),
        ("kind: [", "no valid YAML"),
        ("", "expected a mapping of fields, got NoneType"),
    ],
)
def test_one_line_names_file_and_field(write, text, said):
    path = write(text)
    with pytest.raises(SensorError) as caught:
        load_sensor(path, ROBOT)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)


def test_dex3_calibration_of_a_pad_that_is_not_there(write):
    calibration = {"left_palm_9": {"date": "2026-01-01", "method": "a", "scale": 1.0}}
    text = yaml.safe_dump(
        {"kind": "dex3", "rate": 1.0, "unit": "raw", "press": ["left_palm_0"], "calibration": calibration}
    )
    with pytest.raises(SensorError, match="calibration: unknown pad 'left_palm_9'; did you mean 'left_palm_0'"):
        load_sensor(write(text), ROBOT)


def test_two_files_cannot_be_the_same_sensor(tmp_path, write):
    write(SKIN, "a.yaml")
    write(changed(SKIN, frame="right_elbow_link"), "b.yaml")
    with pytest.raises(SensorError, match=r"b\.yaml: name 'forearm_skin' is that of a sensor in a\.yaml as well"):
        load_sensors(tmp_path, ROBOT)
    write(changed(SKIN, name="other", topic="tactile/forearm_skin"), "b.yaml")
    with pytest.raises(SensorError, match="topic 'tactile/forearm_skin'"):
        load_sensors(tmp_path, ROBOT)


def test_missing_and_empty_folders_are_named(tmp_path):
    with pytest.raises(SensorError, match="no folder of sensors"):
        load_sensors(tmp_path / "none", ROBOT)
    with pytest.raises(SensorError, match=r"no sensor in it; expected \*\.yaml"):
        load_sensors(tmp_path, ROBOT)
    with pytest.raises(SensorError, match="cannot be read"):
        load_sensor(tmp_path / "none.yaml", ROBOT)


def test_values_that_do_not_fit_the_taxels_are_refused(write):
    (sensor,) = load_sensor(write(SKIN), ROBOT)
    with pytest.raises(SensorError, match="'forearm_skin': values of shape"):
        sensor.reading(0, 0, 0, np.zeros(7))
    with pytest.raises(SensorError, match="status"):
        sensor.reading(0, 0, 0, np.zeros(8), np.full(8, 3))
    (force,) = load_sensor(write(FORCE), ROBOT)
    with pytest.raises(SensorError, match="'left_ft': expected six finite numbers"):
        force.wrench([0.0, np.nan, 0.0, 0.0, 0.0, 0.0])
