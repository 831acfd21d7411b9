"""One question in other wordings, by rule: as typed to a colleague, as in a search box, cut short, misspelt.

They are given to answered and unanswered questions alike, so that wording tells nothing about the label.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random

from crag_core.base.text.words import words

_WORD = re.compile(r"\S+")
_SIGNS = '.,;:!?"“”()'
_DROPPED = frozenset(
    words("""a an the is are was were be been being do does did of to in on at for with by from as and or that this
    these those it its their his her there has have had will would can could should may might must shall please what
    which who whom whose when where why how much many i we you he she they my our your me us name list according give
    tell kind type about into than""")
)
"""Left out of what is typed into a search box. What limits a question (not, before, without, under) is not here."""
_PLAINER: Mapping[str, str] = {
    **{"purchase": "buy", "purchased": "bought", "obtain": "get", "obtained": "got", "receive": "get"},
    **{"require": "need", "required": "needed", "requires": "needs", "commence": "start", "begin": "start"},
    **{"began": "started", "begins": "starts", "conclude": "end", "concluded": "ended", "children": "kids"},
    **{"child": "kid", "assist": "help", "telephone": "phone", "permitted": "allowed", "prior": "before"},
    **{"individuals": "people", "individual": "person", "vehicle": "car", "repair": "fix", "repaired": "fixed"},
    **{"difficult": "hard", "large": "big", "largest": "biggest", "approximately": "about"},
    **{"information": "info", "photograph": "photo", "select": "pick", "selected": "picked", "construct": "build"},
    **{"constructed": "built", "located": "", "employees": "staff", "responsible": "in charge", "occurred": "happened"},
    **{"occur": "happen", "currently": "now", "additional": "extra", "submit": "send in", "film": "movie"},
    **{"television": "tv", "cannot": "can't", "wish": "want", "ensure": "make sure", "entire": "whole"},
}
_SHORTER = (
    ("what is", "whats"),
    ("what are", "what're"),
    ("who is", "whos"),
    ("where is", "wheres"),
    ("when is", "whens"),
    ("how is", "hows"),
    ("do not", "dont"),
    ("does not", "doesnt"),
    ("did not", "didnt"),
    ("is not", "isnt"),
    ("i am", "im"),
    ("going to", "gonna"),
    ("in what year", "when"),
    ("what year", "when"),
    ("in which year", "when"),
    ("for what reason", "why"),
    ("what is the reason", "why"),
    ("how many", "how many"),
    ("at what time", "when"),
)
_OPENINGS = (
    *("hi, ", "quick one: ", "hey ", "so ", "um ", "sorry, ", "just wondering, ", "does anyone know ", "ok so "),
    *("any idea ", "help, ", "quick question - ", "can someone tell me ", "remind me, ", "wait ", "hello, "),
)
_ENDINGS = (" pls", " thanks", " thx", " again", " do you know", " ??", "?", "?", " anyone", " please")


def reword(question: str, random: Random) -> str:
    """`question` in one of the forms; as it is where a form leaves too little."""
    form = random.choices(_FORMS, (4, 4, 1, 2))[0]
    changed = form(question, random)
    if form is not _misspelt and random.random() < 0.15:
        changed = _misspelt(changed, random)
    return changed if len(changed.split()) >= 2 else question


def _casual(question: str, random: Random) -> str:
    text = question.strip().rstrip("?. ").lower()
    for long, short in _SHORTER:
        if random.random() < 0.8:
            text = re.sub(rf"\b{long}\b", short, text, count=1)
    kept = []
    for word in text.split():
        bare = word.strip(_SIGNS)
        plain = _PLAINER.get(bare, bare) if random.random() < 0.8 else bare
        if plain and not (bare in ("the", "a", "an") and random.random() < 0.5):
            kept.append(plain)
    opening = random.choice(_OPENINGS) if random.random() < 0.3 else ""
    ending = random.choice(_ENDINGS) if random.random() < 0.4 else ""
    return opening + " ".join(kept) + ending


def _keywords(question: str, random: Random) -> str:
    found = [word.strip(_SIGNS) for word in _WORD.findall(question)]
    kept = [word for word in found if word and word.lower() not in _DROPPED]
    asked = {"who": "who", "when": "when", "where": "where", "why": "why"}.get(question.split()[0].lower(), "")
    if asked and random.random() < 0.4:
        kept.insert(0, asked)
    if re.match(r"how (much|many)\b", question, re.IGNORECASE) and random.random() < 0.5:
        kept.append("number" if "many" in question.lower()[:9] else "amount")
    if len(kept) > 2 and random.random() < 0.3:
        at = random.randrange(1, len(kept))
        kept = kept[at:] + kept[:at]
    text = " ".join(kept)
    return text.lower() if random.random() < 0.8 else text


def _truncated(question: str, random: Random) -> str:
    """Without its first words, which only ask, or without its question mark and letters of its last word."""
    found = question.rstrip("?. ").split()
    while len(found) > 3 and found[0].lower().strip(_SIGNS) in _DROPPED and random.random() < 0.8:
        found = found[1:]
    text = " ".join(found)
    return text[: -random.randint(1, 3)] if random.random() < 0.5 and len(found[-1]) > 6 else text


def _misspelt(question: str, random: Random) -> str:
    found = question.split()
    long = [place for place, word in enumerate(found) if len(word) > 4 and word.strip(_SIGNS).isalpha()]
    for place in random.sample(long, min(len(long), random.randint(1, 2))):
        found[place] = _slip(found[place], random)
    text = " ".join(found)
    return text.lower() if random.random() < 0.5 else text


def _slip(word: str, random: Random) -> str:
    at = random.randrange(1, len(word) - 2)
    return random.choice(
        (
            word[:at] + word[at + 1] + word[at] + word[at + 2 :],
            word[:at] + word[at + 1 :],
            word[:at] + word[at] + word[at:],
            word[:at] + random.choice("aeionrst") + word[at + 1 :],
        )
    )


Form = Callable[[str, Random], str]
_FORMS: tuple[Form, ...] = (_casual, _keywords, _truncated, _misspelt)
