"""Several threads that meet LlamaIndex, or Transformers, for the first time at once."""

import subprocess
import sys
import threading

import pytest

from crag_core.base.errors import EmbeddingUnavailable
from crag_core.retrieval.embedding import HuggingFaceEmbedder

AT_ONCE = """
import threading
from crag_core.llms.model import CallLimit
from crag_core.llms import ollama; from crag_core.llms import openai_compatible
from crag_core.retrieval.chunking import split as chunking

def run(work):
    try:
        work()
    except ImportError as error:
        failures.append(error)

failures, start = [], threading.Barrier(3)
works = [
    lambda: (start.wait(), ollama.model("http://127.0.0.1:9", "any", 1.0, CallLimit(1))),
    lambda: (start.wait(), openai_compatible.model("http://127.0.0.1:9/v1", "any", "", 1.0, CallLimit(1))),
    lambda: (start.wait(), chunking.counter(chunking.USUAL)),
]
threads = [threading.Thread(target=run, args=(work,)) for work in works]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not failures, failures
"""


def test_three_threads_may_import_it_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_model_and_a_tokenizer_are_never_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    making, together = threading.Semaphore(1), threading.Event()

    def find_source(_: HuggingFaceEmbedder) -> str:
        """The first step of either; waits for somebody else to be in it too."""
        if not making.acquire(blocking=False):
            together.set()
        else:
            together.wait(0.3)
            making.release()
        raise EmbeddingUnavailable("not here")

    def run(embedder: HuggingFaceEmbedder, name: str) -> None:
        with pytest.raises(EmbeddingUnavailable):
            embedder.load() if name == "load" else embedder.tokenize("any")

    monkeypatch.setattr(HuggingFaceEmbedder, "_find_source", find_source)
    first, second = HuggingFaceEmbedder(), HuggingFaceEmbedder()
    works = [(embedder, name) for embedder in (first, second) for name in ("load", "tokenize")]
    threads = [threading.Thread(target=run, args=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not together.is_set()
