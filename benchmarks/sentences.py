"""Sentences with what they claim to rest on, right and wrong ones: as people labelled them, or altered by rule."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.measures import SEED
from crag_core.base.text.sentences import split
from crag_core.base.text.words import words
from crag_core.trace.grounding.claims import claim_of, sentences

HALLUCINATED, SAME_LENGTH = "right / hallucinated answers", "the same, equally long"
WRITTEN = "written from these passages / from others"
NUMBER, NAME, DENIED, SWAPPED = "a number changed", "a name changed", "a “not” put in", "two names swapped"
ELSEWHERE, BESIDE = "answer / one from elsewhere", "answer / another of the paragraph"

_GLUED = re.compile(r"(?<=[\w)\"])\.(?=[A-Z])")
_NUMBER = re.compile(r"\d[\d.,]*\d|\d")
_NAME = re.compile(r"(?<=\w )[A-Z][\w'’-]+")
_VERB = re.compile(r"\b(?:is|are|was|were|can|will|has|have|does|should|may)\b")


@dataclass(frozen=True)
class Case:
    """A sentence, the evidence sentence by sentence, and whether the one follows from the other.

    `home` is what cases come from together: a question, a paragraph.
    """

    sentence: str
    evidence: tuple[str, ...]
    is_right: bool
    home: str


def read_halueval(folder: Path) -> dict[str, list[Case]]:
    """Answers to questions of HotpotQA, right or invented by a model to deceive, beside the two paragraphs."""
    found = []
    for row in _read(folder / "qa.jsonl"):
        evidence = _cut(_GLUED.sub(". ", row["knowledge"]))
        found += [
            Case(row[name], evidence, name == "right_answer", row["knowledge"])
            for name in ("right_answer", "hallucinated_answer")
        ]
    return {HALLUCINATED: found, SAME_LENGTH: _equally_long(found)}


def read_written(folder: Path, draw: random.Random) -> dict[str, list[Case]]:
    """Sentences of reference answers of mtRAG: with their passages, with those of another answer, and altered."""
    passages = {row["query_id"]: row["passages"] for row in _read(folder / "candidates.jsonl")}
    rows = [row for row in _read(folder / "queries.jsonl") if row["answerable"]]
    evidence = {row["query_id"]: _cut(*(one["text"] for one in passages[row["query_id"]])) for row in rows}
    right, wrong = [], []
    for row in rows:
        home = row["query_id"]
        others = [one["query_id"] for one in rows if one is not row and one["collection"] == row["collection"]]
        for start, end in sentences(row["answers"][0]):
            said = row["answers"][0][start:end]
            if len(words(claim_of(said))) > 3:
                right.append(Case(said, evidence[home], True, home))
                wrong.append(Case(said, evidence[draw.choice(others)], False, home))
    names = sorted({name for case in right for name in _NAME.findall(case.sentence)})
    alter: dict[str, Callable[[Case], str]] = {
        NUMBER: lambda case: _with_other_number(case, draw),
        NAME: lambda case: _with_other_name(case, names, draw),
        DENIED: lambda case: "" if " not " in case.sentence else _VERB.sub(r"\g<0> not", case.sentence, count=1),
        SWAPPED: _with_swapped_names,
    }
    return {WRITTEN: right + wrong} | {kind: _altered(right, way) for kind, way in alter.items()}


def read_claims(folder: Path, draw: random.Random) -> dict[str, list[Case]]:
    """A question with its answer, as a claim; wrong ones have the answer of another question of the same kind."""
    rows = [row for row in _read(folder / "queries.jsonl") if row["answerable"]]
    texts = {row["doc_id"]: str(row["text"]) for row in _read(folder / "corpus.jsonl")}
    judged = (line.split("\t") for line in (folder / "qrels.tsv").read_text("utf-8").splitlines()[1:])
    home = {question: document for question, document, grade in judged if grade == "2"}
    answers = [(home[row["query_id"]], row["answers"][0]) for row in rows]
    elsewhere, beside = [], []
    for row, (document, answer) in zip(rows, answers, strict=True):
        text = texts[document]
        kind = bool(_NUMBER.search(answer))
        far = [one for _, one in answers if bool(_NUMBER.search(one)) == kind and one.lower() not in text.lower()]
        near = [one for there, one in answers if there == document and one != answer]
        asked, evidence = row["query"].rstrip("?؟？ "), _cut(text)
        right = Case(f"{asked}: {answer}", evidence, True, document)
        for wrong, cases in ((far, elsewhere), (near, beside)):
            if wrong:
                cases += [right, replace(right, sentence=f"{asked}: {draw.choice(wrong)}", is_right=False)]
    return {ELSEWHERE: elsewhere, BESIDE: beside}


def sample(cases: Sequence[Case], limit: int) -> list[Case]:
    """About `limit` cases; all of a home, or none."""
    homes = sorted({case.home for case in cases})
    random.Random(SEED).shuffle(homes)
    count = Counter(case.home for case in cases)
    taken: set[str] = set()
    for home in homes:
        if sum(count[one] for one in taken) >= limit:
            break
        taken.add(home)
    return [case for case in cases if case.home in taken]


def _altered(right: Iterable[Case], alter: Callable[[Case], str]) -> list[Case]:
    """Each case that can be altered, as it was and altered."""
    pairs = ((case, alter(case)) for case in right)
    return [
        one
        for case, wrong in pairs
        if wrong and wrong != case.sentence
        for one in (case, replace(case, sentence=wrong, is_right=False))
    ]


def _with_other_number(case: Case, draw: random.Random) -> str:
    said, text = claim_of(case.sentence), " ".join(case.evidence)
    found = list(_NUMBER.finditer(said))
    if not found:
        return ""
    number = draw.choice(found)
    for _ in range(100):  # there may be none of this length that the evidence lacks
        other = re.sub(r"\d", lambda _: str(draw.randint(1, 9)), number.group())
        if other not in text:
            break
    return said[: number.start()] + other + said[number.end() :]


def _with_other_name(case: Case, names: Sequence[str], draw: random.Random) -> str:
    found = list(_NAME.finditer(case.sentence))
    if not found:
        return ""
    name, text = draw.choice(found), " ".join(case.evidence).lower()
    other = draw.choice([one for one in names if one.lower() not in text])
    return case.sentence[: name.start()] + other + case.sentence[name.end() :]


def _with_swapped_names(case: Case) -> str:
    said, found = case.sentence, list(_NAME.finditer(case.sentence))
    if len(found) < 2:
        return ""
    one, other = found[0], found[-1]
    return said[: one.start()] + other.group() + said[one.end() : other.start()] + one.group() + said[other.end() :]


def _equally_long(cases: Sequence[Case]) -> list[Case]:
    """Of each length in words as many right as wrong ones: invented answers are longer, and that alone tells them."""
    draw = random.Random(SEED)
    found = []
    for length in sorted({len(words(case.sentence)) for case in cases}):
        sides = [
            [case for case in cases if case.is_right is side and len(words(case.sentence)) == length]
            for side in (True, False)
        ]
        found += [case for side in sides for case in draw.sample(side, min(map(len, sides)))]
    return found


def _cut(*texts: str) -> tuple[str, ...]:
    return tuple(text[start:end] for text in texts for start, end in split(text))


def _read(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
