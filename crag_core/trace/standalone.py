"""Whether a question of a conversation stands alone, and whether what a model made of it may take its place. Pure."""

import re
from collections.abc import Sequence

from crag_core.base.text.sentences import split
from crag_core.base.text.words import words
from crag_core.base.types.questions import FollowUp, Turn, Understanding
from crag_core.trace.grounding.claims import terms_of
from crag_core.trace.trace import Trace

MOST_TURNS = 8
LONGEST_ANSWER = 600

BY_RULE = "made by rule"
TOGETHER = "both questions together"
ALONE = "as it was asked"

EDGES = "?!.,;:()[]{}\"'“”‘’«»…？！。、，"
_OPENER = re.compile(
    r"\W*(?:(?:and|but|or|so|then|also|ok|okay|und|oder|aber|et|ou|mais|n)\b[\s,]*|&\s*)*"
    r"(?:(?:(?:what|how) ab(?:ou)?t|(?:the )?same (?:for|with)|was ist mit|wie (?:ist|sieht) es (?:mit|bei))\b)?\s*",
    re.IGNORECASE,
)
_ARTICLES = frozenset(
    words("a an one any some another every each the ein eine einen einem einer der die das den dem le la")
)
_LONGEST = 8  # words of a reply that stands for what nobody could tell
_FEW = 1  # A later question with no more words of its own than this leaves something out
_SHORT = 3  # one that opens with "and" leaves something out with no more than these
_OWNING = frozenset(words("its itself their theirs themselves his himself her hers herself dessen deren"))
_SHOWING = frozenset(
    words(
        "this these those both former latter such others ones dies diese dieser dieses diesem diesen "
        "ceci cela ça celui celle ceux celles"
    )
)
_POINTING = frozenset(
    words(
        "it it's they they're them he he's him she she's "
        "er ihn ihm dort davon dafür damit daran darin darüber elle elles"
    )
).union(_OWNING, _SHOWING)
_BACK = re.compile(
    r"\b(?:(?:about|of|like|for|with|from|in|on|at|do|does|did|than|and) (?:that|there)|(?:is|was) that|"
    r"(?<!is )(?<!are )(?<!was )(?<!were )there(?!['’]s\b| (?:is|are|was|were)\b)|(?:what|how) about|"
    r"(?:about|of|like|for|with|from|in|on|at|than|and|is|was) one(?=\W*$|\W*[?!.,]| (?:is|are|for|to|do|does|can)\b)|"
    r"which one|(?:any|some|the) others?)\b|\bthat\W*$",
    re.IGNORECASE,
)
_AHEAD = re.compile(
    r"it (?:\w+ly |still |ever |also )?(?:takes?\b(?! (?:place|part|off|over)\b)|"
    r"(?:is |was |be )?(?:worth|costs?|possible|safe|legal|ok|okay|necessary|important|true|allowed|better|best|normal|"
    r"required|enough|easy|hard|difficult)(?: extra| more)? (?:to|that|if|when|\w+ing)\b)|"
    r"those (?:in|who|of|that|with)\b|both \w+ and\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[,;:?!.…–—]\s|\s-\s|\b(?:after|when|whenever|if|because|before|while|until|till|once|since|although|though|unless|"
    r"where|who|which|whose|and|or|but|so)\b",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"\w+(?:['’]\w+)*")
_DEFINES = re.compile(r"(?:what|who) (?:is|are|was|were) an? \w+\W*$", re.IGNORECASE)
_ENDS = ("?", "!", ".", "…", "？", "！", "。")
_POLITE = frozenset(words("thank thanks got okay ok yes sure sorry hello hi well mean know say said nice great"))


def follow(question: str, after: Trace | None, *, waits: bool = False) -> FollowUp:
    """What is asked next, after the run `after` and those before it; None: nothing was asked before.

    The question of that run once more is no later one: it is asked again as it was, understood as it was.
    """
    if after is None:
        return FollowUp(question, waits=waits)
    known = after.follow_up
    if fold_space(question) == fold_space(after.asked):
        if known and known.outcome in (Understanding.SETTLED, Understanding.UNSURE):
            return known
        return FollowUp(question, known.history if known else (), waits=waits)
    return FollowUp(question, (*(known.history if known else ()), turn_of(after))[-MOST_TURNS:], waits=waits)


def turn_of(run: Trace) -> Turn:
    if run.asks_back:
        return Turn(run.id, run.asked, run.asks_back, asks_back=True)
    text = run.answer.text if run.answer else ""
    text = text if len(text) <= LONGEST_ANSWER else f"{text[:LONGEST_ANSWER]} …"
    return Turn(run.id, run.asked if run.is_unsure else run.question, text)


def fold_space(text: str) -> str:
    return " ".join(text.split())


def points_back(question: str, stop_words: frozenset[str]) -> str:
    """The first word by which it speaks of something said before it, as it stands there; "": none.

    Not one that stands for what the question itself names: two words of its own in an earlier clause ("… after she
    left"), for a word of possession anywhere before it ("does a town pay its taxes").
    """

    def is_named(before: str) -> bool:
        return len(own_words(before, stop_words)) > _FEW

    for found in _TOKEN.finditer(question):
        word, before = found[0].lower().replace("’", "'"), question[: found.start()]
        if word not in _POINTING or _AHEAD.match(question, found.start()):
            continue
        if word in _SHOWING or not is_named(before if word in _OWNING else _earlier_clauses(before)):
            return found[0]
    for found in _BACK.finditer(question):
        if found[0].lower().endswith("about") or not is_named(_earlier_clauses(question[: found.start()])):
            return found[0].split()[-1].strip(EDGES)
    return ""


def _earlier_clauses(text: str) -> str:
    return text[: max((found.start() for found in _CLAUSE.finditer(text)), default=0)]


def stands_alone(question: str, stop_words: frozenset[str]) -> bool:
    own = len(own_words(question, stop_words))
    return not continues(question, stop_words) and (own > _FEW or bool(own and _DEFINES.match(question)))


def continues(question: str, stop_words: frozenset[str]) -> bool:
    opening = _OPENER.match(question)
    begin = opening.end() if opening else 0
    if question[:begin].strip() and len(own_words(question[begin:], stop_words)) <= _SHORT:
        return True
    return bool(points_back(question, stop_words))


def lacks_subject(question: str, stop_words: frozenset[str]) -> bool:
    """Whether a first question cannot be understood: it points back, or goes on, and names at most one thing."""
    own = own_words(question, stop_words)
    return bool(words(question)) and (not own or (continues(question, stop_words) and len(own) == 1))


def own_words(text: str, stop_words: frozenset[str]) -> list[str]:
    """The words that name something, as they stand there, each once; of a script without spaces whole runs."""
    found: dict[str, str] = {}
    for token in text.split():
        bare = token.strip(EDGES)
        if any(word not in stop_words and word not in _POINTING for word in words(bare)):
            found.setdefault(bare.lower(), bare)
    return list(found.values())


def is_said(text: str, history: Sequence[Turn], stop_words: frozenset[str]) -> bool:
    """Whether turns before name all that this names; not where it names nothing."""
    named = {word for one in own_words(text, stop_words) for word in words(one)}
    said = {word for turn in history for word in words(f"{turn.question} {turn.answer}")}
    return bool(named) and named <= said


def by_rule(question: str, history: Sequence[Turn], stop_words: frozenset[str]) -> tuple[str, bool]:
    """What it is understood as, and whether that is one question; ("", False) where no turn before names anything.

    One question: the reply to what was asked back in place of what nobody could tell. Else both, the one before first.
    """
    naming = [turn.question for turn in reversed(history) if own_words(turn.question, stop_words)]
    if history and history[-1].asks_back:
        before = history[-1].question
        if made := _with_reply(before, points_back(before, stop_words), question):
            return made, True
    elif not naming:
        return "", False
    else:
        before = next((one for one in naming if stands_alone(one, stop_words)), naming[0])
    return f"{before if before.endswith(_ENDS) else f'{before}.'} {question}", False


def why_refused(said: str, asked: str, history: Sequence[Turn], stop_words: frozenset[str]) -> str:
    """Why what a model made of a question does not stand in its place; "": it does."""
    if any(words(said) == words(turn.question) for turn in history):
        return "asked an earlier question once more"
    kept = terms_of(said)
    lost = [one for one in own_words(asked, stop_words | _POLITE) if not terms_of(one) <= kept]
    if lost:
        return f"left out “{', '.join(lost)}”"
    if len(split(said)) > len(split(asked)):
        return "asked two questions in one"
    return "" if stands_alone(said, stop_words) else "left it depending on what came before"


def back_question(question: str, stop_words: frozenset[str]) -> str:
    pointing = points_back(question, stop_words)
    names = pointing.lower() in _POINTING | {"that", "there"}
    return f"What does “{pointing}” stand for?" if names else "What is the question about?"


def _with_reply(question: str, pointing: str, reply: str) -> str:
    """A question that could not be understood with the reply in place of what it points with; "": it has no room."""
    name = reply.strip().strip(EDGES)
    if not pointing or len(name.split()) > _LONGEST or len(reply.split("\n")) > 1:
        return ""
    first, _, rest = name.partition(" ")
    name = f"{first.lower()} {rest}" if rest and first.lower() in _ARTICLES else name
    name += "'s" if pointing.lower() in ("its", "their") else ""
    asked = _OPENER.sub("", question, count=1)
    made = re.sub(rf"\b{re.escape(pointing)}\b", lambda _: name, asked, flags=re.IGNORECASE)
    return made[:1].upper() + made[1:]
