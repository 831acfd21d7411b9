"""The vocabulary: frozen records of what a run retrieved, scored and did.

Nothing here decides or acts. Throughout, `None` means "never done in this run" and `()` means "done, found nothing".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum

Scores = tuple[tuple[str, float], ...]
"""Named numbers, in the order in which they are shown."""

ANSWERING, TOPICAL = "answering", "topical"
"""Names of two parts that a grade may have: does the passage hold the answer, and is it on the subject at all?"""


def _check_score(score: float | None) -> None:
    if score is not None and not (math.isfinite(score) and 0.0 <= score <= 1.0):
        raise ValueError(f"expected a score in 0..1 or None, found {score}")


class Action(StrEnum):
    CORRECT = "CORRECT"
    AMBIGUOUS = "AMBIGUOUS"
    INCORRECT = "INCORRECT"


class Origin(StrEnum):
    CORPUS = "corpus"
    WEB = "web"


UNNAMED = "unnamed source"
"""The source of a passage that came without any."""


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

    `sign` names what it does, one of `injection_scan.Sign`. `in_source`: the place is in `passage.source`, such as
    the title of a web page.
    """

    passage_id: str
    sign: str
    start: int
    end: int
    in_source: bool = False


@dataclass(frozen=True)
class Usage:
    """What a step cost: model calls and tokens (0 where the model did not say).

    `cut`: about so many tokens of evidence were left out, so that the prompts fit into what the model reads at once.
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cut: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cut + other.cut,
        )


@dataclass(frozen=True)
class Grade:
    """What an evaluator said of one passage.

    `score` lies in 0..1, or is None when the passage could not be graded; then `cause` says why, `raw` holds the reply
    as it came, and `retryable` tells an outage (worth asking again, `error` names its type) from an unreadable reply.
    `from_cache`: an earlier run paid for it. `coarse`: by the coarser of two scales that its evaluator has; None where
    it has but one. `caution` says in a few words what makes the grade less sure than others of its evaluator.
    """

    passage_id: str
    score: float | None
    reason: str = ""
    parts: Scores = ()
    raw: str | None = None
    cause: str = ""
    retryable: bool = False
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    from_cache: bool = False
    error: str = ""
    coarse: bool | None = None
    caution: str = ""

    def __post_init__(self) -> None:
        _check_score(self.score)

    def part(self, name: str) -> float | None:
        """A part score, brought into 0..1; the score where there is no such part; None for an ungraded passage."""
        return None if self.score is None else min(max(dict(self.parts).get(name, self.score), 0.0), 1.0)

    @property
    def two_signals(self) -> tuple[float, float] | None:
        """(answering, topical) where the evaluator tells one from the other; the score for one that it leaves out."""
        answering, topical = self.part(ANSWERING), self.part(TOPICAL)
        if answering is None or topical is None or not {ANSWERING, TOPICAL} & dict(self.parts).keys():
            return None
        return answering, topical


@dataclass(frozen=True)
class Sufficiency:
    """What a language model said of `passages` (ids, in their order), read together: enough to answer from?

    `by` says how it was asked, one of `decision.policy.ContextJudge`. `score` is 1.0 for enough, 0.0 for not enough,
    None where that could not be read; then `cause` says why. `raw` is the reply as it came. `shown`: so many of the
    passages had room in the request, the first ones.
    """

    by: str
    passages: tuple[str, ...]
    shown: int
    score: float | None
    reason: str = ""
    raw: str = ""
    cause: str = ""

    def __post_init__(self) -> None:
        _check_score(self.score)


@dataclass(frozen=True)
class QuestionClass:
    """How much has to be looked up for a question, as a language model says: "A" nothing, "B" one thing, "C" several.

    `label` "": its reply could not be read, and `cause` says why.
    """

    label: str
    raw: str = ""
    cause: str = ""


@dataclass(frozen=True)
class Consolidated:
    """One passage that a language model made of those that agree, in its words.

    `excerpts` are the numbers of its excerpts, `memory` those of the model's own passages, `contradicts` those of other
    consolidated passages, each from 1 and in order.
    """

    text: str
    excerpts: tuple[int, ...] = ()
    memory: tuple[int, ...] = ()
    contradicts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Consolidation:
    """What a language model made of excerpts and of its own knowledge (arXiv 2410.07176).

    `context` are the ids of the strips, or of whole passages, that it was shown. `own` are the passages that it wrote
    from memory, `most` how many it might write. They are no evidence: nothing counts, grades or cites them. `pieces`
    are what both were put together to, () where nothing of them bears on the question. `raw` are its replies as they
    came; `cause` says why they could not be used, "": they could.
    """

    context: tuple[str, ...]
    most: int = 0
    own: tuple[str, ...] = ()
    pieces: tuple[Consolidated, ...] = ()
    raw: str = ""
    cause: str = ""

    @property
    def conflicts(self) -> tuple[tuple[int, int], ...]:
        """Pairs of pieces that contradict each other, by number from 1, the lower one first, each once."""
        told = {(min(n, other), max(n, other)) for n, one in enumerate(self.pieces, 1) for other in one.contradicts}
        return tuple(sorted(told))

    @property
    def from_memory_alone(self) -> tuple[Consolidated, ...]:
        """The pieces that stand in no excerpt."""
        return tuple(one for one in self.pieces if not one.excerpts)


@dataclass(frozen=True)
class EvaluatorCard:
    """What an evaluator declares of itself; thresholds belong to evaluator and corpus, so it brings its own.

    `lower` and `upper` are its default thresholds, `strip_cutoff` the default for strips it scores. `batch` is how many
    passages one model call grades, where it calls a model; `spares_calls`: it asks about some of them, or none.
    `version` tells evaluators of one name from each other whose grades differ, such as a model before and after it was
    trained again.
    """

    name: str
    title: str
    scale: str
    lower: float
    upper: float
    strip_cutoff: float
    calls_model: bool
    cost: str
    batch: int = 1
    version: str = ""
    spares_calls: bool = False


@dataclass(frozen=True)
class Strip:
    """A piece of one to a few sentences: `passage.text[start:end] == text`. `score` as in `Grade`."""

    passage_id: str
    index: int
    start: int
    end: int
    text: str
    score: float | None = None

    def __post_init__(self) -> None:
        _check_score(self.score)

    @property
    def id(self) -> str:
        return f"{self.passage_id}#{self.index}"


class Handling(StrEnum):
    """What becomes of the retrieved passages; `documents`: their documents are read whole in their place."""

    KEEP = "keep"
    REFINE = "refine"
    EXTRACT = "extract"
    DISCARD = "discard"
    DOCUMENTS = "documents"


class CorrectionKind(StrEnum):
    KEEP = "keep"
    DISCARD = "discard"
    REFINE = "refine"
    REWRITE = "rewrite"
    WEB_SEARCH = "web_search"
    EXPAND = "expand"
    READ = "read"
    RE_RETRIEVE = "re_retrieve"
    GENERATE = "generate"


@dataclass(frozen=True)
class Correction:
    """One thing that the decision wants done, or that was done, and why.

    `passage_id` when it concerns one passage only. `query` is the text that was searched or refined with, once it is
    known.
    """

    kind: CorrectionKind
    reason: str
    passage_id: str | None = None
    query: str = ""


ALWAYS = "always"
"""The name of the rule of plain RAG, by which nobody has judged anything."""
NO_RETRIEVAL = "no_retrieval"
"""The name of the rule by which a question is answered without any document."""


@dataclass(frozen=True)
class Decision:
    """Where the question goes.

    `score` is the overall score in 0..1 that was compared with the thresholds, None when there was nothing to compare.
    `deciding` holds the ids of the passages that made the score. `rule` names the fast-path rule that decided without
    any grading, if one did. `handling` is what becomes of the passages that are not discarded one by one. `next_round`
    names the retrieval that is asked for before anything is answered: "expand", "refine", or a re-retrieval strategy.
    `web_below`: the web is asked if refinement leaves something of fewer passages than this, which is not known yet.
    `topical`, where two signals decided: the best topical score, compared with `lower`; only `upper` was compared with
    `score` then, the best answering score. None wherever one number was compared with both.
    """

    action: Action
    label: str
    score: float | None
    reason: str
    plan: tuple[Correction, ...]
    deciding: tuple[str, ...] = ()
    rule: str | None = None
    handling: Handling = Handling.KEEP
    next_round: str | None = None
    topical: float | None = None
    web_below: int | None = None

    @property
    def may_search(self) -> bool:
        """Whether the web is asked, or will be if refinement leaves little."""
        return self.web_below is not None or self.wants(CorrectionKind.WEB_SEARCH)

    @property
    def verdict(self) -> Action | None:
        """The action, where anything was judged; None for plain RAG, and where no document was read."""
        return None if self.rule in (ALWAYS, NO_RETRIEVAL) else self.action

    @property
    def is_from_memory(self) -> bool:
        """Whether the language model answers without any document."""
        return self.rule == NO_RETRIEVAL

    @property
    def confidence(self) -> float | None:
        """How sure the score makes the action (description 003): the score, or 1 - score when INCORRECT.

        Of two signals the one that made the action counts: `topical`, unless CORRECT.
        """
        score = self.score if self.topical is None or self.action is Action.CORRECT else self.topical
        return 1.0 - score if score is not None and self.action is Action.INCORRECT else score

    def wants(self, kind: CorrectionKind) -> bool:
        return any(correction.kind == kind for correction in self.plan)

    def decides_like(self, other: Decision) -> bool:
        """Whether both are one decision, in whatever words: those of a record may be an earlier version's."""
        one, two = (
            replace(each, label="", reason="", plan=tuple(replace(correction, reason="") for correction in each.plan))
            for each in (self, other)
        )
        return one == two


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
    where it comes from. `signals` are measured over the evidence that the round gave. Without `retrievals` the round
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


class WebOutcome(StrEnum):
    USED = "used"
    EMPTY = "empty"
    FAILED = "failed"
    RATE_LIMITED = "rate-limited"
    TIMED_OUT = "timed out"
    OFF = "off"
    COOLING = "cooling down"
    PENDING = "waiting for approval"
    APPROVED = "approved, not searched yet"
    REFUSED = "refused by you"


@dataclass(frozen=True)
class WebAttempt:
    """One provider that was asked, and what came of it."""

    provider: str
    outcome: WebOutcome
    message: str = ""


AS_ASKED = "the question as it is"
"""Who wrote a query for the web that nobody wrote."""


class PageOutcome(StrEnum):
    READ = "read"
    FAILED = "not read"
    PENDING = "waiting for approval"
    APPROVED = "approved, not read yet"
    REFUSED = "refused by you"


@dataclass(frozen=True)
class WebPage:
    """The page of a web result: `result` is the id of the result, whose snippet is used where the page was not read.

    `message` says why it was not. `cut` counts its chunks, `chunks` are the ids of those that were handed on.
    """

    result: str
    url: str
    outcome: PageOutcome
    message: str = ""
    seconds: float = 0.0
    characters: int = 0
    cut: int = 0
    chunks: tuple[str, ...] = ()


@dataclass(frozen=True)
class WebSearch:
    """The web step: the exact query, who wrote it, and what came back.

    `passages` (origin `web`) are the results in the provider's order, each with the chunks of its page behind it;
    `grades` and `strips` are theirs, None where they were never made. `attempts` lists every provider that was asked,
    the one that answered last. `pages` are those of the first results, None where no page was asked for.
    """

    outcome: WebOutcome
    query: str
    query_by: str
    provider: str = ""
    message: str = ""
    passages: tuple[Passage, ...] = ()
    grades: tuple[Grade, ...] | None = None
    strips: tuple[Strip, ...] | None = None
    from_cache: bool = False
    attempts: tuple[WebAttempt, ...] = ()
    pages: tuple[WebPage, ...] | None = None

    @property
    def results(self) -> tuple[Passage, ...]:
        """What the provider gave: the snippets, without the chunks of pages."""
        chunks = {id_ for page in self.pages or () for id_ in page.chunks}
        return tuple(passage for passage in self.passages if passage.id not in chunks)

    def evidence(self, pages: int) -> tuple[Passage, ...]:
        """What counts where the first `pages` pages are read: their chunks in place of their snippets."""
        read = [page for page in (self.pages or ())[:pages] if page.chunks]
        replaced = {page.result for page in read}
        replaced |= {id_ for page in (self.pages or ()) if page not in read for id_ in page.chunks}
        return tuple(passage for passage in self.passages if passage.id not in replaced)

    @property
    def pages_waiting(self) -> tuple[WebPage, ...]:
        """The pages that wait for the user's word."""
        return tuple(page for page in self.pages or () if page.outcome is PageOutcome.PENDING)

    @property
    def is_waiting(self) -> bool:
        """Whether the query, or the pages, wait for the user's word."""
        return self.outcome is WebOutcome.PENDING or bool(self.pages_waiting)


@dataclass(frozen=True)
class Extraction:
    """Sentences a language model picked from one passage.

    `strip_indexes` are the strips that the verbatim sentences fall in; `refused` are replies that do not stand in the
    passage word for word and were therefore thrown out.
    """

    passage_id: str
    strip_indexes: tuple[int, ...]
    refused: tuple[str, ...] = ()
    raw: str | None = None
    cause: str = ""
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class StripVerdict:
    """A strip under one policy: kept or struck out, and why."""

    strip: Strip
    kept: bool
    reason: str


@dataclass(frozen=True)
class Excerpt:
    """What of one passage reaches the answer; the n-th excerpt (from 1) is cited as [n].

    `strip_ids` is empty when the passage goes in whole.
    """

    passage: Passage
    text: str
    strip_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Knowledge:
    """The evidence under one policy: internal (corpus) and external (web) kept apart, and every strip's verdict.

    `consolidation`: the answer is written from what a model made of the excerpts and its own knowledge.
    """

    internal: tuple[Excerpt, ...]
    external: tuple[Excerpt, ...]
    verdicts: tuple[StripVerdict, ...]
    notes: tuple[str, ...] = ()
    consolidation: Consolidation | None = None

    @property
    def excerpts(self) -> tuple[Excerpt, ...]:
        return self.internal + self.external


class AnswerState(StrEnum):
    COMPLETE = "complete"
    STOPPED = "stopped"
    FAILED = "failed"
    CANNOT_ANSWER = "cannot answer"


@dataclass(frozen=True)
class Answer:
    """An answer, tied by `context_key` to the action and the excerpts it was written from."""

    text: str
    state: AnswerState
    writer: str
    context_key: str
    message: str = ""
    usage: Usage = field(default_factory=Usage)

    @property
    def shown(self) -> str:
        """The text; of a question that cannot be answered why, in place of a refusal in the model's words."""
        is_refusal = self.state is AnswerState.CANNOT_ANSWER and self.message
        return self.message if is_refusal or not self.text else self.text


@dataclass(frozen=True)
class Support:
    """One sentence of an answer, `answer.text[start:end]`, and what of the evidence stands behind it.

    `score` in 0..1 says how well its best evidence supports it, None when that could not be measured. `pieces` are the
    ids of the strips (or of passages that went in whole) that support it, best first; `cited` are the excerpt numbers
    that the sentence names itself. `spans` are the parts of the sentence, (from, to), that the evidence lacks, in
    order; () where none were told.
    """

    start: int
    end: int
    score: float | None
    pieces: tuple[str, ...] = ()
    cited: tuple[int, ...] = ()
    spans: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        _check_score(self.score)
        if not 0 <= self.start <= self.end:
            raise ValueError(f"expected 0 <= start <= end, found {self.start} and {self.end}")
        places = [0, *(place for span in self.spans for place in span), self.end - self.start]
        if sorted(places) != places or any(start == end for start, end in self.spans):
            raise ValueError("expected spans that follow each other within the sentence")


@dataclass(frozen=True)
class Opinion:
    """What another evaluator says of the passages of a run, beside the one that its decision was made with.

    `writer` is the language model that the evaluator asked, and `writer_version` which of its versions, as a run's
    settings name them.
    """

    evaluator: EvaluatorCard
    writer: str
    grades: tuple[Grade, ...]
    writer_version: str = ""


@dataclass(frozen=True)
class Edits:
    """What somebody changed about the evidence of a run, to see what would have happened.

    `dropped` and `pinned` are ids of passages, of the corpus or the web. A dropped passage counts as never found. A
    pinned one counts as graded 1.0, and each of its strips as scored 1.0. `signals` are those of the first retrieval,
    measured again without the dropped passages.
    """

    dropped: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    signals: Scores = ()

    def __post_init__(self) -> None:
        both = set(self.dropped) & set(self.pinned)
        if both:
            raise ValueError(f"a chunk is either dropped or pinned, found both: {', '.join(sorted(both))}")

    def __bool__(self) -> bool:
        return bool(self.dropped or self.pinned)


@dataclass(frozen=True)
class ModelCall:
    """One request to a language model during the step of that name, and what came of it.

    `messages` are (role, text) pairs, () where the record had no room for them any more. `error` says why there is no
    reply, or no whole one; "": there is.
    """

    step: str
    messages: tuple[tuple[str, str], ...]
    reply: str
    usage: Usage = field(default_factory=Usage)
    error: str = ""


@dataclass(frozen=True)
class Turn:
    """An earlier question of a conversation: the id of its run, the question as it was understood, and what it got.

    `answer` is cut short, "" where there was none; with `asks_back` it is the question that was asked back.
    """

    run: str
    question: str
    answer: str = ""
    asks_back: bool = False


class Understanding(StrEnum):
    """How far a question of a conversation is understood."""

    OPEN = "not read yet"
    WAITING = "waiting for approval"
    SETTLED = "settled"
    UNSURE = "unsure"
    ASKS_BACK = "asks back"


@dataclass(frozen=True)
class FollowUp:
    """A question of a conversation: as it was `asked`, after which turns, and the one that stands alone in its place.

    `question` is that one, "" until it is made; `by` says by whom. Where no rule makes one (`UNSURE`), it is
    the question before and this one together, by which evidence is found and nothing decided. `asks` is what is asked
    back instead. `note` says why a model's part in it failed. `waits`: somebody is to see the question before anything
    is retrieved.
    """

    asked: str
    history: tuple[Turn, ...] = ()
    outcome: Understanding = Understanding.OPEN
    question: str = ""
    by: str = ""
    asks: str = ""
    note: str = ""
    waits: bool = False

    @property
    def is_changed(self) -> bool:
        """Whether another question stands in its place."""
        return bool(self.question) and self.question != self.asked


class StepState(StrEnum):
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    STOPPED = "stopped"
    WAITING = "waiting"


class StepName(StrEnum):
    """The steps of a run, in order; `SECOND_OPINION` may come at any time after it."""

    CONDENSE = "condense"
    CLASSIFY = "classify"
    RETRIEVE = "retrieve"
    GRADE = "grade"
    JUDGE_TOGETHER = "judge together"
    ROUTE = "route"
    RETRIEVE_AGAIN = "retrieve again"
    SCORE_STRIPS = "score strips"
    EXTRACT = "extract"
    REWRITE = "rewrite"
    SEARCH = "search"
    READ_PAGES = "read pages"
    GRADE_WEB = "grade web"
    CONSOLIDATE = "consolidate"
    ASSEMBLE = "assemble"
    ANSWER = "answer"
    CHECK_ANSWER = "check answer"
    SECOND_OPINION = "second opinion"


@dataclass(frozen=True)
class Step:
    """One entry of the record: what was done, how long it took (seconds) and what it cost.

    `error` is the type of the error that a step failed or was skipped for, as `crag_core.base.errors` names it.
    `taken_over`: another run did it, and paid for it. `by` is the name of the evaluator of a step that graded chunks.
    """

    name: str
    summary: str
    state: StepState = StepState.DONE
    seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    hint: str = ""
    error: str = ""
    taken_over: bool = False
    by: str = ""
