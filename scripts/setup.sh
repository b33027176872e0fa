#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Make or complete .venv: requirements, interface packages, Supple itself. Run again at any time; what is done is skipped.
#
#   ROS_DISTRO set (a sourced distribution): its rclpy and messages are used, and only the interfaces it lacks are built.
#   ROS_DISTRO not set: rclpy and messages come as wheels, which need Python 3.11.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
venv=$root/.venv
stamps=$venv/.supple
logs=$venv/.supple/log

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

# run LOG COMMAND…: run quietly; on failure show the end of the log.
run() {
  local log=$logs/$1.log
  shift
  if ! "$@" >"$log" 2>&1; then
    tail -n 25 "$log" >&2
    die "'$1 ${2:-}' failed; the whole log is in $log"
  fi
}

# digest TEXT PATH…: one hash of a text and of every file below the paths.
digest() {
  local text=$1
  shift
  { printf '%s\n' "$text"; find "$@" -type f -not -path '*/__pycache__/*' -print0 | sort -z | xargs -0 sha256sum; } | sha256sum | cut -d' ' -f1
}

done_before() { [ "$(cat "$stamps/$1" 2>/dev/null)" = "$2" ]; }
mark_done() { printf '%s\n' "$2" >"$stamps/$1"; }

# leave_venv: take .venv off PATH, where a sourced setup.bash put it; what is found there may be removed below.
leave_venv() {
  local entry entries kept=()
  IFS=: read -ra entries <<<"$PATH"
  for entry in "${entries[@]}"; do
    [[ $(realpath -m -- "${entry:-.}")/ == "$(realpath -m -- "$venv")"/* ]] || kept+=("$entry")
  done
  PATH=$(IFS=:; printf '%s' "${kept[*]}")
  hash -r
}

# outside PYTHON [MODULE]: tell whether an interpreter, and a module that it imports, lie outside .venv.
outside() {
  "$1" - "$venv" "${@:2}" 2>/dev/null <<'PY'
import importlib, os, sys
venv = os.path.realpath(sys.argv[1])
places = [sys.prefix, *(importlib.import_module(name).__file__ for name in sys.argv[2:])]
sys.exit(any(os.path.commonpath([venv, os.path.realpath(place)]) == venv for place in places))
PY
}

find_python() {
  local candidate
  if [ -n "${ROS_DISTRO:-}" ]; then
    outside python3 rclpy || die "ROS_DISTRO is '$ROS_DISTRO', but python3 cannot import rclpy. Source the distribution (. /opt/ros/$ROS_DISTRO/setup.bash) or unset ROS_DISTRO to use the wheels."
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die "ROS $ROS_DISTRO uses $(python3 -V); Supple needs Python 3.11 or newer (Jazzy, Kilted or later)."
    command -v python3
    return
  fi
  for candidate in python3.11 python3; do
    if outside "$candidate" && "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  die "the ROS wheels need Python 3.11; found $(python3 -V 2>/dev/null || echo 'no python3'). Install python3.11 with its venv and dev packages, or source a ROS 2 distribution."
}

# Name the Debian packages behind what the machine lacks, one a line.
missing_packages() {
  local libraries version
  libraries=$(ldconfig -p 2>/dev/null || /sbin/ldconfig -p)
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  command -v cmake >/dev/null || echo cmake
  command -v ninja >/dev/null || echo ninja-build
  command -v g++ >/dev/null || echo g++
  "$python" -c 'import ensurepip' 2>/dev/null || echo "python$version-venv"
  "$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' || echo "python$version-dev"
  # Software rendering.
  [[ $libraries == *libEGL.so.1\ * ]] || echo libegl1
  [[ $libraries == *libEGL_mesa.so.0\ * ]] || echo libegl-mesa0
  [[ $libraries == *libOpenGL.so.0\ * ]] || echo libopengl0
  compgen -G "/usr/lib/*/dri/swrast_dri.so" >/dev/null || compgen -G "/usr/lib/*/libgallium-*.so" >/dev/null || echo libgl1-mesa-dri
}

install_packages() {
  local missing
  missing=$(missing_packages)
  [ -n "$missing" ] || return 0
  missing=${missing//$'\n'/ }
  if ! command -v apt-get >/dev/null; then
    die "missing: $missing (Debian names). Install them with the package manager of this system and run again."
  elif [ "$(id -u)" -ne 0 ]; then
    die "missing Debian packages. Run: sudo apt-get install -y --no-install-recommends $missing"
  fi
  say "installing Debian packages: $missing"
  mkdir -p "$logs"
  run apt-update apt-get update -q
  # shellcheck disable=SC2086  # the names are words
  run apt-install env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
}

make_venv() {
  local options=()
  [ -n "${ROS_DISTRO:-}" ] && options=(--system-site-packages)
  local state
  state="$("$python" -V) ${ROS_DISTRO:-wheels} $venv"
  # A virtual environment without our stamp is kept when it is whole and lies where it was made.
  if done_before venv "$state" && [ -x "$venv/bin/pip" ]; then return; fi
  if [ ! -e "$stamps/venv" ] && head -n 3 "$venv/bin/pip" 2>/dev/null | grep -q "$venv/bin/python" \
      && [ "$("$venv/bin/python" -V 2>/dev/null)" = "$("$python" -V)" ] && [ -z "${ROS_DISTRO:-}" ]; then
    say "keeping the virtual environment found in .venv"
  else
    # Nothing is removed before it is sure that there will be something in its place.
    outside "$python" venv ensurepip || die "$python cannot make a virtual environment in .venv."
    say "making .venv with $("$python" -V) (ROS ${ROS_DISTRO:-wheels})"
    find "$venv" -mindepth 1 -maxdepth 1 -not -name .supple -exec rm -rf {} +
    rm -f "$stamps"/*.stamp
    run venv "$python" -m venv "${options[@]}" "$venv"
  fi
  mark_done venv "$state"
}

install_requirements() {
  local arguments=(-r requirements/runtime.txt -r requirements/development.txt -c requirements/constraints.txt)
  [ -n "${ROS_DISTRO:-}" ] || arguments+=(-r requirements/ros.txt)
  local state
  state=$(digest "${arguments[*]}" requirements)
  done_before requirements.stamp "$state" && return
  say "installing pinned requirements (one to three minutes; log: .venv/.supple/log/requirements.log)"
  run requirements "$venv/bin/pip" install --no-input --disable-pip-version-check "${arguments[@]}"
  # These pin old versions of packages that their data files do not need.
  say "installing robot assets"
  run assets "$venv/bin/pip" install --no-input --disable-pip-version-check --no-deps -r requirements/assets.txt
  mark_done requirements.stamp "$state"
}

# in_distribution NAME: tell whether a sourced prefix other than .venv holds a ROS package.
in_distribution() {
  local prefix prefixes
  IFS=: read -ra prefixes <<<"${AMENT_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}"; do
    [ "$prefix" != "$venv" ] && [ -e "$prefix/share/ament_index/resource_index/packages/$1" ] && return 0
  done
  return 1
}

build_interfaces() {
  local folder name state
  for folder in interfaces/*/; do
    name=$(basename "$folder")
    if [ "$name" != supple_interfaces ] && [ -n "${ROS_DISTRO:-}" ] && in_distribution "$name"; then
      say "$name: the one of ROS $ROS_DISTRO is used"
      continue
    fi
    state=$(digest "$(cat "$stamps/venv")" "$folder" requirements/ros.txt)
    done_before "$name.stamp" "$state" && continue
    say "building $name (about half a minute)"
    # The wheels export an include folder of the machine they were made on, which CMake refuses.
    find "$venv/share" -name 'export_*__rosidl_generator_pyExport.cmake' -exec sed -i 's#"/opt/python/[^"]*"#""#' {} + 2>/dev/null || true
    rm -rf "$venv/.supple/build/$name"
    # shellcheck disable=SC1091  # written by write_environment
    (
      . "$venv/setup.bash"
      run "$name-configure" cmake -S "$folder" -B "$venv/.supple/build/$name" -G Ninja -DCMAKE_INSTALL_PREFIX="$venv" \
        -DPython3_EXECUTABLE="$venv/bin/python" -DBUILD_TESTING=OFF -DCMAKE_CXX_FLAGS=-O0 -DCMAKE_C_FLAGS=-O1
      run "$name-build" cmake --build "$venv/.supple/build/$name" -t install
    ) || exit 1
    mark_done "$name.stamp" "$state"
  done
}

# The virtual environment is a ROS prefix: say so to its Python (a .pth line) and to shells (setup.bash).
write_environment() {
  local packages
  packages=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  cat >"$packages/supple_prefix.pth" <<'PTH'
import os, sys; p = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep); sys.prefix in p or os.environ.__setitem__("AMENT_PREFIX_PATH", os.pathsep.join([*filter(None, p), sys.prefix]))
PTH
  cat >"$venv/setup.bash" <<BASH
# Activate Supple's virtual environment as a ROS prefix; source this file.
. "$venv/bin/activate"
export AMENT_PREFIX_PATH="$venv\${AMENT_PREFIX_PATH:+:\$AMENT_PREFIX_PATH}"
export CMAKE_PREFIX_PATH="$venv\${CMAKE_PREFIX_PATH:+:\$CMAKE_PREFIX_PATH}"
export LD_LIBRARY_PATH="$venv/lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}"
BASH
}

# Install Supple editable, and link what belongs in share/ and lib/, so that an edit needs no new installation.
install_supple() {
  local folder folders=() name state
  for folder in config launch rviz seeds urdf; do [ -d "$folder" ] && folders+=("$folder"); done
  state=$(digest "$(cat "$stamps/venv") ${folders[*]}" setup.py setup.cfg pyproject.toml package.xml resource requirements/runtime.txt)
  done_before package.stamp "$state" && return
  say "installing supple (editable)"
  run supple "$venv/bin/pip" install --no-input --disable-pip-version-check --no-deps --no-build-isolation -e .
  local share=$venv/share/supple index=$venv/share/ament_index/resource_index/packages
  rm -rf "$share" "$venv/lib/supple"
  mkdir -p "$share" "$index" "$venv/lib/supple"
  ln -sf "$root/resource/supple" "$index/supple"
  ln -s "$root/package.xml" "$share/package.xml"
  for folder in "${folders[@]}"; do ln -s "$root/$folder" "$share/$folder"; done
  "$venv/bin/python" - <<'PY' | while read -r name; do ln -s "../../bin/$name" "$venv/lib/supple/$name"; done
from importlib.metadata import distribution
for entry in distribution("supple").entry_points:
    if entry.group == "console_scripts":
        print(entry.name)
PY
  mark_done package.stamp "$state"
}

[ "$(uname -s)-$(uname -m)" = Linux-x86_64 ] || [ -n "${ROS_DISTRO:-}" ] || die "the ROS wheels are for Linux on x86-64; this is $(uname -s) on $(uname -m). Source a ROS 2 distribution instead."
started=$SECONDS
leave_venv
mkdir -p "$logs"
exec 9>"$stamps/lock"
flock -n 9 || { say "waiting for another setup of this tree"; flock 9; }
python=$(find_python)
install_packages
make_venv
write_environment
install_requirements
build_interfaces
install_supple
say "ready in $((SECONDS - started)) s (.venv/bin/supple doctor tells what is there)"
