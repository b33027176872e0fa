# SPDX-License-Identifier: Apache-2.0
"""Perception: from colour, depth and masks to a fixed number of points on each object, in the robot's base frame."""
