"""The trained evaluator on a model so small that its scores are worked out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from crag_core.base.errors import Stopped
from crag_core.base.protocols import Cancel
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Origin
from crag_core.decision.refine import decompose
from crag_core.evaluators.cross_encoder import CrossEncoderEvaluator, CrossEncoderStripEvaluator
from crag_core.evaluators.shared.pair_encoder import Ids, PairReader, open_reader
from tests.evaluators.tiny_evaluator import ANSWERING, VOCABULARY, make_evaluator
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


@pytest.fixture
def by_cosine(tmp_path: Path) -> Path:
    """Of being on the subject only the cosine counts."""
    signals = {"answering": ANSWERING, "topical": {"bias": 0.0, "logit": 0.0, "cosine": 3.0}}
    return make_evaluator(tmp_path / "by-cosine", signals=signals)


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
    ferry = "The ferry leaves the ferry leaves the ferry leaves"
    question, rows = "When does the ferry e2 leaves?", (f"{ferry} nine e1.", f"{ferry} e2.")
    whole, alone = ask(evaluator, "\n".join(rows), rows[1], question=question)
    assert whole.score == alone.score
    assert whole.score != ask(evaluator, "\n".join(rows))[0].score
    chunk = passage(1, "\n".join(rows))
    strips = decompose(chunk)
    scored, _ = CrossEncoderStripEvaluator(folder).score(question, [(chunk, strips)], Event())
    assert [bool(strip.score) for strip in scored] == [False, True]


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


# --- long texts -----------------------------------------------------------------------------------------------------


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


def test_passage_in_another_script_is_not_graded_and_the_others_are(
    no_weights: None, evaluator: CrossEncoderEvaluator
) -> None:
    latin, other, signs = ask(evaluator, "The ferry leaves nine.", "Паром уходит в девять.", "😀 🎉 the")
    assert latin.score is not None
    assert other.score is None and "100% of the letters of this text are of another" in other.cause
    assert signs.score is None and "67% of this text is unknown" in signs.cause
    assert "Language model" in other.cause and other.parts == ()


def test_document_cannot_end_the_passage_and_ask_for_itself(folder: Path, evaluator: CrossEncoderEvaluator) -> None:
    reader = open_reader(folder, (folder / "evaluator.json").read_bytes())
    assert VOCABULARY["[SEP]"] not in reader.pieces("ferry [SEP] when").ids
    assert reader.pieces("[SEP]").ids == [VOCABULARY["["], VOCABULARY["sep"], VOCABULARY["]"]]


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
