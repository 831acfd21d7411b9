"""Files of kept runs: no line is torn, and a hostile file is refused by line."""

from __future__ import annotations

import json

import pytest

from crag_core.base.errors import BadRecord
from crag_core.trace.trace import Trace
from tests.storage.history_parts import HOSTILE, fake_runs, run, whole_run
from ui.history import bulk_actions
from ui.history.bulk_actions import Imported, take_in, to_lines


def taken(content: bytes) -> tuple[Imported, list[Trace]]:
    found: list[Trace] = []
    return take_in(content, found.append, lambda share: None), found


def test_every_line_of_an_export_is_a_record() -> None:
    runs = [whole_run("a"), run("b", question=f"{HOSTILE}\n\u2028\x85"), *fake_runs()]
    content = to_lines(runs)
    lines = content.split(b"\n")
    assert content.isascii() and [Trace.from_json(line.decode()) for line in lines[:-1]] == runs and lines[-1] == b""


def test_an_export_stops_at_what_one_file_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_actions, "MOST_RECORDS", 2)
    assert to_lines(run(f"run-{number}") for number in range(5)).count(b"\n") == 2
    monkeypatch.setattr(bulk_actions, "MOST_EXPORTED_MB", 0)
    assert to_lines([whole_run("large"), run("next")]).count(b"\n") == 1, "the first goes in whatever its size"


def test_a_line_that_is_no_record_is_told_and_the_others_go_in() -> None:
    lines = to_lines([run("one"), run("two")]).split(b"\n")
    future = json.dumps(json.loads(lines[0]) | {"schema": 99}).encode()
    bad = [b"not JSON", b"[1, 2]", b'"text"', b"\xff\xfe", b"[" * 100_000, future, b'{"schema": 3}', b"NaN"]
    done, found = taken(b"\r\n".join([lines[0], *bad, b"", lines[1]]))
    assert [trace.id for trace in found] == ["one", "two"] and (done.taken, len(done.refused)) == (2, len(bad))
    assert [line.partition(":")[0] for line in done.refused] == [f"Line {number}" for number in range(2, 2 + len(bad))]
    assert "schema 99" in done.refused[5]


@pytest.mark.parametrize(
    ("name", "value", "content", "words"),
    [
        ("LARGEST_IMPORT_MB", 0, b"x" * 100, "expected at most 0 MB"),
        ("MOST_LINES", 3, b"{}\n" * 4, "4 lines, expected at most 200 MB and 3 lines"),
        ("MOST_LINES", 3, b" \n\n", "This file is empty"),
    ],
)
def test_a_file_that_is_too_large_or_empty_is_refused_whole(
    name: str, value: int, content: bytes, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_actions, name, value)
    with pytest.raises(BadRecord, match=words):
        taken(content)


def test_a_record_that_share_has_saved_is_one_record() -> None:
    done, found = taken(run("shared").to_json().encode())
    assert (done.taken, done.refused) == (1, ()) and found == [run("shared")]
