# SPDX-License-Identifier: Apache-2.0
"""Kinematics: the Pinocchio model of a robot, whole-body inverse kinematics and the momentum observer on it."""
