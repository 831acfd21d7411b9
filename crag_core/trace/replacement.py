"""By rule, a follow-up and the question before it as one: the new thing in place of the old, or a name for "it". Pure.

Grammar by closed lists of words, in English with the commonest of German and French. What the lists cannot tell is not
guessed: there is no replacement then.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from crag_core.base.text.words import COMMON_WORDS, fold, language_of, words
from crag_core.trace.grounding.claims import terms_of
from crag_core.trace.grounding.numbers import number_in

EDGES = "?!.,;:()[]{}\"'“”‘’«»…？！。、，"
_PLACING = frozenset(
    words(
        "in on at to from for with without by of as after before during since until between under over above below per "
        "within into through near than im am auf nach von vom für mit ohne bei beim seit vor über unter zu zum zur aus "
        "à au aux en du des pour avec sans sur dans par chez depuis"
    )
)
_ONE = frozenset(words("a an one any some another every each ein eine einen einem einer un une"))
_THE = frozenset(words("the my our your his her their this that these those all der die das den dem le la les"))
_GRADING = frozenset(words("very own most more only just still even already ever"))
_JOINING = frozenset(words("and or und oder et ou"))
_MODAL = frozenset(
    words(
        "do does did can could may might must shall should will would darf dürfen muss müssen kann können soll sollen "
        "wird werden"
    )
)
_BEING = frozenset(words("is are was were has have had ist sind war waren hat haben"))
_PEOPLE = frozenset(words("i you we they he she it ich wir sie er es man je tu il elle on nous vous ils"))
_FUNCTION = _GRADING | _PLACING | _ONE | _THE | _JOINING | _MODAL | _BEING | _PEOPLE
_TIME = re.compile(
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|week(?:day|end|night)s?|holidays?|christmas|easter|winters?|"
    r"summers?|spring|autumn|january|february|march|april|june|july|august|september|october|november|december|"
    r"(?:19|20)\d\d)"
)
_DONE = re.compile(r".+(?:ed|ept|uilt|paid|sold|sent|held)")
_PREDICATE = re.compile(r"(?:when|where|why|how (?:long|often)|wann|wo|quand|où)\b", re.IGNORECASE)
"""Of what opens so, the last word says what becomes of the thing: "How long is the office open?"."""
_NO_NOUN = re.compile(r"ones?|\w+est|first|last|next|second|other|others|same|rest|before|after|else")
"""What ends so names its thing only together with a noun that is left out."""
_COMPARED = re.compile(
    r"(?:long|short|larg|bigg|small|old|new|high|low|cheap|fast|slow|earl|lat|heav|light)i?er|more|less"
)
OPENER = re.compile(
    r"\W*(?:(?:and|but|or|so|then|also|ok|okay|und|oder|aber|et|ou|mais|n)\b[\s,]*|&\s*)*"
    r"(?:(?:(?:what|how) ab(?:ou)?t|(?:the )?same (?:for|with)|was ist mit|wie (?:ist|sieht) es (?:mit|bei))\b)?\s*",
    re.IGNORECASE,
)
_CLOSER = re.compile(r"[\s,]*\b(?:then|too|as well|instead|please|dann|auch|alors)\b(?=\W*$)", re.IGNORECASE)
_LONGEST = 8
"""Words of a follow-up that is one phrase, or two."""
_SEVERAL = {"is": "are", "was": "were", "does": "do", "has": "have"}
_WHERE = frozenset(["", *words("in on at near of for to im auf")])
"""Prepositions that stand for each other before a name."""
_OBJECT = ("", "for", "of")
_SINGULAR, _PLURAL = frozenset(words("it its she he")), frozenset(words("they them their"))


class _Kind(StrEnum):
    THING = "thing"
    NAME = "name"
    NUMBER = "number"
    TIME = "time"


@dataclass(frozen=True)
class _Phrase:
    """Words that name one thing: `first` to `end` of the tokens, from `start` on with preposition and article."""

    start: int
    first: int
    end: int
    placing: str = ""
    article: str = ""
    kind: _Kind = _Kind.THING


class _Text:
    """A question in words, and its phrases.

    `is_fragment`: it is no clause, so that no verb stands among them, and its first word may be a name.
    """

    def __init__(self, text: str, stop_words: frozenset[str], *, is_fragment: bool = False) -> None:
        self.tokens, self._function, self._is_fragment = text.split(), stop_words | _FUNCTION, is_fragment
        self.bare = [token.strip(EDGES).lower() for token in self.tokens]
        ends = [place + 1 for place, token in enumerate(self.tokens[:-1]) if token[-1] in ".?!"]
        self.has_sentences, begin = bool(ends), ends[-1] if ends else 0
        self.is_german = language_of(text) == "de"
        found = self._phrases()
        helps = [place for place, word in enumerate(self.bare) if place >= begin and word in _MODAL | _BEING]
        self.verb = helps[0] if helps and not is_fragment else -1
        last = [one for one in found if one.first >= begin]
        self.asked = [one for one in last if one.first < self.verb] or ([] if is_fragment or helps else last[:1])
        """What is asked for, before the verb: no thing that a follow-up replaces, unless there is no other."""
        things = [one for one in found if one not in self.asked]
        self.things = [self._told(one) for one in (things if is_fragment else self._without_verb(things))]

    def is_number(self, place: int) -> bool:
        return bool(number_in(self.bare[place])) or any(sign.isdigit() for sign in self.bare[place])

    def is_plural(self, phrase: _Phrase) -> bool:
        head = self.bare[phrase.end - 1]
        return head.endswith("s") and not head.endswith("ss") and phrase.kind is not _Kind.NAME

    def _is_name(self, place: int) -> bool:
        return (place > 0 or self._is_fragment) and self.tokens[place].lstrip(EDGES)[:1].isupper()

    def _is_function(self, place: int) -> bool:
        token, word = self.tokens[place].strip(EDGES), self.bare[place]
        is_acronym = len(token) > 1 and token.isupper()  # "IT" is no "it"
        return not word or (not is_acronym and re.split("['’]", word)[0] in self._function)

    def _phrases(self) -> list[_Phrase]:
        found, place = [], 0
        while place < len(self.tokens):
            if self._is_function(place):
                place += 1
                continue
            start = first = place
            article = placing = ""
            while start and self.bare[start - 1] in _GRADING:
                start -= 1
            if start and self.bare[start - 1] in _ONE | _THE:
                start, article = start - 1, self.bare[start - 1]
            if start and self.bare[start - 1] in _PLACING:
                start, placing = start - 1, self.bare[start - 1]
            place += 1
            while place < len(self.tokens) and not self._parts(place, placing):
                place += 1
            found.append(_Phrase(start, first, place, placing, article))
        return found

    def _parts(self, place: int, placing: str) -> bool:
        """Whether another phrase begins here, or none goes on."""
        if self._is_function(place) or self.tokens[place - 1][-1] in ",;:?!.":
            return True
        if self._is_fragment:
            return False
        is_new_name = not placing and self._is_name(place) and not self._is_name(place - 1)
        return self.is_number(place) or is_new_name

    def _without_verb(self, found: list[_Phrase]) -> list[_Phrase]:
        """Without the main verb, and without whatever may be one."""
        is_modal = self.verb >= 0 and self.bare[self.verb] in _MODAL
        kept = [one for one in found if not self._is_verb(one)]
        is_bare = any(not one.placing for one in found if one not in kept)
        long = [one for one in kept if one.end - one.first > 1 and not self._is_name(one.end - 1)]
        ends = [one for one in long if self._is_name(one.first)]
        if is_modal and not ends and not is_bare:
            ends = long if len(long) == 1 else []
            kept = kept if ends else [one for one in kept if one not in long]
        elif not is_modal:
            asks = _PREDICATE.match(" ".join(self.bare[:2]))
            ends += [one for one in long if _DONE.fullmatch(self.bare[one.end - 1]) or (asks and one is found[-1])]
        return [replace(one, end=one.end - 1) if one in ends[:1] else one for one in kept]

    def _is_verb(self, phrase: _Phrase) -> bool:
        word = self.bare[phrase.first]
        if phrase.article or self._is_name(phrase.first) or self.is_number(phrase.first) or _TIME.fullmatch(word):
            return False
        if phrase.placing:
            return phrase.placing in ("to", "zu") or word.endswith("ing")
        return phrase.first != self.verb + 1 or (phrase.end == phrase.first + 1 and bool(_DONE.fullmatch(word)))

    def _told(self, phrase: _Phrase) -> _Phrase:
        own = range(phrase.first, phrase.end)
        kind = _Kind.NAME if self._is_name(phrase.end - 1) else _Kind.THING
        if any(_TIME.fullmatch(self.bare[place]) for place in own):
            kind = _Kind.TIME
        elif any(self.is_number(place) for place in own):
            kind = _Kind.NUMBER
        return replace(phrase, kind=kind)

    def name_in(self, phrase: _Phrase) -> _Phrase:
        """The name with which it begins, as "Kelderport" of "Kelderport terminal"."""
        end = phrase.first
        while end < phrase.end and self._is_name(end):
            end += 1
        return replace(phrase, end=end, kind=_Kind.NAME) if end > phrase.first else phrase


def fragment_of(question: str) -> str:
    """Without "and what about" before it and "then" behind it."""
    return _CLOSER.sub("", OPENER.sub("", question, count=1))


def replaced(question: str, before: str, stop_words: frozenset[str]) -> str:
    """`before` with what `question` names in place of what it replaces; "": nothing is safely replaced."""
    new, old = _Text(fragment_of(question), stop_words, is_fragment=True), _Text(before, stop_words)
    is_cased = any(sign.isupper() for sign in question.strip()[1:])
    changes: list[tuple[_Phrase, _Phrase]] = []
    for part in _parts_of(new, old):
        free = [one for one in old.things if one not in [target for target, _ in changes]]
        target = _place(part, new, old, free, is_cased)
        if target is None:
            return ""
        changes.append((target, part))
    tokens, added = list(old.tokens), ""
    for target, part in sorted(changes, key=lambda change: -change[0].start):
        placing = part.placing or target.placing
        is_placed = placing and (target.placing or target.kind is not _Kind.THING)
        own = [*([placing] if is_placed else []), *([part.article] if part.article else [])]
        said = " ".join([*own, *new.tokens[part.first : part.end]]).rstrip(EDGES)
        if target.start == target.end:
            added = f" {said}{added}"
            continue
        tokens[target.start : target.end] = [said + _tail(tokens[target.end - 1])]
        if target.start == old.verb + 1:
            tokens[old.verb] = _agreeing(tokens[old.verb], new, part)
    made = " ".join(tokens)
    return "" if not changes or fold(made + added) == fold(" ".join(old.tokens)) else _inside(made, added)


def _tail(text: str) -> str:
    return text[len(text.rstrip(EDGES)) :]


def _inside(text: str, added: str) -> str:
    """With what is added before the mark at its end."""
    return text.rstrip(EDGES) + added + _tail(text) if added else text


def _agreeing(verb: str, new: _Text, part: _Phrase) -> str:
    if new.is_plural(part):
        return _SEVERAL.get(verb, verb)
    return next((one for one, several in _SEVERAL.items() if part.article in _ONE and several == verb), verb)


def _parts_of(new: _Text, old: _Text) -> list[_Phrase]:
    """The phrases of a follow-up; [] where it is a clause, leaves out the noun, or compares with what was asked."""
    known = _PLACING | _ONE | _THE | _JOINING
    own = {place for one in new.things for place in range(one.first, one.end)}
    is_phrase = all(place in own or word in known for place, word in enumerate(new.bare))
    if not is_phrase or len(new.tokens) > _LONGEST or not new.things or _NO_NOUN.fullmatch(new.bare[-1]):
        return []
    is_clause = new.bare[new.things[0].start].endswith("ing")
    if is_clause or any(_COMPARED.fullmatch(word) for word in new.bare):
        return []
    parts, said = new.things[:1], {terms_of(word) for word in old.bare}
    for one in new.things[1:]:
        is_of = one.placing == "of" and one.kind is not _Kind.NUMBER
        is_new = terms_of(new.bare[parts[-1].end - 1]) not in said  # else each of both has a place of its own
        if (is_of and is_new) or new.bare[one.start - 1] in _JOINING:
            parts[-1] = replace(parts[-1], end=one.end)
        else:
            parts.append(one)
    return parts


def _place(part: _Phrase, new: _Text, old: _Text, free: list[_Phrase], is_cased: bool) -> _Phrase | None:
    """What `part` takes the place of; an empty phrase at the end where it is only added; None where nobody can tell."""
    numbers = [one for one in free if one.kind is _Kind.NUMBER]
    if part.kind is _Kind.NUMBER and numbers:
        return _only([found for one in numbers if (found := _same_measure(part, new, one, old))])
    head = terms_of(new.bare[part.end - 1])
    ends = [(one, place + 1) for one in free for place in range(one.first, one.end)]
    if shared := [replace(one, end=end) for one, end in ends if terms_of(old.bare[end - 1]) == head]:
        return _only(shared)
    if part.kind is _Kind.NAME:
        free = [old.name_in(one) for one in free]
    common = {_Kind.THING, _Kind.NUMBER} if is_cased else {_Kind.THING, _Kind.NUMBER, _Kind.NAME}
    alike = {_Kind.TIME: {_Kind.TIME}, _Kind.NAME: {_Kind.NAME, *(() if is_cased else common)}}.get(part.kind, common)
    kin = [one for one in free if one.kind in alike]
    if part.placing and (same := [one for one in kin if one.placing == part.placing]):
        return _only(same)
    if part.placing in ("with", "without"):
        return _added(part, old)
    if part.kind in (_Kind.THING, _Kind.NUMBER):
        return _thing(part, new, old, kin)
    if kin:
        found = _only(kin)
        if found is None or not (part.kind is _Kind.TIME or {part.placing, found.placing} <= _WHERE):
            return None
        return None if old.is_german and found.placing and not part.placing else found
    is_other_time = part.kind is _Kind.TIME and any(_TIME.fullmatch(word) for word in old.bare)
    return None if is_other_time or part.placing in ("", "for", "of", "by", "as") else _added(part, old)


def _thing(part: _Phrase, new: _Text, old: _Text, kin: list[_Phrase]) -> _Phrase | None:
    """A common noun takes the place of the only one that is as definite; of what is asked for, where there is none."""
    if old.has_sentences or part.placing not in _OBJECT:
        return None
    kin = [one for one in kin if one.kind is _Kind.NAME or (one.placing in _OBJECT and one.kind is _Kind.THING)]
    if not part.placing and part.article in _THE:
        kin = [one for one in kin if one.article not in _ONE]
    elif not part.placing and (part.article in _ONE or new.is_plural(part)):
        kin = [one for one in kin if one.article not in _THE and one.kind is not _Kind.NAME]
    if not kin and not part.placing and len(old.asked) == 1 and old.asked[0].end == old.asked[0].first + 1 <= old.verb:
        return old.asked[0]
    return _only(kin)


def _same_measure(part: _Phrase, new: _Text, one: _Phrase, old: _Text) -> _Phrase | None:
    """The number of `one` with the unit of `part`; alone, where either has none."""
    own = next(place for place in range(part.first, part.end) if new.is_number(place))
    place = next(place for place in range(one.first, one.end) if old.is_number(place))
    unit = terms_of(new.bare[own + 1]) if own + 1 < part.end else None
    behind = [n for n in range(place + 1, one.end) if terms_of(old.bare[n]) == unit]
    is_alone = unit is None or place + 1 == one.end
    if part.placing not in ("", "of", one.placing) or not (behind or is_alone):
        return None
    end = behind[0] + 1 if behind else place + 1
    return replace(one, start=place, first=place, end=end, placing="", kind=_Kind.THING)


def _added(part: _Phrase, old: _Text) -> _Phrase | None:
    """At the end of the question, if it is one sentence."""
    end = len(old.tokens)
    return None if old.has_sentences else _Phrase(end, end, end, part.placing, kind=part.kind)


def _only(found: Sequence[_Phrase]) -> _Phrase | None:
    return found[0] if len(found) == 1 else None


def with_name(question: str, pointing: str, before: str, stop_words: frozenset[str]) -> str:
    """The question with the only thing in `before` that fits in place of "it"; "": there is none, or more than one."""
    word, old = pointing.lower(), _Text(before, stop_words)
    said = [one for one in re.findall(r"\w+", question.lower()) if one in _SINGULAR | _PLURAL]
    if said != [word] or old.has_sentences:
        return ""
    things = [one for one in (*old.asked, *old.things) if one.kind in (_Kind.THING, _Kind.NAME)]
    found = _only([one for one in things if one.placing != "of" and old.is_plural(one) == (word in _PLURAL)])
    if found is None or found in old.asked or not (found.article or found.kind is _Kind.NAME):
        return ""
    is_done = found.kind is _Kind.THING and _DONE.fullmatch(old.bare[found.end - 1])
    if is_done or found.article in ("any", "some"):
        return ""
    article = ["the"] if found.article in _ONE else [found.article] if found.article else []
    end = next((one.end for one in things if one.placing == "of" and one.start == found.end), found.end)
    return _put(" ".join([*article, *old.tokens[found.first : end]]), question, pointing)


def with_reply(question: str, pointing: str, reply: str) -> str:
    """A question that could not be understood with the reply in place of what it points with; "": it has no room."""
    name = reply.strip().rstrip(EDGES)
    if not pointing or len(name.split()) > _LONGEST or len(reply.split("\n")) > 1:
        return ""
    first, _, rest = name.partition(" ")
    return _put(f"{first.lower()} {rest}" if rest and first.lower() in _ONE | _THE else name, question, pointing)


def _put(name: str, question: str, pointing: str) -> str:
    name = name.strip(EDGES) + ("'s" if pointing.lower() in ("its", "their") else "")
    made = re.sub(rf"\b{re.escape(pointing)}\b", lambda _: name, OPENER.sub("", question, count=1), flags=re.IGNORECASE)
    return made[:1].upper() + made[1:]


def speaks_of_before(sentence: str, before: str, now: str) -> bool:
    """Whether it names something that only the question `before` asks for, and nothing that only this one, `now`, does.

    It has to name something of what both ask, too.
    """
    common = terms_of(" ".join(COMMON_WORDS))
    then, today, said = terms_of(before) - common, terms_of(now) - common, terms_of(sentence)
    return all(said & one for one in (then & today, then - today)) and not said & (today - then)
