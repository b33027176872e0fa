# SPDX-License-Identifier: Apache-2.0
"""Control: walking policy, base outer loop, upper body and arbitration, all as ``step(state, dt) -> command``."""
