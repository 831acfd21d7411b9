"""One lock for whoever loads a model by transformers, which imports its modules lazily and not thread-safe."""

from threading import Lock

TRANSFORMERS = Lock()
