"""Threads that compute let those that draw pages go first."""

import os
import sys
import threading
from contextlib import suppress

NICENESS = 5
"""With 0, a page shows the end of a run more than twice as late where 30 people ask on two cores."""


def give_way() -> None:
    """Of this thread, where the system can (Linux)."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
