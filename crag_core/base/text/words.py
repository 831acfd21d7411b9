"""Words, token estimates, language and script of a text, also for scripts without spaces."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache

_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"  # kana and Han: no spaces between words
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+(?:['’\-.][^\W_{_UNSPACED}]+)*")
_UNSPACED_CHARACTER = re.compile(rf"[{_UNSPACED}]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def words(text: str) -> list[str]:
    """Lower-case words in order; a run without spaces (Japanese, Chinese) gives its overlapping character pairs."""
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        if _UNSPACED_CHARACTER.match(word):
            found += [word[i : i + 2] for i in range(max(len(word) - 1, 1))]
        else:
            found.append(word)
    return found


def estimate_tokens(text: str) -> int:
    """Words x 1.3, rounded down (description 000); a character of an unspaced script counts as a word."""
    unspaced = len(_UNSPACED_CHARACTER.findall(text))
    return int((len(_UNSPACED_CHARACTER.sub(" ", text).split()) + unspaced) * 1.3)


def fold(text: str) -> str:
    """One case and single spaces, to look for one text in another however its lines were broken."""
    return " ".join(text.casefold().split())


def storable(text: str) -> str:
    """Without the characters that no database keeps as text: zeros, and halves of surrogate pairs."""
    return _UNSTORABLE.sub("\ufffd", text)


_COMMON = {
    "en": "the of and to is are that for with by from it as was were this have has be not which or but their they can "
    "you your its if there when how more than other may should would into been",
    "de": "der die das und ist nicht ein eine den dem mit für auf von im zu sind werden wird sich auch wenn "
    "sie oder bei aus nach bis vor über um wie nur hat dass zum zur einem einer kann",
    "fr": "le les des et est une dans pour que qui sur pas du au aux la de un en il elle ce sont à ne par avec "
    "leur mais ou plus cette son ses été ont",
    "es": "el los las y es una en por con del que se para la de su lo como más son pero sus entre cuando sin muy ha",
    "it": "il di che è della un per con sono gli nel la le una del dei alla non si anche più dal nella ma come",
    "pt": "os as e é uma em do da que para com não um dos ao na no se por são ao mais mas foi seu sua pelo",
    "nl": "het een van en is dat op met voor niet zijn de te aan worden wordt ook er bij als maar naar uit heeft kan",
    "ro": "și în de la cu fost este din pentru care că o un au nu pe sau ca al",
    "pl": "w i na z do się nie jest to że oraz od po dla jak przez są o był ze",
    "tr": "ve bir bu için ile de da olarak olan daha çok en gibi kadar sonra her ise değil",
    "da": "og er det en af på til som med ikke den et har fra blev kan også eller når",
    "sv": "och att det är en som på för av med inte den ett till har de om kan ska",
}
_LANGUAGES = {name: frozenset(text.split()) for name, text in _COMMON.items()}
_LEAST_WORDS, _LEAST_SHARE = 2, 0.1
COMMON_WORDS = frozenset().union(*_LANGUAGES.values())
_LONG, _NONE = 12, 0.05  # words, and the share of common ones


def language_of(text: str) -> str:
    """One of en, de, fr, es, it, pt, nl, ro, pl, tr, da, sv; "?" for a text long enough to tell that it is in none.

    "" where the text does not tell, or two are as likely.
    """
    said = words(text)
    found = Counter({name: sum(word in common for word in said) for name, common in _LANGUAGES.items()})
    (best, count), (_, second) = found.most_common(2)
    if len(said) >= _LONG and count < _NONE * len(said):
        return "?"
    is_clear = count >= _LEAST_WORDS and count >= _LEAST_SHARE * len(said) and count > second
    return best if is_clear else ""


def script_of(text: str) -> str:
    """The script of most of its letters, in the words of Unicode, such as LATIN or HIRAGANA; "" without letters."""
    found = Counter(_script(sign) for sign in text if sign.isalpha())
    return found.most_common(1)[0][0] if found else ""


@lru_cache(4096)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "?").partition(" ")[0]
