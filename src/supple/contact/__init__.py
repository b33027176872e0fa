# SPDX-License-Identifier: Apache-2.0
"""Touch: tactile sensors and their readings, detection of contact and slip, calibration, sensor health."""
