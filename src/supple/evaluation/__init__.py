# SPDX-License-Identifier: Apache-2.0
"""Evaluation: perception, touch and calibration measured against what is known, apart from any task's success."""
