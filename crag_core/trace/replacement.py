"""By rule, a follow-up and the question before it as one: the new thing in place of the old, or a name for "it". Pure.

What cannot be told by the same noun, number, preposition, name or time is not guessed: there is no replacement then.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from crag_core.base.text.words import COMMON_WORDS, fold, words
from crag_core.trace.grounding.claims import terms_of

EDGES = "?!.,;:()[]{}\"'“”‘’«»…？！。、，"
_PLACING = frozenset(
    words(
        "in on at to from for with without by of as after before during since until between under over above below per "
        "within into through near than im am auf nach von vom für mit ohne bei beim seit vor über unter zu zum zur aus "
        "à au aux en du des pour avec sans sur dans par chez depuis"
    )
)
_ARTICLES = frozenset(
    words("a an one any some another every each the ein eine einen einem einer der die das den dem le la")
)
_MODAL = frozenset(words("do does did can could may might must shall should will would darf dürfen muss müssen kann"))
_TIME = re.compile(
    r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|week(?:day|end|night)s?|christmas|easter|winters?|summers?|spring|"
    r"autumn|january|february|march|april|june|july|august|september|october|november|december|(?:19|20)\d\d)"
)
_WHERE = frozenset(["", *words("in on at near of for to im auf")])
"""Prepositions that stand for each other before a name."""
_NO_NOUN = re.compile(r"ones?|\w+est|first|last|next|second|other|others|same|rest|before|after|else|\w+ing")
_LONGEST = 8
OPENER = re.compile(
    r"\W*(?:(?:and|but|or|so|then|also|ok|okay|und|oder|aber|et|ou|mais|n)\b[\s,]*|&\s*)*"
    r"(?:(?:(?:what|how) ab(?:ou)?t|(?:the )?same (?:for|with)|was ist mit|wie (?:ist|sieht) es (?:mit|bei))\b)?\s*",
    re.IGNORECASE,
)
_CLOSER = re.compile(r"[\s,]*\b(?:then|too|as well|instead|please|dann|auch|alors)\b(?=\W*$)", re.IGNORECASE)


class _Kind(StrEnum):
    THING = "thing"
    NAME = "name"
    NUMBER = "number"
    TIME = "time"


@dataclass(frozen=True)
class _Phrase:
    """Tokens `first` to `end` name one thing; from `start` on with preposition and article."""

    start: int
    first: int
    end: int
    placing: str
    article: str
    kind: _Kind


class _Text:
    """A question in words, and its phrases. A fragment is no clause, so that its first word may be a name."""

    def __init__(self, text: str, stop_words: frozenset[str], *, is_fragment: bool = False) -> None:
        self.tokens = text.split()
        self.bare = [token.strip(EDGES).lower() for token in self.tokens]
        self._function, self._is_fragment = stop_words | _PLACING | _ARTICLES | _MODAL, is_fragment
        self.has_sentences = any(token[-1] in ".?!" for token in self.tokens[:-1])
        self.is_cased = any(sign.isupper() for sign in text[1:])
        self.has_modal = not _MODAL.isdisjoint(self.bare)
        self.phrases = self._phrases()

    def _phrases(self) -> list[_Phrase]:
        found, place = [], 0
        while place < len(self.tokens):
            if self._is_function(place):
                place += 1
                continue
            start = first = place
            placing = article = ""
            if start and self.bare[start - 1] in _ARTICLES:
                start, article = start - 1, self.bare[start - 1]
            if start and self.bare[start - 1] in _PLACING:
                start, placing = start - 1, self.bare[start - 1]
            while place < len(self.tokens) and not self._is_function(place):
                place += 1
                if self.tokens[place - 1][-1] in ",;:?!." or self._changes(place):
                    break
            if self.bare[first].endswith("ing") and not article:
                continue
            found.append(_Phrase(start, first, place, placing, article, self._kind(first, place)))
        return found

    def _changes(self, place: int) -> bool:
        """Whether a name begins or ends here, within a clause."""
        is_inside = place < len(self.tokens) and not self._is_fragment
        return is_inside and self._is_name(place - 1) != self._is_name(place)

    def _kind(self, first: int, end: int) -> _Kind:
        if _TIME.fullmatch(self.bare[end - 1]):
            return _Kind.TIME
        if any(sign.isdigit() for word in self.bare[first:end] for sign in word):
            return _Kind.NUMBER
        return _Kind.NAME if self._is_name(end - 1) else _Kind.THING

    def _is_name(self, place: int) -> bool:
        return (place > 0 or self._is_fragment) and self.tokens[place].lstrip(EDGES)[:1].isupper()

    def _is_function(self, place: int) -> bool:
        is_acronym = len(self.bare[place]) > 1 and self.tokens[place].strip(EDGES).isupper()  # "IT" is no "it"
        return not is_acronym and self.bare[place].split("'")[0] in {"", *self._function}


def replaced(question: str, before: str, stop_words: frozenset[str]) -> str:
    """`before` with what `question` names in place of what it replaces; "": nothing is safely replaced."""
    fragment = _CLOSER.sub("", OPENER.sub("", question, count=1))
    new, old = _Text(fragment, stop_words, is_fragment=True), _Text(before, stop_words)
    part = _part_of(new)
    target = _place(part, new, old) if part else None
    if part is None or target is None:
        return ""
    end = len(old.tokens)
    said = " ".join(
        filter(None, (part.placing or target.placing, part.article, *new.tokens[part.first : part.end]))
    ).rstrip(EDGES)
    if target.start == end:
        whole = " ".join(old.tokens)
        made = f"{whole.rstrip(EDGES)} {said}{_tail(whole)}"
    else:
        inside = said + _tail(old.tokens[target.end - 1])
        made = " ".join([*old.tokens[: target.start], inside, *old.tokens[target.end :]])
    return "" if fold(made) == fold(before) else made


def _tail(text: str) -> str:
    return text[len(text.rstrip(EDGES)) :]


def _part_of(new: _Text) -> _Phrase | None:
    """The follow-up as one phrase, what is "of" another thing with it; None where it is anything else."""
    if not new.phrases or len(new.tokens) > _LONGEST or _NO_NOUN.fullmatch(new.bare[-1]):
        return None
    first, *others = new.phrases
    ends = [first.end, *(one.end for one in others)]
    is_one = first.start == 0 and ends[-1] == len(new.tokens) and all(one.placing == "of" for one in others)
    is_joined = all(one.start == end for one, end in zip(others, ends, strict=False))
    return replace(first, end=ends[-1]) if is_one and is_joined else None


def _place(part: _Phrase, new: _Text, old: _Text) -> _Phrase | None:
    """What `part` takes the place of; an empty phrase at the end where it is only added; None where nobody can tell."""
    head, places = terms_of(new.bare[new.phrases[0].end - 1]), range(len(old.tokens))
    if part.kind is _Kind.NUMBER and part.end - part.first == 1:
        same = [_Phrase(at, at, at + 1, "", "", part.kind) for at in places if any(map(str.isdigit, old.bare[at]))]
    else:
        words_of = [(one, at) for one in old.phrases for at in range(one.first, one.end)]
        same = [_from_start(one, at, old) for one, at in words_of if terms_of(old.bare[at]) == head]
    if not same:
        alike = [one for one in old.phrases if _is_like(part, one, old, is_cased=new.is_cased)]
        same = [one for one in alike if part.placing and one.placing == part.placing] or alike
    if len(same) == 1:
        is_placed = part.kind is _Kind.TIME or {part.placing, same[0].placing} <= _WHERE
        return same[0] if is_placed or part.placing in ("", same[0].placing) else None
    is_other_time = part.kind is _Kind.TIME and any(map(_TIME.fullmatch, old.bare))
    is_added = not same and part.placing and not old.has_sentences and not is_other_time
    end = len(old.tokens)
    is_added = is_added and (part.placing == "with" or part.kind is _Kind.TIME)
    return _Phrase(end, end, end, part.placing, "", part.kind) if is_added else None


def _from_start(one: _Phrase, place: int, old: _Text) -> _Phrase:
    """The phrase up to this word; "IT team" is two phrases, a name and a thing."""
    before = next((other for other in old.phrases if other.end == one.start), one)
    return replace(one if one.article or one.placing else before, end=place + 1)


def _is_like(part: _Phrase, one: _Phrase, old: _Text, *, is_cased: bool) -> bool:
    """Whether `part` may stand in the place of `one`, among whose words there is surely no verb."""
    if one.kind is _Kind.TIME:
        return part.kind is one.kind and all(other.start != one.end for other in old.phrases)
    if one.kind is _Kind.NAME:
        is_name = part.kind is one.kind or (part.kind is _Kind.THING and part.placing and not is_cased)
        return bool(is_name) and part.placing not in ("with", "without")
    is_bare = one.end - one.first == 1 or not old.has_modal
    return part.kind is one.kind and bool(part.placing) and one.placing == part.placing and is_bare


def with_name(question: str, pointing: str, before: str, stop_words: frozenset[str]) -> str:
    """The question with the only thing named in `before` in place of "it"; "": there is none, or more than one."""
    old = _Text(before, stop_words)
    named = [one for one in old.phrases if one.kind is _Kind.NAME or one.article]
    said = [word for word in re.findall(r"\w+", question.lower()) if word in ("it", "its", "she", "he", "they", "them")]
    if len(named) != 1 or said != [pointing.lower()] or said[0] in ("they", "them") or old.has_sentences:
        return ""
    found = named[0]
    others = [one for one in old.phrases if one is not found and not one.placing]
    end = found.end - (found.kind is _Kind.THING and old.has_modal and not others)  # without the verb behind it
    is_one = found.article == "the" and not old.bare[end - 1].endswith("s")
    is_clear = found.kind is _Kind.NAME or (is_one and not (old.has_modal and others))
    if end == found.first or not is_clear:
        return ""
    return _put(" ".join(filter(None, (found.article, *old.tokens[found.first : end]))), question, pointing)


def with_reply(question: str, pointing: str, reply: str) -> str:
    """A question that could not be understood with the reply in place of what it points with; "": it has no room."""
    name = reply.strip().rstrip(EDGES)
    if not pointing or len(name.split()) > _LONGEST or len(reply.split("\n")) > 1:
        return ""
    first, _, rest = name.partition(" ")
    return _put(f"{first.lower()} {rest}" if rest and first.lower() in _ARTICLES else name, question, pointing)


def _put(name: str, question: str, pointing: str) -> str:
    name = name.strip(EDGES) + ("'s" if pointing.lower() in ("its", "their") else "")
    made = re.sub(rf"\b{re.escape(pointing)}\b", lambda _: name, OPENER.sub("", question, count=1), flags=re.IGNORECASE)
    return made[:1].upper() + made[1:]


def speaks_of_before(sentence: str, before: str, now: str) -> bool:
    """Whether it names what only the question `before` asks for, and nothing that only this one, `now`, does.

    It has to name something of what both ask, too.
    """
    common = terms_of(" ".join(COMMON_WORDS))
    then, today, said = terms_of(before) - common, terms_of(now) - common, terms_of(sentence)
    return all(said & one for one in (then & today, then - today)) and not said & (today - then)
