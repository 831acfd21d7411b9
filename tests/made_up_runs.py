"""Runs with a bit of everything, made up by hypothesis: rounds, web results, strips, extractions, other opinions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from crag_core.base.types.edits import Edits
from crag_core.base.types.grades import EvaluatorCard, Grade, Opinion
from crag_core.base.types.knowledge import Extraction, Strip
from crag_core.base.types.passages import ANSWERING, TOPICAL, Passage, Scores
from crag_core.decision.refine import decompose
from crag_core.trace.trace import Trace
from tests.builders import CARD, POLICIES, even, passage, policy, round_of, searched, trace, web_page

HEURISTIC = replace(CARD, name="heuristic", title="Heuristic")
JUDGE = EvaluatorCard("llm", "Language model", "0 to 1", 0.3, 0.7, 0.5, True, "one call a chunk")
TEXT = "Adults pay {0} euros. Children of {0} pay nothing. The sea is blue."
CORPUS = tuple(passage(f"p{n}", TEXT.format(n), document_id=f"d{n % 3}", ordinal=n) for n in range(1, 7))
WEB = tuple(web_page(f"w{n}", f"Fares rose by {n}. It will rain.") for n in (1, 2))
SOURCES = {found.id: found for found in (*CORPUS, *WEB)}


@dataclass(frozen=True)
class Said:
    """What a record holds of one passage; None: nothing."""

    grade: Grade | None = None
    strips: tuple[float | None, ...] | None = None
    picked: tuple[int, ...] | None = None
    opinions: tuple[Grade | None, ...] = (None, None)


@dataclass(frozen=True)
class Facts:
    """From which a record is put together. `absent` names what was never done in it."""

    said: Mapping[str, Said]
    first: tuple[str, ...]
    later: Mapping[str, tuple[str, ...]]
    results: tuple[str, ...] | None
    policy: str
    signals: Scores = ()
    absent: frozenset[str] = frozenset()

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self.said)

    def record(self) -> Trace:
        corpus, web = ({id_: one for id_, one in self.said.items() if id_[0] == kind} for kind in "pw")
        done: dict[str, Any] = {
            "grades": tuple(one.grade for one in corpus.values() if one.grade),
            "strips": tuple(strip for id_, one in corpus.items() for strip in _strips(id_, one)),
            "extractions": tuple(Extraction(id_, one.picked) for id_, one in corpus.items() if one.picked is not None),
        }
        search = searched(*_passages(self.results or ()), strips=())
        strips = None if "strips" in self.absent else tuple(s for id_, one in web.items() for s in _strips(id_, one))
        search = replace(search, strips=strips)
        return trace(
            policy(self.policy),
            web_grades=None if "web grades" in self.absent else tuple(one.grade for one in web.values() if one.grade),
            passages=_passages(self.first),
            signals=self.signals,
            rounds=tuple(round_of(path, *_passages(ids)) for path, ids in self.later.items()),
            web=None if self.results is None else search,
            opinions=tuple(
                Opinion(card, "extractive", tuple(g for one in self.said.values() if (g := one.opinions[at])))
                for at, card in enumerate((HEURISTIC, JUDGE))
            ),
            **{name: made for name, made in done.items() if name not in self.absent},
        )


def _passages(ids: tuple[str, ...]) -> tuple[Passage, ...]:
    return tuple(SOURCES[id_] for id_ in ids)


def _strips(passage_id: str, one: Said) -> tuple[Strip, ...]:
    if one.strips is None:
        return ()
    strips = decompose(SOURCES[passage_id])
    return tuple(replace(strip, score=score) for strip, score in zip(strips, one.strips, strict=False))


shares = st.integers(0, 20).map(lambda n: n / 20)


def _grades(passage_id: str, two: bool) -> st.SearchStrategy[Grade]:
    if two:
        pairs = st.tuples(shares, shares)
        return pairs.map(
            lambda p: Grade(passage_id, sum(p) / 2, parts=tuple(zip((ANSWERING, TOPICAL), p, strict=True)))
        )
    return (shares | st.none()).map(lambda score: Grade(passage_id, score, cause="" if score else "unreadable"))


@st.composite
def facts(draw: st.DrawFn, *, whole: bool = False) -> Facts:
    """`whole`: every evaluator has graded every passage."""
    two = draw(st.booleans())
    first = tuple(draw(st.lists(st.sampled_from([p.id for p in CORPUS[:4]]), unique=True)))
    paths = draw(st.lists(st.sampled_from(["expand", "keyword", "refine", "keyword rewritten"]), unique=True))
    some = st.lists(st.sampled_from([p.id for p in CORPUS]), unique=True, max_size=4).map(tuple)
    later = {path: draw(some) for path in sorted(paths)}
    results = draw(st.none() | st.lists(st.sampled_from([p.id for p in WEB]), unique=True).map(tuple))
    ids = dict.fromkeys((*first, *(id_ for found in later.values() for id_ in found), *(results or ())))

    def said(id_: str) -> Said:
        made = [_grades(id_, two), _grades(id_, False), _grades(id_, False)]
        own, one, other = (draw(way if whole else st.none() | way) for way in made)
        strips = draw(st.none() | st.lists(shares | st.none(), min_size=3, max_size=3).map(tuple))
        picked = draw(st.none() | st.just((0,)) | st.just(()))
        return Said(own, strips, picked, (one, other))

    return Facts(
        said={id_: said(id_) for id_ in ids},
        first=first,
        later=later,
        results=results,
        policy=draw(st.sampled_from(POLICIES)),
        signals=even(draw(shares)),
        absent=frozenset() if whole else frozenset(draw(st.sets(st.sampled_from(["grades", "strips", "extractions"])))),
    )


def edits_of(ids: tuple[str, ...]) -> st.SearchStrategy[Edits]:
    """Of passages that are there, and of one that is not."""
    choice = st.sampled_from(["", "", "dropped", "pinned"])
    return st.fixed_dictionaries({id_: choice for id_ in (*ids, "stale")}).map(
        lambda chosen: Edits(
            tuple(id_ for id_, what in chosen.items() if what == "dropped"),
            tuple(id_ for id_, what in chosen.items() if what == "pinned"),
            even(0.55),
        )
    )
