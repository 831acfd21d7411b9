"""Answers without a model: quotations with citations, or "cannot be answered"."""

import re
from collections.abc import Sequence

from crag_core.base.reply_parsing import without_thoughts
from crag_core.base.text.markdown import ROW, cells, heads_above, lines_of, paired, without_marks
from crag_core.base.text.refusals import is_refusal, may_become_refusal
from crag_core.base.types.decisions import Action, Decision
from crag_core.base.types.knowledge import Knowledge, Strip
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import NO_END, Usage
from crag_core.base.types.web import WEB_WORDS, WebSearch

EXTRACTIVE = "extractive"

CITATION = re.compile(r"\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]")  # [1], or [1, 2]; its group holds the numbers
_CITED = re.compile(rf"```[\s\S]*?(?:```|\Z)|`[^`\n]*`|(?P<cited>{CITATION.pattern})")

_QUOTES = 3
_CLOSE = 0.05  # how far below the best score a sentence may be that is quoted beside it in an answer
_TAG_BEGUN = re.compile(r"</?(?:t(?:h(?:i(?:n(?:k(?:i(?:n(?:g)?)?)?)?)?)?)?)?\Z", re.IGNORECASE)


def quote(knowledge: Knowledge, strips: tuple[Strip, ...], *, nearest: bool = False) -> str:
    """The best kept sentence word for word with its citation, and what scores close to it; '' without evidence.

    `nearest`: the best three, whatever they score, of which none is called an answer. `strips` are the scored strips of
    corpus and web; of an excerpt without scored strips the beginning is quoted. A row of a table has its headers.
    """
    scores = {strip.id: strip for strip in strips}
    quotes: list[tuple[float, int, str]] = []
    for number, excerpt in enumerate(knowledge.excerpts, start=1):
        ids = excerpt.strip_ids or tuple(s.id for s in strips if s.passage_id == excerpt.passage.id)
        for strip_id in ids:
            strip = scores[strip_id]
            quotes.append((strip.score or 0.0, number, with_headers(strip, excerpt.passage)))
        if not ids:
            quotes.append((0.0, number, excerpt.text[:300]))
    shown = [(score, number, " ".join(quotable(text).split())) for score, number, text in quotes]
    # A heading alone says nothing; it is quoted only where there is nothing else.
    said = [one for one in shown if one[2]] or [
        (score, number, " ".join(without_marks(text).split())) for score, number, text in quotes
    ]
    best = sorted(said, key=lambda item: -item[0])[:_QUOTES]
    if not nearest:
        best = best[:1] + [one for one in best[1:] if one[0] >= best[0][0] - _CLOSE]
    return "\n\n".join(f"“{text}” [{number}]" for _, number, text in best)


def with_headers(strip: Strip, passage: Passage) -> str:
    """A row of a Markdown table as "header: cell; header: cell"; any other strip as it stands."""
    rows = strip.text.strip().splitlines()
    if not all(ROW.fullmatch(line) for line in rows):
        return strip.text
    heads = heads_above(passage.text, strip.start)
    return strip.text if heads is None else "\n".join(paired(heads, cells(row)) for row in rows)


def citations(text: str, count: int) -> tuple[int, ...]:
    """The excerpt numbers cited in `text`, each once, in order; numbers beyond `count` are left out."""
    return tuple(number for number in cited_in(text) if 1 <= number <= count)


def cited_in(text: str) -> tuple[int, ...]:
    """The numbers that a text cites, each once, in order; also those that no excerpt has."""
    found = [int(number) for match in CITATION.finditer(text) for number in re.findall(r"\d+", match.group(1))]
    return tuple(dict.fromkeys(found))


def renumbered(text: str, numbers: Sequence[int]) -> str:
    """`text`, which cites excerpts by their place from 1, with `numbers` in place of these; code and others stay."""

    def number(place: re.Match[str]) -> str:
        at = int(place[0])
        return str(numbers[at - 1]) if 1 <= at <= len(numbers) else place[0]

    return _CITED.sub(lambda one: re.sub(r"\d+", number, one[0]) if one["cited"] else one[0], text)


class StreamedReply:
    """What of a reply may be shown while it comes: no thought, and nothing of a refusal that may still come."""

    def __init__(self, before: str = "") -> None:
        self._raw = before
        self._shown = before

    @property
    def text(self) -> str:
        return without_thoughts(self._raw)

    @property
    def is_thought_only(self) -> bool:
        return bool(self._raw.strip()) and not self.text

    def add(self, piece: str) -> str:
        self._raw += piece
        so_far = without_thoughts(_TAG_BEGUN.sub("", self._raw))
        return "" if may_become_refusal(so_far) else self._new(so_far)

    def rest(self) -> str:
        return "" if is_refusal(self.text) else self._new(self.text)

    def _new(self, text: str) -> str:
        """What `text` has beyond what was shown; all of it where that turns out to have been a thought."""
        new = text.removeprefix(self._shown)
        self._shown = text
        return new


def why_no_evidence(decision: Decision, knowledge: Knowledge, web: WebSearch | None, looked_at: int) -> str:
    if decision.action is Action.INCORRECT:
        # In numbers the verdict tells it, wherever this stands.
        them = "the retrieved chunk was" if looked_at == 1 else f"the {looked_at} retrieved chunks were"
        corpus = f"{them} judged irrelevant" if looked_at else decision.reason
    else:
        corpus = "no sentence of the retrieved chunks was kept"
    tail = f" {' '.join(knowledge.notes)}" if knowledge.notes else ""
    return f"This cannot be answered from the evidence: {corpus}, and {_searched(web)}.{tail}"


def _searched(web: WebSearch | None) -> str:
    if web and web.pages_waiting:  # before any result was graded
        return "the reading of web pages waits for your approval"
    return WEB_WORDS[web.outcome].reason if web else "the web was not searched"


def why_doubtful(decision: Decision, web: WebSearch | None, reason: str) -> str:
    """`reason` is that of the decision, in whatever terms."""
    is_irrelevant = decision.verdict is Action.INCORRECT
    why = "These chunks were judged irrelevant" if is_irrelevant else "Not certain enough for an answer"
    return f"{why}: {reason}, and {_searched(web)}."


def doubtful_title(writer: str) -> str:
    return "Nearest sentences" if writer == EXTRACTIVE else f"Doubtful: {writer} on the nearest sentences"


def left_out(usage: Usage) -> str:
    """That evidence was cut for the model, in a sentence; "" where none was."""
    message = f"About {usage.cut:,} tokens of the evidence were left out, since the model cannot read them all at once."
    return message if usage.cut else ""


def why_cut(usage: Usage) -> str:
    """Where a reply ended that is not whole, in a sentence; "" where it is."""
    tokens = f"after {usage.completion_tokens:,} tokens" if usage.completion_tokens else "at the limit of its length"
    words = {
        "": "",
        "length": f"Cut {tokens}.",
        "content_filter": "Stopped by the server's content filter.",
        NO_END: "The stream ended early.",
    }
    return words.get(usage.ended, f"Ended by the server: {usage.ended}.")


def quotable(text: str) -> str:
    """What a text says, for quotation marks: without headings, and without the marks of Markdown."""
    return "\n".join(line.words.removeprefix("• ") for line in lines_of(text) if not line.is_heading)
