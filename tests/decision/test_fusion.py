"""Rankings fused by hand: order, what counts as the same passage, and what fits."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crag_core.base.text.words import estimate_tokens
from crag_core.base.types.passages import Passage
from crag_core.decision.fusion import RRF_K, fuse, fuse_ranks
from tests.builders import passage

PLENTY = 8000


def named(names: str) -> list[Passage]:
    """A ranking with one passage a letter, each of its own text."""
    return [passage(name, f"Text of {name}.") for name in names]


def ids(passages: tuple[Passage, ...]) -> str:
    return "".join(found.id for found in passages)


def sized(name: str, tokens: int) -> Passage:
    text = " ".join(f"{name}{number}" for number in range(round(tokens / 1.3)))
    assert estimate_tokens(text) == tokens
    return passage(name, text)


# --- ranks ------------------------------------------------------------------------------------------------------------


def test_each_ranking_gives_its_share() -> None:
    fused = fuse_ranks([["a", "b"], ["b", "c"]])
    assert RRF_K == 60
    assert fused == pytest.approx({"a": 1 / 61, "b": 1 / 62 + 1 / 61, "c": 1 / 62})
    assert fuse_ranks([]) == {} and fuse_ranks([["a"]], k=0) == {"a": 1.0}


def test_the_same_ranks_in_another_order_are_exactly_equal() -> None:
    def place(name: str, rank: int) -> list[str]:
        return [*(f"{name}{rank}-{n}" for n in range(1, rank)), name]

    ranks = (1, 2, 7)  # whose shares, added one by one, depend on the order in the last digit
    assert len({sum(1 / (60 + rank) for rank in order) for order in permutations(ranks)}) > 1
    assert len({fuse_ranks([place("a", rank) for rank in order])["a"] for order in permutations(ranks)}) == 1


# --- passages ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rankings", "order"),
    [
        (["abc"], "abc"),
        (["abc", "cba"], "acb"),  # 1/61 + 1/63 is more than twice 1/62
        (["ab", "cd"], "acbd"),
        (["abc", "dc"], "cadb"),  # found by both: first, though never best
        (["ab", "ba"], "ab"),
        (["", "ab"], "ab"),
        (["", ""], ""),
        ([], ""),
    ],
)
def test_best_fused_rank_first_and_ties_by_first_appearance(rankings: list[str], order: str) -> None:
    assert ids(fuse([named(ranking) for ranking in rankings], 10, PLENTY)) == order


def test_a_passage_keeps_the_record_of_its_first_ranking() -> None:
    first = passage("a", "The ferry.", found_by=("dense",), scores=(("cosine", 0.7),))
    again = passage("a", "The ferry.", found_by=("keyword",), scores=(("cosine", 0.2), ("keyword", 9.0)))
    assert fuse([[first], [again]], 5, PLENTY) == (first,)
    assert fuse([[again], [first]], 5, PLENTY) == (again,)


def test_the_same_text_is_the_same_passage_but_for_white_space() -> None:
    first, twin = passage("a", "Dogs pay\n2 £."), passage("b", " Dogs   pay 2 £.\n")
    other = passage("c", "Dogs pay 3 £.")
    assert fuse([[other], [first], [twin]], 5, PLENTY) == (first, other), "and each of them speaks for it"
    wrapped = passage("d", "電波塔は\n東京にある。")
    assert fuse([[wrapped], [passage("e", "電波塔は東京にある。")]], 5, PLENTY) == (wrapped,)


@pytest.mark.parametrize(
    ("budget", "taken"),
    [
        (1000, "abcd"),
        (390, "abcd"),  # 130 + 195 + 39 + 26
        (389, "abc"),
        (364, "abc"),
        (325, "ab"),
        (324, "acd"),  # b does not fit, what comes after it does
        (168, "ad"),
        (130, "a"),
        (129, "a"),  # the best one always goes in, and then nothing else
        (0, "a"),
    ],
)
def test_what_does_not_fit_is_left_out_and_the_next_one_tried(budget: int, taken: str) -> None:
    ranking = [sized("a", 130), sized("b", 195), sized("c", 39), sized("d", 26)]
    assert ids(fuse([ranking], 10, budget)) == taken


letters = st.lists(st.text("abcdefgh", max_size=8).map(lambda text: "".join(dict.fromkeys(text))), max_size=5)


@given(letters, st.integers(0, 9), st.integers(0, 60))
def test_whatever_the_rankings_the_result_is_bounded_distinct_and_the_same_again(
    rankings: list[str], limit: int, budget: int
) -> None:
    lists = [named(ranking) for ranking in rankings]
    found = fuse(lists, limit, budget)
    assert found == fuse(lists, limit, budget)
    assert len(found) <= limit and len(set(found)) == len(found)
    assert len(found) <= 1 or sum(estimate_tokens(one.text) for one in found) <= budget
    assert bool(found) == bool(limit and any(rankings))
    scores = fuse_ranks([list(ranking) for ranking in rankings])
    assert [scores[one.id] for one in found] == sorted((scores[one.id] for one in found), reverse=True)
