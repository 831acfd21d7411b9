"""Several threads that meet LlamaIndex for the first time at once."""

from __future__ import annotations

import subprocess
import sys

AT_ONCE = """
import threading
from crag_core.llms import ollama, openai_compatible
from crag_core.retrieval import chunking

def run(work):
    try:
        work()
    except ImportError as error:
        failures.append(error)

failures, start = [], threading.Barrier(3)
works = [
    lambda: (start.wait(), ollama.model("http://127.0.0.1:9", "any", 1.0, 1)),
    lambda: (start.wait(), openai_compatible.model("http://127.0.0.1:9/v1", "any", "", 1.0, 1)),
    lambda: (start.wait(), chunking.split_lines("One. Two.")),
]
threads = [threading.Thread(target=run, args=(work,)) for work in works]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not failures, failures
"""


def test_three_threads_may_import_it_at_once() -> None:
    done = subprocess.run([sys.executable, "-c", AT_ONCE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
