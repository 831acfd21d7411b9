"""The command line as a program that ends as `crag-explorer` does, with an embedder that has nothing to load.

Its health is never older than half a second.

Run: python -m tests.service.start serve --port 8600
"""

from __future__ import annotations

from tests.word_embedder import WordEmbedder

if __name__ == "__main__":
    from crag_core.__main__ import run
    from crag_core.app import workbench
    from crag_core.base.concurrency import shutdown
    from crag_core.service import service

    service.HEALTH_S = 0.5
    workbench.HuggingFaceEmbedder = WordEmbedder  # type: ignore[misc,assignment]
    shutdown.run(run)
