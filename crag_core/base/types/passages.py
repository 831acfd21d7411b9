"""What retrieval finds: passages with every score, and the rounds after the first."""

import math
from dataclasses import dataclass
from enum import StrEnum

Scores = tuple[tuple[str, float], ...]  # named numbers, in the order in which they are shown


ANSWERING, TOPICAL = "answering", "topical"
"""Names of two parts that a grade may have: does the passage hold the answer, and is it on the subject at all?"""


def _check_score(score: float | None) -> None:
    if score is not None and not (math.isfinite(score) and 0.0 <= score <= 1.0):
        raise ValueError(f"expected a score in 0..1 or None, found {score}")


class Origin(StrEnum):
    CORPUS = "corpus"
    WEB = "web"


UNNAMED = "unnamed source"


@dataclass(frozen=True)
class Passage:
    """One retrieved piece of a document, or one web result.

    `page` counts from 1. `ordinal` is the passage's place in its document, from 0. `scores` holds what each retriever
    reported (`cosine` is computed by this project, in -1..1; the others are on the retriever's own scale, and so is
    `provider`, what a provider of web results says of its relevance, where it says anything).
    `found_by` names the retrievers that returned it. `section` is the headings that it stands under, outermost first.
    """

    id: str
    text: str
    source: str
    origin: Origin = Origin.CORPUS
    document_id: str = ""
    page: int | None = None
    url: str | None = None
    ordinal: int = 0
    found_by: tuple[str, ...] = ()
    scores: Scores = ()
    section: str = ""

    def score(self, name: str) -> float | None:
        return dict(self.scores).get(name)

    @property
    def stems_from(self) -> str:
        """What counts as one source: its name or, without one, its document, else the passage itself."""
        return self.source if self.source not in ("", UNNAMED) else self.document_id or self.id


@dataclass(frozen=True)
class Logged:
    """What another system's log says of a question whose chunks a run was given in place of a search.

    `log` is the name under which the log is kept and `record` its entry there, "" where it is not kept. `answer` is
    that system's, "" where the log has none; `references` are right answers, where the log has any.
    """

    log: str = ""
    record: str = ""
    answer: str = ""
    references: tuple[str, ...] = ()


@dataclass(frozen=True)
class Suspicion:
    """A place in a passage that speaks to a model rather than to its reader: `passage.text[start:end]`.

    `sign` names what it does, one of `injection_scan.MEANINGS`. `in_source`: the place is in `passage.source`, such as
    the title of a web page.
    """

    passage_id: str
    sign: str
    start: int
    end: int
    in_source: bool = False


class Engine(StrEnum):
    """How the corpus is searched: by meaning, by words, or both fused by rank."""

    HYBRID = "hybrid"
    DENSE = "dense"
    KEYWORD = "keyword"


@dataclass(frozen=True)
class Retrieval:
    """One search of the corpus: what was asked, how, and the passages in rank order."""

    query: str
    engine: Engine
    passages: tuple[Passage, ...]


@dataclass(frozen=True)
class Round:
    """A later retrieval that a decision asked for.

    `path` names the rounds that led here, this one last, such as ("keyword", "refine"): the same way through the
    record finds the same round again. `query_by` says who wrote the query, `added` the terms that it gained, each with
    where it comes from. `signals` stand in records of earlier versions. Without `retrievals` the round
    was not made, since nothing could be asked that was not asked before; `query_by` says so.
    """

    path: tuple[str, ...]
    retrievals: tuple[Retrieval, ...]
    query_by: str
    added: tuple[tuple[str, str], ...] = ()
    signals: Scores = ()

    def __post_init__(self) -> None:
        if not self.path or not (self.retrievals or self.query_by):
            raise ValueError("a round needs a path, and a retrieval or the reason why none was made")
