"""Words, token estimates, language and script of a text, also for scripts without spaces."""

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
    "you your its if there when how more than other may should would into been a i in on do does did what who where "
    "why we my our at an any many much after between during about will could had he she his her",
    "de": "der die das und ist nicht ein eine den dem mit für auf von im zu sind werden wird sich auch wenn "
    "sie oder bei aus nach bis vor über um wie nur hat dass zum zur einem einer kann was wer wann wo warum welche "
    "welcher welches welchem welchen viele wurde wurden des am als durch in haben hatte ich wir ihr mein noch gegen "
    "zwischen eines einen diese",
    "fr": "le les des et est une dans pour que qui sur pas du au aux la de un en il elle ce sont à ne par avec "
    "leur mais ou plus cette son ses été ont quel quelle quels quelles quand où comment pourquoi combien se fut était "
    "a-t-il est-ce qu'est-ce d'un d'une s'est c'est y nous vous je mon",
    "es": "el los las y es una en por con del que se para la de su lo como más son pero sus entre cuando sin muy ha "
    "qué cuál cuáles cuándo dónde cómo quién quiénes cuántos cuántas cuánto fue un al no a está tiene",
    "it": "il di che è della un per con sono gli nel la le una del dei alla non si anche più dal nella ma come "
    "chi quando quanto quale quali perché cosa ha stato i lo in da",
    "pt": "os as e é uma em do da que para com não um dos ao na no se por são ao mais mas foi seu sua pelo "
    "qual quais quando onde quem como quantos quantas o a à pela tem",
    "nl": "het een van en is dat op met voor niet zijn de te aan worden wordt ook er bij als maar naar uit heeft kan "
    "wat wie wanneer waar waarom hoe welke hoeveel in was werd",
    "ro": "și în de la cu fost este din pentru care că o un au nu pe sau ca al ce cine când unde cum câte a "
    "sunt mai lui prin s-a într-o",
    "pl": "w i na z do się nie jest to że oraz od po dla jak przez są o był ze co kto kiedy gdzie ile czy jaki jaka",
    "tr": "ve bir bu için ile de da olarak olan daha çok en gibi kadar sonra her ise değil ne kim nasıl kaç hangi "
    "nerede neden nedir kimdir mi mı hangisi kimin tarafından zaman ya o ki",
    "da": "og er det en af på til som med den et har fra kan eller når de i at ikke blev også hvad hvem hvornår hvor "
    "hvorfor hvilken hvilket hvilke var der for ble hva hvem å",
    "sv": "och att det är en som på för av med inte den ett till har de om kan ska vad vem när var varför hur vilken "
    "vilket många i",
    "fi": "ja on ei että se oli joka mutta kun mitä mikä kuka missä milloin miten miksi ovat myös tai hän olla",
    "cs": "a je v na se že z do to jsou pro jako nebo co kdo kdy kde jak který která by byl s ve k o",
    "hu": "a az és hogy nem is egy van volt meg ez mi ki mikor hol hogyan melyik",
    "id": "yang dan di dari untuk dengan ini itu adalah dalam pada tidak akan oleh apa siapa kapan berapa mana",
    "vi": "là của và có trong được cho không những các một với đã người này từ như khi ở để gì nào ai đâu bao nhiêu "
    "năm tại về do đó cái điều vào sự",
}
LANGUAGE_NAMES = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pt": "Portuguese",
    "nl": "Dutch",
    "ro": "Romanian",
    "pl": "Polish",
    "tr": "Turkish",
    "da": "Danish or Norwegian",
    "sv": "Swedish",
    "fi": "Finnish",
    "cs": "Czech",
    "hu": "Hungarian",
    "id": "Indonesian",
    "vi": "Vietnamese",
}
_LANGUAGES = {name: frozenset(text.split()) for name, text in _COMMON.items()}
_LEAST_WORDS, _LEAST_SHARE = 2, 0.1
COMMON_WORDS = frozenset().union(*_LANGUAGES.values())
_LONG, _NONE = 12, 0.05  # words, and the share of common ones


def language_of(text: str) -> str:
    """One of `LANGUAGE_NAMES`; "?" for a text long enough to tell that it is in none.

    "" where the text does not tell, or two are as likely.
    """
    said = words(text)
    (best, count), (_, second) = _count_common(said).most_common(2)
    if len(said) >= _LONG and count < _NONE * len(said):
        return "?"
    return best if _is_enough(count, said) and count > second else ""


def foreign_language(text: str) -> str:
    """The name of the language of a text with more common words of another one than of English; "" otherwise.

    "another language" where two of them are as likely.
    """
    said = [word for word in words(text) if len(word) > 1 or not word.isascii()]  # not the letters of a formula
    found = _count_common(said)
    most = max(found.values())
    if not _is_enough(most, said) or found["en"] >= most:
        return ""
    names = {LANGUAGE_NAMES[name] for name, count in found.items() if count == most}
    return names.pop() if len(names) == 1 else "another language"


def _count_common(said: list[str]) -> Counter[str]:
    return Counter({name: sum(word in common for word in said) for name, common in _LANGUAGES.items()})


def _is_enough(count: int, said: list[str]) -> bool:
    return count >= _LEAST_WORDS and count >= _LEAST_SHARE * len(said)


def script_of(text: str) -> str:
    """The script of most of its letters, in the words of Unicode, such as LATIN or HIRAGANA; "" without letters."""
    found = Counter(_script(sign) for sign in text if sign.isalpha())
    return found.most_common(1)[0][0] if found else ""


@lru_cache(4096)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "?").partition(" ")[0]
