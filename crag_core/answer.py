"""Answers without a model: quoting, citing, and saying plainly that the evidence does not hold the answer."""

from __future__ import annotations

import re

from crag_core.prompts import CANNOT_ANSWER
from crag_core.types import Action, Decision, Knowledge, Strip, Usage, WebOutcome, WebSearch

EXTRACTIVE = "extractive"
"""The writer's name when no language model is used."""

CITATION = re.compile(r"\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]")
"""[1], or [1, 2]; its group holds the numbers."""

_QUOTES = 3


def quote(knowledge: Knowledge, strips: tuple[Strip, ...]) -> str:
    """The best kept sentences word for word with their citations, best first; '' when there is no evidence.

    `strips` are the scored strips of corpus and web; of an excerpt without scored strips the beginning is quoted.
    """
    scores = {strip.id: strip for strip in strips}
    quotes: list[tuple[float, int, str]] = []
    for number, excerpt in enumerate(knowledge.excerpts, start=1):
        ids = excerpt.strip_ids or tuple(s.id for s in strips if s.passage_id == excerpt.passage.id)
        for strip_id in ids:
            strip = scores[strip_id]
            quotes.append((strip.score or 0.0, number, strip.text))
        if not ids:
            quotes.append((0.0, number, excerpt.text[:300]))
    shown = [(score, number, " ".join(quotable(text).split())) for score, number, text in quotes]
    # A heading alone says nothing; it is quoted only where there is nothing else.
    said = [one for one in shown if one[2]] or [(score, number, text.strip("# \n")) for score, number, text in quotes]
    best = sorted(said, key=lambda item: -item[0])[:_QUOTES]
    return "\n\n".join(f"“{text}” [{number}]" for _, number, text in best)


def citations(text: str, count: int) -> tuple[int, ...]:
    """The excerpt numbers cited in `text`, each once, in order; numbers beyond `count` are left out."""
    found: list[int] = []
    for match in CITATION.finditer(text):
        found += [int(number) for number in re.findall(r"\d+", match.group(1))]
    return tuple(dict.fromkeys(number for number in found if 1 <= number <= count))


def declines(text: str) -> bool:
    """Whether a model's reply is the agreed "cannot answer", however it is decorated."""
    return re.sub(r"[^a-z]+", " ", text.lower()).strip().startswith(CANNOT_ANSWER.lower())


def why_no_evidence(decision: Decision, knowledge: Knowledge, web: WebSearch | None, looked_at: int) -> str:
    """What was looked for, where, and why nothing is left to answer from."""
    if decision.action is Action.INCORRECT:
        corpus = (
            f"the {looked_at} retrieved passages were discarded ({decision.reason})" if looked_at else decision.reason
        )
    else:
        corpus = "no sentence of the retrieved passages was kept"
    searches = {
        None: "the web was not searched",
        WebOutcome.OFF: "web search is off",
        WebOutcome.COOLING: "the web was not searched, since the last search was just made",
        WebOutcome.APPROVED: "the web was not searched yet",
        WebOutcome.PENDING: "the web search waits for your approval",
        WebOutcome.REFUSED: "you refused the web search",
        WebOutcome.EMPTY: "the web search found nothing",
        WebOutcome.FAILED: "the web search failed",
        WebOutcome.RATE_LIMITED: "the web search was rate-limited",
        WebOutcome.TIMED_OUT: "the web search timed out",
        WebOutcome.USED: "no web result was kept",
    }
    tail = f" {' '.join(knowledge.notes)}" if knowledge.notes else ""
    return f"This cannot be answered from the evidence: {corpus}, and {searches[web.outcome if web else None]}.{tail}"


def left_out(usage: Usage) -> str:
    """That evidence was cut for the model, in a sentence; "" where none was."""
    told = f"About {usage.cut:,} tokens of the evidence were left out, since the model cannot read them all at once."
    return told if usage.cut else ""


def quotable(text: str) -> str:
    """A quotation without Markdown's heading and emphasis marks, which mean nothing inside quotation marks."""
    return re.sub(r"^[ \t]{0,3}#{1,6}[ \t].*$|[*`]{1,3}|^[ \t]*[-*+][ \t]", "", text, flags=re.MULTILINE)
