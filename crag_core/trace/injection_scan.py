"""Finds possible prompt injection in documents and web pages. Pure.

What is found is a fact of the record, with its place. It is shown and counted, and changes no decision. It is a help
for people and no wall: whoever words an instruction in a way that nobody has thought of is not found. Phrases stand in
injection_phrases.txt.
"""

from __future__ import annotations

import base64
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from functools import cache, lru_cache
from importlib.resources import files

from crag_core.base.text.confusables import LOOKS
from crag_core.base.types import Origin, Passage, Suspicion
from crag_core.trace.trace import Trace

_MODEL = (
    r"(?:ai|a\.i\.|artificial intelligence|language models?|llms?|gpt|chatgpt|chat ?bots?|copilot|claude|gemini|"
    r"(?:ai|virtual|digital) assistants?|ai (?:models?|systems?|agents?|graders?|judges?)|"
    r"(?:automated|automatic|machine) (?:graders?|judges?|evaluators?|reviewers?|systems?|assistants?|summarizers?)|"
    r"retrieval (?:graders?|evaluators?|judges?))"
)
_PIECE = r"(?:passage|document|text|evidence|context|chunk|excerpt|article|page|result|snippet|source|paragraph|entry)"
_TOP = (
    r"(?:1|1\.0+|10|ten|one|100|5/5|10/10|1\.0/10|maximum|max|maximal|highest|full|perfect|top|best|excellent|"
    r"relevant|correct|fully relevant|highly relevant)"
)
_BEST = (
    r"(?:highest|maximum|top|full|perfect|best|maximal) (?:possible |available )?(?:relevance )?"
    r"(?:score|grade|rating|marks?|band|relevance|number|points)"
)
_NAMED = {"<model>": _MODEL, "<piece>": _PIECE, "<top>": _TOP, "<best>": _BEST}
MARKERS = re.compile(
    r"<\|[a-z][a-z0-9_ ]{1,30}\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>|<\|?(?:begin|"
    r"end)[ _▁]of[ _▁]sentence\|?>"
    r"|</?(?:context|instructions?|untrusted|user_input|retrieved_\w+|documents?)>"
    r"|^[ \t]*(?:human|user)[ \t]*:[^\n]{0,300}\n{1,2}[ \t]*(?:assistant|ai|model|bot)[ \t]*:"
    r"|</?(?:system|assistant)(?:[_ -]?(?:prompt|message|instructions?))?>"
    r"|^[ \t]*#{2,4}[ \t]*(?:system(?:[ \t]+(?:prompt|message))?|instructions?|assistant|human|response)[ \t]*:[ \t]*$"
    r"|^[ \t]*#{2,4}[ \t]*system[ \t]*\n+(?=.{0,40}\b(?:you|your|ignore|must)\b)"
    r"|^[ \t]*\[?(?:system|assistant|developer)\]?[ \t]*(?:message|prompt|note|override)?[ \t]*:[ \t]*(?=(?:you\b|"
    r"your\b|ignore|"
    r"from now|new instruction|the (?:user|passage|document)|disregard|override|stop\b))",
    re.MULTILINE,
)
DELIMITERS = re.compile(
    r"<\s*+/?\s*+(?:evidence|passage|sentence)\s*+>|\[\s*+/\s*+evidence\s*+\]"
    r"|(?<![-=#*\[<(])[-=#*\[<(]{2,}+\s*+(?:end|begin|start|beginning)(?: of)?(?: the)? (?:evidence|context|"
    r"passages?|documents?|data|untrusted "
    r"\w+|user input|retrieved \w+)\b\s*+[-=#*\])>]"
)
_GAP, _SPACELESS_GAP = r"[\W_]{1,5}(?:[^\W_]{1,30}[\W_]{1,5}){0,4}", r".{0,12}?"
SPACELESS = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
MOST_LOOKED_AT = 200_000
"""Characters of a passage that are looked at; a file that is read whole can have millions."""
_MOST_REMEMBERED = 10_000
_MOST_OF_ONE = 20
_MOST_QUOTED = 3
_TAGS = re.compile("[\U000e0000-\U000e007f]+")
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f")
_UNSEEN = re.compile("[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064"
                     "\u2066-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]")  # fmt: skip
_RUN_OF_UNSEEN = re.compile("[\u200b-\u200d\u2060-\u2064\u180e\ufeff]{8,}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
_OVERRIDE = re.compile("[\u202d\u202e][^\u202c\n]*\u202c?")
_BLOB = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{24,4000}={0,2}(?![A-Za-z0-9+/=])")
_WORD = re.compile(r"\w{2,40}")
_LATIN = re.compile("[a-z]")
_LEET = re.compile(r"(?<![\w.])(?=[0-9$@]{0,2}[a-z])(?=[a-z]*[013457$@])[a-z013457$@]{5,20}(?![\w.])")
_DIGITS = str.maketrans("013457$@", "oieastsa")


class Sign(StrEnum):
    """What a suspicious text does."""

    OVERRIDE = "override"
    ROLE = "role"
    GRADE = "grade"
    ADDRESS = "address"
    SECRET = "secret"
    MARKER = "marker"
    DELIMITER = "delimiter"
    HIDDEN = "hidden"
    DIRECTION = "direction"
    ENCODED = "encoded"


MEANINGS = {
    Sign.OVERRIDE: "it asks to set earlier instructions aside",
    Sign.ROLE: "it gives the model another role or task",
    Sign.GRADE: "it asks for a grade",
    Sign.ADDRESS: "it speaks to a model",
    Sign.SECRET: "it asks for instructions or for what was said, or to keep something from the reader",
    Sign.MARKER: "it holds marks that chat models read as a change of speaker",
    Sign.DELIMITER: "it imitates the marks that stand around evidence",
    Sign.HIDDEN: "it holds text in characters that are not seen",
    Sign.DIRECTION: "it turns the direction of writing around",
    Sign.ENCODED: "it holds an encoded text that gives instructions",
}


@cache
def phrases() -> tuple[tuple[Sign, re.Pattern[str]], ...]:
    """The phrases of injection_phrases.txt in its order, each with what it does."""
    found: list[tuple[Sign, re.Pattern[str]]] = []
    sign = Sign.OVERRIDE
    for line in files(__package__).joinpath("injection_phrases.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            sign = Sign(line.strip("[]"))
        elif line and not line.startswith("#"):
            found.append((sign, _compiled(line)))
    return tuple(found)


def _compiled(phrase: str) -> re.Pattern[str]:
    """The pattern that a phrase stands for; only whole words where a script has spaces."""
    for name, pattern in _NAMED.items():
        phrase = phrase.replace(name, pattern)
    if SPACELESS.search(phrase):
        return re.compile(phrase.replace("…", _SPACELESS_GAP).replace(" ", r"\s{0,3}"), re.DOTALL)
    pattern = phrase.replace(" … ", _GAP).replace("…", r"[\W_](?:[^\W_]{1,30}[\W_]{1,5}){0,4}")
    pattern = pattern.replace(" ", r"[\W_]{1,5}")
    return re.compile(rf"(?:{pattern})(?![^\W_])")


def find_in(passages: Iterable[Passage]) -> tuple[Suspicion, ...]:
    """Suspicions of all these passages, of each in the order of its text, those in its title last."""
    return tuple(one for passage in passages for one in _of_passage(passage))


def with_suspicions(trace: Trace, before: Trace) -> Trace:
    """`trace` with what is suspicious in the passages that `before` did not hold, added to what was found in those."""
    known = {passage.id for passage in _passages_of(before)} if before.suspicions is not None else set()
    new = [passage for passage in _passages_of(trace) if passage.id not in known]
    if not new and (trace.passages is None or trace.suspicions is not None):
        return trace
    return replace(trace, suspicions=(trace.suspicions or ()) + find_in(new))


def remaining_suspicions(trace: Trace) -> tuple[Suspicion, ...] | None:
    """Its suspicions, without those of passages that it holds no more."""
    there = {passage.id for passage in _passages_of(trace)}
    kept = trace.suspicions
    return None if kept is None else tuple(one for one in kept if one.passage_id in there)


def _passages_of(trace: Trace) -> tuple[Passage, ...]:
    return trace.every_passage


def _of_passage(passage: Passage) -> Iterator[Suspicion]:
    for text, in_source in ((passage.text, False), (passage.source, True)):
        for sign, start, end in find(text):
            yield Suspicion(passage.id, sign.value, start, end, in_source)


def find(text: str) -> list[tuple[Sign, int, int]]:
    """(what it does, start, end) of every suspicious place, in order; of places that overlap the first stays."""
    return list(_remembered(text) if len(text) <= _MOST_REMEMBERED else _found(text[:MOST_LOOKED_AT]))


def _found(text: str) -> list[tuple[Sign, int, int]]:
    found = sorted(_places(text), key=lambda place: (place[1], -place[2]))
    kept: list[tuple[Sign, int, int]] = []
    for place in found:
        if not kept or place[1] >= kept[-1][2]:
            kept.append(place)
    return kept[:_MOST_OF_ONE]


@lru_cache(maxsize=2_000)
def _remembered(text: str) -> list[tuple[Sign, int, int]]:
    """The same passages are retrieved again and again; looking at one takes about a millisecond."""
    return _found(text)


def _places(text: str) -> Iterator[tuple[Sign, int, int]]:
    yield from _unseen(text)
    folded, at = fold(text)
    for sign, start, end in _worded(folded):
        inside = text[at[start] : at[end - 1]]
        is_hidden = sign is not Sign.MARKER and any(one != "\u00ad" for one in _UNSEEN.findall(inside))
        yield Sign.HIDDEN if is_hidden else sign, at[start], at[end - 1] + 1
    for blob in _BLOB.finditer(text):
        if _is_worded(_decoded(blob[0])):
            yield Sign.ENCODED, blob.start(), blob.end()


def _worded(folded: str) -> Iterator[tuple[Sign, int, int]]:
    for sign, pattern in ((Sign.MARKER, MARKERS), (Sign.DELIMITER, DELIMITERS), *phrases()):
        for match in pattern.finditer(folded):
            # Looked at here and not by the pattern, which then knows the letters that it can begin with: twice as fast.
            begins = not match.start() or not folded[match.start() - 1].isalnum() or SPACELESS.match(match[0])
            if match.end() > match.start() and begins:
                yield sign, match.start(), match.end()


def _is_worded(text: str) -> bool:
    return bool(text) and next(_worded(fold(text)[0]), None) is not None


def _unseen(text: str) -> Iterator[tuple[Sign, int, int]]:
    flags = [match.span() for match in _FLAG.finditer(text)]
    for match in _TAGS.finditer(text):
        if not any(start <= match.start() < end for start, end in flags):
            yield Sign.HIDDEN, *match.span()
    for match in _RUN_OF_UNSEEN.finditer(text):
        yield Sign.HIDDEN, *match.span()
    for match in _OVERRIDE.finditer(text):
        yield Sign.DIRECTION, *match.span()


def fold(text: str) -> tuple[str, list[int]]:
    """The text in one form of its letters, without signs that are not seen, and where each character came from."""
    if text.isascii():
        return _plain_letters(text.lower()), list(range(len(text)))
    signs: list[str] = []
    looks: list[str] = []
    at: list[int] = []
    for place, sign in enumerate(text):
        if _UNSEEN.match(sign):
            continue
        for piece in unicodedata.normalize("NFKC", sign):
            small = piece.lower()
            signs += small
            looks += LOOKS.get(piece, small) if len(small) == 1 else small
            at += [place] * len(small)
    return _plain_letters(_latin("".join(signs), "".join(looks))), at


def _latin(folded: str, looks: str) -> str:
    """Letters of another script that stand for Latin ones inside a word with Latin letters; as long as it was."""
    if folded == looks:
        return folded
    return _WORD.sub(lambda word: looks[slice(*word.span())] if _LATIN.search(word[0]) else word[0], folded)


def _plain_letters(folded: str) -> str:
    """Digits that stand for letters inside a word; as long as it was."""
    return _LEET.sub(lambda word: word[0].translate(_DIGITS), folded)


def _decoded(blob: str) -> str:
    """What base64 holds, if that is text; else nothing."""
    try:
        text = base64.b64decode(blob + "=" * (-len(blob) % 4), validate=True).decode("utf-8")
    except ValueError:
        return ""
    return text if sum(sign.isprintable() or sign.isspace() for sign in text) == len(text) else ""


def shown(suspicion: Suspicion, passage: Passage, length: int = 120) -> str:
    """The words of a suspicious place, on one line; those of unseen characters made visible."""
    words = (passage.source if suspicion.in_source else passage.text)[suspicion.start : suspicion.end]
    message = "".join(chr(ord(sign) - 0xE0000) if "\U000e0020" <= sign <= "\U000e007e" else sign for sign in words)
    message = " ".join("".join(sign for sign in message if sign.isprintable() or sign.isspace()).split())
    message = message or f"{len(words)} characters that are not seen"
    return message if len(message) <= length else f"{message[: length - 1].rstrip()}…"


def warnings(trace: Trace, passage: Passage) -> tuple[str, ...]:
    """Sentences on what is suspicious in a passage, in plain words; () where nothing is, or nobody looked."""
    found = [one for one in trace.suspicions or () if one.passage_id == passage.id]
    if not found:
        return ()
    quoted = "; ".join(f"“{shown(one, passage)}” ({meaning(one)})" for one in found[:_MOST_QUOTED])
    more = f"; and {len(found) - _MOST_QUOTED} more" if len(found) > _MOST_QUOTED else ""
    kind = "web result" if passage.origin is Origin.WEB else "chunk"
    message = (
        f"This {kind} contains text that looks like instructions to a model: {quoted}{more}. It is treated as data."
    )
    return (message, *_judged(trace, passage))


def remark(trace: Trace) -> str:
    """How many passages and web results of a run have such text; "" for none."""
    count = len({one.passage_id for one in trace.suspicions or ()})
    if not count:
        return ""
    what = "1 chunk or web result contains" if count == 1 else f"{count} chunks or web results contain"
    return f"{what} text that looks like instructions to a model; it changes no decision"


def meaning(suspicion: Suspicion) -> str:
    """What it does, in words; records from outside may name a sign that is not known here."""
    found = next((sign for sign in Sign if sign == suspicion.sign), None)
    where = " in its title" if suspicion.in_source else ""
    return f"{MEANINGS[found] if found else 'of a kind not known here'}{where}"


def _judged(trace: Trace, passage: Passage) -> Iterator[str]:
    """A model that has read the text may have done what it says, which nothing but the text itself can tell."""
    grade, card = trace.grade_of(passage.id), trace.settings.evaluator
    if card.calls_model and grade is not None and grade.score is not None:
        yield f"Its grade, {grade.score:.2f}, is of a language model that has read this text and may have followed it."
