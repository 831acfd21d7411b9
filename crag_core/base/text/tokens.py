"""An upper bound on the tokens of a text for an unknown tokenizer.

`words.estimate_tokens` is the published formula, words x 1.3, and four times too low for long compounds, more for text
without spaces. This bound counts characters too, and what is no plain word by more of them. `tests/base/test_tokens.py`
holds it against tokenizers. Pure.
"""

import re
from bisect import bisect_right
from collections.abc import Callable

from crag_core.base.text.sentences import split

_PIECE = re.compile(r"[A-Za-z]+|[0-9]+|[^\W\d_A-Za-z]+|\s+|[^\w\s]|_|.", re.DOTALL)
_PLAIN = re.compile(r"(?=.*[aeiouyAEIOUY])[A-Z]?[a-z]{1,20}")
_SHORT = 4  # letters; a word of so many is nearly always one token
_PER_TOKEN = 3.2  # letters of a longer word, which may be in no vocabulary
_CHARACTERS = 20  # of a token, at most, that are looked at


def token_bound(text: str) -> float:
    """Tokens that a text has at most, for tokenizers that know its script or fall back to its bytes."""
    bound = 0.0
    for match in _PIECE.finditer(text):
        piece = match[0]
        size = len(piece)
        if not piece.isascii():
            bound += sum(map(_of_sign, piece))
        elif piece.isalpha():
            bound += 1.3 + max(size - _SHORT, 0) / _PER_TOKEN
            if size > 2 and not _PLAIN.fullmatch(piece):
                bound += size / 2
        elif piece.isspace():
            bound += 0 if piece == " " else 1 + (size / 2 if "\n" in piece else size / 8)
        else:
            bound += size + piece.isdigit()
    return bound


def _of_sign(sign: str) -> float:
    """Of a sign beyond ASCII: letters with accents share a token with others, the rest are in bytes at worst."""
    code = ord(sign)
    if code < 0x250 or 0x1E00 <= code < 0x1F00:
        return 1.3
    if code < 0x800:
        return 1.5
    return 3.0 if code < 0x10000 else 4.0


def beginning(text: str, most: int, count: Callable[[str], int]) -> str:
    """As many whole sentences as have at most so many tokens; of a sentence that alone has more, its beginning."""
    if count(text) <= most:
        return text
    near = text[: max(most, 0) * _CHARACTERS]
    ends = [end for _, end in split(near)]
    fit = bisect_right(ends, most, key=lambda end: count(near[:end]))
    if fit:
        return near[: ends[fit - 1]]
    least, beyond = 0, len(near)
    while least + 1 < beyond:
        middle = (least + beyond) // 2
        least, beyond = (middle, beyond) if count(near[:middle]) <= most else (least, middle)
    space = near.rfind(" ", 0, least)
    return near[: space if space > least // 2 else least].rstrip()


def around(text: str, start: int, end: int, most: int, count: Callable[[str], int]) -> str:
    """Whole sentences of at most so many tokens: those of `text[start:end]`, and as many before it as behind it.

    Where the text begins or ends, there are more on the other side. Where it has more tokens itself, its beginning.
    """
    if count(text) <= most:
        return text
    if count(text[start:end]) >= most:
        return beginning(text[start:end], most, count)
    room = max(most, 0) * _CHARACTERS
    near = max(start - room, 0)
    spans = [(near + a, near + b) for a, b in split(text[near : end + room])]
    inside = [at for at, (a, b) in enumerate(spans) if a < end and start < b] or [0]
    low, high = inside[0], inside[-1]

    def window(more: int) -> str:
        return text[spans[max(low - more, 0)][0] : spans[min(high + more, len(spans) - 1)][1]]

    fit = bisect_right(range(len(spans) + 1), most, key=lambda more: count(window(more)))
    return window(fit - 1) if fit else beginning(text[start:end], most, count)
