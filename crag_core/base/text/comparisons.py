"""Questions that no one sentence answers: they compare two things, add them up, or ask the same of both."""

from __future__ import annotations

import re

from crag_core.base.text.sentences import split

_ARTICLE = "(?:an? |the |our |your |my )?"
_ONE, _OTHER = f"{_ARTICLE}([^,;?]+?)", f"{_ARTICLE}([^,;?]+?)"
_COMPARED = "(?:\\w+er|more|less|fewer|first|last|best|better|worse)"
_PATTERNS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        f"^compare .*?\\b(?:of|between) {_ONE} (?:and|with|to) {_OTHER}[?.!]*$",
        f"^compare {_ONE} (?:and|with|to) {_OTHER}[?.!]*$",
        f"\\b(?:which|who|what)\\b.*\\b{_COMPARED}\\b[^,:]*[,:] ?{_ONE},? or {_OTHER}[?]*$",
        f"\\bwith {_ONE} and {_OTHER} (?:costs?|come to)\\b",
    )
]
_SUBJECT = "(?:i|we|you|they|he|she|it|there|the|an?|my|our|your|this|that)"
_ASKS = (
    rf"(?:what|when|where|why|who|how) |(?:may|can|do|does|must|should|will) (?!not\b)|(?:is|are|was|were) {_SUBJECT}\b"
)
_TWO_QUESTIONS = re.compile(rf"^(?:wh\w+|how)\b ([^;?]+?),? and ((?:{_ASKS})[^;?]+)[?]*$", re.IGNORECASE)
_PRONOUN = re.compile(rf"\b(?:{_SUBJECT}|me|us|them|him|her)$", re.IGNORECASE)
_DOES = re.compile(
    rf"\b(?:does|do|did) {_ARTICLE}(?:[\w'-]+ )*?(?!{_SUBJECT} )([\w'-]+) "
    "(?:arrive|begin|close|cost|depart|end|last|leave|open|run|start|take)\\b",
    re.IGNORECASE,
)
_ASKED_TWICE = re.compile(r"^(wh\w+|how \w+) ([^,;?]+?),? and \1 ([^,;?]+?)[?]*$", re.IGNORECASE)


def two_things(question: str) -> tuple[str, str] | None:
    """What a question asks of together: ("sauna", "pool") of "Which opens earlier, the sauna or the pool?", or what two
    questions are about, ("room", "dog") of "What does a room cost and may I bring a dog?"; else None.

    English only; a difference between two things has a sentence of its own in most texts, and is none of these.
    """
    found = next((match for pattern in _PATTERNS if (match := pattern.search(question.strip()))), None)
    if found:
        return found[1], found[2]
    return _asked_twice(question.strip()) or _two_questions(question.strip())


def _asked_twice(question: str) -> tuple[str, str] | None:
    """("sauna", "pool") of "When does the sauna open and when does the pool open?"."""
    if not (found := _ASKED_TWICE.search(question)):
        return None
    one, other = found[2].split(), found[3].split()
    things = [word for word in one if word not in other], [word for word in other if word not in one]
    return (" ".join(things[0]), " ".join(things[1])) if all(things) and {*one} & {*other} else None


def _two_questions(question: str) -> tuple[str, str] | None:
    found = _TWO_QUESTIONS.search(question)
    if not found or any(_PRONOUN.search(one) for one in found.groups()):
        return None
    return _subject_of(found[1]), _subject_of(found[2])


def _subject_of(question: str) -> str:
    """What does something, such as cost, else the last word."""
    does = _DOES.search(question)
    return does[1] if does else question.split()[-1]


def says_both(text: str, things: tuple[str, str]) -> bool:
    """Whether one sentence of the text names both, each by its last word."""
    heads = [thing.split()[-1].lower().rstrip("s") for thing in things]
    return any(all(head in text[start:end].lower() for head in heads) for start, end in split(text))
