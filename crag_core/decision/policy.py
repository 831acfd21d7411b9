"""A policy as data: aggregation, thresholds, and what each action does. Thresholds are stored here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from crag_core.base.errors import UnknownName
from crag_core.base.types import Action, EvaluatorCard, Handling, Scores
from crag_core.decision import signals

STAND_IN = "stand-in"
"""Behind the name of an action by a rule that took the place of a language model, which nobody could ask."""


class Aggregation(StrEnum):
    """How passage scores become the overall score.

    `signals` is the weighted mean of set-level signals and reads passage grades only for the signal `rerank_top3`.
    `mean-of-kept` first drops the passages below `lower`. `two-signal` takes two numbers from the parts of the grades:
    the best answering score for `upper`, the best topical score for `lower`; without such parts it is `best`.
    `whole-context` is the signal `sufficiency`: what a language model says of all chunks read together.
    """

    BEST = "best"
    WORST = "worst"
    RANK_WEIGHTED = "rank-weighted"
    SIGNALS = "signals"
    MEAN_OF_KEPT = "mean-of-kept"
    TWO_SIGNAL = "two-signal"
    WHOLE_CONTEXT = "whole-context"


class WebUse(StrEnum):
    NEVER = "never"
    ALWAYS = "always"
    WHEN_FEW = "when-few"


class WebQuery(StrEnum):
    """What is sent to the web: the question as it is, or what the language model makes of it.

    `rewritten`: a query of about `Policy.web_query_words` words (description 004). `phrases`: at most
    `Policy.web_query_phrases` key phrases with commas between (arXiv 2401.15884, 4.5). Without a language model the
    question is sent as it is.
    """

    QUESTION = "question"
    REWRITTEN = "rewritten"
    PHRASES = "phrases"


class Doubtful(StrEnum):
    """What a doubtful ending shows: chunks that were not judged CORRECT are used, and nothing better was found.

    `show`: the nearest sentences, or what the language model makes of them, headed as such. `abstain`: that the
    documents do not answer with enough certainty; no language model is asked.
    """

    SHOW = "show"
    ABSTAIN = "abstain"


class ContextJudge(StrEnum):
    """How a language model is asked whether the whole context is enough.

    `autorater`: for a label (arXiv 2411.06037). `answer`: to answer from it or to decline (arXiv 2407.16881); what it
    answers is the answer of the run, if the route uses the chunks as they are.
    """

    AUTORATER = "autorater"
    ANSWER = "answer"


class Again(StrEnum):
    """Retrieving again: more of the same with refined keywords, or in the next way of `Loop.strategies`."""

    REFINE = "refine"
    NEXT_STRATEGY = "next-strategy"


class Strategy(StrEnum):
    """Ways to retrieve again, in the words of the policy files; the first retrieval is always hybrid."""

    KEYWORD = "keyword"
    REWRITTEN = "rewritten"
    EXPANDED = "expanded"
    WEB = "web"


class StripOrder(StrEnum):
    """Strips by their place in the documents, by their score, or by the rank of their passages, each from its start."""

    DOCUMENT = "document"
    RELEVANCE = "relevance"
    RANK = "rank"


PAPER_CUTOFF = 0.25
"""The paper keeps strips above -0.5 on its scale of -1 to 1."""


@dataclass(frozen=True)
class Route:
    """What one action does.

    `drop_below`: passages scoring less are discarded first. `web_below_results`: with `web = "when-few"`, search when
    refinement leaves something of fewer passages than this. `keep_original_without_web`: when the web brings nothing,
    use the retrieved passages after all, with a warning. `expand`: retrieve with an expanded question too, and fuse
    both. `re_retrieve`: retrieve again and decide again, as long as `Loop` allows.
    """

    label: str
    passages: Handling
    web: WebUse = WebUse.NEVER
    drop_below: float | None = None
    web_below_results: int = 3
    keep_original_without_web: bool = False
    expand: bool = False
    re_retrieve: Again | None = None

    @property
    def name(self) -> str:
        """The label without the mark of a stand-in."""
        return self.label.removesuffix(f" {STAND_IN}")


@dataclass(frozen=True)
class StripRules:
    """Which strips reach the answer: those scoring above the cut-off, until `token_budget` (words x 1.3) is full.

    `cutoff` holds for the scores of `scorer`, the evaluator that it was chosen for; None: whoever scores the strips
    brings its own. `token_budget` None: nothing but the context of the language model bounds the evidence.
    `top`: at most so many from the corpus, and as many from the web; the best ones.
    """

    cutoff: float | None = None
    order: StripOrder = StripOrder.DOCUMENT
    token_budget: int | None = None
    top: int | None = None
    scorer: str = "cross-encoder"


@dataclass(frozen=True)
class Expansion:
    """How `Route.expand` works: terms gained at most, and passages kept after fusing both retrievals."""

    synonyms_per_term: int = 2
    vocabulary: int = 4
    max_passages: int = 20


@dataclass(frozen=True)
class Loop:
    """How often a question may be retrieved for (the first time counts), and in which ways, in order."""

    max_iterations: int = 3
    strategies: tuple[Strategy, ...] = tuple(Strategy)


@dataclass(frozen=True)
class Preset:
    """Named thresholds, as a description gives them; `note` says for what they were chosen."""

    name: str
    lower: float
    upper: float
    note: str = ""
    cutoff: float | None = None


@dataclass(frozen=True)
class FastPath:
    """Rules that settle a question without grading, first match wins; None or False switches a rule off.

    `read_file`: every passage is a whole file that the user pinned. `few_context`: the first retrieval found at most
    this many passages. `high_vector_score`: every passage came from dense retrieval with at least this cosine.
    `always`: whatever was found.
    """

    read_file: bool = False
    few_context: int | None = None
    high_vector_score: float | None = None
    always: bool = False


@dataclass(frozen=True)
class SecondOpinion:
    """Asks `evaluator` too about the chunks whose score lies in `band`, both ends included."""

    evaluator: str
    band: tuple[float, float]

    def __post_init__(self) -> None:
        low, high = self.band
        if not 0.0 <= low < high <= 1.0:
            raise ValueError(f"band needs 0 <= low < high <= 1, found {low} and {high}")


@dataclass(frozen=True)
class Policy:
    """One row of the policy table.

    CORRECT when the overall score is >= `upper` (or > with `upper_is_exclusive`), INCORRECT when it is < `lower` (or <=
    with `lower_is_inclusive`), AMBIGUOUS between. CORRECT is looked at first; that matters only where two signals
    contradict each other, and then a passage that answers is no less an answer for looking off topic.
    `lower` must not exceed `upper`, unless the policy `compares_two_scores`, each with its own threshold. Where such a
    policy gets one score only, a `lower` above `upper` decides nothing: CORRECT from `upper`, INCORRECT below it.
    `ungraded_score` is what a passage counts as that could not be graded (None: it does not count), for each of two
    signals. `grade_top` limits the overall score to the first passages. `weights` belong to the aggregation `signals`.
    `refine_web`: web text goes through the same strip filter as passages. `web_on_subject`: web results whose topical
    score (or only one) is below `lower` are left out. `web_pages`: the pages of so many results are read, and their
    chunks used in place of their snippets. `low_variance_promotes` is the option of
    description 002, off by default: between the thresholds, variance <= 0.1 and score > 0.5 make CORRECT.
    `web_query` is what is sent to the web, `web_limit` how many results are asked for.
    `web_seconds` is the longest wait for the web step, `web_cooldown` the seconds that must lie between two searches of
    one user; None: no such limit. `doubtful` is what becomes of chunks that are used and were not judged CORRECT.
    `second_opinion` None: nobody is asked a second time. `without_model` says in a sentence what the policy does where
    there is no language model, if it cannot then do what it is described for; "": it needs none. `context_judge` is how
    a language model is asked with aggregation `whole-context`. `group` is a heading under which the policy is listed,
    behind those without one. `rounds_by_question`: the question is sorted first, into those that need no retrieval, one
    or several (arXiv 2403.14403); only the last are decided by scores. `consolidate`: a language model puts together
    what the evidence says, with at most `own_knowledge` passages that it writes from memory, and the answer is written
    from that (arXiv 2410.07176).
    """

    name: str
    title: str
    summary: str
    source: str
    evaluator: str
    aggregation: Aggregation
    lower: float
    upper: float
    correct: Route
    ambiguous: Route
    incorrect: Route
    upper_is_exclusive: bool = False
    lower_is_inclusive: bool = False
    ungraded_score: float | None = None
    web_when_ungraded: bool = False
    grade_top: int | None = None
    weights: Scores = ()
    low_variance_promotes: bool = False
    fast_path: FastPath = field(default_factory=FastPath)
    strips: StripRules = field(default_factory=StripRules)
    refine_web: bool = False
    web_on_subject: bool = False
    web_limit: int = 5
    web_pages: int = 0
    web_query: WebQuery = WebQuery.REWRITTEN
    web_query_words: int = 10
    web_query_phrases: int = 3
    web_seconds: float | None = None
    web_cooldown: float | None = None
    doubtful: Doubtful = Doubtful.SHOW
    expansion: Expansion = field(default_factory=Expansion)
    loop: Loop = field(default_factory=Loop)
    presets: tuple[Preset, ...] = ()
    second_opinion: SecondOpinion | None = None
    without_model: str = ""
    group: str = ""
    context_judge: ContextJudge = ContextJudge.AUTORATER
    rounds_by_question: bool = False
    consolidate: bool = False
    own_knowledge: int = 0

    def __post_init__(self) -> None:
        routes = [self.route(action) for action in Action]
        shares = {name: getattr(self, name) for name in ("lower", "upper", "ungraded_score")}
        shares["strips.cutoff"] = self.strips.cutoff
        for name, value in (*shares.items(), *(("drop_below", route.drop_below) for route in routes)):
            if value is not None and not 0.0 <= value <= 1.0:
                raise ValueError(f"{name} must lie in 0..1, found {value}")
        if not self.allows(self.lower, self.upper):
            raise ValueError(f"lower must not exceed upper, found lower {self.lower} and upper {self.upper}")
        self._check_signals(routes)
        if self.second_opinion and self.second_opinion.evaluator == self.evaluator:
            raise ValueError(f"second_opinion needs another evaluator than the policy's own, found {self.evaluator!r}")
        if self.second_opinion and self.scores_the_set:
            raise ValueError(
                f"second_opinion needs chunk scores; aggregation '{self.aggregation}' measures one retrieval"
            )
        for name, value, least in (
            ("grade_top", self.grade_top, 1),
            ("strips.token_budget", self.strips.token_budget, 1),
            ("strips.top", self.strips.top, 1),
            ("loop.max_iterations", self.loop.max_iterations, 1),
            ("expansion.max_passages", self.expansion.max_passages, 1),
            ("expansion.synonyms_per_term", self.expansion.synonyms_per_term, 0),
            ("expansion.vocabulary", self.expansion.vocabulary, 0),
            ("web_limit", self.web_limit, 1),
            ("web_pages", self.web_pages, 0),
            ("web_query_words", self.web_query_words, 1),
            ("web_query_phrases", self.web_query_phrases, 1),
            ("own_knowledge", self.own_knowledge, 0),
        ):
            if value is not None and value < least:
                raise ValueError(f"{name} must be {least} or more, found {value}")
        for name, seconds in (("web_seconds", self.web_seconds), ("web_cooldown", self.web_cooldown)):
            if seconds is not None and seconds <= 0:
                raise ValueError(f"{name} must be more than 0 seconds, found {seconds}")
        if self.own_knowledge and not self.consolidate:
            raise ValueError(f"own_knowledge needs consolidate = true, found own_knowledge = {self.own_knowledge}")
        names = [preset.name for preset in self.presets]
        if len(set(names)) < len(names):
            raise ValueError(f"each preset needs a name of its own, found {', '.join(names)}")
        for preset in self.presets:
            if not self.allows(preset.lower, preset.upper):
                found = f"{preset.lower} and {preset.upper}"
                needed = "lower and upper in 0..1" if self.compares_two_scores else "0 <= lower <= upper <= 1"
                raise ValueError(f"preset {preset.name!r} needs {needed}, found {found}")

    def _check_signals(self, routes: list[Route]) -> None:
        for name, weight in self.weights:
            if name not in signals.NAMES or weight < 0:
                known = ", ".join(signals.NAMES)
                raise ValueError(f"weights take {known} with numbers from 0, found {name} = {weight}")
        if self.aggregation is Aggregation.SIGNALS and sum(weight for _, weight in self.weights) <= 0:
            raise ValueError("aggregation 'signals' needs weights with a positive sum")
        if self.scores_the_set and any(route.re_retrieve for route in routes):
            raise ValueError(f"aggregation '{self.aggregation}' measures one retrieval; re_retrieve needs chunk scores")

    def route(self, action: Action) -> Route:
        routes = {Action.CORRECT: self.correct, Action.AMBIGUOUS: self.ambiguous, Action.INCORRECT: self.incorrect}
        return routes[action]

    def drops_below(self, action: Action) -> float | None:
        """The score below which `action` discards a passage; mean-of-kept has already dropped it for the mean."""
        return self.lower if self.aggregation is Aggregation.MEAN_OF_KEPT else self.route(action).drop_below

    @property
    def cutoff(self) -> float:
        """Strips that score above it are kept; until `suited_to` has given one, the paper's own, on our scale."""
        return PAPER_CUTOFF if self.strips.cutoff is None else self.strips.cutoff

    @property
    def thresholds(self) -> tuple[float, float, float]:
        """Lower, upper and the strip cut-off: what the sliders move."""
        return self.lower, self.upper, self.cutoff

    @property
    def compares_two_scores(self) -> bool:
        """Whether each threshold has a score of its own, so that neither bounds the other."""
        return self.aggregation is Aggregation.TWO_SIGNAL

    def allows(self, lower: float, upper: float) -> bool:
        """Whether the policy may have these thresholds."""
        in_range = 0.0 <= lower <= 1.0 and 0.0 <= upper <= 1.0
        return in_range and (self.compares_two_scores or lower <= upper)

    @property
    def scores_the_set(self) -> bool:
        """Whether the overall score is one of the whole set, made from no chunk's own score alone."""
        return self.aggregation in (Aggregation.SIGNALS, Aggregation.WHOLE_CONTEXT)

    @property
    def judges_together(self) -> bool:
        """Whether a language model is asked about all chunks of the first retrieval at once."""
        return self.aggregation is Aggregation.WHOLE_CONTEXT

    @property
    def retrieves_from_web(self) -> bool:
        """Whether the web is a way in which some action retrieves again."""
        moves_on = any(self.route(action).re_retrieve is Again.NEXT_STRATEGY for action in Action)
        return moves_on and Strategy.WEB in self.loop.strategies

    @property
    def needs_model(self) -> bool:
        """Whether it cannot do what it is described for without a language model."""
        reads = any(self.route(action).passages is Handling.DOCUMENTS for action in Action)
        return self.judges_together or self.rounds_by_question or self.consolidate or reads

    @property
    def reads_grades(self) -> bool:
        """Whether passage grades have any part in the overall score."""
        return not self.scores_the_set or any(name == signals.RERANK for name, _ in self.weights)

    def with_thresholds(
        self, lower: float | None = None, upper: float | None = None, cutoff: float | None = None
    ) -> Policy:
        lower, upper = (self.lower if lower is None else lower), (self.upper if upper is None else upper)
        strips = self.strips if cutoff is None else replace(self.strips, cutoff=cutoff)
        return replace(self, lower=lower, upper=upper, strips=strips)

    def with_limit(self, top: int | None) -> Policy:
        """This policy with at most so many sentences of the corpus, and as many of the web; None: no limit."""
        return replace(self, strips=replace(self.strips, top=top))

    def preset(self, name: str) -> Policy:
        """This policy with the thresholds of one of its presets; `UnknownName` lists them."""
        for preset in self.presets:
            if preset.name == name:
                return self.with_thresholds(preset.lower, preset.upper, preset.cutoff)
        raise UnknownName.among(f"preset of policy {self.name!r}", name, [preset.name for preset in self.presets])

    def without_retrieval(self) -> Policy:
        """This policy where only the given passages are at hand: no second retrieval is asked for.

        Where the web is a way to retrieve again, it is the only one that is left.
        """
        chunks = replace(self, **self._routes_on_chunks())
        routes: dict[str, Any] = {action.lower(): replace(chunks.route(action), expand=False) for action in Action}
        loop = replace(self.loop, max_iterations=1)
        if self.retrieves_from_web and self.loop.max_iterations > 1:
            loop = Loop(2, (Strategy.WEB,))
            routes = {name: _as_last_round(route) for name, route in routes.items()}
        return replace(self, loop=loop, rounds_by_question=False, **routes)

    def unaided(self) -> Policy:
        """This policy where there is no language model to ask.

        The best chunk decides in place of the whole context, a rule sorts the question, the chunks are used in place
        of whole documents, and nothing is consolidated. Its names for actions say what a model found, so they are
        "Correct stand-in" and so on then.
        """
        if not self.needs_model:
            return self
        aggregation = Aggregation.BEST if self.judges_together else self.aggregation
        alone: dict[str, Any] = {"aggregation": aggregation, "consolidate": False, "own_knowledge": 0}
        found = replace(self, **alone, **self._routes_on_chunks())
        titles = {one: f"{one.capitalize()} {STAND_IN}" for one in Action}
        named: dict[str, Any] = {one.lower(): replace(found.route(one), label=titles[one]) for one in Action}
        return replace(found, **named)

    def _routes_on_chunks(self) -> dict[str, Any]:
        """The routes that read whole documents, with the chunks in their place."""
        routes = {action.lower(): self.route(action) for action in Action}
        reading = {name: route for name, route in routes.items() if route.passages is Handling.DOCUMENTS}
        return {name: replace(route, passages=Handling.WHOLE) for name, route in reading.items()}

    def for_grading(self) -> Policy:
        """This policy where every retrieved passage is graded once, by one evaluator: no rule, no limit, no rounds."""
        loop = replace(self.loop, max_iterations=1)
        return replace(self.without_retrieval(), loop=loop, fast_path=FastPath(), grade_top=None, second_opinion=None)

    def suited_to(self, card: EvaluatorCard, strip_card: EvaluatorCard) -> Policy:
        """This policy with the thresholds to start from for `card`, and the strip cut-off for `strip_card`.

        A policy's own thresholds hold for the evaluator it was described with, and always when the overall score is
        made of signals; with any other evaluator that evaluator's defaults are the honest start. Of a whole context the
        judgement is 0 or 1 whatever `upper` is, so that one serves the best chunk where nobody can judge. In the same
        way its strip cut-off holds for the scorer it was chosen for.
        """
        if self.aggregation is Aggregation.SIGNALS or card.name == self.evaluator:
            lower, upper = self.lower, self.upper
        elif self.judges_together:
            lower, upper = min(self.lower, card.upper), card.upper
        else:
            lower, upper = card.lower, card.upper
        own = self.strips.cutoff if self.strips.scorer == strip_card.name else None
        return self.with_thresholds(lower, upper, strip_card.strip_cutoff if own is None else own)


def _as_last_round(route: Route) -> Route:
    """A route that can retrieve more of the same no more: it uses what there is."""
    if route.re_retrieve is not Again.REFINE:
        return route
    handling = Handling.WHOLE if route.passages is Handling.DISCARD else route.passages
    return replace(route, re_retrieve=None, passages=handling)
