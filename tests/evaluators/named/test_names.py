"""Names of evaluators by name."""

from __future__ import annotations

import pytest

from crag_core.base.errors import UnknownName
from crag_core.evaluators.named.names import PLACEHOLDER, ModelName, is_named, parse_name, uncalibrated_card

GOOD = {
    "hf:BAAI/bge-reranker-base": ModelName("BAAI/bge-reranker-base"),
    "hf:gpt2": ModelName("gpt2"),
    "hf:a/b@main": ModelName("a/b", "main"),
    "hf:a/b@refs/pr/1": ModelName("a/b", "refs/pr/1"),
    "hf:/srv/models/judge@2": ModelName("/srv/models/judge@2"),
    "hf:/srv/models/judge/": ModelName("/srv/models/judge"),
}


@pytest.mark.parametrize("text", GOOD)
def test_name_is_read_and_written_again(text: str) -> None:
    found = parse_name(text)
    assert found == GOOD[text]
    assert parse_name(str(found)) == found


@pytest.mark.parametrize(
    "text",
    ["", "hf:", "hf:a/b/c", "hf:../x", "hf:a b", "hf:a/b@", "hf:a/b@x y", "hf:a/b@../x", "hf:~/m", "hf:./m", "a/b",
     "hf:a\n", "hf:/" + "a" * 500, "hf:/a/../b", "hf:https://huggingface.co/a/b", "hf:a/b?as=yes-no", "hf:/a?as=span"],
)  # fmt: skip
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(UnknownName) as refused:
        parse_name(text)
    assert refused.value.hint


def test_card_of_a_name_says_that_it_is_not_calibrated() -> None:
    card = uncalibrated_card("hf:a/reranker@v2")
    assert (card.name, card.title, card.version) == ("hf:a/reranker@v2", "a/reranker@v2", "not calibrated")
    assert (card.lower, card.upper) == PLACEHOLDER and not card.calls_model
    assert is_named("hf:x y") and not is_named("embedding")
