"""Imports LlamaIndex in one thread at a time, since its modules import each other in a circle.

Its modules import one another in circles. Two threads that meet it for the first time, one to embed and one to ask a
model, can see each other's half-made modules and fail with an ImportError.
"""

from __future__ import annotations

import threading

_LOCK = threading.Lock()


def import_llama_index() -> None:
    """Call this before anything of LlamaIndex is imported inside a function."""
    with _LOCK:
        import llama_index.core  # noqa: F401  for its effect
