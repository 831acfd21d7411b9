"""Labelled questions out of uploaded files: what is read, what is refused, and what a person is told of it."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from crag_core.base.text.csv_cells import neutral
from crag_core.experiments.labelled import read as reading
from crag_core.experiments.labelled.file_rows import cleaned
from crag_core.experiments.labelled.questions import (
    ALL,
    LABELS,
    WORDS,
    Expected,
    LabelledQuestion,
    LabelledSet,
    Origin,
    word,
)
from crag_core.experiments.labelled.read import Problem, Read, read_questions, write_csv, write_questions

SAMPLE = Path(__file__).parents[2] / "data" / "questions" / "sample.jsonl"
HEADER = "question,expected\n"


def read(text: str | bytes, name: str = "questions.csv") -> Read:
    return read_questions(name, text.encode() if isinstance(text, str) else text)


def labels(found: Read) -> dict[str, str]:
    return {question.question: question.expected.value for question in found.questions}


def told(found: Read) -> list[tuple[int, str]]:
    return [(problem.row, problem.message) for problem in found.problems]


def one_problem(found: Read) -> Problem:
    [problem] = found.problems
    return problem


# --- formats --------------------------------------------------------------------------------------------------------

SAME = {
    "CSV": "question,expected\nA?,CORRECT\nB?,INCORRECT\n",
    "CSV with CRLF": "question,expected\r\nA?,CORRECT\r\nB?,INCORRECT\r\n",
    "CSV of an old Mac": "question,expected\rA?,CORRECT\rB?,INCORRECT",
    "CSV with semicolons": "question;expected\nA?;CORRECT\nB?;INCORRECT\n",
    "TSV": "question\texpected\nA?\tCORRECT\nB?\tINCORRECT\n",
    "CSV, all quoted": '"question","expected"\n"A?","CORRECT"\n"B?","INCORRECT"\n',
    "CSV with spaces after commas": 'question, expected\n"A?", "CORRECT"\n B? , INCORRECT \n',
    "CSV with blank lines and empty cells": "\n\nquestion,expected,,\n\nA?,CORRECT,,\n,,,\nB?,INCORRECT\n\n",
    "JSONL": '{"question": "A?", "expected": "CORRECT"}\n\n{"question": "B?", "expected": "INCORRECT"}',
    "JSON list": '[{"question": "A?", "expected": "CORRECT"}, {"question": "B?", "expected": "INCORRECT"}]',
    "JSON list over lines": ' [\n{"question": "A?",\n"route": "CORRECT"\n},\n{"q": "B?", "label": "incorrect"},\n]\n',
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_the_content_tells_the_format(text: str) -> None:
    for name in ("questions.csv", "questions.jsonl", "", "questions"):
        for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"):
            found = read_questions(name, text.encode(encoding))
            assert labels(found) == {"A?": "CORRECT", "B?": "INCORRECT"}, (name, encoding)
            assert not found.problems and not found.remarks, (name, encoding)


def test_the_project_s_own_questions_are_read() -> None:
    found = read_questions("sample.jsonl", SAMPLE.read_bytes())
    assert len(found.questions) == 49 and not found.problems
    assert found.remarks == ("Not read: 'id', 'page', 'suggested'.",)
    assert found.questions[0].answers == ("27 days",) and found.questions[0].document == "staff-handbook-leave.md"


def test_columns_have_several_names() -> None:
    for column in ("question", "QUERY", " q ", "\ufeffQuestion", "que stion"):
        for label in ("expected", "Route", "label", "Expected Route", "expected-route", "ACTION"):
            assert labels(read(f"note,{label},{column}\nn,correct,A?")) == {"A?": "CORRECT"}, (column, label)


def test_all_that_a_row_can_hold() -> None:
    text = (
        "Query;Label;Gold Answers;Source;Without;Note;Origin\n"
        '"Where?\r\nAnd when?";Ambiguous;" one | two||three";guide.md;"at ""nine""";seen;Drafted\n'
    )
    assert read(text).questions == (
        LabelledQuestion(
            "Where?\nAnd when?",
            Expected.AMBIGUOUS,
            ("one", "two", "three"),
            "guide.md",
            'at "nine"',
            Origin.DRAFTED,
            "seen",
        ),
    )


@pytest.mark.parametrize(
    ("value", "answers"),
    [
        ('"nine|ten"', ("nine|ten",)),
        ('["nine", " ten ", "", null, 11, 1.5]', ("nine", "ten", "11", "1.5")),
        ("[]", ()),
        ("null", ()),
        ("27", ("27",)),
    ],
)
def test_answers_in_json(value: str, answers: tuple[str, ...]) -> None:
    [question] = read(f'{{"question": "A?", "answerable": true, "answers": {value}}}').questions
    assert question.answers == answers


@pytest.mark.parametrize(
    ("cell", "answers"),
    [("nine", ("nine",)), ('"[""a|b"", ""c""]"', ("a|b", "c")), ("[1] nine", ("[1] nine",)), ("[1]", ("[1]",))],
)
def test_answers_in_a_cell(cell: str, answers: tuple[str, ...]) -> None:
    [question] = read(f"question,answerable,answers\nA?,yes,{cell}").questions
    assert question.answers == answers


# --- labels ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("correct", "CORRECT"),
        ("Answerable", "CORRECT"),
        ("answered", "CORRECT"),
        (" Ambiguous ", "AMBIGUOUS"),
        ("INCORRECT", "INCORRECT"),
        ("unanswerable", "UNANSWERABLE"),
        ("Unanswered", "UNANSWERABLE"),
        ("ambiguous_or_incorrect", "UNANSWERABLE"),
        ("Ambiguous or incorrect", "UNANSWERABLE"),
    ],
)
def test_routes(value: str, expected: str) -> None:
    assert labels(read(f"{HEADER}A?,{value}")) == {"A?": expected}


@pytest.mark.parametrize("expected", Expected)
def test_every_word_that_is_shown_is_read(expected: Expected) -> None:
    for name in (expected, LABELS[expected], *WORDS[expected]):
        for written in (name, name.upper(), name.capitalize(), f"  {name.replace(' ', '-')} "):
            assert labels(read(f'{HEADER}A?,"{written}"')) == {"A?": expected}, written
            line = json.dumps({"question": "A?", "label": written})
            assert labels(read(line)) == {"A?": expected}, written


def test_no_word_means_two_labels() -> None:
    said = ["".join(filter(str.isalnum, name.casefold())) for label in Expected for name in (label, *WORDS[label])]
    assert len(said) == len(set(said)) and not any("," in word(label) for label in Expected)  # a comma ends a CSV cell


@pytest.mark.parametrize("value", ["true", "TRUE", "1", "1.0", "Yes", " yes "])
def test_answerable_is_correct(value: str) -> None:
    assert labels(read(f"question,answerable\nA?,{value}")) == {"A?": "CORRECT"}


@pytest.mark.parametrize("value", ["false", "False", "0", "0.0", "no"])
def test_not_answerable_does_not_say_why(value: str) -> None:
    assert labels(read(f"question,answerable\nA?,{value}")) == {"A?": "UNANSWERABLE"}


@pytest.mark.parametrize(("value", "expected"), [("true", "CORRECT"), ("0", "UNANSWERABLE"), ('"no"', "UNANSWERABLE")])
def test_answerable_in_json(value: str, expected: str) -> None:
    assert labels(read(f'{{"query": "A?", "answerable": {value}}}')) == {"A?": expected}


def test_two_labels_have_to_agree() -> None:
    found = read(
        "question,expected,answerable\nA?,CORRECT,yes\nB?,AMBIGUOUS,no\nC?,,no\nD?,INCORRECT,\nE?,CORRECT,0\nF?,INCORRECT,1"
    )
    assert labels(found) == {"A?": "CORRECT", "B?": "AMBIGUOUS", "C?": "UNANSWERABLE", "D?": "INCORRECT"}
    assert told(found) == [
        (6, "Expected two labels that agree, found CORRECT and answerable = 0. Correct one of them."),
        (7, "Expected two labels that agree, found INCORRECT and answerable = 1. Correct one of them."),
    ]


# --- rows that have a problem ---------------------------------------------------------------------------------------

BROKEN_CELLS = {
    "no question": (",CORRECT", "Expected a question, found none. Write one, or take this row out."),
    "a question of spaces": ("\u3000\u00a0 ,CORRECT", "Expected a question, found none."),
    "a question of nothing to see": ("\x01\x02,CORRECT", "Expected a question, found none."),
    "no label": ("C?,", "Expected a label, found none. Write one of answered, on topic only, off topic, not answered"),
    "a short row": ("C?", "Expected a label, found none."),
    "a wrong label": ("C?,corect", "found 'corect'. Did you mean answered (CORRECT)? Change the label."),
    "a label like no other": ("C?,7", "(or CORRECT, AMBIGUOUS, INCORRECT, UNANSWERABLE), found '7'. Change"),
    "a very long label": (f"C?,{'x' * 5000}", f"found '{'x' * 59}…'."),
    "commas without quotes": ("Who, what, C?,CORRECT", "Expected 2 cells as in the header, found 4. Put a text that"),
    "too long a question": (f"{'x' * 2001},CORRECT", "at most 2,000 characters, found 2,001. Shorten it"),
    "text after a quote": ('"C"?,CORRECT', "Put texts that hold a comma into quotation marks, and close them."),
    "a quote that stays open": ('"C?,CORRECT', "This row cannot be read"),
}


@pytest.mark.parametrize(("row", "message"), BROKEN_CELLS.values(), ids=BROKEN_CELLS)
def test_a_broken_row_is_told_and_costs_no_other(row: str, message: str) -> None:
    found = read(f'{HEADER}A?,CORRECT\n{row}\nB?,INCORRECT\n"D, or what?",CORRECT\n')
    assert labels(found) == {"A?": "CORRECT", "B?": "INCORRECT", "D, or what?": "CORRECT"}
    problem = one_problem(found)
    assert problem.row == 3 and message in problem.message and len(problem.message) < 300


def test_a_quote_that_is_never_closed_is_told_as_such() -> None:
    found = read(f'{HEADER}A?,CORRECT\n"B?,CORRECT\nC?,INCORRECT')
    assert labels(found) == {"A?": "CORRECT", "C?": "INCORRECT"}
    [problem] = found.problems
    assert problem.row == 3 and "unexpected end of data" in problem.message


def test_a_cell_of_an_immense_size() -> None:
    found = read(f'{HEADER}A?,CORRECT\n"{"x" * 200_000}",CORRECT\nB?,INCORRECT')
    assert labels(found) == {"A?": "CORRECT", "B?": "INCORRECT"} and "(131072)" in one_problem(found).message


def test_rows_count_as_lines_of_the_file() -> None:
    found = read('\nquestion,expected\n\n"A\nA\nA?",CORRECT\n\nB?,x\r\n"C\r\nC?",y\n')
    assert [problem.row for problem in found.problems] == [8, 9]
    assert (
        found.remarks[0]
        == "A question goes over several lines in row 4. Check that no quotation mark is missing there."
    )


BROKEN_OBJECTS = {
    "not JSON": ('{"question": "C?", "expected": CORRECT}', "This is not valid JSON: Expecting value at character 32."),
    "cut off": ('{"question": "C?", "expe', "This is not valid JSON: Unterminated string"),
    "a list": ('["C?", "CORRECT"]', "Expected an object such as"),
    "a number": ("7", "Expected an object such as"),
    "NaN": ("NaN", "Expected an object such as"),
    "too deep": ('{"question": ' * 5000, "This is not valid JSON"),
    "an endless number": (f'{{"question": {"9" * 5000}}}', "This is not valid JSON"),
    "no question": ('{"expected": "CORRECT"}', "Expected a question, found none."),
    "question is null": ('{"question": null, "expected": "CORRECT"}', "Expected a question, found none."),
    "question is a list": (
        '{"question": ["C?"], "expected": "CORRECT"}',
        "Expected text for 'question', found a list.",
    ),
    "question is an object": ('{"question": {}, "expected": "CORRECT"}', "found an object."),
    "answerable is null": ('{"question": "C?", "answerable": null}', "Expected a label, found none."),
    "answerable is no truth": ('{"question": "C?", "answerable": "ja"}', "Expected true or false for 'answerable'"),
    "answerable nests": (f'{{"question": "C?", "answerable": {"[" * 900}{"]" * 900}}}', "found a list"),
    "expected is true": ('{"question": "C?", "expected": true}', "found true or false"),
    "answers nest": ('{"question": "C?", "answerable": true, "answers": [["x"]]}', "Expected text for 'answers'"),
    "an answer is an object": ('{"question": "C?", "answerable": true, "answers": {"a": 1}}', "found an object"),
    "without a chunk, and answered": (
        '{"question": "C?", "answerable": true, "without": "x"}',
        "A question whose chunks are taken away cannot be expected to be answered. Change the label",
    ),
}


@pytest.mark.parametrize(("line", "message"), BROKEN_OBJECTS.values(), ids=BROKEN_OBJECTS)
def test_a_broken_line_is_told_and_costs_no_other(line: str, message: str) -> None:
    good = '{"question": "A?", "expected": "CORRECT"}'
    found = read(f'{good}\n{line}\n{{"question": "B?", "answerable": false}}', "a.jsonl")
    assert labels(found) == {"A?": "CORRECT", "B?": "UNANSWERABLE"}
    problem = one_problem(found)
    assert problem.row == 2 and message in problem.message and len(problem.message) < 300


@pytest.mark.parametrize(
    "rest", ["", ', {"question": "B', ', {"question": }, {"q": "B?", "answerable": 0}]', ", " + "[" * 5000]
)
def test_a_list_ends_at_its_first_fault(rest: str) -> None:
    found = read('[{"question": "A?", "expected": "CORRECT"}' + rest)
    assert labels(found) == {"A?": "CORRECT"}
    assert one_problem(found).message.endswith("Nothing after this was read.")


# --- files that have a problem --------------------------------------------------------------------------------------

FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "This file is empty."),
    "blank": (b" \r\n\t\n", "This file is empty."),
    "only a mark": (b"\xef\xbb\xbf\n", "This file is empty."),
    "a workbook": (b"PK\x03\x04\x14\x00\x06\x00_rels xl/workbook.xml", "This is not a text file."),
    "NUL bytes": (b"\x00" * 1000, "This is not a text file."),
    "UTF-16 without a mark": ("question,expected\nA?,CORRECT".encode("utf-16-le"), "encoded as UTF-8"),
    "no header": (b"Where?,CORRECT\nWho?,INCORRECT", "'question' and 'label' (or 'answerable'), found 'Where?'"),
    "a column that is no label": (
        b"question,lable\nA?,yes",
        "columns 'label' (or 'answerable'), found 'question', ",
    ),
    "a wrong name in JSONL": (
        b'{"quesion": "A?", "expected": "CORRECT"}\n{"x": 1}',
        "Expected objects with the fields 'question', found 'quesion', 'expected', 'x'. Name the columns so.",
    ),
    "a header that is no header": (b'"question,expected\nA?,CORRECT', "The first line cannot be read as a header."),
    "only a header": (b"question,expected\n", "This file has no questions."),
    "an empty list": (b"[]", "This file has no questions."),
    "empty objects": (b"{}\n{}", "found none. Name the columns so."),
}


@pytest.mark.parametrize(("content", "message"), FILES.values(), ids=FILES)
def test_a_file_that_cannot_be_read_has_one_problem(content: bytes, message: str) -> None:
    found = read_questions("upload.xlsx", content)
    problem = one_problem(found)
    assert not found.questions and problem.row == 1
    assert message in problem.message and len(problem.message) < 400


def test_questions_without_labels_wait_for_them() -> None:
    for text in ("question\nA?\nB?\nA?", "q,note\nA?,x\nB?,", '{"question": "A?"}\n{"query": "B?", "note": "x"}'):
        found = read(text)
        assert [one.question for one in found.unlabelled] == ["A?", "B?"] and not found.questions, text
        assert not found.problems and not found.remarks
    found = read('{"question": "A?"}\n{"note": "x"}\n{"question": []}')
    assert [one.question for one in found.unlabelled] == ["A?"]
    assert [problem.row for problem in found.problems] == [2, 3]


def test_a_thousand_columns_are_not_all_named() -> None:
    message = one_problem(read(",".join(f"column {n}" for n in range(300_000)) + "\n1,2")).message
    assert "'column 9' and 299,990 more." in message and len(message) < 500


def test_the_problem_of_a_header_names_its_line() -> None:
    assert told(read("\n\nquestion,lable\nA?,CORRECT"))[0][0] == 3


# --- encodings and characters that are none -------------------------------------------------------------------------


def test_windows_letters_are_read_and_told() -> None:
    found = read(f"{HEADER}A?,CORRECT\nÖffnet das Café für 5 € – „spät“?,CORRECT".encode("cp1252"))
    assert "Öffnet das Café für 5 € – „spät“?" in labels(found)
    assert found.remarks[0].startswith("The file is not UTF-8 (line 3), so it was read as Windows-1252. If letters")


def test_one_damaged_letter_does_not_cost_the_others() -> None:
    found = read(f"{HEADER}Öäü ß?,CORRECT\nWo?".encode() + b"\xc3,INCORRECT")
    assert labels(found) == {"Öäü ß?": "CORRECT", "Wo?\ufffd": "INCORRECT"}
    assert found.remarks[0] == "Line 3 is not valid UTF-8; what could not be read is shown as \ufffd."


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_a_file_with_a_mark_that_is_cut_off(encoding: str) -> None:
    found = read(f"{HEADER}Öl?,CORRECT\n".encode(encoding)[:-1])
    assert labels(found) == {"Öl?": "CORRECT"}
    assert f"is not valid {encoding.upper()}" in found.remarks[0]


def test_what_cannot_be_shown_is_taken_out() -> None:
    lines = [
        {"question": "\x00A\x07?", "expected": "CORRECT\x00"},
        {"question": "B?", "expected": "CORRECT", "note": "a\tb\nc"},
        {"question": "C\ud800?", "expected": "INCORRECT", "\udfff": 1},
        {"question": "D?", "expected": "CORRECT", "answers": ["x", "\x9fy"]},
    ]
    found = read("\n".join(map(json.dumps, lines)))
    assert list(labels(found)) == ["A?", "B?", "C\ufffd?", "D?"] and found.questions[3].answers == ("x", "y")
    json.dumps([found.remarks, told(found)], ensure_ascii=False).encode()  # would fail for half a pair


def test_nul_bytes_in_a_cell() -> None:
    found = read(f"{HEADER}A\x00?,CORRECT\nB? and a text that is long enough for the NUL to be rare,INCORRECT")
    assert labels(found)["A?"] == "CORRECT"


@pytest.mark.parametrize("text", ["=1+1", "+49 30?", "-1?", "@you?", "=cmd|' /C calc'!A0", "'=1", "a;=1", "\u200b=1"])
def test_text_that_looks_like_a_formula_is_marked_and_read_as_it_was(text: str) -> None:
    asked = LabelledQuestion(text, Expected.CORRECT, answers=(text,))
    assert str(neutral(text)) in write_csv([asked]) and neutral(text) != text
    assert read(write_csv([asked])).questions == (asked,)


# --- repetitions ----------------------------------------------------------------------------------------------------


def test_a_question_that_is_repeated_is_kept_once_with_all_answers() -> None:
    text = (
        "question,expected,answers,document,note\n"
        "A?,CORRECT,one,,\nB?,INCORRECT,,,\nA? ,correct,two|one,a.md,n\nA?,CORRECT,,b.md,m\n"
    )
    found = read(text)
    assert found.questions == (
        LabelledQuestion("A?", Expected.CORRECT, ("one", "two"), "a.md", note="n"),
        LabelledQuestion("B?", Expected.INCORRECT),
    )
    assert found.remarks[0] == "2 repeated with the same label: rows 4, 5. Each question is kept once."
    assert not found.problems


def test_many_repetitions_are_counted_and_the_first_named() -> None:
    assert read(HEADER + "A?,CORRECT\n" * 1500).remarks[0] == (
        "1,499 repeated with the same label: rows 3, 4, 5, 6, 7 and 1,494 more. Each question is kept once."
    )


def test_a_question_with_two_labels_is_not_kept() -> None:
    found = read(f"{HEADER}A?,CORRECT\nB?,CORRECT\nA?,CORRECT\nA?,unanswerable\nB?,CORRECT\n")
    assert labels(found) == {"B?": "CORRECT"}
    assert told(found) == [
        (
            5,
            "Expected one label for a question, but row 2 says CORRECT, row 5 says UNANSWERABLE (1 more say one of "
            "these). None is kept: correct one, or take one out.",
        )
    ]


def test_a_question_with_and_without_a_passage_is_two() -> None:
    found = read("question,expected,without\nA?,CORRECT,\nA?,AMBIGUOUS,at nine\nA?,AMBIGUOUS,at ten\n")
    assert len(LabelledSet("all", found.questions).questions) == 3 and not found.problems


# --- remarks --------------------------------------------------------------------------------------------------------


def test_columns_that_are_not_read_are_named_once() -> None:
    found = read("id,question,query,expected,documnet,\n1,A?,no,CORRECT,a.md,\n2,B?,no,INCORRECT,b.md,\n")
    assert labels(found) == {"A?": "CORRECT", "B?": "INCORRECT"}
    assert found.remarks[0] == "Not read: 'id', 'query', 'documnet'."


def test_fields_that_only_some_objects_have() -> None:
    found = read('{"q": "A?", "label": "correct", "x": 1}\n{"query": "B?", "route": "correct", "y": [], "x": 2}')
    assert list(labels(found)) == ["A?", "B?"] and found.remarks[0] == "Not read: 'x', 'y'."


def test_an_origin_that_is_not_known_is_that_of_a_file() -> None:
    found = read("question,expected,origin\nA?,CORRECT,Feedback\nB?,CORRECT,wiki\nC?,CORRECT,\n")
    assert [question.origin for question in found.questions] == [Origin.FEEDBACK, Origin.UPLOADED, Origin.UPLOADED]


def rows_of(*labels: str) -> str:
    return HEADER + "".join(f"Question {number}?,{label}\n" for number, label in enumerate(labels))


def test_what_cannot_be_measured_is_said() -> None:
    assert read(rows_of("CORRECT", "AMBIGUOUS")).remarks == ()
    assert "Every question is labelled CORRECT" in read(rows_of(*["CORRECT"] * 20)).remarks[0]
    assert "No question is labelled CORRECT" in read(rows_of(*["AMBIGUOUS", "INCORRECT"] * 10)).remarks[0]
    assert read("question,expected\n,\nA?,x\n").remarks == ()  # nothing was read: its problems are enough


# --- size -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_json", [False, True])
def test_rows_beyond_the_limit_are_told(monkeypatch: pytest.MonkeyPatch, is_json: bool) -> None:
    monkeypatch.setattr(reading, "MOST_ROWS", 4)
    lines = rows_of("CORRECT", "x", "CORRECT", "INCORRECT", "CORRECT", "CORRECT").splitlines()
    if is_json:
        lines = [json.dumps(dict(zip(("question", "expected"), line.split(","), strict=True))) for line in lines[1:]]
    found = read("\n".join(lines))
    first = 5 + (not is_json)
    assert len(found.questions) == 3 and [problem.row for problem in found.problems] == [first - 3, first]
    assert found.problems[1].message.startswith(
        "Expected at most 4 rows, found more. Nothing from this row on was read"
    )


@pytest.mark.exhaustive
@pytest.mark.slow
def test_a_hundred_thousand_rows_take_seconds() -> None:
    text = rows_of(*("CORRECT", "INCORRECT") * 50_001)
    began = time.process_time()
    found = read(text)
    assert time.process_time() - began < 15  # about 1 s on a machine with nothing else to do
    assert len(found.questions) == 100_000 and told(found)[0][0] == 100_002


@pytest.mark.parametrize(
    "text",
    ['"\n' * 50_000, '"a,b\n' * 50_000, '"a\n' + "b,CORRECT\n" * 50_000, 'a""\n""b,"\n' * 25_000, ',"\n' * 50_000],
)
def test_stray_quotation_marks_do_not_take_for_ever(text: str) -> None:
    began = time.process_time()
    assert read(HEADER + text).problems
    assert time.process_time() - began < 15


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


sets = st.lists(asked(), max_size=6, unique_by=lambda question: question.key)


@given(sets)
@example([LabelledQuestion("a\n\n\u2028b\u202e\t\ufffd", Expected.CORRECT, ('["x"]', "y|z"), "ü.md", note="'\"")])
@example([LabelledQuestion('"a;\tb', Expected.UNANSWERABLE, ("[",), without="x,y", origin=Origin.WRITTEN)])
def test_what_is_written_is_read_again(questions: list[LabelledQuestion]) -> None:
    lines = write_questions(questions)
    assert lines.isascii() and lines.count("\n") == len(questions) == len(lines.splitlines())
    for content in (lines.encode(), write_csv(questions).encode("utf-8-sig"), write_csv(questions).encode("utf-16")):
        if questions:
            found = read_questions("set", content)
            assert found.questions == tuple(questions) and not found.problems


@given(st.text(st.characters()), st.text(st.characters()))
def test_what_is_read_once_stays_as_it_is(question: str, note: str) -> None:
    first = read(json.dumps({"question": question, "expected": "CORRECT", "note": note}))
    assert bool(first.questions) is bool(cleaned(question))
    if first.questions:
        assert read(write_questions(first.questions)).questions == first.questions
        assert read(write_csv(first.questions)).questions == first.questions


signs = st.sampled_from('",;\t\n\r{}[]:| \x00\ufeffü')
words = st.sampled_from(
    ["question", "expected", "answerable", "CORRECT", "true", "null", "1e999", "\\ud800", "sep=;", '{"q": "A?"', HEADER]
)
pieces = signs | words


@given(st.lists(pieces, max_size=30).map("".join), st.sampled_from(["utf-8", "utf-16", "cp1252"]))
def test_no_text_makes_it_fail(text: str, encoding: str) -> None:
    found = read_questions("x", text.encode(encoding, "replace"))
    assert found.questions or found.problems or found.unlabelled
    assert [problem.row for problem in found.problems] == sorted(problem.row for problem in found.problems)


@given(st.binary(max_size=200))
def test_no_bytes_make_it_fail(content: bytes) -> None:
    found = read_questions("x\ud800\x00", content)
    assert found.questions or found.problems or found.unlabelled
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
    found = LabelledSet(
        "s", tuple(LabelledQuestion(f"{n}?", Expected.CORRECT, collection=one) for n, one in enumerate(of))
    )
    assert found.elsewhere(searched) == (f"Of 2 questions {told}." if told else "")
    assert found.collection == ("ships" if {*of} <= {"ships", ""} and "ships" in of else "")
