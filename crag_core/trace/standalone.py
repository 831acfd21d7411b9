"""Whether a question of a conversation stands alone, and a rule that makes it do so from the turn before. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from crag_core.base.text.sentences import split
from crag_core.base.text.words import words
from crag_core.base.types import FollowUp, Turn, Understanding
from crag_core.trace.trace import Trace

MOST_TURNS = 8
"""So many turns before a question are kept with it, the last ones."""
LONGEST_ANSWER = 600
"""Characters of the answer of a turn."""

BY_RULE = "made by rule"
ALONE = "as it was asked"

_FEW = 1
"""A later question with no more words of its own than this leaves something out."""
_POINTING = frozenset(
    words(
        "it it's its itself they they're them their theirs themselves he he's him his she she's her hers this these "
        "those both former latter such others ones er ihn ihm dies diese dieser dieses diesem diesen dort davon dafür "
        "damit daran darin darüber dessen deren elle elles ceci cela ça celui celle ceux celles"
    )
)
_BACK = re.compile(
    r"\b(?:(?:about|of|like|for|with|from|in|on|at|do|does|did|than|and) (?:that|there|one)|(?:is|was) (?:that|one)|"
    r"(?<!is )(?<!are )(?<!was )(?<!were )there(?! (?:is|are|was|were)\b)|"
    r"(?:what|how) about|which one|(?:any|some|the) others?)\b|\bthat\W*$",
    re.IGNORECASE,
)
_OPENING = frozenset(words("and or but so then also und oder aber dann et ou mais alors"))
_ENDS = ("?", "!", ".", "…", "？", "！", "。")
_EDGES = "?!.,;:()[]{}\"'“”‘’«»…？！。、，"


def follow(question: str, after: Trace | None, *, waits: bool = False) -> FollowUp:
    """What is asked next, after the run `after` and those before it; None: nothing was asked before.

    The question of that run once more is no later one: it is asked again as it was, understood as it was.
    """
    if after is None:
        return FollowUp(question, waits=waits)
    known = after.follow_up
    if fold_space(question) == fold_space(after.asked):
        if known and known.outcome is Understanding.SETTLED:
            return known
        return FollowUp(question, known.history if known else (), waits=waits)
    return FollowUp(question, (*(known.history if known else ()), turn_of(after))[-MOST_TURNS:], waits=waits)


def turn_of(run: Trace) -> Turn:
    """A run as what came before the next question."""
    if run.asks_back:
        return Turn(run.id, run.asked, run.asks_back, asks_back=True)
    text = run.answer.text if run.answer else ""
    return Turn(run.id, run.question, text if len(text) <= LONGEST_ANSWER else f"{text[:LONGEST_ANSWER]} …")


def fold_space(text: str) -> str:
    return " ".join(text.split())


def points_back(question: str) -> str:
    """The first word by which it speaks of something said before, as it stands there; "": none."""
    for token in question.split():
        if token.strip(_EDGES).lower().replace("’", "'") in _POINTING:
            return token.strip(_EDGES)
    return found[0].split()[-1].strip(_EDGES) if (found := _BACK.search(question)) else ""


def stands_alone(question: str, stop_words: frozenset[str]) -> bool:
    """Whether a later question surely needs nothing of what came before: it names enough, and points to nothing."""
    return not goes_on(question) and len(own_words(question, stop_words)) > _FEW


def goes_on(question: str) -> bool:
    """Whether it points back, or opens as what follows something does."""
    said = words(question)
    return bool(said) and (said[0] in _OPENING or bool(points_back(question)))


def lacks_subject(question: str, stop_words: frozenset[str]) -> bool:
    """Whether a first question cannot be understood: it points back, or goes on, and names at most one thing."""
    own = own_words(question, stop_words)
    return bool(words(question)) and (not own or (goes_on(question) and len(own) == 1))


def own_words(text: str, stop_words: frozenset[str]) -> list[str]:
    """The words that name something, as they stand there, each once; of a script without spaces whole runs."""
    found: dict[str, str] = {}
    for token in text.split():
        bare = token.strip(_EDGES)
        if any(word not in stop_words and word not in _POINTING for word in words(bare)):
            found.setdefault(bare.lower(), bare)
    return list(found.values())


def by_rule(question: str, history: Sequence[Turn], stop_words: frozenset[str]) -> str:
    """The question behind the one before it, the last that names anything; "" where none does.

    Of one that was put together itself the first sentence and the last are taken, so that it does not grow.
    """
    before = next((turn.question for turn in reversed(history) if own_words(turn.question, stop_words)), "")
    if not before:
        return ""
    pieces = [before[start:end].strip() for start, end in split(before)] or [before]
    return " ".join(dict.fromkeys((_closed(pieces[0]), _closed(pieces[-1]), question)))


def _closed(sentence: str) -> str:
    return sentence if sentence[-1:] in _ENDS else f"{sentence}."


def back_question(question: str) -> str:
    """What to ask in place of an answer."""
    pointing = points_back(question)
    names = pointing.lower() in _POINTING | {"that", "there"}
    return f"What does “{pointing}” stand for?" if names else "What is the question about?"
