"""English sentences of one plain form, "subject verb ... fact", turned into the question that the fact answers.

Everything else is refused: a question that is not asked costs nothing, a crooked one costs trust.
"""

from __future__ import annotations

import re

from crag_core.base.text.words import words
from crag_core.experiments.drafting.keywords import Asked

_SENTENCE = re.compile(r"[A-Z0-9][^|*<>{}=\\?!…\"“”\[\]`_@#/]*[^.]\.")
_SENTENCE_WORDS, _QUESTION_WORDS = range(4, 45), range(5, 27)
_LONGEST_SUBJECT = 8  # words
_POINTING = frozenset(
    words(
        """i me my we us you he him his she her hers it its they them their this these that those who whom whose which
        what where why how if when while unless although though whether because not no never cannot nobody nothing none
        nor neither other others same such than here then both either however therefore also but so yet and or"""
    )
)
"""Words that point elsewhere, deny, or begin another clause."""

_DETERMINERS = frozenset(words("the a an our your all each every"))
_NO_SUBJECT = frozenset(
    words("of for in on at to by with from during after before until since under over as about only most usually")
)
_MODALS = frozenset(words("will can may must should"))
_MOVED = _MODALS | set(words("is are was were"))
_REGULAR = """accept answer apply appoint approve arrive ask carry check close collect complete contain cover deliver
    depart employ end enter expire follow found improve increase install introduce issue join lapse last launch measure
    move need offer open produce publish receive reduce remain replace require reserve retire return sail serve start
    stay store train treat use visit weigh work"""
_IRREGULAR = """become-became begin-began build-built come-came cost-cost get-got give-gave go-went grow-grew have-had
    hold-held keep-kept leave-left lose-lost meet-met pay-paid rise-rose run-ran sell-sold send-sent sink-sank take-took
    win-won"""
_PAST = {re.sub("e?$", "ed", base.replace("carry", "carri"), count=1): base for base in _REGULAR.split()}
_PAST |= {past: base for base, past in (pair.split("-") for pair in _IRREGULAR.split()) if past != base}
_BASES = frozenset(_PAST.values()) | {"cost"}
_PRESENT = {f"{base}s": base for base in _BASES}
_PRESENT |= {"has": "have", "goes": "go", "carries": "carry", "launches": "launch"}

_FEW = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty"
_NUMBER = rf"(?:\d[\d,]*(?:\.\d+)?|{_FEW})"
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_YEAR = r"(?:1[5-9]|20)\d\d"
_SPAN = "(?:second|minute|hour|day|night|week|month|quarter|year)"
_DATE = rf"(?:[A-Z][a-z]+day )?\d\d? {_MONTH}(?: {_YEAR})?|{_MONTH} {_YEAR}"
_FACT = re.compile(
    rf"(?<!\S)(?P<range>(?:from|between) (?:{_DATE}|\d\d?(?::\d\d)?) (?:to|until|and) (?:{_DATE}|\d\d?:\d\d))(?!\S)"
    r"|(?<!\S)(?:(?P<place>in|on|at|by|for|from|within|after|since|until) )?"
    "(?:(?:at least|at most|up to|about|around|only|nearly|almost|over|more than) )?"
    rf"(?:(?P<date>{_DATE})|(?P<time>\d\d?:\d\d)|(?P<year>{_YEAR})"
    rf"|(?P<often>every (?:{_NUMBER} )?{_SPAN}s?|(?:once|twice|{_NUMBER} times) (?:a|per|every) {_SPAN})"
    rf"|(?P<money>[£$€]{_NUMBER}(?: [mb]illion)?|{_NUMBER} (?:pounds|euros|dollars|pence))"
    rf"|(?P<count>{_NUMBER} (?P<noun>(?:[a-z]+ )?(?:[a-z]+[a-rt-z]s|people|children|men|women)))"
    r"(?P<more>(?: of(?: (?!(?:in|on|at|for|per|an?)\b)[a-z]+){1,2})?(?: (?:an?|per) [a-z]+)?))(?!\S)"
)
_KINDS = ("range", "date", "time", "year", "often", "money", "count")
_SIZES = re.compile(rf"(?:[a-z]+ )?(?:{_SPAN}s|miles|metres|kilometres|litres|kilograms|tonnes)")
_MAY_FOLLOW = frozenset(words("in on at by for from to during with per a an each every long wide high deep away"))
_THERE = re.compile("There (are|were) ")
_CLAUSE = re.compile(r"[,;:(](?!\d)|[–—]| (?:and|or|but|so|which|that|who|when|if|once|where|because|unless|than)\b")


def ask(sentence: str) -> Asked | None:
    """A question that `sentence` answers; None where it states no fact, or is not of the plain form."""
    text = " ".join(sentence.split())
    if not _SENTENCE.fullmatch(text) or len(text.split()) not in _SENTENCE_WORDS:
        return None
    text, lead = text[:-1], ""
    if (first := _FACT.match(text[0].lower() + text[1:])) and first["place"]:
        lead, text = first.group(), text[first.end() :].lstrip(", ")  # "In 1996 the museum moved"
    elif first and first["count"]:
        return _of_subject(first, text[first.end() :])
    elif (there := _THERE.match(text)) and (first := _FACT.match(text, there.end())) and first["count"]:
        return _of_subject(first, f"{there[1]} there{text[first.end() :]}")
    said = text.split()
    for at in range(1, min(_LONGEST_SUBJECT + 1, len(said))):
        helper, base = _verb(said[at], said[at - 1])
        if helper:
            clause = _CLAUSE.split(" ".join(said[at + 1 :]))[0]
            subject = _subject(said[:at], begins=not lead)
            return _of_predicate(subject, helper, base, f"{clause} {lead}".strip()) if subject else None
    return None


def _verb(word: str, before: str) -> tuple[str, str]:
    """(what stands before the subject of a question, the verb that then follows it)."""
    if before.lower() in _DETERMINERS | _NO_SUBJECT:
        return "", ""
    if word in _MOVED:
        return word, ""
    if word in _PAST:
        return "did", _PAST[word]
    if word in _PRESENT:
        return "does", _PRESENT[word]
    return ("do", word) if word in _BASES and (before.endswith("s") or before in {"people", "staff"}) else ("", "")


def _subject(said: list[str], begins: bool) -> str:
    """As it is written within a sentence; "" for what is no plain noun phrase. `begins`: a sentence begins with it."""
    first, others = said[0], said[1:]
    is_name = all(word[0].isupper() or word[0].isdigit() for word in others) and not first.endswith("s")
    if begins and (first.lower() in _DETERMINERS or not is_name):
        first = first[0].lower() + first[1:]
    subject = " ".join([first, *others])
    is_odd = first in _NO_SUBJECT | _BASES or first.endswith("ly") or re.search(r"[,;:()]", subject)
    return "" if is_odd or set(words(subject)) & (_POINTING | _MOVED) else subject


def _of_subject(fact: re.Match[str], rest: str) -> Asked | None:
    """ "Up to six unused days may be carried over" - "How many unused days may be carried over?"."""
    clause = _CLAUSE.split(rest.strip())[0]
    is_verb = clause.split(" ", 1)[0] in _MOVED | _PAST.keys() | _BASES
    return _drafted(f"how many {fact['noun']}{fact['more']} {clause}", fact["count"], clause) if is_verb else None


def _of_predicate(subject: str, helper: str, base: str, clause: str) -> Asked | None:
    """`clause` is what follows the verb; where its first fact cannot be asked for, the next is."""
    for fact in _FACT.finditer(clause):
        before, after = clause[: fact.start()].strip(), clause[fact.end() :].strip()
        asked = _asking(fact, is_direct=not before or (helper in _MODALS and before.isalpha() and before != "be"))
        if not asked or (base == "have" and before) or (after and after.split()[0] not in _MAY_FOLLOW):
            continue
        is_size = fact["count"] and not base and not before
        order = (asked, after, helper, subject) if is_size else (asked, helper, subject, base, before, after)
        answer = next(fact[kind] for kind in _KINDS if fact[kind])
        if found := _drafted(" ".join(filter(None, order)), answer, f"{before} {after}"):
            return found
    return None


def _drafted(asked: str, answer: str, rest: str) -> Asked | None:
    """None where the `rest` of the sentence points elsewhere or states more facts."""
    said = words(rest)
    is_plain = not set(said) & _POINTING and not set(said[1:]) & _MOVED and not re.search(r"\d", rest)
    is_sound = len(asked.split()) in _QUESTION_WORDS and answer.lower() not in asked.lower()
    return Asked(f"{asked[0].upper()}{asked[1:]}?", answer) if is_plain and is_sound else None


def _asking(fact: re.Match[str], is_direct: bool) -> str:
    """What a question begins with; "" where the fact is but a part of a phrase. `is_direct`: it follows the verb."""
    place = fact["place"] or ""
    if fact["range"]:
        return "when"
    if fact["date"] or fact["year"]:
        when = {"in": "in which year" if fact["year"] else "when", "on": "when", "": "when" if is_direct else ""}
        return when.get(place, f"{place} when" if place in {"by", "from", "since", "until"} else "")
    if fact["time"]:
        return f"{place} what time" if place in {"at", "by", "from", "after", "since", "until"} else ""
    if fact["often"] or fact["money"]:
        is_asked = not place and (fact["often"] or is_direct)
        return ("how often" if fact["often"] else "how much") if is_asked else ""
    more = re.sub(r" (?:of|an?|per)\b", "", fact["more"])
    if set(words(fact["noun"] + more)) & (_POINTING | _DETERMINERS | _NO_SUBJECT | _MOVED):
        return ""
    is_asked = _SIZES.fullmatch(fact["noun"]) if place else is_direct
    return f"{place} how many {fact['noun']}{fact['more']}".strip() if is_asked else ""
