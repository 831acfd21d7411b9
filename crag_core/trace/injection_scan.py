"""Finds possible prompt injection in documents and web pages. Pure.

What is found is a fact of the record, with its place. It is shown and counted, and changes no decision. It is a help
for people and no wall: what is worded in another way, or in another language than English, is not found.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace

from crag_core.base.prompts.delimiters import UNSEEN
from crag_core.base.text.display import shortened
from crag_core.base.types.passages import Origin, Passage, Suspicion
from crag_core.trace.trace import Trace

MOST_LOOKED_AT = 200_000  # characters of a passage that are looked at; a file that is read whole can have millions
_MOST_OF_ONE = 20
_MOST_QUOTED = 3
_LONGEST_QUOTED = 120

MEANINGS: dict[str, str] = {
    "override": "it asks to set earlier instructions aside",
    "role": "it gives the model another role or task",
    "grade": "it asks for a grade",
    "address": "it speaks to a model",
    "secret": "it asks for instructions or for what was said, or to keep something from the reader",
    "marker": "it holds marks that chat models read as a change of speaker",
    "delimiter": "it imitates the marks that stand around evidence",
    "hidden": "it holds characters that are not seen",
}

_PHRASES = {
    "marker": r"""
<\|[a-z][a-z0-9_ ]{1,30}\|>|\[/?inst\]|<</?sys>>|<(?:start|end)_of_turn>
</?(?:context|instructions?|documents?|(?:system|assistant)(?:[_ -]?(?:prompt|message))?)>
^[ \t]*#{2,4}[ \t]*(?:system|instructions?|assistant|human|response)[ \t]*:[ \t]*$
^[ \t]*(?:#{2,4}[ \t]*system[ \t]*\n+|\[?(?:system|assistant)\]?[ \t]*:[ \t]*)(?=you|ignore|from now|disregard)""",
    "delimiter": r"""
<\s*+/?\s*+(?:evidence|passage|sentence)\s*+>|\[\s*+/\s*+evidence\s*+\]
(?<![-=#*])[-=#*]{2,}+\s*+(?:end|begin|start)(?: of)? (?:the )?(?:evidence|context|document)\b\s*+[-=#*]""",
    "override": r"""
<ignore> … (?:previous|prior|above|preceding|earlier|system|original|initial|your|other) … <orders>
<ignore> … <orders> (?:(?:that )?you (?:were|have|had|got|received)|above|before this|so far|until now)
<ignore> (?:everything|anything|all|whatever) (?:that )?you … (?:before|earlier|so far|above|told|given|learned)
(?:everything|whatever|all) … (?:told|instructed|ordered) you … (?:before|earlier|so far|(?:up to|until) now)
your (?:\w+ )?<orders> (?:(?:is|are|have been) (?:now )?)?(?:no longer|void|cancell?ed|obsolete|replaced)
(?:new|updated) (?:orders?|directives?|instructions?|commands?|task) (?:from|by|below|for (?:you|the <model>))""",
    "role": r"""
you are (?:now|no longer|from now on) … (?:<model>|assistants?|dan|graders?|judges?|evaluators?|unrestricted)
(?:(?:act|behave|answer) as|(?:pretend|imagine) you are) (?:an?|the|my) (?:\w+ )?(?:uncensored|<model>)
(?:enter|enable|activate|switch (?:in)?to) (?:the )?(?:developer|debug|god|dan|maintenance|admin) mode and
(?:your (?:new|real|actual|only|true|next) (?:task|goal|job) is|the task has changed|your task is now)
(?:from now on|henceforth),? (?:you )?(?:must |will |should )?(?:only |always )?(?:answer|reply|respond|obey)
(?:begin|start|end) (?:your|every|each) (?:next )?(?:answer|reply|response|output)s? (?:with|by)
(?:developers?|administrators?|operators?|openai|anthropic) (?:has|have) … (?:authori[sz]ed|allowed|ordered) you""",
    "grade": r"""
<rate> … (?:this|every|each|all|following|above) (?:\w+ ){0,2}<piece>s? (?:(?:as|with|at|a|the|of|score|grade) )*<top>
<rate> … <top> … (?:score|grade|rating|relevance|band|marks?) … (?:this|the) <piece>
this <piece> (?:must|should|has to) (?:be |receive |get )(?:rated |graded |scored |given )?(?:as )?<top>
(?:correct|right|proper|only|expected) … (?:score|grade|rating|relevance) … this <piece> is <top>
<rate> … (?:score|grade|rating|relevance) (?:of|to|as|at) <top> … this <piece>
\{\s*[\"'](?:score|scores|evaluations|verdict|reasoning)[\"'](?=\s*:)""",
    "address": r"""
(?:note|notice|message|instructions?|attention|warning|reminder) (?:(?:to|for) )?(?:the |any |all )?<model>
(?:if|when|since|because) you(?: are|.re) (?:an? |the )?(?:\w+ )?<model>(?: that| which| who|,| reading)?
<model> (?:(?:that|which|who) )?(?:read|process|summari[sz]|evaluat|grad)\w+ this … (?:must|should|will|cannot)
as an (?:ai|llm|(?:ai |large )?language model|ai assistant),? you (?:must|should|cannot|will|are)
(?:dear|hey|hello|attention,?) (?:\w+ )?(?:evaluator|grader|judge|assistant|model|bot)(?=\s*[,:!])""",
    "secret": r"""
(?:reveal|print|show|repeat|output|leak|tell me) … (?:your|the) <inner> (?:\w+ )?(?:prompt|instructions?|rules)
(?:what|which) … your (?:<inner> )?(?:prompt|instructions)
(?:send|post|forward|email|append|leak) … (?:conversation|chat log|user.s question|system prompt|api keys?) … (?:to|at)
(?:do not|don.t|never) (?:tell|inform|mention this to|show this to) (?:the )?(?:user|reader|person who asked)
(?:conceal|hide|withhold) … from (?:the |your )?(?:user|reader|person who asked)""",
}
"""One regular expression a line, over `fold`ed text. In those of words a space stands for one to five characters that
are no letters or digits, "…" for up to four words."""
_NAMED = {
    "<ignore>": r"(?:ignore|disregard|forget|override|bypass|discard|scrap|set aside|stop following|do not follow)",
    "<orders>": r"(?:instructions?|prompts?|rules|guidelines|guidance|directi(?:ons|ves?)|rubric|orders|brief)",
    "<model>": r"(?:language models?|llms?|(?:chat)?gpt|chat ?bots?|ai(?: (?:model|system|agent|assistant)s?)?)",
    "<piece>": r"(?:passage|document|text|evidence|context|chunk|excerpt|article|page|result|snippet|paragraph)",
    "<rate>": r"(?:rate|grade|score|mark|judge|assign|give|award|return|output|choose|set)",
    "<top>": r"(?:1|1\.0+|10|ten|one|100|5/5|10/10|maximum|highest|full|perfect|top|best|fully relevant|relevant)",
    "<inner>": r"(?:system|hidden|initial|original|secret)",
}
_GAP = r"[\W_]{1,5}(?:[^\W_]{1,30}[\W_]{1,5}){0,4}"
_UNSEEN = re.compile(f"[{UNSEEN}]")
_HIDDEN = re.compile(
    "\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f"  # the flag of a region, which may be
    f"|(?P<hidden>[\U000e0000-\U000e007f]+|[{UNSEEN}]{{8,}}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{{4,}}"
    "|[\u202d\u202e][^\u202c\n]*\u202c?)"
)


def _compiled(sign: str, line: str) -> re.Pattern[str]:
    if sign in ("marker", "delimiter"):
        return re.compile(line, re.MULTILINE)
    for name, pattern in _NAMED.items():
        line = line.replace(name, pattern)
    line = line.replace(" … ", _GAP).replace(" ", r"[\W_]{1,5}")
    return re.compile(rf"(?:{line})(?![^\W_])")


_PATTERNS = [(sign, _compiled(sign, line)) for sign, lines in _PHRASES.items() for line in lines.strip().splitlines()]


def find_in(passages: Iterable[Passage]) -> tuple[Suspicion, ...]:
    """Suspicions of all these passages, of each in the order of its text, those in its title last."""
    return tuple(
        Suspicion(passage.id, sign, start, end, in_source)
        for passage in passages
        for text, in_source in ((passage.text, False), (passage.source, True))
        for sign, start, end in find(text)
    )


def with_suspicions(trace: Trace, before: Trace) -> Trace:
    """`trace` with what is suspicious in the passages that `before` did not hold, added to what was found in those."""
    known = {passage.id for passage in before.every_passage} if before.suspicions is not None else set()
    new = [passage for passage in trace.every_passage if passage.id not in known]
    if not new and (trace.passages is None or trace.suspicions is not None):
        return trace
    return replace(trace, suspicions=(trace.suspicions or ()) + find_in(new))


def remaining_suspicions(trace: Trace) -> tuple[Suspicion, ...] | None:
    there = {passage.id for passage in trace.every_passage}
    kept = trace.suspicions
    return None if kept is None else tuple(one for one in kept if one.passage_id in there)


def find(text: str) -> list[tuple[str, int, int]]:
    """(what it does, start, end) of every suspicious place, in order; of places that overlap the first stays."""
    kept: list[tuple[str, int, int]] = []
    for place in sorted(_places(text[:MOST_LOOKED_AT]), key=lambda place: (place[1], -place[2])):
        if not kept or place[1] >= kept[-1][2]:
            kept.append(place)
    return kept[:_MOST_OF_ONE]


def _places(text: str) -> Iterator[tuple[str, int, int]]:
    yield from (("hidden", *one.span()) for one in _HIDDEN.finditer(text) if one["hidden"])
    folded, at = fold(text)
    for sign, pattern in _PATTERNS:
        for match in pattern.finditer(folded):
            # Looked at here and not by the pattern, which then knows the letters that it can begin with: twice as fast.
            if not match.start() or not folded[match.start() - 1].isalnum():
                start, end = at[match.start()], at[match.end() - 1] + 1
                is_hidden = sign != "marker" and _UNSEEN.search(text[start:end].replace("\u00ad", ""))
                yield "hidden" if is_hidden else sign, start, end


def fold(text: str) -> tuple[str, list[int]]:
    """The text after NFKC in small letters, without unseen characters, and the place that each character came from."""
    if text.isascii() and text.isprintable():
        return text.lower(), list(range(len(text)))
    pieces = [
        (small, place)
        for place, sign in enumerate(text)
        if not _UNSEEN.match(sign)
        for small in unicodedata.normalize("NFKC", sign).lower()
    ]
    return "".join(small for small, _ in pieces), [place for _, place in pieces]


def shown(suspicion: Suspicion, passage: Passage) -> str:
    words = (passage.source if suspicion.in_source else passage.text)[suspicion.start : suspicion.end]
    visible = "".join(chr(ord(sign) - 0xE0000) if "\U000e0020" <= sign <= "\U000e007e" else sign for sign in words)
    visible = " ".join("".join(sign for sign in visible if sign.isprintable() or sign.isspace()).split())
    return shortened(visible or f"{len(words)} characters that are not seen", _LONGEST_QUOTED)


def warnings(trace: Trace, passage: Passage) -> tuple[str, ...]:
    found = [one for one in trace.suspicions or () if one.passage_id == passage.id]
    if not found:
        return ()
    quoted = "; ".join(f"“{shown(one, passage)}” ({_meaning(one)})" for one in found[:_MOST_QUOTED])
    more = f"; and {len(found) - _MOST_QUOTED} more" if len(found) > _MOST_QUOTED else ""
    kind = "web result" if passage.origin is Origin.WEB else "chunk"
    told = f"This {kind} contains text that looks like instructions to a model: {quoted}{more}. It is treated as data."
    grade = trace.grade_of(passage.id)
    if grade is None or grade.score is None or not trace.settings.evaluator.calls_model:
        return (told,)
    read = f"Its grade, {grade.score:.2f}, is of a language model that has read this text and may have followed it."
    return told, read


def remark(trace: Trace) -> str:
    count = len({one.passage_id for one in trace.suspicions or ()})
    if not count:
        return ""
    what = "1 chunk or web result contains" if count == 1 else f"{count} chunks or web results contain"
    return f"{what} text that looks like instructions to a model; it changes no decision. A notice, not a guard"


def _meaning(suspicion: Suspicion) -> str:
    """Records from outside may name a sign that is not known here."""
    where = " in its title" if suspicion.in_source else ""
    return f"{MEANINGS.get(suspicion.sign, 'of a kind not known here')}{where}"
