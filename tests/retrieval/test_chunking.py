"""Chunks: as LlamaIndex cuts them, bounded in tokens and in characters, and made in time that grows with the text."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.errors import DocumentRefused, Stopped
from crag_core.retrieval.chunking.split import MAX_CHUNKS, Chunk, Chunks, counter, cut_document, cut_pages
from crag_core.retrieval.chunking.text_splitter import CLAUSE, Cut, split_lines, split_text
from crag_core.retrieval.embedding import HuggingFaceEmbedder
from crag_core.retrieval.readers import Page, read_document
from crag_core.retrieval.sandbox.documents import DocumentProcesses
from crag_core.retrieval.sandbox.messages import BadFrame, Limits, check_reply, unpack_chunks
from tests.retrieval.conftest import REPOSITORY

SAMPLE = sorted((REPOSITORY / "data" / "sample").iterdir())
WORDS = Cut(60, 10, str.split)
LONG_TEXT = "渡船 九点开。".encode() * 1_000_000
"""Takes longer to cut than half a second, on whatever machine."""
TROUBLE = [*"aB7.?!,;:'\")(]-* \n\t\u201d\u00bb\u3000\u00e9\u0130渡。", "  ", "J.", "...", ". .", "--", "12.", "1,5"]
TROUBLE += ["Foo", "the "]
texts = st.lists(st.sampled_from(TROUBLE), max_size=120).map("".join)


def llama_chunks(text: str, size: Cut, tokenize: Callable[[str], Any]) -> list[str]:
    from llama_index.core.node_parser import SentenceSplitter

    splitter = SentenceSplitter(
        chunk_size=size.tokens,
        chunk_overlap=size.overlap,
        tokenizer=tokenize,
        paragraph_separator="\n\n",
        chunking_tokenizer_fn=lambda text: [*split_lines(text)],
        secondary_chunking_regex=CLAUSE,
    )
    return [chunk for chunk in splitter.split_text(text) if chunk]


# --- the same as LlamaIndex -----------------------------------------------------------------------------------------


@given(texts)
def test_sentences_lose_nothing_and_cross_no_line(text: str) -> None:
    parts = [*split_lines(text)]
    assert "".join(parts) == text and all("\n" not in part[:-1] for part in parts)


def test_sentences_end_where_those_of_strips_do() -> None:
    told = [
        "Mr. Low pays 3.50 a night, z. B. in May. ",
        "He left at 5 p.m. ",
        "“Really?” ",
        "渡船九点开。",
        "船票一元。",
    ]
    assert [*split_lines("".join(told))] == told


@given(texts, st.integers(5, 40), st.integers(0, 2))
def test_chunks_are_those_of_llama_index(text: str, tokens: int, repeated: int) -> None:
    size = Cut(tokens, (0, tokens // 3, tokens // 2)[repeated])
    if all(len(part) <= size.characters for part in text.split()):
        tokenize: Callable[[str], Any] = list if tokens > 20 else str.split
        made = [*split_text(text, size, lambda text: len(tokenize(text)))]
        if len(text) <= size.characters or tokenize is list:
            assert [chunk for _, chunk in made] == llama_chunks(text, size, tokenize)
        assert all(text.startswith(chunk, start) for start, chunk in made)


def test_the_file_of_the_tokenizer_counts_as_the_model_does(shared_documents: Path) -> None:
    embedder = HuggingFaceEmbedder()
    found = embedder.find_tokenizer()
    assert Path(found).name == "tokenizer.json"
    own, of_file = counter(Cut(tokenize=embedder.tokenize)), counter(Cut(tokenizer=found))
    odd = ["", " ", "a", "ÄÖ ü", "x" * 101, "渡船九点开", "[CLS] [MASK]", "e\u0301 \u200b\u00ad", "🛳️", "\x07\ufffd"]
    odd += ["ﷺ", "[UNK]##"]
    lines = [line for path in SAMPLE for page in read_document(path) for line in page.text.split("\n")]
    lines += [line for path in (shared_documents / "ok").glob("UDHR*") for line in path.read_text().split("\n")]
    assert len(lines) > 1000 and [*map(of_file, odd + lines)] == [*map(own, odd + lines)]


# --- bounds ---------------------------------------------------------------------------------------------------------

LONG = 60_000
ANY_TEXT = {
    "one word": "a" * LONG,
    "a word and others": f"Before. {'b' * LONG} After.",
    "Chinese without a stop": "渡船九点开" * (LONG // 5),
    "spaces": f"a{' ' * LONG}b",
    "empty lines": f"a{chr(10) * LONG}b",
    "hidden letters": "\u200b\u200b \n" * (LONG // 4),
    "marks without a gap": "a!:" * (LONG // 3),
    "quotes after quotes": "a!)!)" * (LONG // 5),
    "dots": ". " * (LONG // 2),
    "commas": "a, " * (LONG // 3),
    "rows": "\n".join("; ".join(f"column {n}: {n * row}" for n in range(400)) for row in range(60)),
    "headings": "# a\n" * (LONG // 4),
    "marks of headings": f"# a{' #' * (LONG // 2)} b",
    "long headings": f"# {'a' * 1000}\n## b\n" * (LONG // 1000),
}


@pytest.mark.parametrize("text", ANY_TEXT.values(), ids=ANY_TEXT)
def test_any_text_is_cut_in_little_time_into_small_chunks_and_nothing_is_lost(text: str) -> None:
    started = time.process_time()
    chunks = [*cut_pages([Page(text)], "a.md", Cut(220, 30, str.split))]
    assert time.process_time() - started < 4, "less than a second"
    placed = [*split_text(text, Cut(220, 30), lambda text: len(text.split()))]
    assert [chunk.text for chunk in chunks] == [chunk for _, chunk in placed]
    assert max(len(chunk.text) for chunk in chunks) <= Cut(220, 30).characters
    assert len(chunks) <= 4 * len(text) / 220 + 10
    at = 0
    for start, chunk in placed:  # each begins before the end of those before it, or after white space only
        assert text.startswith(chunk, start) and not text[at:start].strip()
        at = max(at, start + len(chunk))
    assert not text[at:].strip()


def test_a_text_of_too_many_chunks_is_refused_with_what_to_do() -> None:
    text = "渡" * (60 * MAX_CHUNKS)
    with pytest.raises(DocumentRefused, match=r"a.txt: its 1,200,000 characters .* 20,000 chunks") as refusal:
        cut_document([Page(text)], "a.txt", Cut(50, 0, list), threading.Event())
    assert "smaller files" in (refusal.value.hint or "")


def test_a_stop_is_heard_between_two_chunks() -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Stopped):
        cut_document([Page("word " * 1000)], "a.txt", WORDS, cancel)


# --- in the process that reads --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cut() -> Cut:
    embedder = HuggingFaceEmbedder()
    return Cut(220, 30, embedder.tokenize, embedder.find_tokenizer())


@pytest.fixture(scope="module")
def parser() -> Iterator[DocumentProcesses]:
    made = DocumentProcesses(Limits(readers="tests.retrieval.bad_readers"))
    yield made
    made.close()


SIZE, LIMITS = Cut(50, 0), Limits(1, 1, characters=1000, chunks=3)


@pytest.mark.parametrize(
    ("reply", "body"),
    [
        ({"starts": [-1]}, b"a\0b"),
        ({"starts": []}, b"a\0b"),
        ({"numbers": [1] * 4, "starts": [1] * 4}, b"a\0b\0c\0d\0\0\0\0"),
        ({"numbers": []}, b""),
        ({"pages": -1}, b"a\0b"),
        ({"characters": 1001}, b"a\0b"),
        ({"numbers": [0]}, b"a\0b"),
        ({}, b"ab"),
        ({}, b"a\0b\0c"),
        ({}, b"\0b"),
        ({}, b"a" * 801 + b"\0b"),
        ({}, b"a\0" + b"a" * 201),
    ],
)
def test_only_sound_chunks_are_taken(reply: dict[str, Any], body: bytes) -> None:
    sound = {"id": 7, "numbers": [1], "starts": [0], "pages": 2, "characters": 9}
    assert unpack_chunks(check_reply(sound, 7), b"a\0b", SIZE, LIMITS) == Chunks((Chunk("a", 1, "b"),), 2, 9)
    with pytest.raises(BadFrame):
        unpack_chunks(check_reply({**sound, **reply}, 7), body, SIZE, LIMITS)


def test_cutting_loads_nothing_heavy_and_starts_no_thread(cut: Cut) -> None:
    """The process that reads may start none."""
    work = (
        "import os, sys; from crag_core.retrieval.chunking.split import Cut, cut_pages;"
        "from crag_core.retrieval.readers import Page;"
        "chunks = [*cut_pages([Page('A word. ' * 20_000)], 'a.md', Cut(tokenizer=sys.argv[1]))];"
        "heavy = [name for name in ('torch', 'llama_index', 'transformers', 'numpy', 'nltk') if name in sys.modules];"
        "print(len(chunks) > 100, heavy, len(os.listdir('/proc/self/task')) if sys.platform == 'linux' else 1)"
    )
    done = subprocess.run([sys.executable, "-c", work, cut.tokenizer], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.stdout == "True [] 1\n", done.stderr


def test_a_stop_ends_cutting_at_once(parser: DocumentProcesses, cut: Cut) -> None:
    parser.cut(b"A good file.", "good.txt", cut, threading.Event())
    cancel = threading.Event()
    threading.Timer(0.1, cancel.set).start()
    with pytest.raises(Stopped):
        parser.cut(LONG_TEXT, "a.txt", cut, cancel)
