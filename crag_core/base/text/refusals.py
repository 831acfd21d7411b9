"""Tells a reply that only says that it has no answer from one that answers. Pure.

By its wording, in English, German, French, Spanish and Chinese: every sentence must refuse, or answer nothing beside a
refusal. A sentence that goes on with "but" may hold an answer, and then is no refusal.
"""

import re

from crag_core.base.prompts.replies import CANNOT_ANSWER

_AGREED = CANNOT_ANSWER.lower().split()
_LONGEST = 1200  # characters; a longer reply says something
_CITED = re.compile(r"\[\s*\d[\d\s,;]*\]")
_ENDS = re.compile(r"(?<=[.!?])[\"'”’»)\]*]*\s+|\n+|(?<=[。！？])")

_NOUN = "(?:text|passage|document|context|evidence|excerpt|source|information|article|snippet|chunk|material|content)s?"
_THE = (
    "(?:(?:the|this|these|those|any|my|your) )?(?:(?:provided|given|supplied|retrieved|numbered|available|above|"
    f"following|relevant) )*{_NOUN}(?: (?:provided|given|supplied|available|above|itself|i have|you \\w+))*"
)
_IN = f"(?:in|from|by|within|based on|using|according to|with|on|through) {_THE}"
_TELL = (
    "(?:(?:explicitly|specifically|clearly|directly|actually|seem to|appear to) )*(?:contain|mention|say|state|specify|"
    "provide|include|give|tell|answer|address|cover|indicate|hold|offer|discuss|explain|describe|reveal|name|"
    "have (?:any|enough|sufficient|this))s?"
)
_NEWS = (
    "(?:(?:specific|relevant|direct|explicit|clear|matching|such|further) )*"
    "(?:information|mention|answer|detail|context|data)s?"
)
_DERIVED = "(?:answer|determin|find|found|establish|infer|say|said|tell|told|know|derive|identif|deduc)\\w*"
_GIVEN = (
    "(?:\\w+ly )?(?:stated|specified|mentioned|given|provided|indicated|found|addressed|covered|included|available|"
    "contained|explained|discussed|disclosed|described|answered)"
)
_ASKED = "(?:it|this|that|(?:the|this|your) question|the answer|an answer)"
_TEXT = "(?:text|dokument|kontext|auszug|auszüge|quelle|unterlage|beleg|passage|information)\\w*"
_REFUSALS = (
    # what the evidence does not do
    f"{_THE} (?:do|does|did|can|could) not {_TELL}\\b.*",
    f"(?:none|neither) of {_THE} {_TELL}\\b.*",
    f"no {_NOUN} {_TELL}\\b.*",
    f"{_THE} (?:has|have|contains?|gives?|provides?|offers?|makes?|includes?|holds?) (?:no|nothing)\\b.*",
    f"{_THE} (?:lacks?\\b|fails? to|(?:is|are) (?:silent|insufficient|unclear|not (?:enough|sufficient|clear))).*",
    "(?:it|they) (?:do|does) not (?:say|state|specify|tell)\\b.*",
    # what whoever answers cannot do
    "(?:i|we) (?:do|did|can|could|was|would|am) not (?:\\w+ ){0,3}?(?:know|answer|find|see|have|provide|determine|say|"
    "tell|help|confirm|give|identify|locate|sure|able|certain|aware)\\b.*",
    "i(?: am|'m| was) (?:un(?:able|sure|certain)|not (?:sure|able|certain|aware))\\b.*",
    "i (?:have|find|found|see|saw) (?:no|nothing|insufficient|not enough)\\b.*",
    "(?:(?:can|could|do) not|unable to|not able to|impossible to) (?:be )?(?:answer|tell|say|determine|know|find)"
    "(?:e?d)?\\b.*",
    # what there is not
    f"there (?:is|are|was|were) (?:no|not any|not enough|insufficient|nothing) {_NEWS}\\b.*",
    f"there is (?:insufficient|not enough) {_NOUN} .*",
    f"there (?:is|are|was|were) (?:nothing|no\\b[\\w ]*?) {_IN}\\b.*",
    f"nothing (?:{_IN}|is said)\\b.*",
    "there is nothing (?:(?:in|on) .*\\b)?(?:about|on) (?:this|that|it)",
    f"(?:no|not enough|insufficient) {_NEWS}(?: (?:is|are|was|were) {_GIVEN})?(?: (?:to|on|about|for|{_IN})\\b.*)?",
    f"no (?:\\w+ )?(?:{_NOUN}|results?) (?:is|are|was|were) (?:found|available|given|provided)(?: .*)?",
    f"not (?:{_GIVEN}|known|clear|answerable|applicable|possible to {_DERIVED})(?: {_IN}.*)?",
    f"{_ASKED} (?:can|could) not be (?:\\w+ly )?{_DERIVED}.*",
    f"{_ASKED} (?:is|was) (?:not {_GIVEN}|(?:not |im)possible to {_DERIVED}|not answerable|unanswerable).*",
    f"{_ASKED} (?:is|was) (?:not (?:known|clear|given)|unknown|unclear)(?: {_IN}.*)?|{_ASKED} is not {_IN}",
    f"[^,;:]{{3,90}} (?:is|are|was|were|has been|have been|can|could) not (?:be )?(?:{_GIVEN}|determined|known)"
    f" (?:anywhere |in any of |in all )?(?:{_IN}|{_THE}).*",
    f"(?:information|data|answer|details?) not {_GIVEN}(?: .*)?|no answer (?:was )?found(?: .*)?",
    f"(?:this|that|the|such) information (?:is|was) not (?:{_GIVEN}(?: {_IN}.*)?|{_IN}.*)|not {_IN}.*",
    "(?:no|not enough|insufficient) evidence|not sure|nothing (?:is said )?(?:about|on) (?:this|that|it)\\b.*",
    f"unanswerable(?: {_IN})?|unknown(?: {_IN})?|n/?a|no (?:answer|idea)|insufficient|empty response",
    # in German
    "(?:das |dies |es |ich )?wei(?:ß|ss) (?:ich )?(?:es |das )?(?:leider )?nicht",
    "keine (?:\\w+ )?(?:angaben?|informationen?|antwort)(?: \\w+){0,7}|unbekannt|unbeantwortbar",
    "nicht (?:beantwortbar|angegeben|erwähnt|genannt|bekannt|enthalten)(?: .{0,40})?",
    f"(?:de[rmns]|die|das|diese[rs]?) (?:\\w+ ){{0,2}}?{_TEXT} (?:enth[aä]lt|nenn|erwähn|sag|gib|geb|mach|beantwort)"
    "\\w* (?:\\w+ )*?(?:nicht|nichts|keine\\w*)\\b.*",
    f"(?:[\\w ]*\\b)?(?:im|in de[nmr]|aus de[nmr]) (?:\\w+ ){{0,2}}?{_TEXT} (?:\\w+ )*?(?:nichts|nicht (?:\\w+ )*?"
    "(?:hervor|genannt|erwähnt|angegeben|enthalten)|keine (?:angabe|information|antwort))\\b.*",
    "(?:das|dies|es|(?:die|diese) (?:frage|antwort)) (?:geht|lässt|kann|steht|wird|ist) (?:\\w+ )*?(?:nicht|nichts) "
    "(?:\\w+ )*?(?:hervor|beantwort|entn|erwähnt|genannt|angegeben|enthalten|bestimm|sagen|ersichtlich)\\w*(?: \\w+)?",
    # in French, Spanish and Chinese
    "(?:je ne (?:le )?(?:sais|peux|trouve) pas|aucune (?:information|réponse|mention)|pas d'information|impossible "
    "(?:de|à) (?:répondre|déterminer|dire)|inconnue?$|non (?:précisée?|mentionnée?)).*",
    ".{2,60} n'est pas (?:précisée?|mentionnée?|indiquée?|possible de (?:répondre|déterminer|dire|savoir))\\b.*",
    "(?:les?|la|ces?|cet) (?:\\w+ )?(?:texte|document|contexte|extrait|source|passage)s? (?:\\w+ )?n(?:e |')(?:l[ea] )?"
    "(?:di[ts]|mention|contien|précis|indiqu|fourni|donn|répond|permet|parl)\\w* (?:pas|rien|aucune?)\\b.*",
    "(?:no lo s[ée]|no (?:hay|tengo) (?:\\w+ )?información|no se (?:menciona|indica|especifica)|desconocido$|"
    "no (?:puedo|es posible) (?:responder|determinar|saber)).*",
    "(?:el|la|los|las|este) (?:texto|documento|contexto|fragmento|fuente|pasaje)s? no (?:lo )?"
    "(?:dice|menciona|contiene|indica|especifica|responde)n?\\b.*",
    ".{0,20}(?:无法(?:回答|确定|得知)|没有(?:提到|提及|说明|相关信息)|未(?:提及|提到|说明)|不知道).{0,20}",
)
_LEAD = re.compile(
    f"(?:(?:as|since|because) {_THE} [^,]*,|(?:i am|i'm) (?:very )?(?:sorry|afraid)|sorry|i apologi[sz]e|unfortunately|"
    f"however|(?:final )?answer:|"
    f"based (?:only |solely )?on {_THE}|according to {_THE}|from {_THE}|in {_THE}|leider|tut mir leid|malheureusement|"
    "désolée?|lo siento|抱歉)[ ,.:;–—-]*(?:(?:but|that|aber|mais|pero) )?"
)
_REFUSES = re.compile("|".join(f"(?:{one})" for one in _REFUSALS), re.DOTALL)
_GOES_ON = re.compile(
    " (?:but|however|although|though|except|whereas|while|only that|aber|jedoch|sondern|mais|cependant|pero|sino) "
)
_BESIDE = re.compile(
    f"please .*|if you .*|you (?:may|might|can|could) .*|let me know.*|bitte .*|veuillez .*"
    f"|(?:it|they|{_THE}) (?:only|merely|just|instead) .*|(?:it|they|{_THE}) \\w+ (?:only|instead) .*|"
)
"""What answers nothing beside a refusal: advice, or what the evidence holds instead."""
_OPENERS = (
    "i |i'm |sorry|unfortunately|unanswerable|unknown|unable|not |no |none |nothing|insufficient|n/a|it do|it is not|"
    "it can not|there is no|there are no|based on|according|the text|the passage|the document|the context|the evidence|"
    "the excerpt|the source|the provided|the given|the information|the question|the answer|this question|keine |nicht |"
    "das geht|das weiß|das lässt|das kann|leider|der text|je ne|aucun|impossible|le texte |el texto |文中"
)
"""How refusals begin: what begins so may become one until its first sentence is there."""


def is_refusal(text: str) -> bool:
    """Whether a whole reply is the agreed "cannot answer", however it is decorated, or says so in words of its own.

    One that begins with the agreed words is, whatever follows. "" is not.
    """
    said = filter(None, map(_plain, _ENDS.split(text))) if len(text) <= _LONGEST else ()
    kinds = list(map(_kind, said))
    return is_agreed(text) or (True in kinds and None not in kinds)


def is_agreed(text: str) -> bool:
    return re.findall(r"[a-z]+", text.lower())[: len(_AGREED)] == _AGREED


def says_more(text: str) -> bool:
    return re.findall(r"[^\W_]+", text.lower()) not in ([], _AGREED)


def begins_agreed(text: str) -> bool:
    """Whether what came of a reply so far is the agreed "cannot answer", or a part of it; "" may be."""
    letters = "".join(sign for sign in text[:200].lower() if sign.isalnum())
    return "".join(_AGREED).startswith(letters) or is_agreed(text)


def may_become_refusal(text: str) -> bool:
    """Whether what came of a reply so far is a refusal, or may be the beginning of one."""
    if begins_agreed(text):
        return True
    *whole, last = _ENDS.split(text)
    kinds = [_kind(one) for one in map(_plain, whole) if one]
    if None in kinds or len(text) > _LONGEST:
        return False
    begun = _plain(last)
    return bool(kinds) or any(one.startswith(begun) or begun.startswith(one) for one in _OPENERS.split("|"))


def _kind(sentence: str) -> bool | None:
    """True: it refuses. False: it answers nothing beside a refusal. None: it says something."""
    while lead := _LEAD.match(sentence):
        sentence = sentence[lead.end() :]
    if _REFUSES.fullmatch(sentence) and not _GOES_ON.search(sentence):
        return True
    return False if _BESIDE.fullmatch(sentence) else None


def _plain(sentence: str) -> str:
    bare = re.sub(r"[*_`\"“”„«»#]+", " ", _CITED.sub(" ", sentence)).lower().replace("’", "'")
    bare = re.sub(r"\bcan't\b|\bcannot\b", "can not", bare).replace("n't", " not")
    bare = re.sub(r"\b(it|that|there|answer)'s\b", r"\1 is", bare)
    return re.sub(r"\s+", " ", bare).strip(" .,;:!?。！？-–—()")
