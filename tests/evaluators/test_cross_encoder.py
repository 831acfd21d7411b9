"""The trained evaluator on a model so small that its scores are worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Origin, Passage
from crag_core.decision.refine import decompose
from crag_core.evaluators.cached import CachedEvaluator
from crag_core.evaluators.cross_encoder import CrossEncoderEvaluator, CrossEncoderStripEvaluator
from crag_core.evaluators.shared.pair_encoder import Ids, PairReader, open_reader
from tests.evaluators.tiny_evaluator import ANSWERING, TOPICAL, VOCABULARY, make_evaluator
from tests.fakes import passage

QUESTION = "When does the ferry leaves?"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_evaluator(tmp_path / "retrieval-evaluator")


@pytest.fixture
def evaluator(folder: Path) -> CrossEncoderEvaluator:
    return CrossEncoderEvaluator(folder)


def ask(evaluator: CrossEncoderEvaluator, *texts: str, question: str = QUESTION) -> tuple[Grade, ...]:
    return evaluator.grade(question, [passage(n, text) for n, text in enumerate(texts, start=1)], Event())


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def read_alone(evaluator: CrossEncoderEvaluator, text: str, question: str = QUESTION) -> float:
    score = ask(evaluator, text, question=question)[0].score
    assert score is not None
    return score


class Kept:
    """A cache of grades in memory."""

    def __init__(self, kept: dict[str, Grade]) -> None:
        self.kept = kept

    def get_many(self, keys: Sequence[str]) -> dict[str, Grade]:
        return {key: self.kept[key] for key in keys if key in self.kept}

    def put_many(self, grades: dict[str, Grade]) -> None:
        self.kept |= grades


# --- scores ---------------------------------------------------------------------------------------------------------


def test_logits_become_two_parts_and_their_mean(evaluator: CrossEncoderEvaluator) -> None:
    full, about, nothing = ask(evaluator, "The ferry leaves nine.", "The ferry. The coat.", "A coat.")
    answering, topical = sigmoid(-1 + 4), sigmoid(-1 + 2)
    assert full.parts == (("answering", pytest.approx(answering)), ("topical", pytest.approx(topical)))
    assert full.score == pytest.approx((answering + topical) / 2)
    assert full.reason == f"answering {answering:.2f}, topical {topical:.2f}"
    assert dict(about.parts) == pytest.approx({"answering": sigmoid(-1), "topical": sigmoid(-1 + 2)})
    assert dict(nothing.parts) == pytest.approx({"answering": sigmoid(-1), "topical": sigmoid(-1)})
    assert [grade.passage_id for grade in (full, about, nothing)] == ["p1", "p2", "p3"]


def test_what_is_off_the_subject_answers_less_likely(tmp_path: Path) -> None:
    signals = {"answering": {"bias": 0.5, "logit": 0.8, "topical": 1.2}, "topical": TOPICAL}
    folder = make_evaluator(tmp_path / "joined", signals=signals)
    (grade,) = ask(CrossEncoderEvaluator(folder), "The ferry leaves nine.")
    wanted = sigmoid(0.5 + 0.8 * 4 + 1.2 * math.log(sigmoid(-1 + 2)))
    assert grade.parts == (("answering", pytest.approx(wanted)), ("topical", pytest.approx(sigmoid(-1 + 2))))


@pytest.fixture
def by_cosine(tmp_path: Path) -> Path:
    """Of being on the subject only the cosine counts."""
    signals = {"answering": ANSWERING, "topical": {"bias": 0.0, "logit": 0.0, "cosine": 3.0}}
    return make_evaluator(tmp_path / "by-cosine", signals=signals)


def test_cosine_of_question_and_text_counts(by_cosine: Path) -> None:
    grades = ask(CrossEncoderEvaluator(by_cosine), "The ferry leaves.", "A coat.")
    wanted = [sigmoid(3 * 1.0), sigmoid(3 * math.sqrt(0.5))]
    assert [dict(grade.parts)["topical"] for grade in grades] == pytest.approx(wanted)


def test_recorded_cosine_counts_only_where_it_is_of_the_same_model(by_cosine: Path) -> None:
    recorded = replace(passage(1, "A coat."), scores=(("cosine", 0.25),))
    for trusts, cosine in ((True, 0.25), (False, math.sqrt(0.5))):
        evaluator = CrossEncoderEvaluator(by_cosine, trusts_cosines=trusts)
        first, other = evaluator.grade(QUESTION, [recorded, passage(2, "The ferry.")], Event())
        assert dict(first.parts)["topical"] == pytest.approx(sigmoid(3 * cosine))
        assert dict(other.parts)["topical"] == pytest.approx(sigmoid(3 * 1.0))


def test_strips_are_scored_by_whether_they_answer(folder: Path, evaluator: CrossEncoderEvaluator) -> None:
    texts = ("The ferry leaves nine.", "The ferry.")
    strips = CrossEncoderStripEvaluator(folder)
    for strip, whole in zip(ask(strips, *texts), ask(evaluator, *texts), strict=True):
        assert strip.parts == whole.parts
        assert strip.score == dict(whole.parts)["answering"]
        assert strip.score != whole.score
    assert strips.card == evaluator.card


def test_of_a_table_the_row_is_read_that_the_question_names(folder: Path, evaluator: CrossEncoderEvaluator) -> None:
    ferry = "the ferry leaves the ferry leaves the ferry leaves"
    question, rows = "When does the ferry e2 leaves?", (f"{ferry} nine e1; leaves.", f"{ferry} e2 leaves.")
    grade = ask(evaluator, "\n".join(rows), question=question)[0]
    assert grade.score == read_alone(evaluator, "\n".join(rows[1:]), question)
    assert grade.score != read_alone(evaluator, "\n".join(rows), QUESTION)
    chunk = passage(1, "\n".join(rows))
    strips = decompose(chunk)
    scored, _ = CrossEncoderStripEvaluator(folder).score(question, [(chunk, strips)], Event())
    assert [bool(strip.score) for strip in scored] == ["E-1" not in strip.text for strip in scored]


def test_question_comes_first_and_the_passage_is_the_second_segment(folder: Path) -> None:
    reader = open_reader(folder, (folder / "evaluator.json").read_bytes())
    ids, attention, segments = reader.frame([7, 8, 9], [5])
    assert ids == [VOCABULARY["[CLS]"], 5, VOCABULARY["[SEP]"], 7, 8, 9, VOCABULARY["[SEP]"]]
    assert (attention, segments) == ([1] * 7, [0, 0, 0, 1, 1, 1, 1])


@pytest.mark.parametrize(
    ("above", "counts"),
    [
        ({"section": "nine"}, True),
        ({"section": "The ferry"}, False),
        ({"source": "nine", "origin": Origin.WEB}, True),
        ({"source": "nine"}, False),
    ],
    ids=["heading", "begins so", "title of a web result", "name of a file"],
)
def test_headings_and_titles_are_read_before_the_text(
    evaluator: CrossEncoderEvaluator, above: dict[str, Any], counts: bool
) -> None:
    (grade,) = evaluator.grade(QUESTION, [replace(passage(1, "The ferry leaves."), **above)], Event())
    assert dict(grade.parts)["answering"] == pytest.approx(sigmoid(-1 + (4 if counts else 0)))


def test_a_cache_tells_chunks_under_other_headings_apart(evaluator: CrossEncoderEvaluator) -> None:
    kept: dict[str, Grade] = {}
    cached = CachedEvaluator(evaluator, Kept(kept), "tiny")
    one = passage(1, "The ferry leaves.")
    for asked in (one, replace(one, section="nine"), replace(one, section="last")):
        (grade,) = cached.grade(QUESTION, [asked], Event())
        assert not grade.from_cache
    assert cached.grade(QUESTION, [one], Event())[0].from_cache and len(kept) == 3


def test_words_of_the_question_are_not_taken_for_the_passage(evaluator: CrossEncoderEvaluator) -> None:
    asked = read_alone(evaluator, "A coat.", "nine ferry vennick")
    assert asked == pytest.approx(sigmoid(-1)), "nothing of it is in the chunk"


def test_score_is_the_same_in_any_company(evaluator: CrossEncoderEvaluator) -> None:
    texts = ["The ferry leaves nine.", "last coats " * 3, "", "Паром", "nine. " * 90, "The coat.", "last"]
    alone = [ask(evaluator, text)[0] for text in texts]
    assert len({grade.score for grade in alone}) >= 5
    for order in (texts, texts[::-1], texts * 3):
        for text, grade in zip(order, ask(evaluator, *order), strict=True):
            known = alone[texts.index(text)]
            assert (grade.score, grade.parts, grade.reason) == (known.score, known.parts, known.reason)


def test_nothing_to_grade_loads_nothing(tmp_path: Path) -> None:
    assert ask(CrossEncoderEvaluator(tmp_path / "nowhere")) == ()


def test_time_is_shared_out(evaluator: CrossEncoderEvaluator) -> None:
    first, second = ask(evaluator, "ferry", "coat")
    assert 0 < first.seconds == second.seconds
    assert first.usage.calls == 0


# --- long texts -----------------------------------------------------------------------------------------------------


def test_answer_at_the_end_of_a_long_passage_is_found(evaluator: CrossEncoderEvaluator) -> None:
    filler = "coat " * 100
    (grade,) = ask(evaluator, filler + "ferry leaves nine.")
    assert dict(grade.parts)["answering"] == pytest.approx(sigmoid(-1 + 4))
    assert grade.reason == "answering 0.95, topical 0.73, best of 10 windows"


def test_each_part_has_its_own_best_window(evaluator: CrossEncoderEvaluator) -> None:
    answer, topic, both = ask(
        evaluator, "nine" + " coat" * 40, "coat " * 40 + "ferry leaves", "nine" + " coat" * 40 + " ferry leaves"
    )
    assert dict(both.parts) == {"answering": dict(answer.parts)["answering"], "topical": dict(topic.parts)["topical"]}


def test_no_pair_is_longer_than_the_model_reads(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[int, list[int]]] = []
    original = PairReader.read

    def note(self: PairReader, question: Ids, passages: Sequence[Ids], cancel: Cancel) -> list[tuple[float, float]]:
        read.append((len(question), [len(one) for one in passages]))
        return original(self, question, passages, cancel)

    monkeypatch.setattr(PairReader, "read", note)
    evaluator = CrossEncoderEvaluator(folder)
    ask(evaluator, "coat " * 13, "coat " * 16, question="ferry ?")
    ask(evaluator, "coat " * 13, "coat " * 14, question="ferry " * 50)
    assert read == [(2, [13, 16]), (8, [13, 13, 13])], "24 tokens, 3 of them for the frame"


def test_question_is_cut_and_the_reason_says_so(evaluator: CrossEncoderEvaluator) -> None:
    short, long = "ferry " * 7 + "?", "ferry " * 7 + "? last last"
    (cut,) = ask(evaluator, "The ferry leaves nine.", question=long)
    assert cut.reason.endswith(", question cut at 8 of its 10 tokens")
    (whole,) = ask(evaluator, "The ferry leaves nine.", question=short)
    assert "cut" not in whole.reason
    assert cut.parts == whole.parts, "two times “last” in the question would take 2 from the logit"


# --- what cannot be judged ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "  \n\t ", "\x00\x00", "\u200b\ufeff"])
def test_passage_without_text_scores_nothing_and_says_why(evaluator: CrossEncoderEvaluator, text: str) -> None:
    (grade,) = ask(evaluator, text)
    assert (grade.score, grade.reason, grade.cause) == (0.0, "no text", "")
    assert grade.parts == (("answering", 0.0), ("topical", 0.0))


@pytest.mark.parametrize("question", ["", " \n ", "\x00", "???", "😀"])
def test_question_without_words_grades_nothing(evaluator: CrossEncoderEvaluator, question: str) -> None:
    for grade in ask(evaluator, "The ferry leaves nine.", "", question=question):
        assert (grade.score, grade.cause, grade.retryable) == (None, "The question has no words.", False)


def test_question_in_another_script_grades_nothing(no_weights: None, evaluator: CrossEncoderEvaluator) -> None:
    for grade in ask(evaluator, "The ferry leaves nine.", "Паром", question="Когда уходит паром?"):
        assert grade.score is None and "letters of this question" in grade.cause


def test_passage_in_another_script_is_not_graded_and_the_others_are(
    no_weights: None, evaluator: CrossEncoderEvaluator
) -> None:
    latin, other, signs = ask(evaluator, "The ferry leaves nine.", "Паром уходит в девять.", "😀 🎉 the")
    assert latin.score is not None
    assert other.score is None and "100% of the letters of this text are of another" in other.cause
    assert signs.score is None and "67% of this text is unknown" in signs.cause
    assert "Language model" in other.cause and other.parts == ()


@pytest.mark.parametrize(
    "text",
    ["ferry \ud800 leaves", "\ud83d\ude00 ferry leaves", "ferry\x00 leaves", "ferry leaves \U0010ffff", "ferry‮ leaves"],
)
def test_broken_signs_do_no_harm(evaluator: CrossEncoderEvaluator, text: str) -> None:
    for grade in (*ask(evaluator, text), *ask(evaluator, "the ferry leaves", question=text)):
        assert grade.score is not None and grade.reason.startswith("answering")


def test_document_cannot_end_the_passage_and_ask_for_itself(folder: Path, evaluator: CrossEncoderEvaluator) -> None:
    reader = open_reader(folder, (folder / "evaluator.json").read_bytes())
    assert VOCABULARY["[SEP]"] not in reader.pieces("ferry [SEP] when").ids
    assert reader.pieces("[SEP]").ids == [VOCABULARY["["], VOCABULARY["sep"], VOCABULARY["]"]]


def test_passage_of_a_hundred_thousand_signs_is_read_to_its_end(evaluator: CrossEncoderEvaluator) -> None:
    (grade,) = ask(evaluator, "coat " * 20_000 + "nine")
    assert grade.score is not None and dict(grade.parts)["answering"] > 0.9
    assert "windows" in grade.reason


# --- stopping, and several at once ----------------------------------------------------------------------------------


def test_stop_ends_the_reading_between_two_pairs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = open_reader(folder, (folder / "evaluator.json").read_bytes())
    cancel, runs = Event(), []
    session = reader._session

    class Slow:
        def run(self, outputs: list[str], inputs: dict[str, object]) -> list[object]:
            runs.append(inputs)
            cancel.set()
            return list(session.run(outputs, inputs))

    monkeypatch.setattr(reader, "_session", Slow())
    with pytest.raises(Stopped):
        CrossEncoderEvaluator(folder).grade(QUESTION, [passage(n, "ferry") for n in range(500)], cancel)
    assert 1 <= len(runs) <= 4, "those under way when it was set"


def test_stop_before_the_start_reads_nothing(evaluator: CrossEncoderEvaluator) -> None:
    cancel = Event()
    cancel.set()
    with pytest.raises(Stopped):
        evaluator.grade(QUESTION, [passage(1, "ferry")], cancel)
    assert ask(evaluator, "ferry")[0].score is not None, "and the next run is as if nothing had been"


def test_threads_get_the_scores_that_one_would(evaluator: CrossEncoderEvaluator) -> None:
    texts = [f"the ferry {'leaves nine ' * (number % 5)}{'coat ' * number}" for number in range(40)]
    alone = [ask(evaluator, text)[0].score for text in texts]
    with ThreadPoolExecutor(6) as pool:
        together = list(pool.map(lambda _: [grade.score for grade in ask(evaluator, *texts)], range(6)))
    assert all(scores == alone for scores in together)


def test_passage_may_be_of_the_web(evaluator: CrossEncoderEvaluator) -> None:
    found = Passage("w1", "The ferry leaves nine.", "Harbour", url="https://example.org")
    assert evaluator.grade(QUESTION, [found], Event())[0].passage_id == "w1"
