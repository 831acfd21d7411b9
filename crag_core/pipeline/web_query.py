"""Search queries: a model's, cleaned, or the keywords of the question."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from crag_core.base.errors import BadRecord, CragError, Stopped
from crag_core.base.protocols import Cancel, LanguageModel, Messages
from crag_core.base.reply_parsing import without_thoughts
from crag_core.base.types import Usage

LONGEST_QUESTION = 2000
"""Characters of a question, wherever it comes from; it goes into every prompt of a run."""
_LONGEST = 200
_LABEL = re.compile(
    r"^\W*(?:(?:rewritten |optimi[sz]ed |web |search )*(?:query|keywords?)|rewritten)\s*:", re.IGNORECASE
)


def check_question(question: str) -> None:
    """Raises `BadRecord` for a question that is too long."""
    if len(question) > LONGEST_QUESTION:
        raise BadRecord(
            f"Expected a question of at most {LONGEST_QUESTION:,} characters, found {len(question):,}.",
            hint="Ask it in fewer words; a long text is better added as a document.",
        )


def ask_for_query(
    model: LanguageModel, messages: Messages, limit: int, cancel: Cancel, tried: Sequence[str] = ()
) -> tuple[str, Usage, str]:
    """(the model's query, cost, ""), or ("", cost, why there is none that was not tried); raises `Stopped` alone."""
    try:
        reply = model.complete(messages, cancel)
    except Stopped:
        raise
    except CragError as error:
        return "", Usage(calls=1), f"since: {error.message}"
    query = clean_query(reply.text, limit)
    if query and query.casefold() not in {text.casefold() for text in tried}:
        return query, reply.usage, ""
    return "", reply.usage, f"since {model.name} {'repeated a query' if query else 'gave no query'}"


def clean_query(reply: str, word_limit: int) -> str:
    """The query in a model's reply: its first line that says something, bare, at most `word_limit` words; maybe ''."""
    for line in without_thoughts(reply).splitlines():
        words = _LABEL.sub("", line).strip(" \t\"'`*“”„«».-").split()
        if words and not words[-1].endswith(":"):  # "Here is the query:" only announces it
            return " ".join(words[:word_limit])[:_LONGEST]
    return ""


def keyword_query(question: str, keywords: Callable[[str], list[str]], word_limit: int) -> str:
    """The question's own words that `keywords` finds, in order, at most `word_limit`; else the question itself."""
    kept = [word.strip(".,;:!?\"'()[]“”„¿¡") for word in question.split() if keywords(word)]
    return (" ".join(kept[:word_limit]) or question)[:_LONGEST]
