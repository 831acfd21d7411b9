"""Drawing in processes of its own: the same pictures as in ours, and no page harms us or the next one."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.errors import DocumentRefused
from crag_core.base.text.sentences import split
from crag_core.retrieval.page_view.page_image import Draw, PagePicture, page_picture
from crag_core.retrieval.readers import read_document
from crag_core.retrieval.sandbox.documents import DRAWING, DocumentProcesses
from crag_core.retrieval.sandbox.messages import (
    MOST_PNG,
    BadFrame,
    Drawing,
    Limits,
    check_reply,
    pack_picture,
    unpack_picture,
)
from tests.retrieval.conftest import REPOSITORY
from tests.retrieval.printed import TEXT, draw, print_columns, print_pages

BAD = "tests.retrieval.bad_drawers"
GOOD = print_pages(TEXT)
WIDTH = 200
Outcome = PagePicture | tuple[type, str, str]


@pytest.fixture(scope="module")
def drawer() -> Iterator[DocumentProcesses]:
    """Shared, since no page may make a difference to the next one."""
    made = DocumentProcesses(Limits(readers=BAD, seconds=60, memory=400 * 2**20))
    yield made
    made.close()


@pytest.fixture(scope="module")
def plain() -> Iterator[DocumentProcesses]:
    """As the application has it."""
    made = DocumentProcesses(DRAWING)
    yield made
    made.close()


def spans_of(text: str) -> list[tuple[int, int, bool]]:
    return [(start, end, at % 2 == 0) for at, (start, end) in enumerate(split(text))]


def outcome_of(how: Draw, original: bytes, page: int = 1, text: str = TEXT, width: int = WIDTH) -> Outcome:
    """The picture, or what the error says."""
    try:
        return how(original, page, text, spans_of(text), width)
    except DocumentRefused as error:
        return type(error), error.message, error.hint


def refuse(drawer: DocumentProcesses, original: bytes) -> str:
    with pytest.raises(DocumentRefused) as refusal:
        drawer.draw(original, 7, TEXT, [], WIDTH)
    assert refusal.value.message.startswith("Page 7 ") and refusal.value.hint
    return refusal.value.message


def draws_good(drawer: DocumentProcesses) -> bool:
    return drawer.draw(GOOD, 1, TEXT, spans_of(TEXT), WIDTH).found_share == 1.0


# --- the same as in our process -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("original", "page", "text"),
    [
        (GOOD, 1, TEXT),
        (GOOD, 1, ""),
        (GOOD, 1, "half \udc80 a letter, \u0000 and 𝐀 whole one"),
        (print_columns(TEXT * 5, TEXT[::-1] * 5), 1, TEXT * 5),
        (draw(b"0 0 1 1 re f", 14_400, 14_400), 1, ""),
    ],
)
def test_every_picture_is_the_same_to_the_byte(plain: DocumentProcesses, original: bytes, page: int, text: str) -> None:
    for width in (1, WIDTH):
        outcome = outcome_of(plain.draw, original, page, text, width)
        assert isinstance(outcome, PagePicture)
        assert outcome == outcome_of(page_picture, original, page, text, width)


@pytest.mark.parametrize("page", [0, -1, 2, 10**9])
def test_a_page_that_is_not_there_is_refused(plain: DocumentProcesses, page: int) -> None:
    outcome = outcome_of(plain.draw, GOOD, page)
    assert outcome == outcome_of(page_picture, GOOD, page)
    assert isinstance(outcome, tuple) and outcome[0] is DocumentRefused


def test_a_page_of_more_pieces_than_anybody_prints_is_refused(plain: DocumentProcesses) -> None:
    scattered = " ".join(f"1 0 0 1 {at % 110 * 5.5} {at // 110 * 5.5 + 5} Tm (a) Tj" for at in range(14_000))
    content = draw(f"BT /F1 1 Tf {scattered} ET".encode())
    text = "".join(page.text for page in read_document(content, "a.pdf"))
    outcome = outcome_of(plain.draw, content, text=text)
    assert outcome == outcome_of(page_picture, content, text=text)
    assert isinstance(outcome, tuple) and "at most 10,000 pieces" in outcome[1]


# --- what files can do ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("original", "reason"),
    [(b"bug ", "exit status 1"), (b"large %d" % (MOST_PNG + 1), "made no sense (expected at most")],
)
def test_a_page_that_breaks_its_process_is_refused_and_the_next_is_drawn(
    drawer: DocumentProcesses, original: bytes, reason: str
) -> None:
    assert reason in refuse(drawer, original)
    assert draws_good(drawer)


# --- what may come over the wire ------------------------------------------------------------------------------------

ASKED = Drawing(3, "Here. There.", ((0, 5, True), (6, 12, False)), 20)
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 20, 30) + b"whatever a browser makes of it"
BOX = {"left": 0, "top": 1.5, "right": 20, "bottom": 30, "kept": False, "span": 1}
SOUND = {"png": "", "width": 20, "height": 30, "page": 3, "pages": 3, "boxes": [BOX], "found_share": 0.5}


def take(drawn: Any, body: bytes = PNG) -> PagePicture:
    return unpack_picture(check_reply({"id": 7, "picture": drawn}, 7), body, ASKED)


@pytest.mark.parametrize(
    ("wrong", "body"),
    [
        ({"width": 0}, PNG),
        ({"width": 21}, PNG[:16] + struct.pack(">II", 21, 30)),
        ({"height": 9_000}, PNG[:16] + struct.pack(">II", 20, 9_000)),
        ({}, b""),
        ({}, b"<svg onload=alert(1)>"),
        ({}, PNG[:16] + struct.pack(">II", 60_000, 60_000)),
        ({"page": 2}, PNG),
        ({"pages": 2**40}, PNG),
        ({"found_share": 1.01}, PNG),
        ({"more": 1}, PNG),
        ({"boxes": [{**BOX, "right": 20.01}]}, PNG),
        ({"boxes": [{**BOX, "span": 2}]}, PNG),
        ({"boxes": [{**BOX, "kept": True}]}, PNG),
        ({"boxes": [{**BOX, "told": "<b>"}]}, PNG),
    ],
)
def test_only_what_could_have_been_drawn_is_taken(wrong: dict[str, Any], body: bytes) -> None:
    sound = take(SOUND)
    assert (sound.png, sound.width, sound.boxes[0].span) == (PNG, 20, 1)
    assert unpack_picture(*pack_picture(7, sound), ASKED) == sound
    with pytest.raises(BadFrame):
        take({**SOUND, **wrong}, body)


# --- as the application has it --------------------------------------------------------------------------------------


WORKBENCH = f"""
import sys
from pathlib import Path
from types import SimpleNamespace
from crag_core.app.workbench import Workbench
from crag_core.app.config import Config
from crag_core.base.types.passages import Passage
places, content = Workbench(Config(home=Path(sys.argv[1]))).places, sys.stdin.buffer.read()
places._store = SimpleNamespace(read_original=lambda document_id: content)
picture = places.picture(Passage("0-0", {TEXT!r}, "a.pdf", document_id="0" * 32), [])
print(picture.found_share, [name for name in ("pypdfium2", "PIL") if name in sys.modules])
"""


def test_the_workbench_draws_no_page_in_its_own_process(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WORKBENCH, str(tmp_path)], cwd=REPOSITORY, input=GOOD, capture_output=True, timeout=120
    )
    assert (done.stdout, done.returncode) == (b"1.0 []\n", 0), done.stderr
