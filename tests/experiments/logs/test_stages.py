"""The stage at which a question went wrong, on made-up questions into which one fault each is planted.

`9c5be310:benchmarks/stages.py` does the same with real questions and the trained evaluator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from crag_core.base.types.decisions import Action
from crag_core.base.types.passages import Passage
from crag_core.decision.policy import Policy
from crag_core.evaluators import shipped
from crag_core.evaluators.support import WordSupport
from crag_core.experiments.comparison.outcome import contains
from crag_core.experiments.labelled.questions import Expected
from crag_core.experiments.logs.matching import Reference, declines
from crag_core.experiments.logs.record import Context, LogRecord, passages_of
from crag_core.experiments.logs.stages import Finding, Judged, Stage, Verdict
from crag_core.trace.trace import Trace
from crag_core.view.score_words import ALONE
from tests import builders
from tests.fakes import Bench

METER = WordSupport(shipped.EVALUATOR_FOLDER, shipped.signal_meter().stop_words)
DECLINED = "I'm sorry, the context does not mention this."
MADE_UP = "The museum in Harwick was rebuilt by Oda Pell after the fire of 1912."


@dataclass(frozen=True)
class Asked:
    """The sentence that answers stands between two others of its chunk; `changed` says it with another fact."""

    question: str
    answer: str
    sentence: str
    before: str
    after: str
    changed: str

    @property
    def chunk(self) -> str:
        return f"{self.before} {self.sentence} {self.after}"


ASKED = (
    Asked("When does the ferry to Vennick leave in winter?", "at ten", "In winter the ferry to Vennick leaves at ten.",
          "Vennick is an island with a school and two shops.", "Dogs travel free on the lower deck.",
          "In winter the ferry to Vennick leaves at seven."),
    Asked("How much does the crane in Torrin lift?", "6 tonnes", "The crane in Torrin lifts at most 6 tonnes.",
          "Torrin harbour was deepened twice.", "An outside firm inspects it every March.",
          "The crane in Torrin lifts at most 41 tonnes."),
    Asked("Who keeps the lighthouse at Maldsey?", "Ada Fenn", "The lighthouse at Maldsey is kept by Ada Fenn.",
          "Maldsey stands on a cliff of chalk.", "Visitors climb it on Sundays.",
          "The lighthouse at Maldsey is kept by Rolf Okafor."),
    Asked("What does a yacht pay a night in Orrin?", "14 pounds", "In Orrin a yacht pays 14 pounds a night.",
          "The basin of Orrin has forty berths.", "Water and light are included.",
          "In Orrin a yacht pays 37 pounds a night."),
    Asked("Which colour is the roof of the chapel in Kelby?", "green", "The chapel in Kelby has a green copper roof.",
          "Kelby holds a market on Fridays.", "Its bell was cast in a shipyard.",
          "The chapel in Kelby has a Venetian roof of marble."),
    Asked("How long is the pier of Saltry?", "312 metres", "The pier of Saltry is 312 metres long.",
          "Saltry is known for its smoked herring.", "A tram ran along it until the war.",
          "The pier of Saltry is 95 metres long."),
    Asked("When was the bridge at Dunmore built?", "1884", "The bridge at Dunmore was built in 1884.",
          "Dunmore lies where two rivers meet.", "Carts had to pay a toll on it.",
          "The bridge at Dunmore was built in 1951."),
    Asked("Who owns the mill in Harrow?", "the Tessler family", "The mill in Harrow is owned by the Tessler family.",
          "Harrow grows barley and rye.", "Its wheel was replaced by a turbine.",
          "The mill in Harrow is owned by the Quillon Trust."),
)  # fmt: skip


def record(one: Asked, answer: str, *, with_gold: bool = True) -> LogRecord:
    others = [other.chunk for other in ASKED if other is not one][:3]
    texts = [*others[:2], *([one.chunk] if with_gold else []), *others[2:]]
    contexts = tuple(Context(text, f"c{number}") for number, text in enumerate(texts))
    return LogRecord(one.question, 1, one.question, contexts, answer, (one.answer,))


def graded(asked: LogRecord, one: Asked, *, struck: bool = False) -> Trace:
    """A chunk scores 0.9 where it answers and 0.1 elsewhere; of its sentences the one that answers 0.8, others 0.3."""

    def score(passage: Passage) -> float:
        return 0.9 if one.sentence in passage.text else 0.1

    bench = Bench("paper", scoring=score)
    answers = 0.0 if struck else 0.8
    bench.strip_evaluator.scoring = lambda strip: answers if one.sentence in strip.text else 0.3
    passages = passages_of(asked)
    engine = bench.pipeline.over(passages)
    return engine.score_strips(engine.grade(asked.question), passages)


def planted() -> Iterator[tuple[Stage, LogRecord, Trace, Policy]]:
    paper = builders.policy("paper").with_thresholds(0.4, 0.7, 0.25)
    for one in ASKED:
        without = record(one, DECLINED, with_gold=False)
        gone = graded(without, one)
        yield Stage.NOT_RETRIEVED, without, gone, paper
        yield Stage.NOT_RETRIEVED, replace(without, answer=MADE_UP), gone, paper
        yield Stage.NOT_RETRIEVED, replace(without, answer=ASKED[0 if one is not ASKED[0] else 1].before), gone, paper
        whole = record(one, DECLINED)
        trace = graded(whole, one)
        for answer in (DECLINED, one.after):
            yield Stage.GRADED_LOW, replace(whole, answer=answer), trace, paper.with_thresholds(0.95, 0.97)
            yield Stage.STRUCK_OUT, replace(whole, answer=answer), graded(whole, one, struck=True), paper
            yield Stage.NOT_USED, replace(whole, answer=answer), trace, paper
        for answer in (MADE_UP, one.changed):
            yield Stage.BEYOND, replace(whole, answer=answer), trace, paper
        for answer in (one.sentence, one.answer):
            yield Stage.NONE, replace(whole, answer=answer), trace, paper


def shares(truth: str) -> dict[Stage, float]:
    """Of each planted stage, how often it was named."""
    right: Counter[Stage] = Counter()
    total: Counter[Stage] = Counter()
    sentences = {one.question: one.sentence for one in ASKED}
    for stage, asked, trace, policy in planted():
        known = {"short": asked.references, "sentence": (sentences[asked.question],), "none": ()}[truth]
        total[stage] += 1
        right[stage] += Judged(trace, replace(asked, references=known), METER).under(policy).stage is stage
    return {stage: right[stage] / total[stage] for stage in Stage}


@pytest.mark.parametrize("truth", ["short", "sentence"])
def test_with_a_right_answer_every_planted_fault_is_named(truth: str) -> None:
    found = shares(truth)
    assert all(share >= 0.9 for share in found.values()), found


def test_without_one_most_are_and_none_is_called_wrong() -> None:
    found = shares("none")
    assert sum(found.values()) / len(found) >= 0.8 and min(found.values()) >= 0.5, found
    for _, asked, trace, policy in planted():
        finding = Judged(trace, replace(asked, references=()), METER).under(policy)
        assert finding.verdict in (Verdict.DOUBTFUL, Verdict.PLAUSIBLE) and finding.reason


# --- what is said -----------------------------------------------------------------------------------------------------


PAPER = builders.policy("paper").with_thresholds(0.4, 0.7, 0.25)
FERRY = ASKED[0]


def finding(answer: str, policy: Policy = PAPER, **changes: object) -> Finding:
    asked = replace(record(FERRY, answer), **changes)  # type: ignore[arg-type]
    return Judged(graded(asked, FERRY), asked, METER).under(policy)


def test_the_reason_names_scores_and_the_chunk() -> None:
    low = finding(DECLINED, PAPER.with_thresholds(0.95, 0.97))
    assert (low.stage, low.verdict, low.action, low.chunk) == (Stage.GRADED_LOW, Verdict.WRONG, Action.INCORRECT, "c2")
    assert "scored 0.90" in low.reason and "0.95" in low.reason
    beyond = finding(MADE_UP)
    assert beyond.stage is Stage.BEYOND and "support 0.0" in beyond.reason and "Oda Pell" in beyond.reason


def test_a_right_answer_is_right_whatever_the_policy_would_lose() -> None:
    for policy in (PAPER, PAPER.with_thresholds(0.95, 0.97)):
        assert finding("It leaves at ten.", policy).verdict is Verdict.RIGHT
    alone = finding("At ten.", contexts=(Context(ASKED[1].chunk),))
    assert (alone.stage, alone.verdict) == (Stage.BEYOND, Verdict.RIGHT) and "no chunk says so" in alone.reason


def test_a_log_without_answers_is_judged_by_what_was_retrieved_and_kept() -> None:
    assert finding("").stage is Stage.NONE and finding("").verdict is Verdict.PLAUSIBLE
    assert finding("", PAPER.with_thresholds(0.95, 0.97)).stage is Stage.GRADED_LOW
    assert finding("", contexts=(Context(ASKED[1].chunk),)).stage is Stage.NOT_RETRIEVED
    assert finding(DECLINED, contexts=(), references=()).reason == "nothing was found"


def test_chunks_that_are_known_to_hold_the_answer_take_the_place_of_the_answer() -> None:
    known = {"references": (), "reference_ids": ("c2",)}
    assert finding("It leaves at ten.", **known).verdict is Verdict.PLAUSIBLE
    assert finding(MADE_UP, **known).stage is Stage.BEYOND and finding(MADE_UP, **known).verdict is Verdict.DOUBTFUL
    assert finding(MADE_UP, references=(), reference_ids=("elsewhere",)).stage is Stage.NOT_RETRIEVED


def test_yes_and_no_are_compared_and_not_looked_for() -> None:
    assert finding("Yes, it does.", references=("Yes",)).verdict is Verdict.RIGHT
    wrong = finding("No, it does not.", references=("yes",))
    assert wrong.verdict is Verdict.WRONG and wrong.stage is not Stage.NONE
    assert finding("It leaves.", references=("yes",)).verdict in (Verdict.DOUBTFUL, Verdict.PLAUSIBLE)


def test_a_label_alone_says_whether_the_chunks_answer() -> None:
    bare = {"references": (), "expected": Expected.UNANSWERABLE}
    assert finding(DECLINED, **bare).verdict is Verdict.RIGHT
    assert (finding(FERRY.after, **bare).stage, finding(FERRY.after, **bare).verdict) == (
        Stage.NOT_RETRIEVED, Verdict.WRONG,
    )  # fmt: skip
    strict = PAPER.with_thresholds(0.95, 0.97)
    low = finding(DECLINED, strict, references=(), expected=Expected.CORRECT)
    assert low.stage is Stage.GRADED_LOW


def test_a_threshold_moves_the_stage_and_nothing_is_measured_again() -> None:
    asked = record(FERRY, FERRY.after)
    judged = Judged(graded(asked, FERRY), asked, METER)
    assert judged.under(PAPER).stage is Stage.NOT_USED
    assert judged.under(PAPER.with_thresholds(0.95, 0.97)).stage is Stage.GRADED_LOW
    assert judged.under(PAPER.with_thresholds(0.4, 0.7, 0.85)).stage is Stage.STRUCK_OUT


def test_a_reason_has_the_terms_that_are_asked_for() -> None:
    bare = LogRecord("a", 1, "What does the ferry cost?", (), "Nine euros.")
    found, grades = builders.twice((0.3, 0.9))
    two = builders.policy("two-signal")
    judged = Judged(builders.trace(two, passages=found, grades=grades), bare, METER)
    assert judged.under(two).reason == "best answering 0.30 < upper 0.60, best topical 0.90 ≥ lower 0.40"
    told = judged.under(two, ALONE).reason
    assert told == "best answer 0.30 < answer bar 0.60, best subject 0.90 ≥ subject bar 0.40"


SAYS_THERE_IS_NONE = (
    *("", "I don't know.", "The documents do not contain this information.", "N/A", "Das weiß ich nicht."),
    *("There is nothing in the handbook about that.", "Aucune information à ce sujet.", "No hay información."),
)
SAYS_SOME = ("At ten.", "The ferry does not leave in winter.", "No, it was closed in 1912.", "Nothing but water.")


@pytest.mark.parametrize("answer", [*SAYS_THERE_IS_NONE, *SAYS_SOME])
def test_answers_that_say_there_is_none(answer: str) -> None:
    assert declines(answer) is (answer in SAYS_THERE_IS_NONE)


def truth(*references: str, question: str = FERRY.question) -> Reference:
    return Reference(LogRecord("r", 1, question, references=references), METER)


@pytest.mark.parametrize(("reference", "answer", "is_right"), [
    ("at ten", "It leaves at 10 every day.", True),
    ("In winter the ferry to Vennick leaves at ten.", "At ten.", True),
    ("The ferry leaves at ten, as it has since the war.", "It leaves at ten.", True),
    ("no, light colours are allowed", "Light colours are allowed.", True),
    ("at ten", "It leaves at eleven.", False),
    ("In winter the ferry to Vennick leaves at ten.", "In winter the ferry to Vennick leaves at seven.", False),
    ("Ada Fenn", "It is kept by Rolf Okafor.", False),
    ("A clerk of the harbour sold oak, slate and rope to the miller in 1884.",
     "A clerk of the harbour sold oak, slate and rope to the miller in 1951.", False),
    ("Immunology", "The immune system protects the body.", False),
    ("at ten", DECLINED, False),
])  # fmt: skip
def test_answers_are_right_in_other_words_and_wrong_by_another_fact(
    reference: str, answer: str, is_right: bool
) -> None:
    assert truth(reference).is_right(answer) is is_right


def test_a_number_alone_must_stand_in_a_chunk_about_the_question() -> None:
    asked = truth("6", question="How many tonnes does the crane in Torrin lift?")
    assert asked.is_held_by("The crane in Torrin lifts 6 tonnes.", "")
    assert not asked.is_held_by("Room 6 of the museum shows paintings of the last century.", "")
    assert contains("Room 6 of the museum", ["6"])
