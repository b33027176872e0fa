# SPDX-License-Identifier: Apache-2.0
"""Supple: teach a humanoid once, get a thousand physically checked demonstrations."""

__all__ = ["__version__"]

__version__ = "0.1.0"
