"""`python -m ui` with an embedder that has nothing to load: `python -m tests.browser.start`."""

from __future__ import annotations

from tests.word_embedder import WordEmbedder

if __name__ == "__main__":
    import runpy

    from crag_core.app import workbench

    workbench.HuggingFaceEmbedder = WordEmbedder  # type: ignore[misc,assignment]
    runpy.run_module("ui", run_name="__main__")
