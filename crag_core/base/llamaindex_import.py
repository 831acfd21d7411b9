"""Imports LlamaIndex in one thread at a time.

Its modules import each other in a circle: two threads that import it first at the same time can fail with an
ImportError.
"""

import threading

_LOCK = threading.Lock()


def import_llama_index() -> None:
    """Call this before anything of LlamaIndex is imported inside a function."""
    with _LOCK:
        import llama_index.core  # noqa: F401  for its effect
