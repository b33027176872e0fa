# SPDX-License-Identifier: Apache-2.0
"""Teleoperation: devices, clutching and retargeting, seed recording and annotation."""
