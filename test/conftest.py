# SPDX-License-Identifier: Apache-2.0
"""What holds for every test."""

from __future__ import annotations

import signal

from hypothesis import settings

# A shell without job control starts background programs with SIGINT ignored, and all they start inherits that: a test
# that sends Ctrl-C would then wait for nothing. With a handler here, new processes begin with the default again.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test asserts a time, and Hypothesis's own limit of 200 ms for each example would be one.
settings.register_profile("supple", deadline=None)
settings.load_profile("supple")
