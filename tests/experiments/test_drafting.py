"""Questions drafted from passages: labelled by construction, from all documents in turn, equal for equal arguments."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crag_core.base.text.words import fold, words
from crag_core.base.types.passages import Passage
from crag_core.experiments.drafting.draft import draft, pieces, sentence_of
from crag_core.experiments.drafting.keywords import search_words
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion, LabelledSet, Origin

ROOT = Path(__file__).parents[2]
OFF_CORPUS = (
    "Who painted the Mona Lisa?",
    "How long does it take to boil an egg?",
    "Why is the sky blue?",
    "What is the capital of Mongolia?",
    "How does a knight move in chess?",
    "Which planet has the most moons?",
)
SUBJECTS = words("pump valve boiler ladder window lantern chimney gate mirror carpet piano oven")
PLACES = words("cellar garden kitchen archive library attic stable orchard chapel tower barn bakery")


def passage(text: str, source: str = "a.md", ordinal: int = 0) -> Passage:
    return Passage(f"{source}-{ordinal}", text, source, document_id=source, ordinal=ordinal)


def rules(source: str, sentences: int) -> list[Passage]:
    """A document of sentences each of which states one fact of its own, one a passage."""
    stated = (
        f"The {noun} of the {source} house is checked by the {place} warden after {7 * number + len(source) + 8} days."
        for number, (noun, place) in enumerate(zip(SUBJECTS, PLACES, strict=True))
    )
    return [passage(text, f"{source}.md", n) for n, (text, _) in enumerate(zip(stated, range(sentences), strict=False))]


def of(expected: Expected, questions: Sequence[LabelledQuestion]) -> list[LabelledQuestion]:
    return [question for question in questions if question.expected is expected]


def test_half_are_answered_a_quarter_nearly_and_a_quarter_not_at_all() -> None:
    found = draft([*rules("red", 12), *rules("blue", 12)], OFF_CORPUS, 16, seed=1)
    assert Counter(question.expected for question in found) == {
        Expected.CORRECT: 8,
        Expected.AMBIGUOUS: 4,
        Expected.INCORRECT: 4,
    }
    assert all(question.origin is Origin.DRAFTED and question.note for question in found)
    LabelledSet("drafted", found)


def test_the_answer_stands_in_the_sentence_and_the_sentence_in_a_passage_of_the_document() -> None:
    passages = [*rules("red", 8), *rules("blue", 8)]
    for question in of(Expected.CORRECT, draft(passages, (), 12, seed=3)):
        (answer,) = question.answers
        assert answer in sentence_of(question) and sentence_of(question) in question.note
        assert any(sentence_of(question) in one.text for one in passages if one.source == question.document)
        assert not question.without and answer not in question.question


def test_a_near_miss_takes_its_sentence_away_and_has_no_answer() -> None:
    passages = [*rules("red", 8), *rules("blue", 8)]
    found = of(Expected.AMBIGUOUS, draft(passages, (), 16, seed=3))
    assert found
    for question in found:
        assert not question.answers and sentence_of(question) == question.without
        assert any(question.without in one.text for one in passages if one.source == question.document)
        assert "not indexed" in question.note


def test_a_question_is_no_near_miss_where_nothing_else_is_about_it() -> None:
    alone = [passage("The lighthouse keeper checks the great clock every 9 hours.")]
    (found,) = draft(alone, (), 1, seed=1)
    assert found.expected is Expected.CORRECT
    others = [
        passage(f"The weaver of {town} dyes the wool for {n} hours.", f"{n}.md") for n, town in enumerate("abc", 20)
    ]
    assert not of(Expected.AMBIGUOUS, draft([*alone, *others], (), 8, seed=1))


@pytest.mark.parametrize("seed", range(6))
def test_a_question_is_no_near_miss_where_another_document_answers_it_as_well(seed: int) -> None:
    twice = [
        passage("The swimming pool in Larchmoor was opened on 4 May 1987.", "a.md"),
        passage("Larchmoor has a swimming pool, and it opened its doors on 4 May 1987.", "b.md"),
        passage("The swimming pool in Larchmoor has a slide for children.", "c.md"),
    ]
    found = draft([*twice, *rules("red", 2)], (), 8, seed)
    assert "swimming pool Larchmoor opened" in {one.question for one in of(Expected.CORRECT, found)}
    assert len(of(Expected.AMBIGUOUS, found)) == 1


def test_by_another_seed_other_documents_come_first() -> None:
    passages = [one for number in range(9) for one in rules(f"house-{number}", 2)]
    assert len({draft(passages, (), 1, seed)[0].document for seed in range(9)}) > 2


def test_equal_arguments_give_equal_questions_and_another_seed_others() -> None:
    passages = [*rules("red", 12), *rules("blue", 12)]
    assert draft(passages, OFF_CORPUS, 12, seed=5) == draft(passages, OFF_CORPUS, 12, seed=5)
    assert draft(passages, OFF_CORPUS, 12, seed=5) != draft(passages, OFF_CORPUS, 12, seed=6)


def test_the_order_in_which_python_keeps_sets_does_not_matter() -> None:
    told = (
        "from tests.experiments.test_drafting import *\n"
        "print(draft([*rules('red', 12), *rules('blue', 5)], OFF_CORPUS, 12, seed=5))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", told],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1 and "CORRECT" in said.pop()


def test_documents_take_turns_and_a_short_one_gives_what_it_can() -> None:
    passages = [*rules("red", 12), *rules("blue", 12), *rules("green", 2)]
    found = Counter(question.document for question in draft(passages, (), 16, seed=2))
    assert found == {"red.md": 5, "blue.md": 5, "green.md": 2}


def test_no_sentence_is_asked_for_twice_though_documents_and_passages_repeat_it() -> None:
    sentences = [one.text for one in rules("red", 6)]
    overlapping = [passage(" ".join(sentences[n : n + 2]), "red.md", n) for n in range(6)]
    copied = [passage(one.text, "copy.md", one.ordinal) for one in overlapping]
    found = draft([*overlapping, *copied], (), 40, seed=2)
    asked = [sentence_of(question) for question in found]
    assert len(asked) == len(set(asked)) == 6


def test_an_answer_that_the_document_gives_twice_is_not_asked_for() -> None:
    twice = "The lift carries 8 people of the staff. The older boat in the harbour also carries 8 people at night."
    assert draft([passage(twice)], (), 8, seed=1) == ()


def test_a_question_that_fits_two_sentences_of_its_document_is_not_asked() -> None:
    two = [
        passage("The boiler in the cellar is cleaned after 20 days."),
        passage("The boiler in the cellar is cleaned after 30 days when the cellar is cold.", ordinal=1),
    ]
    assert not any("20 days" in question.answers for question in draft(two, (), 8, seed=1))


@pytest.mark.parametrize(
    "text",
    [
        "# The hall opened to guests in 1987.",
        "| The lift | carries 8 people of the staff. |\n|---|---|\n| The hall | holds 90 guests. |",
        "| The lift | carries 8 people of the staff.",
        "```\nThe lift carries 8 people of the staff.\n```",
        "```\nThe lift carries 8 people of the staff.",
        "Rules for the lift\nThe lift carries 8 people of the staff.",
        "The lift carries 8 people of the staff",
    ],
)
def test_headings_table_rows_code_and_fragments_are_no_statements(text: str) -> None:
    assert not any(piece.is_plain for piece in pieces(text))
    assert draft([passage(text)], (), 8, seed=1) == ()


def test_a_statement_may_be_wrapped_before_a_name() -> None:
    text = "The lift in the northern hall of the museum of\nLarchmoor carries 8 people of the staff."
    assert [piece.is_plain for piece in pieces(text)] == [True]


def test_headings_and_list_marks_are_left_out_of_a_statement() -> None:
    text = "## Lifts\n\n1. The lift carries 8 people.\n- [ ] The hall holds 90 guests.\n2. Cellar\n   It has 3 rooms."
    assert [piece.text for piece in pieces(text) if piece.is_plain] == [
        "The lift carries 8 people.",
        "The hall holds 90 guests.",
        "It has 3 rooms.",
    ]


def test_everyday_questions_that_the_passages_are_about_are_left_out() -> None:
    cooking = [
        passage(
            "To boil an egg well, put it into cold water. Take it out once it has boiled for seven minutes.", "c.md"
        ),
        *rules("red", 12),
    ]
    asked = {question.question for question in of(Expected.INCORRECT, draft(cooking, OFF_CORPUS, 40, seed=1))}
    assert asked and "How long does it take to boil an egg?" not in asked
    assert asked < set(OFF_CORPUS)


def test_an_everyday_question_is_asked_once() -> None:
    found = draft(rules("red", 12), ["Why is the sky blue?"] * 5, 40, seed=1)
    assert len(of(Expected.INCORRECT, found)) == 1


@pytest.mark.parametrize("count", [-3, 0])
def test_none_are_drafted_where_none_are_wanted(count: int) -> None:
    assert draft(rules("red", 12), OFF_CORPUS, count, seed=1) == ()


def test_nothing_comes_of_nothing() -> None:
    assert draft([], OFF_CORPUS, 8, seed=1) == ()
    assert draft([passage(""), passage("   \n", ordinal=1)], OFF_CORPUS, 8, seed=1) == ()


@pytest.mark.parametrize(
    ("sentence", "query", "answer"),
    [
        (
            "Hunde bleiben an der Leine, die höchstens 1,5 Meter lang sein darf.",
            "Hunde bleiben Leine Meter lang",
            "1,5 Meter",
        ),
        ("Auf den Linien R1 und R2 kostet ein Hund 2,00 £ pro Fahrt.", "Linien kostet Hund Fahrt", "2,00 £"),
        (
            "Le musée ouvre ses portes aux visiteurs à 09:30 en semaine.",
            "musée ouvre portes visiteurs semaine",
            "09:30",
        ),
        ("Музей открыл новый зал для посетителей города в 1987 году.", "Музей открыл новый посетителей города", "1987"),
        (
            "Le tunnel relie Berne et Lyon par Milan, Turin et Gênes sur 120 kilomètres.",
            "Berne Milan Turin Gênes kilomètres",
            "120 kilomètres",
        ),
        ("この図書館は1987年に新しい建物へ移転した。", "図書館 建物 移転", "1987年"),
        ("يفتح المتحف أبوابه للزوار في 5 أبريل 1987 بعد الترميم.", "يفتح المتحف أبوابه للزوار الترميم", "5 أبريل 1987"),
    ],
)
def test_in_other_languages_the_words_of_a_search_are_drafted(sentence: str, query: str, answer: str) -> None:
    found = search_words(sentence, lambda word: 1)
    assert found is not None and (found.question, found.answer) == (query, answer)


def test_a_search_is_marked_as_such() -> None:
    text = "Die Hunde bleiben auf dem Schiff an der Leine, die höchstens 1,5 Meter lang ist und aus Leder sein muss."
    (found,) = draft([passage(text)], (), 1, seed=1)
    assert found.note.startswith("Search words made from the sentence: “Die Hunde") and found.answers == ("1,5 Meter",)
    assert sentence_of(found) == text


@pytest.mark.parametrize(
    "sentence", ["Das Haus ist schön und gelb.", "Im Jahr 1987.", "Größe: 60 × 45 cm.", "🦆 12 🦆."]
)
def test_without_a_fact_or_enough_words_nothing_is_searched(sentence: str) -> None:
    assert search_words(sentence, lambda word: 1) is None


def test_only_a_drafted_question_tells_its_sentence() -> None:
    made = draft(rules("red", 3), OFF_CORPUS, 4, seed=1)
    assert [bool(sentence_of(question)) for question in made] == [True, True, True, False]
    written = LabelledQuestion("Why?", Expected.CORRECT, note="Made from the sentence: “It rains.”")
    assert sentence_of(written) == ""


_SIGNS = st.text(
    st.sampled_from("The hall has 12 rooms.in 1987 £5%–\n#|-*”“。、年に会議は١٢٣مرحبا🦆\u200d\u0301é"), max_size=400
)
_SAID = st.lists(
    st.one_of(
        st.text(max_size=200),
        _SIGNS,
        st.builds("The {} of the {} house has {} rooms.".format, st.sampled_from(SUBJECTS), _SIGNS, st.integers(2, 99)),
        st.sampled_from([one.text for one in rules("red", 12)]),
    ),
    max_size=8,
).map(" ".join)


@given(st.lists(st.tuples(_SAID, st.sampled_from(["a.md", "b.md"])), max_size=5), st.integers(0, 20), st.integers())
@example([("😀" * 500, "a.md")], 8, 0)
@example([("会議は12時に始まります。" * 50, "a.md")], 8, 0)
@settings(deadline=None, max_examples=200)
def test_any_passages_give_sound_questions(texts: list[tuple[str, str]], count: int, seed: int) -> None:
    passages = [passage(text, source, number) for number, (text, source) in enumerate(texts)]
    found = draft(passages, OFF_CORPUS, count, seed)
    assert len(found) <= count and found == draft(passages, OFF_CORPUS, count, seed)
    LabelledSet("drafted", found)
    sentences = [fold(sentence_of(question)) for question in found if question.expected is not Expected.INCORRECT]
    assert len(sentences) == len(set(sentences))
    for question in found:
        assert question.origin is Origin.DRAFTED
        assert all(fold(answer) not in fold(question.question) for answer in question.answers)
        assert all(fold(answer) in fold(sentence_of(question)) for answer in question.answers)
        assert bool(question.answers) is question.expected.is_answerable
        if question.expected is not Expected.INCORRECT:
            assert any(fold(sentence_of(question)) in fold(one.text) for one in passages)
        assert bool(question.without) is (question.expected is Expected.AMBIGUOUS)
        assert not question.without or any(question.without in one.text for one in passages)


@pytest.mark.parametrize(
    "text",
    [
        "a" * 100_000,
        "1 " * 50_000,
        "5 to " * 20_000,
        "£" * 100_000,
        "The The " * 12_000,
        "年1月" * 30_000,
        "\n" * 100_000,
        "The hall has 12 rooms. " * 4_000,
        "مرحبا ١٢ " * 10_000,
        "In, " * 25_000,
    ],
    ids=lambda text: repr(text[:8]),
)
def test_a_long_passage_takes_no_more_than_a_moment(text: str) -> None:
    started = time.monotonic()
    draft([passage(text)], OFF_CORPUS, 8, seed=1)
    assert time.monotonic() - started < 10


def test_the_everyday_questions_are_80_different_ones_and_none_is_about_the_sample() -> None:
    lines = (ROOT / "data" / "questions" / "off-corpus.jsonl").read_text("utf-8").splitlines()
    told = [json.loads(line) for line in lines]
    everyday = {one["question"] for one in told}
    assert len(everyday) == len(told) == 80
    assert all(set(one) == {"question", "topic"} and one["question"].endswith("?") and one["topic"] for one in told)
    assert len({one["topic"] for one in told}) >= 25
    sample = [
        passage(block, path.name, number)
        for path in sorted((ROOT / "data" / "sample").iterdir())
        if path.suffix in {".md", ".txt", ".csv"}
        for number, block in enumerate(path.read_text("utf-8").split("\n\n"))
    ]
    many = [one for letter in ascii_lowercase for one in rules(letter * 4, 12)]
    found = draft([*sample, *many], sorted(everyday), 400, seed=1)
    assert {question.question for question in of(Expected.INCORRECT, found)} == everyday
