# SPDX-License-Identifier: Apache-2.0
"""Ways round what is in the way: of the base over the floor, of waist and arms in joint space, and their timing."""
