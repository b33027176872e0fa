# SPDX-License-Identifier: Apache-2.0
"""Simulation in MuJoCo: model assembly, stepping, the in-process body and cameras."""
