"""Splits a passage into strips (sentences, list items, table rows, code blocks) with their offsets.

Sentence ends are found by rule, since a strip must keep its exact place in the passage and every script that a user
brings must work without a model. Every character that is not white space belongs to exactly one strip.
"""

import re
from collections.abc import Iterator

MAX_STRIP = 600  # characters; a longer stretch without any sentence end is cut at a space
_MIN_STRIP = 12
"""Bytes in UTF-8; a shorter sentence ("Yes.", "Note:") joins the following one, for it says nothing alone."""

Span = tuple[int, int]

_FENCE = re.compile(r"^\s*(```|~~~)")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s")
_ITEM = re.compile(r"^\s*(?:[-*+•‣◦–]|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])\s+\S")
_ROW = re.compile(r"^\s*\|.*\|\s*$")
_RULE_ROW = re.compile(r"^\s*\|[\s:|+-]+\|\s*$")
_BARE_ROW = re.compile(r"^.*\S \| \S.*$")
_BARE_RULE = re.compile(r"^\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+$")
_NAME = r"(?:[^\s:;|.!?][^:;|.!?\n]{0,59}|[^\s:;|!?][^:;|!?\n]{0,24})"
_PAIRED_ROW = re.compile(rf"^\s*{_NAME}: \S[^\n]*?; {_NAME}: \S")
"""A row as the readers of tables write it: "route: R1; category: Adult; remarks: 8.40 a head. No discount"."""

_END = re.compile(
    r"""(?<![.!?…])[.!?…]+["'”’“»«)\]]*(?=\s)  # spaced scripts: a stop, then white space
      | [。！？｡．]+[」』”’）】]*                # Chinese and Japanese: no space follows
      | (?<![।॥؟۔։።])[।॥؟۔։።]+(?=\s)          # Devanagari, Arabic, Urdu, Armenian, Ethiopic""",
    re.VERBOSE,
)
_OPENER = re.compile(r"\s*[\"'“„«(\[]*(.?)", re.DOTALL)
_VISIBLE = re.compile(r"\S")
_LAST_WORD = re.compile(r"[^\s(\[\"'“„«]+$")
_LONGEST_ABBREVIATION = 20  # characters; to look back further would take quadratic time
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")
_ABBREVIATIONS = (
    "mr mrs ms dr prof hr fr st mt sr jr gen col capt lt sgt rev hon pres gov e.g i.e cf vs approx ca "
    "resp incl excl min max tel fig figs eq sec ch vol pp ed eds u.s u.k z.b d.h u.a o.ä bzw evtl ggf "
    "inkl zzgl mme mlle env"
)
_NEVER_LAST = frozenset(_ABBREVIATIONS.split())
_MAY_BE_LAST = frozenset(["a.m", "p.m"])
_GERMAN_ORDINAL = re.compile(r"\b(?:der|die|das|den|dem|des|im|vom|zum|zur|beim)\s+\d{1,2}$", re.IGNORECASE)
_GERMAN_MONTH = re.compile(
    r"\s+(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)\b"
)


def split(text: str) -> list[Span]:
    """Spans (start, end) of the strips of `text`, in order, without overlap, each trimmed of white space."""
    spans: list[Span] = []
    heading: int | None = None
    for start, end, is_prose in _blocks(text):
        if _HEADING.match(text[start:end]) and is_prose is None:
            heading = start if heading is None else heading  # a heading reads with what it announces
            continue
        pieces = sentences(text, start, end) if is_prose else [(start, end)]
        if heading is not None and pieces:
            pieces[0] = (heading, pieces[0][1])
            heading = None
        spans += pieces
    if heading is not None:
        spans.append((heading, len(text)))
    return [trimmed for span in spans for cut in _cut_long(text, span) if (trimmed := _trim(text, cut))]


def _blocks(text: str) -> Iterator[tuple[int, int, bool | None]]:
    """(start, end, is prose) of each block; None marks a heading, False what must not be split into sentences."""
    ends = [match.end() for match in re.finditer("\n", text)] + [len(text)]
    lines = list(zip([0, *ends[:-1]], ends, strict=True))
    i = 0
    while i < len(lines):
        start, end = lines[i]
        line = text[start:end]
        first = i
        i += 1
        if not line.strip():
            continue
        if _HEADING.match(line):
            yield start, end, None
        elif _FENCE.match(line):
            while i < len(lines) and not _FENCE.match(text[slice(*lines[i])]):
                i += 1
            i = min(i + 1, len(lines))
            yield start, lines[i - 1][1], False
        elif _is_row(line):
            following = text[slice(*lines[i])] if i < len(lines) else ""
            if _RULE_ROW.match(following) or _BARE_RULE.match(following):  # header row and its rule go together
                i += 1
            yield start, lines[i - 1][1], False
        else:
            while i < len(lines) and _continues(text[slice(*lines[i])]):
                i += 1
            yield lines[first][0], lines[i - 1][1], True


def _is_row(line: str) -> bool:
    return any(kind.match(line) for kind in (_ROW, _BARE_ROW, _PAIRED_ROW))


def _continues(line: str) -> bool:
    starts_block = any(kind.match(line) for kind in (_HEADING, _FENCE, _ITEM)) or _is_row(line)
    return bool(line.strip()) and not starts_block


def sentences(text: str, start: int, end: int) -> list[Span]:
    """Of prose from `start` to `end`, each from its first letter."""
    spans: list[Span] = []
    begin = _skip_space(text, start, end)
    for match in _END.finditer(text, start, end):
        at = match.end()
        if (
            _is_sentence_end(text, begin, match.start(), at, end)
            and len(text[begin:at].encode("utf-8", "replace")) >= _MIN_STRIP
        ):
            spans.append((begin, at))
            begin = _skip_space(text, at, end)
    if begin < end:
        spans.append((begin, end))
    return spans


def _is_sentence_end(text: str, begin: int, stop: int, after: int, end: int) -> bool:
    mark = text[stop]
    if mark in "。！？｡．":
        return True
    found = _OPENER.match(text, after, end)
    opener = found.group(1) if found else ""
    if not opener or mark != ".":
        return not opener.islower()
    if opener.islower():
        return False
    last = _LAST_WORD.search(text, max(begin, stop - _LONGEST_ABBREVIATION), stop)
    word = last.group().lower() if last else ""
    if word in _NEVER_LAST:
        return False
    if word in _MAY_BE_LAST:
        return True
    if word in {"no", "nr"}:
        return not opener.isdigit()
    if word.isdigit():
        is_marker = stop - len(word) == begin  # "1. Switch off": a list number, not a sentence
        is_date = len(word) <= 2 and _GERMAN_MONTH.match(text, after)
        is_ordinal = _GERMAN_ORDINAL.search(text[max(begin, stop - _LONGEST_ABBREVIATION) : stop])
        return not (is_marker or is_date or is_ordinal)
    return not (_INITIALS.fullmatch(word) and len(word) < 6)


def _skip_space(text: str, start: int, end: int) -> int:
    match = _VISIBLE.search(text, start, end)
    return match.start() if match else end


def _cut_long(text: str, span: Span) -> Iterator[Span]:
    start, end = span
    while end - start > MAX_STRIP:
        window = text[start : start + MAX_STRIP]
        at = max(window.rfind("\n"), window.rfind("; ") + 1, MAX_STRIP // 2)
        if at == MAX_STRIP // 2:
            at = max(window.rfind(" "), at)
        yield start, start + at
        start += at
    yield start, end


def _trim(text: str, span: Span) -> Span | None:
    start, end = span
    piece = text[start:end]
    stripped = piece.strip()
    if not stripped:
        return None
    start += len(piece) - len(piece.lstrip())
    return start, start + len(stripped)
