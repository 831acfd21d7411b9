"""Parses the replies of language models to requests for scores, verdicts or records of fields. Pure."""

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LONGEST_CONDENSED = 500
LONGEST_MISSING = 60

_LONGEST = 20_000
_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
# Not in a reply that begins with its JSON: there the tag is a quotation, and what follows it as well.
_UNOPENED_THOUGHT = re.compile(r"\A(?!\s*[{\[]).*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_NUMBER = r"[-+]?(?:\d+(?:[.,]\d+)?|\.\d+)(?:[eE][-+]?\d+)?|nan|[-+]?inf(?:inity)?"
_UNIT = r"%|/\s*\d+|\(?out of \d+\)?"
# Possessive throughout ("*+"): without it, a reply with long runs of spaces would take quadratic time.
_LABELLED = re.compile(
    rf"""\b(?:score|relevance|rating|grade)\b[\s"'*]*+(?:is|of|[:=])?+[\s"'*]*+((?>{_NUMBER}))\s*+({_UNIT})?+""",
    re.IGNORECASE,
)
_RANGE = re.compile(r"[ \t]*(?:-|–|—|to|and)[ \t]*\.?\d", re.IGNORECASE)
_ALONE = re.compile(rf"^[^\w.+-]*+((?>{_NUMBER}))\s*+({_UNIT})?+[\s.*`\"']*+$", re.IGNORECASE)
_NOTHING = ("nothing", "none", "empty", "n/a", "null", "-")
_YES_NO = re.compile(r"^\W*(yes|no)\b", re.IGNORECASE)
_START = re.compile(r"""\{\s*+["'}]|\[\s*+(?:[\[{"'\d.-]|(?:null|none|true|false|nan|infinity)\b)""", re.IGNORECASE)
_LIST_OF_RECORDS = re.compile(r"""(?:\{\s*+["']\w++["']\s*+:\s*+)?\[\s*+(?=\{)""")
_COMMA = re.compile(r"\s*+,?\s*+")
_NAME = re.compile(r"(?:document|doc|passage)?[\W_]*(\d{1,3})[\W_]*", re.IGNORECASE)
_MOST_NAMED, _FEW = 20, 80
_VERDICT_KEYS = ("verdict", "answer", "label", "class")
_NAMED = r"(?:the |my )?(?:final |correct )?(?:answer|verdict|class|category|label|judge?ment|option)"
_LABEL = re.compile(rf"^{_NAMED}(?: is)? (?=\S)")
_LABELLED_LINE = re.compile(rf"^[\s*_#]*{_NAMED}[\s*_]*(?:is|[:=])", re.IGNORECASE)
_LETTER = re.compile(r"(?<![\w'’])[(*]*([a-zA-Z])[*]*[:)]")
_NAMED_BY = ("document", "document_number", "doc", "passage", "number", "id")


@dataclass(frozen=True)
class ScoreReply:
    """`score` in 0..1, or None with the `cause`."""

    score: float | None
    reason: str = ""
    cause: str = ""


@dataclass(frozen=True)
class VerdictReply:
    """`verdict` is one of those asked for, or None with the `cause`; `numbers`, from 1, are what it rests on."""

    verdict: str | None
    numbers: tuple[int, ...] = ()
    cause: str = ""


@dataclass(frozen=True)
class CondensedReply:
    """A question in one line, and the word in it that nothing said before explains; or None with the `cause`."""

    question: str | None
    missing: str = ""
    cause: str = ""


_EMPTY = ScoreReply(None, cause="the reply was empty")
_YES_OR_NO = ScoreReply(None, cause="the reply was a yes or no, not a score")
_SEVERAL = ScoreReply(None, cause="the reply holds more than one score")


def parse_score(text: str, scale: float = 1.0) -> ScoreReply:
    """Read a score given on 0..`scale`, in JSON or around it; anything unclear is None with its cause."""
    reply = without_thoughts(text[:_LONGEST])
    if not reply:
        return _EMPTY
    found, around = [], reply
    for value, start, end in _values(reply)[0]:
        if records := _records(value):
            found += [_from_record(record, scale) for record in records]
            around = around.replace(reply[start:end], " ", 1)
    if not found and (alone := _ALONE.match(reply)):
        return _in_range(alone.group(1), alone.group(2), scale, "")
    labelled = [
        match for match in _LABELLED.finditer(around) if not _RANGE.match(around, max(match.end(1), match.end(2)))
    ]
    if any(around.count("{") > around.count("}") and not around[match.end(1) :].strip(". ") for match in labelled):
        return ScoreReply(None, cause="the reply was cut off in the middle of the score")
    found += [_in_range(match.group(1), match.group(2), scale, reply) for match in labelled]
    if found:
        return _agreed(found)
    return _YES_OR_NO if _YES_NO.match(reply) else ScoreReply(None, cause="the reply holds no score")


def parse_scores(text: str, count: int, scale: float = 1.0) -> tuple[ScoreReply, ...]:
    """Read the scores of documents 1 to `count`, each given on 0..`scale`: one `ScoreReply` a document, in order.

    An entry is a number, or a record with a score and perhaps a reason. It belongs to the document that it names, or
    else to that of its place; then a list that is too long, and one of bare numbers that is too short, belongs to
    nobody. Records that are missing at the end leave only their own documents without a score.
    """
    reply = without_thoughts(text[:_LONGEST])
    if not reply:
        return (_EMPTY,) * count
    values, broken = _values(reply)
    lists = _lists([value for value, _, _ in values])
    records = [value for value, _, _ in values if isinstance(value, dict) and "score" in value]
    missing = "the reply holds no score for it"
    if not lists and broken is not None:
        lists = [_head_of_list(reply, broken)]
        missing = f"the reply cannot be read from entry {len(lists[0]) + 1} on: it was cut off, or is not JSON"
    elif not lists:
        lists = [records if len(records) > 1 else _bare_numbers(reply, count)]
    readings = [_attributed(entries, count, scale, missing) for entries in lists if entries]
    if readings:
        is_one = len({tuple(one.score for one in reading) for reading in readings}) == 1
        return readings[0] if is_one else _nobody(count, "the reply holds more than one list of scores")
    if count == 1:
        return (parse_score(text, scale),)
    if _YES_NO.match(reply):
        return (_YES_OR_NO,) * count
    cut = "the reply was cut off, or is not JSON"
    return _nobody(count, cut if broken is not None else f"expected {count} scores, found {len(records) or 'none'}")


def parse_verdict(text: str, verdicts: Mapping[str, str]) -> VerdictReply:
    """Read one of `verdicts`, by what may be said for each: in JSON, with the numbers of the `sentences` that it rests
    on; a reply of that alone, a line "Verdict: …" of it, or "B: …" for a letter.

    Anything unclear is None with its cause.
    """
    reply = without_thoughts(text[:_LONGEST])
    if not reply:
        return VerdictReply(None, cause=_EMPTY.cause)
    values, broken = _values(reply)
    for key in _VERDICT_KEYS:
        records = [record for value, _, _ in values for record in _records(value, key)]
        if found := [_verdict_of(record[key], record, verdicts) for record in records]:
            is_one = len({one.verdict for one in found}) == 1
            return found[0] if is_one else VerdictReply(None, cause="the reply holds more than one verdict")
    if not values and broken is None:
        alone = {verdicts[said] for said in _said_alone(reply) if said in verdicts}
        if len(alone) == 1:
            return VerdictReply(alone.pop())
    if broken is not None:
        return VerdictReply(None, cause="the reply was cut off, or is not JSON")
    yes_or_no = "the reply was a yes or no, not a verdict"
    return VerdictReply(None, cause=yes_or_no if _YES_NO.match(reply) else "the reply holds no verdict")


def parse_condensed(text: str) -> CondensedReply:
    """Read the `question` of a reply and what is `missing` in it; a question that is unclear is None with its cause."""
    reply = without_thoughts(text[:_LONGEST])
    if not reply:
        return CondensedReply(None, cause=_EMPTY.cause)
    values, broken = _values(reply)
    found = [record for value, _, _ in values for record in _records(value, "question")]
    if not found:
        is_cut = broken is not None
        return CondensedReply(None, cause="the reply was cut off, or is not JSON" if is_cut else "it holds no question")
    said, missing = found[0]["question"], found[0].get("missing")
    if len({str(one["question"]) for one in found}) > 1:
        return CondensedReply(None, cause="the reply holds more than one question")
    if not isinstance(said, str) or not (line := " ".join(said.split())):
        return CondensedReply(None, cause="the question in the reply is empty, or no text")
    if len(line) > LONGEST_CONDENSED:
        return CondensedReply(
            None, cause=f"the question has {len(line)} characters, expected at most {LONGEST_CONDENSED}"
        )
    missing = " ".join(missing.split()).strip("\"'“”") if isinstance(missing, str) else ""
    return CondensedReply(line, missing[:LONGEST_MISSING] if missing.lower() not in _NOTHING else "")


def parse_records(text: str, key: str) -> list[dict[str, Any]]:
    """The records with `key`, as JSON or as a Python dict; none behind JSON that breaks off."""
    return [record for value, _, _ in _values(without_thoughts(text[:_LONGEST]))[0] for record in _records(value, key)]


def without_thoughts(text: str) -> str:
    """A reply without what the model thought aloud; some chat templates leave out the tag that opens the thought."""
    return _UNOPENED_THOUGHT.sub("", _THOUGHT.sub("", text)).strip()


# --- one score ------------------------------------------------------------------------------------------------------


def _from_record(record: dict[str, Any], scale: float) -> ScoreReply:
    reason = record.get("reasoning") or record.get("reason") or ""
    return _from_value(record["score"], scale, reason.strip() if isinstance(reason, str) else "")


def _from_value(value: Any, scale: float, reason: str = "") -> ScoreReply:
    if isinstance(value, dict | list | tuple):
        return ScoreReply(None, cause=f"the score is a {type(value).__name__}, not a number")
    match = _ALONE.match(str(value)[:400]) if _is_number(value) or isinstance(value, str) else None
    if not match:
        return ScoreReply(None, cause=f"the score {str(value)[:40]!r} is not a number")
    return _in_range(match.group(1), match.group(2), scale, reason)


def _in_range(digits: str, unit: str | None, scale: float, reason: str) -> ScoreReply:
    """`digits` out of `scale`, or out of what its unit says ("%", "/10", "out of 10")."""
    number = float(digits.replace(",", "."))
    full = scale if not unit else 100.0 if unit == "%" else float(re.sub(r"\D", "", unit))
    if not (math.isfinite(number) and math.isfinite(full)) or full <= 0:
        return ScoreReply(None, cause="the score is not a finite number")
    if not 0.0 <= number <= full:
        return ScoreReply(None, cause=f"the score {number:g} lies outside 0 to {full:g}")
    return ScoreReply(number / full, reason)


def _agreed(found: Sequence[ScoreReply]) -> ScoreReply:
    return found[0] if len({one.score for one in found}) == 1 else _SEVERAL


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- a verdict ------------------------------------------------------------------------------------------------------


def _verdict_of(said: Any, record: dict[str, Any], verdicts: Mapping[str, str]) -> VerdictReply:
    named = record.get("sentences")
    is_bare = isinstance(said, str | int | float)
    words = _bare_words(f"{said:g}" if _is_number(said) else str(said)) if is_bare else ""
    if words not in verdicts:
        asked = ", ".join(dict.fromkeys(verdicts.values()))
        return VerdictReply(None, cause=f"the verdict {str(said)[:40]!r} is none of: {asked}")
    listed = named[:_MOST_NAMED] if isinstance(named, list) else [named]
    whole = (str(one) for one in listed if isinstance(one, int | str) and not isinstance(one, bool))
    named_ones = (_NAME.fullmatch(one) for one in whole if not one.startswith("-"))
    numbers = filter(None, (int(match.group(1)) for match in named_ones if match))
    return VerdictReply(verdicts[words], tuple(dict.fromkeys(numbers)))


def _said_alone(reply: str) -> Iterator[str]:
    yield from map(_bare_words, [reply, *(line for line in reply.splitlines() if _LABELLED_LINE.match(line))])
    if len(set(_LETTER.findall(reply))) == 1 and (first := _LETTER.match(reply)):
        yield first.group(1).lower()


def _bare_words(text: str) -> str:
    """ "not supported" of "**NOT_SUPPORTED**." and of "Verdict: not supported"; "" of a longer text."""
    words = " ".join(re.sub(r"[\W_]+", " ", text).lower().split()) if len(text) <= _FEW else ""
    return _LABEL.sub("", words)


# --- many scores ----------------------------------------------------------------------------------------------------


def _attributed(entries: Sequence[Any], count: int, scale: float, cause: str) -> tuple[ScoreReply, ...]:
    numbers: list[int | None] = [_document_of(entry) for entry in entries]
    named = [number for number in numbers if number is not None]
    strange = [number for number in named if not 1 <= number <= count]
    if strange:  # counted from 0, or about other documents: then no number in it can be trusted
        return _nobody(count, f"expected documents 1 to {count}, found document {strange[0]}")
    if not named:
        is_short = len(entries) < count and not all(isinstance(entry, dict) for entry in entries)
        if len(entries) > count or is_short:
            return _nobody(count, f"expected {count} scores, found {len(entries)}")
        numbers = list(range(1, len(entries) + 1))
    missing = ScoreReply(None, cause=cause)
    found: dict[int | None, list[ScoreReply]] = {}
    for number, entry in zip(numbers, entries, strict=True):
        found.setdefault(number, []).append(_from_entry(entry, scale, missing))
    return tuple(_agreed(found.get(number, [missing])) for number in range(1, count + 1))


def _from_entry(entry: Any, scale: float, missing: ScoreReply) -> ScoreReply:
    if not isinstance(entry, dict):
        return _from_value(entry, scale)
    return _from_record(entry, scale) if "score" in entry else missing


def _document_of(entry: Any) -> int | None:
    if not isinstance(entry, dict):
        return None
    named = [value for key in _NAMED_BY if (value := entry.get(key)) is not None]
    match = _NAME.fullmatch(str(named[0])) if named and isinstance(named[0], str | int) else None
    return int(match.group(1)) if match else None


def _nobody(count: int, cause: str) -> tuple[ScoreReply, ...]:
    return (ScoreReply(None, cause=cause),) * count


def _lists(values: list[Any]) -> list[list[Any]]:
    """Every list of scores in decoded values; within a record with a score nothing is looked for."""
    found = []
    todo = list(values)
    for one in todo:
        if isinstance(one, list) and any(_is_scored(entry) for entry in one):
            found.append(one)
        elif isinstance(one, list):
            todo += one
        elif isinstance(one, dict) and "score" not in one:
            todo += one.values()
    return found


def _is_scored(entry: Any) -> bool:
    if isinstance(entry, dict):
        return "score" in entry
    return _is_number(entry) or (isinstance(entry, str) and _ALONE.match(entry[:400]) is not None)


def _head_of_list(reply: str, at: int) -> list[Any]:
    """The records at the head of a list that breaks off; behind the first broken one nothing can be told apart."""
    found: list[Any] = []
    opened = _LIST_OF_RECORDS.match(reply, at)
    place = opened.end() if opened else len(reply)
    while (decoded := _decoded(reply, place)) and isinstance(decoded[0], dict):
        found.append(decoded[0])
        comma = _COMMA.match(reply, decoded[1])
        place = comma.end() if comma else decoded[1]
    return found


def _bare_numbers(reply: str, count: int) -> list[Any]:
    pieces = re.split(r",?[\s;]+", reply.strip(" \t\n`*\"'[](){}.,"))
    if len(pieces) == 1 and count > 1:
        pieces = pieces[0].split(",")
    is_bare = all(_ALONE.match(piece[:400]) and not piece.endswith(".") for piece in pieces)  # "1." counts lines
    return pieces if is_bare else []


# --- JSON -----------------------------------------------------------------------------------------------------------


def _values(reply: str) -> tuple[list[tuple[Any, int, int]], int | None]:
    """((value, start, end) of the JSON in a reply, where it breaks): behind a break may stand what a passage said."""
    found: list[tuple[Any, int, int]] = []
    at = 0
    while match := _START.search(reply, at):
        decoded = _decoded(reply, match.start())
        if decoded is None:
            return found, match.start()
        found.append((decoded[0], match.start(), decoded[1]))
        at = decoded[1]
    return found, None


def _decoded(text: str, start: int) -> tuple[Any, int] | None:
    """The JSON value at `start` and its end; or the Python dict or list, which small models like to write."""
    try:
        return json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        closing = "]" if text[start : start + 1] == "[" else "}"
    for end in (text.find(closing, start) + 1, text.rfind(closing, start) + 1):
        try:
            value = ast.literal_eval(text[start:end])
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, dict | list):
            return value, end
    return None


def _records(value: Any, key: str = "score") -> list[dict[str, Any]]:
    """The records with that key in a decoded value; not those inside another such record."""
    found = []
    todo = [value]
    for one in todo:
        if isinstance(one, dict) and key in one:
            found.append(one)
        elif isinstance(one, dict | list):
            todo += one.values() if isinstance(one, dict) else one
    return found
