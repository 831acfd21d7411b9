"""Support word by word: a classifier of tokens, such as LettuceDetect, says which of an answer's the evidence lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from crag_core.base.errors import EvaluatorUnavailable, Stopped
from crag_core.base.protocols import Backing, Cancel
from crag_core.evaluators.named.files import ModelFiles
from crag_core.evaluators.support.parts import Claim, nearest, passages_of
from crag_core.evaluators.support.reading import Reading, finite, labels_of
from crag_core.trace.grounding.citation_check import LACKING, WEAK, Evidence
from crag_core.trace.grounding.quoted_answer import CITATION

HALLUCINATED = 0.5
"""From this probability on a token counts as hallucinated: then it is the likelier of the two labels."""

PROMPT = (
    "Briefly answer the following question:\n{question}\n"
    "Bear in mind that your response should be strictly based on the following {count} passages:\n{passages}\n"
    "In case the passages do not contain the necessary information to answer the question, please reply with: "
    '"Unable to answer based on given passages."\noutput:'
)
"""What RAGTruth (Niu et al. 2024, arXiv 2401.00396) asked for its answers, on which these models are trained."""

_WORD = re.compile(r"[^\W_]+(?:['’\-.,][^\W_]+)*")


@dataclass(frozen=True)
class Token:
    """A token of the answer: from, to, and the probability that it is hallucinated."""

    start: int
    end: int
    chance: float


class Spans:
    """Reads the question, the evidence and the whole answer at once; longer answers in parts of whole sentences.

    A sentence scores what share of its tokens is supported, by their probabilities; with one that is hallucinated at
    most `LACKING`, as one that lacks a fact does where words are compared. Evidence that there is no room for is left
    out: first that which shares fewest words with the claims. A sentence that is longer than half the room is not read.
    """

    def __init__(self, files: ModelFiles) -> None:
        self._label = hallucination_label(labels_of(files))
        self._reading = Reading(files, "AutoModelForTokenClassification")

    def check(
        self, sentences: Sequence[str], claims: Sequence[Claim], evidence: Evidence, question: str, cancel: Cancel
    ) -> dict[int, Backing]:
        found = {}
        asked = {claim.place: claim for claim in claims}
        # A citation is none of the model's words; what stands around it stays in its place.
        masked = [CITATION.sub(lambda match: " " * len(match[0]), sentence) for sentence in sentences]
        for part in self._parts(masked):
            if not asked.keys() & set(part):
                continue
            if cancel.is_set():
                raise Stopped("Stopped by you.")
            answer = " ".join(masked[place] for place in part)
            if self._count(answer) > self._reading.longest // 2:  # a sentence that leaves no room for its evidence
                continue
            prompt = self._prompt(question, [asked[place] for place in part if place in asked], evidence, answer)
            tokens = self._read(prompt, answer)
            start = 0
            for place in part:
                end = start + len(masked[place])
                if place in asked:
                    own = [
                        Token(one.start - start, one.end - start, one.chance)
                        for one in tokens
                        if start <= one.start and one.end <= end
                    ]
                    found[place] = backing(asked[place], masked[place], own, evidence)
                start = end + 1
        return found

    def _parts(self, sentences: Sequence[str]) -> Iterator[list[int]]:
        """The places of consecutive sentences that take a quarter of the room at most; one that is longer, alone."""
        part, taken = list[int](), 0
        for place, sentence in enumerate(sentences):
            size = self._count(sentence)
            if part and taken + size > self._reading.longest // 4:
                yield part
                part, taken = [], 0
            part.append(place)
            taken += size
        if part:
            yield part

    def _prompt(self, question: str, claims: Sequence[Claim], evidence: Evidence, answer: str) -> str:
        def written(places: Sequence[int]) -> str:
            passages = passages_of([evidence.pieces[at] for at in sorted(places)])
            listed = "\n".join(f"passage {number}: {text}" for number, text in enumerate(passages, start=1))
            return PROMPT.format(question=" ".join(question.split()), count=len(passages), passages=listed)

        terms = {term for claim in claims for term in claim.content}
        order = sorted(range(len(evidence.pieces)), key=lambda at: -len(terms & evidence.terms[at]))
        room = self._reading.longest - self._count(answer) - self._count(written(())) - 8
        taken = []
        for at in order:
            room -= self._count(f"\npassage 10: {evidence.pieces[at].text}")
            if room < 0:
                break
            taken.append(at)
        return written(taken)

    def _count(self, text: str) -> int:
        with self._reading.at_work():
            return len(self._reading.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def _read(self, prompt: str, answer: str) -> list[Token]:
        with self._reading.at_work():
            read = self._reading.tokenizer(
                prompt, answer, truncation="only_first", max_length=self._reading.longest,
                return_offsets_mapping=True, return_tensors="pt",
            )  # fmt: skip
            offsets = read.pop("offset_mapping")[0].tolist()
            sides = read.sequence_ids(0)
            chances = finite(self._reading.model(**read).logits[0].softmax(-1)[:, self._label].tolist())
        return [
            Token(start, end, chance)
            for (start, end), side, chance in zip(offsets, sides, chances, strict=True)
            if side == 1 and end > start
        ]


def backing(claim: Claim, sentence: str, tokens: Sequence[Token], evidence: Evidence) -> Backing:
    """`tokens` of the sentence, with places in it."""
    if not tokens:
        return Backing(None)
    score = min(max(fmean(1.0 - one.chance for one in tokens), 0.0), 1.0)
    found = spans(sentence, tokens)
    score = min(score, LACKING) if found else score
    return Backing(score, nearest(claim, evidence) if score >= WEAK else (), spans=found)


def spans(sentence: str, tokens: Sequence[Token]) -> tuple[tuple[int, int], ...]:
    """(from, to) of what is hallucinated, of whole words; tokens that follow each other are one span."""
    runs: list[tuple[int, int]] = []
    is_running = False
    for one in tokens:
        is_bad = one.chance >= HALLUCINATED
        if is_bad and is_running:
            runs[-1] = (runs[-1][0], one.end)
        elif is_bad:
            runs.append((one.start, one.end))
        is_running = is_bad
    words = [match.span() for match in _WORD.finditer(sentence)]
    found: list[tuple[int, int]] = []
    for start, end in runs:
        touched = [word for word in words if word[0] < end and start < word[1]]
        if touched:
            start, end = min(start, touched[0][0]), max(end, touched[-1][1])
        said = sentence[start:end]
        start, end = start + len(said) - len(said.lstrip()), end - len(said) + len(said.rstrip())
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif start < end:
            found.append((start, end))
    return tuple(found)


def hallucination_label(labels: Mapping[int, str]) -> int:
    """Its place: by its name, or 1 where two labels have no names; raises `EvaluatorUnavailable` for other models."""
    named = [
        place
        for place, name in labels.items()
        if any(word in name.lower() for word in ("halluc", "unsupported"))
        and not name.lower().startswith(("no", "not", "non"))
    ]
    if len(labels) in (0, 2) and not named and all(name.upper().startswith("LABEL_") for name in labels.values()):
        return 1
    if len(labels) == 2 and len(named) == 1:
        return named[0]
    raise EvaluatorUnavailable(
        "Expected a classifier of tokens with two labels, supported and hallucinated, found "
        f"{', '.join(list(labels.values())[:5]) or 'no labels'}.",
        hint="Choose a model such as those of LettuceDetect.",
    )
