# SPDX-License-Identifier: Apache-2.0
"""ROS 2 nodes: conversion, QoS, parameters, diagnostics and lifecycle round the rooms below."""

from __future__ import annotations

__all__: list[str] = []
