"""The sentences of a passage, each kept or struck out: as rows with scores and signs, or in the text around them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from crag_core.base.text.display import JOINERS, against, clean, readable, sentence
from crag_core.base.text.markdown import FENCE, RULE, inline_text, lines_of
from crag_core.base.types.decisions import Handling
from crag_core.base.types.knowledge import Strip, StripVerdict
from crag_core.base.types.passages import Origin, Passage
from crag_core.trace.grounding.quoted_answer import with_headers
from crag_core.view.run_view import RunView

AROUND, PASSAGE, KEPT, STRUCK, GAP = "around", "passage", "kept", "struck", "gap"
_SAID = {KEPT: "kept", STRUCK: "struck out"}
_HEADING_MARK = re.compile(r"\s*#{1,6}\s+(?=\S)")
_SIGNS = "†‡§¶"


@dataclass(frozen=True)
class Sentence:
    """`lines` are (words, are they a heading?), `score_text` the score with its sign, `hint` all that is known of it.

    `kept` is None for a line of a text that was not cut into sentences. A new paragraph `starts` with it. `change` is
    "new" or "gone" where it was not so when the run was taken.
    """

    lines: tuple[tuple[str, bool], ...]
    kept: bool | None = None
    score: float | None = None
    score_text: str = ""
    spoken: str = ""
    hint: str = ""
    change: str = ""
    starts: bool = False


@dataclass(frozen=True)
class SentenceList:
    """`cutoff` and `legend` where it decides what is kept; `note` explains the `signs`, which stand for reasons."""

    cutoff: float | None
    legend: str
    note: str
    rows: tuple[Sentence, ...]
    signs: dict[str, str]


def list_sentences(
    passage: Passage, verdicts: Sequence[StripVerdict], cutoff: float | None, then: Collection[str] | None
) -> SentenceList:
    """`then` are the ids of the strips that were kept when the run was taken. Without `verdicts` the text as it is."""
    cutoff = cutoff if verdicts else None
    signs = _signs(verdicts, cutoff)
    changes = [_change(verdict, then) for verdict in verdicts]
    rows = [
        _row(passage, verdict, cutoff, signs.get(verdict.reason, ""), change, _starts(passage, verdicts, at))
        for at, (verdict, change) in enumerate(zip(verdicts, changes, strict=True))
    ]
    whole = (Sentence((line,)) for line in _lines(passage.text))
    legend = "" if cutoff is None else f"cut-off {readable(cutoff)[0]}"
    return SentenceList(cutoff, legend, _note(signs, changes), tuple(rows or whole), signs)


def deciding_cutoff(view: RunView, origin: Origin) -> float | None:
    """The strip cut-off, where it is what keeps and strikes out the sentences of this origin."""
    handling = view.routed.decision.handling
    if origin is Origin.WEB:
        is_refined = view.policy.web.refine
    else:
        is_refined = handling is Handling.REFINE or (handling is Handling.EXTRACT and view.trace.extractions is None)
    return view.policy.cutoff if is_refined else None


def describe_verdict(verdict: StripVerdict, cutoff: float | None = None) -> str:
    """ "struck out, score 0.90, over the 5-sentence limit": all that is known of it."""
    score = "not graded" if verdict.strip.score is None else f"score {score_of(verdict, cutoff)}"
    if verdict.kept:
        return f"kept, {score}"
    reason = clean(verdict.reason)
    if reason.startswith(("score ", "not graded")):
        return f"struck out, {reason}"
    return f"struck out, {score}{f', {reason}' if reason else ''}"


def score_of(verdict: StripVerdict, cutoff: float | None = None) -> str:
    score = verdict.strip.score
    return "–" if score is None else against(score, *(() if cutoff is None else (cutoff,)))[0]


def _row(
    passage: Passage, verdict: StripVerdict, cutoff: float | None, sign: str, change: str, starts: bool
) -> Sentence:
    since = {"new": ", new since the run was taken", "gone": ", kept when the run was taken"}.get(change, "")
    spoken = f"{describe_verdict(verdict, cutoff)}{since}"
    score, text = verdict.strip.score, f"{score_of(verdict, cutoff)}{sign}"
    lines = _lines(with_headers(verdict.strip, passage))
    return Sentence(lines, verdict.kept, score, text, spoken, sentence(spoken), change, starts)


def _starts(passage: Passage, verdicts: Sequence[StripVerdict], at: int) -> bool:
    return at > 0 and passage.text[verdicts[at - 1].strip.end : verdicts[at].strip.start].count("\n") > 1


def _change(verdict: StripVerdict, then: Collection[str] | None) -> str:
    if then is None or verdict.kept == (verdict.strip.id in then):
        return ""
    return "new" if verdict.kept else "gone"


def _signs(verdicts: Sequence[StripVerdict], cutoff: float | None) -> dict[str, str]:
    """A sign for each reason that neither the bar nor the line of the cut-off tells; "" for one that all share."""
    struck = [verdict for verdict in verdicts if not verdict.kept]
    reasons = dict.fromkeys(verdict.reason for verdict in struck if not _is_evident(verdict, cutoff))
    if len(reasons) == 1 and all(verdict.reason in reasons for verdict in verdicts):
        return dict.fromkeys(reasons, "")
    return {reason: _SIGNS[min(at, len(_SIGNS) - 1)] for at, reason in enumerate(reasons)}


def _is_evident(verdict: StripVerdict, cutoff: float | None) -> bool:
    return cutoff is not None and verdict.strip.score is not None and verdict.strip.score <= cutoff


def _note(signs: dict[str, str], changes: Sequence[str]) -> str:
    message = [f"{sign} {reason}" if sign else f"All struck out: {reason}" for reason, sign in signs.items()]
    message += [words for kind, words in (("new", "+ new"), ("gone", "− gone")) if kind in changes]
    return " · ".join(message)


def _lines(text: str) -> tuple[tuple[str, bool], ...]:
    """(words, are they a heading?), without the marks of Markdown."""
    return tuple((words, line.is_heading) for line in lines_of(text) if (words := clean(line.words)))


def shown_text(strip: Strip, passage: Passage) -> str:
    """A sentence on one line as tables show it: below its headings, a row with its column heads, without marks."""
    return "".join(
        f"{words} › " if is_heading else f"{words} " for words, is_heading in _lines(with_headers(strip, passage))
    ).rstrip(" ›")


# --- in the text around them ------------------------------------------------------------------------------------------

_Cut = tuple[int, int, str, StripVerdict | None]
"""From, to, what this stretch of the text is, and the verdict on it."""


@dataclass(frozen=True)
class Piece:
    """A sentence, or what of it stands on this line: with its `index` where it begins, its `score` where it ends."""

    kind: str
    text: str
    said: str = ""
    hint: str = ""
    score: str = ""
    index: int | None = None


@dataclass(frozen=True)
class TextLine:
    """`apart`: an empty line is above it."""

    heading: bool
    apart: bool
    pieces: tuple[Piece, ...]


def text_lines(
    before: str, passage: str, verdicts: Sequence[StripVerdict], after: str, listed: SentenceList | None = None
) -> tuple[TextLine, ...]:
    """Without the marks of Markdown, its fences and the rules of tables; every word stands in its place, code as it is.

    Scores are those of `listed`, with its signs behind them.
    """
    listed = listed or SentenceList(None, "", "", (), {})
    whole = f"{before}{passage}{after}"
    cuts = list(_cuts(len(before), len(passage), len(whole), verdicts))
    lines = []
    at = first = 0
    in_code = False
    for line in whole.split("\n"):
        end = at + len(line)
        is_fence = bool(FENCE.match(line))
        in_code ^= is_fence
        heading = None if in_code else _HEADING_MARK.match(line)
        if line.strip() and not is_fence and (in_code or not RULE.fullmatch(line)):
            start = at + heading.end() if heading else at
            while cuts[first][1] <= start and first + 1 < len(cuts):
                first += 1
            shown = _visible if in_code else _unmarked
            pieces = tuple(_pieces_on(whole, start, end, cuts[first:], listed, shown))
            lines.append(TextLine(bool(heading), whole[:at].endswith("\n\n"), pieces))
        at = end + 1
    return tuple(lines)


def _cuts(start: int, size: int, end: int, verdicts: Sequence[StripVerdict]) -> Iterator[_Cut]:
    """Stretches that cover the whole text, one after the other."""
    yield 0, start, AROUND, None
    at, last = start, start + size
    for verdict in verdicts:
        begin, stop = (min(start + offset, last) for offset in (verdict.strip.start, verdict.strip.end))
        if begin < at:
            continue
        yield at, begin, PASSAGE, None
        yield begin, stop, KEPT if verdict.kept else STRUCK, verdict
        at = stop
    yield at, last, PASSAGE, None
    yield last, end, AROUND, None


def _pieces_on(
    whole: str, start: int, end: int, cuts: Sequence[_Cut], listed: SentenceList, shown: Callable[[str], str]
) -> Iterator[Piece]:
    for low, high, kind, verdict in cuts:
        if low >= end:
            return
        part = whole[max(low, start) : min(high, end)]
        if not part.strip():
            if part:
                yield Piece(GAP, " ")
        elif verdict is None:
            yield Piece(kind, shown(part))
        else:
            score = score_of(verdict, listed.cutoff) + listed.signs.get(verdict.reason, "") if high <= end else ""
            is_first = not whole[low : max(low, start)].strip("#|:- \t\n")
            index = verdict.strip.index if is_first else None
            yield Piece(
                kind, shown(part), _SAID[kind], sentence(describe_verdict(verdict, listed.cutoff)), score, index
            )


def _unmarked(part: str) -> str:
    return inline_text(_visible(part))


def _visible(part: str) -> str:
    """`clean` without its trimming: indents, and the gaps to the pieces beside it, stay."""
    shown = (sign for sign in part if sign.isprintable() or sign.isspace() or sign in JOINERS)
    return "".join(" " if sign.isspace() else sign for sign in shown)
