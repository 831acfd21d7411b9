"""The outcome of one labelled question under one configuration: what metrics need, without texts.

Answers are compared as in SQuAD (Rajpurkar et al. 2016, EMNLP): lower case, without punctuation and English articles.
A run of Japanese or Chinese is compared sign by sign. Relevance of evidence is graded 0 (not relevant), 1 (related) or
2 (answers).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from crag_core.base import serialization
from crag_core.base.text.words import estimate_tokens, fold, words
from crag_core.base.types.decisions import Action
from crag_core.base.types.passages import Origin, Passage
from crag_core.base.types.steps import Usage
from crag_core.experiments.labelled.questions import LabelledQuestion
from crag_core.trace.grounding.citation_check import SupportLevel, support_level
from crag_core.trace.grounding.ending import AnswerEnding, ending_of
from crag_core.trace.grounding.quoted_answer import CITATION
from crag_core.trace.reroute import reroute
from crag_core.trace.summary import best_score
from crag_core.trace.trace import RunSettings, Trace

ANSWERS = 2
"""The grade of what answers."""
MEANING = 3
"""The version of what the facts of an `Outcome` mean. 1 counted a doubtful ending as an answer, 2 chunks that were
judged INCORRECT and used for want of better, and refusals in a model's own words; its seconds lack what an earlier run
had read."""

_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_SIGN = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f])")
_NONE: Mapping[str, int] = MappingProxyType({})
_LONGEST = 12
_SAID_ANYWHERE = frozenset({"yes", "no", "true", "false"})
_IN_A_NUMBER = re.compile(r"\d[.,]\d")


def contains(text: str, answers: Sequence[str]) -> float:
    """1 where the tokens of an answer stand in `text` one after the other."""
    said = f" {' '.join(tokens(text))} "
    return float(any(f" {' '.join(wanted)} " in said for answer in answers if (wanted := tokens(answer))))


def tokens(text: str) -> list[str]:
    """Normalised, without citations such as [1]; an article that stands alone is what is said, and stays."""
    composed = unicodedata.normalize("NFC", CITATION.sub(" ", text).lower())
    plain = "".join(sign for sign in composed if sign.isspace() or unicodedata.category(sign)[0] not in "PSC")
    spaced = _SIGN.sub(r" \1 ", plain)
    return _ARTICLE.sub(" ", spaced).split() or spaced.split()


# --- relevance --------------------------------------------------------------------------------------------------------


def spans(asked: LabelledQuestion) -> tuple[str, ...]:
    """The known answers that can be looked for in a text: up to twelve words, and more than yes or no."""
    found = ((fold(answer), words(answer)) for answer in asked.answers)
    return tuple(answer for answer, said in found if 0 < len(said) <= _LONGEST and " ".join(said) not in _SAID_ANYWHERE)


def of_documents(asked: LabelledQuestion, judged: Mapping[str, int] = _NONE) -> dict[str, int]:
    """Grades by file name, those above 0, from `judged` or else from the one document that the labels name, if any.

    No document answers a question that is expected not to be answered; it is related at most.
    """
    most = ANSWERS if asked.expected.is_answerable else 1
    known = judged or ({asked.document: ANSWERS} if asked.document else _NONE)
    return {name: min(grade, most) for name, grade in known.items() if grade > 0}


def of_passage(passage: Passage, asked: LabelledQuestion, judged: Mapping[str, int] = _NONE) -> int | None:
    """None where the labels do not tell.

    A passage of a document that answers is only related where the known answers can be looked for and none stands in
    it. A web page is judged by its text alone. Nothing answers a question that is expected not to be answered,
    whatever stands in a passage.
    """
    graded, wanted = of_documents(asked, judged), spans(asked)
    text = fold(passage.text)
    answers = asked.expected.is_answerable and any(_stands_in(answer, text) for answer in wanted)
    if passage.origin is Origin.WEB or not graded:
        return (ANSWERS if answers else 0) if wanted else None
    grade = graded.get(passage.source, 0)
    return 1 if grade == ANSWERS and wanted and not answers else grade


def _stands_in(answer: str, text: str) -> bool:
    """Not as a part of a longer word or number, where words have ends: in scripts with small and capital letters."""
    at = text.find(answer)
    while at >= 0 and (_is_cut(text, at) or _is_cut(text, at + len(answer))):
        at = text.find(answer, at + 1)
    return at >= 0


def _is_cut(text: str, at: int) -> bool:
    is_word = all(sign.isdigit() or sign.lower() != sign.upper() for sign in (text[at - 1 : at], text[at : at + 1]))
    number = (_IN_A_NUMBER.fullmatch(text, max(start, 0), start + 3) for start in (at - 2, at - 1))
    return is_word or any(number)


# --- one question -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setup:
    """What outcomes are kept under. `corpus` is the fingerprint of the index. `web`: "" for no search, the fingerprint
    of an offline web, or the names of the providers, whose answers may be others tomorrow."""

    settings: RunSettings
    corpus: str
    web: str = ""

    @property
    def fingerprint(self) -> str:
        return serialization.fingerprint((self.settings, self.corpus, self.web))


@dataclass(frozen=True)
class Evidence:
    """Some evidence against the labels.

    `ranked` holds the grades of its documents in the order of their first passage, of its passages where the labels
    name no document; None where they tell neither. `tokens` counts those of passages that the labels can judge,
    `irrelevant` those of passages graded 0.
    """

    ranked: tuple[int, ...] | None
    tokens: int
    irrelevant: int


@dataclass(frozen=True)
class Outcome:
    """`key` is that of the labelled question, `run_id` that of the recorded run.

    `before` is what was retrieved first, `after` what reached the answer. `score_before` and `score_after` are
    the evaluator's best score of either, None where nothing of it was graded. `contains` is None without a known
    answer. `sentences` counts those of the answer that could be measured, `grounded` the supported and
    `ungrounded` those that nothing supports. `failed` says what broke the run off, "" where nothing did.
    """

    key: str
    run_id: str
    action: Action | None
    before: Evidence | None = None
    after: Evidence | None = None
    score_before: float | None = None
    score_after: float | None = None
    is_answered: bool = False
    contains: float | None = None
    sentences: int = 0
    grounded: int = 0
    ungrounded: int = 0
    web: str = ""
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    failed: str = ""


def outcome_of(trace: Trace, asked: LabelledQuestion, judged: Mapping[str, int] | None = None) -> Outcome:
    """Of a finished run. `judged` has the grades of files for this question, where its set has them."""
    judged = judged or {}
    if trace.failure:
        return Outcome(asked.key, trace.id, None, failed=f"{trace.failure.name}: {trace.failure.summary}")
    routed = reroute(trace, trace.settings.policy)
    excerpts = routed.knowledge.excerpts
    answer = trace.answer
    # What is said from memory is an answer to whoever asked, and may be a wrong one.
    ending = routed.ending if routed.answer else ending_of(routed.decision, routed.knowledge, answer)  # as it was taken
    is_answered = ending.is_answer or ending is AnswerEnding.FROM_MEMORY
    text = answer.text if answer and is_answered else ""
    standings = [support_level(one.score) for one in trace.support or ()] if is_answered else []
    retrieved = trace.passages or ()
    return Outcome(
        key=asked.key,
        run_id=trace.id,
        action=routed.decision.action,
        before=_evidence([(passage, passage.text) for passage in retrieved], asked, judged),
        after=_evidence([(excerpt.passage, excerpt.text) for excerpt in excerpts], asked, judged),
        score_before=best_score(trace, retrieved),
        score_after=best_score(trace, (excerpt.passage for excerpt in excerpts)),
        is_answered=is_answered,
        contains=(contains(text, asked.answers) if text else 0.0) if asked.answers else None,
        sentences=sum(one is not SupportLevel.UNCHECKED for one in standings),
        grounded=standings.count(SupportLevel.SUPPORTED),
        ungrounded=standings.count(SupportLevel.NONE),
        web=trace.web.outcome.value if trace.web else "",
        seconds=trace.seconds,
        usage=trace.usage,
    )


def _evidence(found: Iterable[tuple[Passage, str]], asked: LabelledQuestion, judged: Mapping[str, int]) -> Evidence:
    documents = of_documents(asked, judged)
    first: dict[str, int] = {}
    tokens = irrelevant = 0
    for passage, text in found:
        grade = of_passage(passage, asked, judged)
        if grade is None:
            continue
        tokens += estimate_tokens(text)
        irrelevant += 0 if grade else estimate_tokens(text)
        if documents and passage.origin is Origin.CORPUS:
            first.setdefault(f"document {passage.source}", documents.get(passage.source, 0))
        else:
            first.setdefault(f"passage {passage.id}", grade)
    return Evidence(tuple(first.values()) if documents or spans(asked) else None, tokens, irrelevant)
