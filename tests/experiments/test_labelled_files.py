"""Labelled questions out of uploaded files: what is read, what is refused, and what a person is told of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crag_core.base.text.csv_cells import neutral
from crag_core.experiments.labelled import read as reading
from crag_core.experiments.labelled.file_rows import cleaned
from crag_core.experiments.labelled.questions import ALL, LABELS, WORDS, Expected, LabelledQuestion, LabelledSet, Origin
from crag_core.experiments.labelled.read import Read, read_questions, write_csv, write_questions
from tests.matrix import diagonal

SAMPLE = Path(__file__).parents[2] / "data" / "questions" / "sample.jsonl"
HEADER = "question,expected\n"
CORRECT, AMBIGUOUS, INCORRECT, UNANSWERABLE = Expected


def read(text: str | bytes) -> Read:
    return read_questions("questions", text.encode() if isinstance(text, str) else text)


def labels(found: Read) -> dict[str, str]:
    return {question.question: question.expected.value for question in found.questions}


def told(found: Read) -> list[tuple[int, str]]:
    return [(problem.row, problem.message) for problem in found.problems]


SAME = {
    "CSV": "question,expected\nA?,CORRECT\nB?,INCORRECT\n",
    "CSV of an old Mac": "question,expected\rA?,CORRECT\rB?,INCORRECT",
    "CSV with semicolons": "question;expected\r\nA?;CORRECT\r\nB?;INCORRECT\r\n",
    "TSV": "question\texpected\nA?\tCORRECT\nB?\tINCORRECT\n",
    "CSV with spaces after commas": 'question, expected\n"A?", "CORRECT"\n B? , INCORRECT \n',
    "CSV with blank lines and empty cells": "\n\nquestion,expected,,\n\nA?,CORRECT,,\n,,,\nB?,INCORRECT\n\n",
    "JSONL": '{"question": "A?", "expected": "CORRECT"}\n\n{"question": "B?", "expected": "INCORRECT"}',
    "JSON list": '[{"question": "A?", "expected": "CORRECT"}, {"question": "B?", "expected": "INCORRECT"}]',
    "JSON list over lines": ' [\n{"question": "A?",\n"route": "CORRECT"\n},\n{"q": "B?", "label": "incorrect"},\n]\n',
}


@pytest.mark.parametrize(("form", "encoding"), diagonal(SAME, ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"]))
def test_the_content_tells_the_format(form: str, encoding: str) -> None:
    found = read(SAME[form].encode(encoding))
    assert labels(found) == {"A?": "CORRECT", "B?": "INCORRECT"} and not found.problems and not found.remarks


def test_the_project_s_own_questions_are_read() -> None:
    found = read(SAMPLE.read_bytes())
    assert len(found.questions) == 49 and not found.problems
    assert found.remarks == ("Not read: 'id', 'page', 'suggested'.",)
    assert found.questions[0].answers == ("27 days",) and found.questions[0].document == "staff-handbook-leave.md"


@pytest.mark.parametrize("column", ["question", "QUERY", " q ", "\ufeffQuestion", "que stion"])
@pytest.mark.parametrize("label", ["expected", "Route", "Expected Route", "expected-route", "ACTION"])
def test_columns_have_several_names(column: str, label: str) -> None:
    assert labels(read(f"note,{label},{column}\nn,correct,A?")) == {"A?": "CORRECT"}


def test_all_that_a_row_can_hold() -> None:
    text = (
        "Query;Label;Gold Answers;Source;Without;Note;Origin\n"
        '"Where?\r\nAnd when?";Ambiguous;" one | two||three";guide.md;"at ""nine""";seen;Drafted\n'
    )
    answers = ("one", "two", "three")
    asked = LabelledQuestion("Where?\nAnd when?", AMBIGUOUS, answers, "guide.md", 'at "nine"', Origin.DRAFTED, "seen")
    assert read(text).questions == (asked,)
    assert read("question,expected,origin\nB?,CORRECT,wiki").questions[0].origin is Origin.UPLOADED


@pytest.mark.parametrize(
    ("row", "answers"),
    [
        ('{"question": "A?", "answerable": true, "answers": "nine|ten"}', ("nine|ten",)),
        (
            '{"question": "A?", "answerable": true, "answers": ["nine", " ten ", "", null, 11, 1.5]}',
            ("nine", "ten", "11", "1.5"),
        ),
        ('{"question": "A?", "answerable": true, "answers": null}', ()),
        ("question,answerable,answers\nA?,yes,nine|ten", ("nine", "ten")),
        ('question,answerable,answers\nA?,yes,"[""a|b"", ""c""]"', ("a|b", "c")),
        ("question,answerable,answers\nA?,yes,[1] nine", ("[1] nine",)),
        ("question,answerable,answers\nA?,yes,[1]", ("[1]",)),
    ],
)
def test_answers_are_a_list_or_one_text(row: str, answers: tuple[str, ...]) -> None:
    assert read(row).questions[0].answers == answers


@pytest.mark.parametrize("expected", Expected)
def test_every_word_that_is_shown_is_read(expected: Expected) -> None:
    names = (expected, LABELS[expected], *WORDS[expected])
    for written in (*names, *map(str.upper, names), *(f"  {name.replace(' ', '-')} " for name in names)):
        assert labels(read(f'{HEADER}A?,"{written}"')) == {"A?": expected}, written


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((value, "CORRECT") for value in ("true", "TRUE", "1", "1.0", " yes ")),
        *((value, "UNANSWERABLE") for value in ("false", "0", "0.0", "No")),
    ],
)
def test_a_column_may_say_whether_it_is_answerable(value: str, expected: str) -> None:
    assert labels(read(f"question,answerable\nA?,{value}")) == {"A?": expected}
    assert labels(read('{"query": "A?", "answerable": false}')) == {"A?": "UNANSWERABLE"}


# --- rows that have a problem ---------------------------------------------------------------------------------------

BROKEN_CELLS = {
    "no question": (",CORRECT", "Expected a question, found none. Write one, or take this row out."),
    "a question of nothing to see": ("\u3000\u00a0\x01\x02 ,CORRECT", "Expected a question, found none."),
    "a short row": ("C?", "Expected a label, found none. Write one of answered, on topic only, off topic"),
    "a wrong label": ("C?,corect", "found 'corect'. Did you mean answered (CORRECT)? Change the label."),
    "a label like no other": ("C?,7", "(or CORRECT, AMBIGUOUS, INCORRECT, UNANSWERABLE), found '7'. Change"),
    "a very long label": (f"C?,{'x' * 5000}", f"found '{'x' * 59}…'."),
    "commas without quotes": ("Who, what, C?,CORRECT", "Expected 2 cells as in the header, found 4. Put a text that"),
    "too long a question": (f"{'x' * 2001},CORRECT", "at most 2,000 characters, found 2,001. Shorten it"),
    "text after a quote": ('"C"?,CORRECT', "Put texts that hold a comma into quotation marks, and close them."),
    "a quote that stays open": ('"C?,CORRECT', "This row cannot be read"),
    "a cell of an immense size": (f'"{"x" * 200_000}",CORRECT', "(131072)"),
}
BROKEN_OBJECTS = {
    "not JSON": ('{"question": "C?", "expected": CORRECT}', "This is not valid JSON: Expecting value at character 32."),
    "cut off": ('{"question": "C?", "expe', "This is not valid JSON: Invalid control character"),
    "a list": ('["C?", "CORRECT"]', "Expected an object such as"),
    "NaN": ("NaN", "Expected an object such as"),
    "too deep": ('{"question": ' * 5000, "This is not valid JSON"),
    "an endless number": (f'{{"question": {"9" * 5000}}}', "This is not valid JSON"),
    "no question": ('{"expected": "CORRECT"}', "Expected a question, found none."),
    "question is a list": (
        '{"question": ["C?"], "expected": "CORRECT"}',
        "Expected text for 'question', found a list.",
    ),
    "answerable is null": ('{"question": "C?", "answerable": null}', "Expected a label, found none."),
    "answerable nests": (f'{{"question": "C?", "answerable": {"[" * 900}{"]" * 900}}}', "found a list"),
    "answers nest": ('{"question": "C?", "answerable": true, "answers": [["x"]]}', "Expected text for 'answers'"),
    "without a chunk, and answered": (
        '{"question": "C?", "answerable": true, "without": "x"}',
        "A question whose chunks are taken away cannot be expected to be answered. Change the label",
    ),
}


@pytest.mark.parametrize(("row", "message"), BROKEN_CELLS.values(), ids=BROKEN_CELLS)
def test_a_broken_row_is_told_and_costs_no_other(row: str, message: str) -> None:
    found = read(f'{HEADER}A?,CORRECT\n{row}\nB?,INCORRECT\n"D, or what?",CORRECT\n')
    assert labels(found) == {"A?": "CORRECT", "B?": "INCORRECT", "D, or what?": "CORRECT"}
    [problem] = found.problems
    assert problem.row == 3 and message in problem.message and len(problem.message) < 300


@pytest.mark.parametrize(("line", "message"), BROKEN_OBJECTS.values(), ids=BROKEN_OBJECTS)
def test_a_broken_line_is_told_and_costs_no_other(line: str, message: str) -> None:
    found = read(f'{{"question": "A?", "expected": "CORRECT"}}\n{line}\n{{"question": "B?", "answerable": false}}')
    assert labels(found) == {"A?": "CORRECT", "B?": "UNANSWERABLE"}
    [problem] = found.problems
    assert problem.row == 2 and message in problem.message and len(problem.message) < 300


def test_rows_count_as_lines_of_the_file() -> None:
    found = read('\nquestion,expected\n\n"A\nA\nA?",CORRECT\n\nB?,x\r\n"C\r\nC?",y\n')
    assert [problem.row for problem in found.problems] == [8, 9]
    assert [problem.row for problem in read("\n\nquestion,lable\nA?,CORRECT").problems] == [3]


@pytest.mark.parametrize(
    "rest", ["", ', {"question": "B', ', {"question": }, {"q": "B?", "answerable": 0}]', ", " + "[" * 5000]
)
def test_a_list_ends_at_its_first_fault(rest: str) -> None:
    found = read('[{"question": "A?", "expected": "CORRECT"}' + rest)
    assert labels(found) == {"A?": "CORRECT"}
    [problem] = found.problems
    assert problem.row == 2 and problem.message.endswith("Nothing after this was read.")


# --- files that have a problem --------------------------------------------------------------------------------------

FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "This file is empty."),
    "blank": (b"\xef\xbb\xbf \r\n\t\n", "This file is empty."),
    "a workbook": (b"PK\x03\x04\x14\x00\x06\x00_rels xl/workbook.xml", "This is not a text file."),
    "UTF-16 without a mark": ("question,expected\nA?,CORRECT".encode("utf-16-le"), "encoded as UTF-8"),
    "no header": (b"Where?,CORRECT\nWho?,INCORRECT", "'question' and 'label' (or 'answerable'), found 'Where?'"),
    "a column that is no label": (b"question,lable\nA?,yes", "columns 'label' (or 'answerable'), found 'question', "),
    "a wrong name in JSONL": (
        b'{"quesion": "A?", "expected": "CORRECT"}\n{"x": 1}',
        "Expected objects with the fields 'question', found 'quesion', 'expected', 'x'. Name the columns so.",
    ),
    "a header that is no header": (b'"question,expected\nA?,CORRECT', "The first line cannot be read as a header."),
    "only a header": (b"question,expected\n", "This file has no questions."),
    "an empty list": (b"[]", "This file has no questions."),
    "a thousand columns": (
        ",".join(f"column {n}" for n in range(300_000)).encode(), "'column 9' and 299,990 more.",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "message"), FILES.values(), ids=FILES)
def test_a_file_that_cannot_be_read_has_one_problem(content: bytes, message: str) -> None:
    found = read(content)
    [problem] = found.problems
    is_whole = problem.message.startswith("questions: ")
    assert not found.questions and problem.row == (0 if is_whole else 1)
    assert message in problem.told and len(problem.message) < 500


@pytest.mark.parametrize(
    "text", ["question\nA?\nB?\nA?", "q,note\nA?,x\nB?,", '{"question": "A?"}\n{"query": "B?", "note": "x"}']
)
def test_questions_without_labels_wait_for_them(text: str) -> None:
    found = read(text)
    assert [one.question for one in found.unlabelled] == ["A?", "B?"] and not found.questions
    assert not found.problems and not found.remarks
    broken = read('{"question": "A?"}\n{"note": "x"}\n{"question": []}')
    assert len(broken.unlabelled) == 1 and [problem.row for problem in broken.problems] == [2, 3]


def test_windows_letters_and_damaged_ones_are_read_and_told() -> None:
    found = read(f"{HEADER}A?,CORRECT\nÖffnet das Café für 5 € – „spät“?,CORRECT".encode("cp1252"))
    assert "Öffnet das Café für 5 € – „spät“?" in labels(found)
    assert found.remarks[0].startswith("Line 3 is not valid UTF-8, so the file was read as Windows-1252. If letters")
    found = read(f"{HEADER}Öäü ß?,CORRECT\nWo?".encode() + b"\xc3,INCORRECT")
    assert labels(found) == {"Öäü ß?": "CORRECT", "Wo?\ufffd": "INCORRECT"}
    assert found.remarks[0] == "Line 3 is not valid UTF-8; what could not be read is shown as \ufffd."
    cut = read(f"{HEADER}Öl?,CORRECT\n".encode("utf-16")[:-1])
    assert labels(cut) == {"Öl?": "CORRECT"} and "is not valid UTF-16" in cut.remarks[0]


def test_what_cannot_be_shown_is_taken_out() -> None:
    lines = [
        {"question": "\x00A\x07?", "expected": "CORRECT\x00"},
        {"question": "C\ud800?", "expected": "INCORRECT", "\udfff": 1},
        {"question": "D?", "expected": "CORRECT", "answers": ["x", "\x9fy"]},
    ]
    found = read("\n".join(map(json.dumps, lines)))
    assert list(labels(found)) == ["A?", "C\ufffd?", "D?"] and found.questions[2].answers == ("x", "y")
    json.dumps([found.remarks, told(found)], ensure_ascii=False).encode()  # would fail for half a pair


@pytest.mark.parametrize("text", ["=1+1", "+49 30?", "-1?", "@you?", "=cmd|' /C calc'!A0", "'=1", "a;=1", "\u200b=1"])
def test_text_that_looks_like_a_formula_is_marked_and_read_as_it_was(text: str) -> None:
    asked = LabelledQuestion(text, CORRECT, answers=(text,))
    assert str(neutral(text)) in write_csv([asked]) and neutral(text) != text
    assert read(write_csv([asked])).questions == (asked,)


# --- repetitions, remarks and size ------------------------------------------------------------------------------------


def test_a_question_that_is_repeated_is_kept_once_with_all_answers() -> None:
    found = read(
        "question,expected,answers,document,note\n"
        "A?,CORRECT,one,,\nB?,INCORRECT,,,\nA? ,correct,two|one,a.md,n\nA?,CORRECT,,b.md,m\n"
    )
    first = LabelledQuestion("A?", CORRECT, ("one", "two"), "a.md", note="n")
    assert found.questions == (first, LabelledQuestion("B?", INCORRECT)) and not found.problems
    assert found.remarks[0] == "2 repeated with the same label, in rows 4, 5."
    assert (
        "1,499 repeated with the same label, in rows 3, 4, 5, 6, 7 …" in read(HEADER + "A?,CORRECT\n" * 1500).remarks[0]
    )


def test_a_question_with_two_labels_is_not_kept_and_with_and_without_a_chunk_it_is_two() -> None:
    found = read(f"{HEADER}A?,CORRECT\nB?,CORRECT\nA?,CORRECT\nA?,unanswerable\nB?,CORRECT\n")
    assert labels(found) == {"B?": "CORRECT"}
    message = "Expected one label for a question, but row 2 says answered, row 5 says not answered. None is kept: "
    assert told(found) == [(5, f"{message}correct one, or take one out.")]
    found = read("question,expected,without\nA?,CORRECT,\nA?,AMBIGUOUS,at nine\nA?,AMBIGUOUS,at ten\n")
    assert len(LabelledSet("all", found.questions).questions) == 3 and not found.problems


def test_columns_that_are_not_read_are_named_once() -> None:
    found = read("id,question,query,expected,documnet,\n1,A?,no,CORRECT,a.md,\n2,B?,no,INCORRECT,b.md,\n")
    assert found.remarks[0] == "Not read: 'id', 'query', 'documnet'."
    found = read('{"q": "A?", "label": "correct", "x": 1}\n{"query": "B?", "route": "correct", "y": [], "x": 2}')
    assert list(labels(found)) == ["A?", "B?"] and found.remarks[0] == "Not read: 'x', 'y'."


def rows_of(*labels: str) -> str:
    return HEADER + "".join(f"Question {number}?,{label}\n" for number, label in enumerate(labels))


def test_rows_beyond_the_limit_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_ROWS", 4)
    found = read(rows_of("CORRECT", "x", "CORRECT", "INCORRECT", "CORRECT", "CORRECT"))
    assert len(found.questions) == 3 and [problem.row for problem in found.problems] == [3, 6]
    assert "at most 4 rows, found more. Nothing from this row on was read" in found.problems[1].message


# --- there and back -------------------------------------------------------------------------------------------------

texts = st.text(max_size=40).map(cleaned)
some_text = texts.filter(bool)


@st.composite
def asked(draw: st.DrawFn) -> LabelledQuestion:
    expected = draw(st.sampled_from(Expected))
    return LabelledQuestion(
        draw(some_text),
        expected,
        tuple(draw(st.lists(some_text | st.sampled_from(["a|b", "|", "[", '["a"]', "[]", '"', ","]), max_size=3))),
        draw(texts),
        "" if expected.is_answerable else draw(texts),
        draw(st.sampled_from(Origin)),
        draw(texts),
        collection=draw(st.sampled_from(["", ALL, "ships"])),
    )


@given(st.lists(asked(), max_size=6, unique_by=lambda question: question.key))
@example([LabelledQuestion("a\n\n\u2028b\u202e\t\ufffd", CORRECT, ('["x"]', "y|z"), "ü.md", note="'\"")])
@example([LabelledQuestion('"a;\tb', UNANSWERABLE, ("[",), without="x,y", origin=Origin.WRITTEN)])
def test_what_is_written_is_read_again(questions: list[LabelledQuestion]) -> None:
    lines = write_questions(questions)
    assert lines.isascii() and lines.count("\n") == len(questions) == len(lines.splitlines())
    for content in (lines.encode(), write_csv(questions).encode("utf-8-sig"), write_csv(questions).encode("utf-16")):
        if questions:
            found = read(content)
            assert found.questions == tuple(questions) and not found.problems


pieces = st.sampled_from(
    [
        *'",;\t\n\r{}[]:| \x00\ufeffü',
        *("question", "expected", "answerable", "CORRECT", "true", "null", "1e999", "\\ud800", "sep=;", '{"q": "A?"'),
        HEADER,
    ]
)


@given(st.lists(pieces, max_size=30).map("".join), st.sampled_from(["utf-8", "utf-16", "cp1252"]))
@example('"a,b\n' * 5000, "utf-8")
@example('a""\n""b,"\n' * 2500, "utf-8")
def test_no_text_makes_it_fail(text: str, encoding: str) -> None:
    found = read(text.encode(encoding, "replace"))
    assert found.questions or found.problems or found.unlabelled
    assert [problem.row for problem in found.problems] == sorted(problem.row for problem in found.problems)
    json.dumps(told(found), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("of", "searched", "told"),
    [
        (["", ""], "ships", ""),
        (["ships", ""], "ships", ""),
        ([ALL, ""], "", ""),
        (["ships", ""], "", "1 is of the collection “ships”, and the whole index is searched"),
        (["ships", "ships"], "main", "2 are of the collection “ships”, and the collection “main” is searched"),
        (["ships", ALL], "ships", "1 is of the whole index, and the collection “ships” is searched"),
    ],
)
def test_a_set_knows_what_its_labels_speak_of(of: list[str], searched: str, told: str) -> None:
    found = LabelledSet("s", tuple(LabelledQuestion(f"{n}?", CORRECT, collection=one) for n, one in enumerate(of)))
    assert found.elsewhere(searched) == (f"Of 2 questions {told}." if told else "")
    assert found.collection == ("ships" if {*of} <= {"ships", ""} and "ships" in of else "")
