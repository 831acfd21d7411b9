"""The package `ollama` imported where OLLAMA_HOST holds a list.

It makes a client of that variable when it is imported, and fails at anything but one address.
"""

from __future__ import annotations

import os
import sys
import threading

_LOCK = threading.Lock()


def import_ollama() -> None:
    """Call this before anything of the package is imported inside a function."""
    with _LOCK:
        given = os.environ.get("OLLAMA_HOST", "")
        addresses = given.replace(",", " ").split()
        if "ollama" in sys.modules or len(addresses) < 2:
            import ollama

            return
        # One address for the moment: that client is never used, but a list would keep the package from being imported.
        os.environ["OLLAMA_HOST"] = addresses[0]
        try:
            import ollama  # noqa: F401
        finally:
            os.environ["OLLAMA_HOST"] = given
