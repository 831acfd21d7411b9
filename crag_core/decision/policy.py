"""A policy as data: what decides (`crag.Routing`), and what the other stages of a run read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from crag_core.base.errors import UnknownName
from crag_core.base.types.decisions import Action
from crag_core.base.types.grades import EvaluatorCard
from crag_core.decision import signals
from crag_core.decision.crag import OF_ALL, WEIGHTS, Routing, Steps
from crag_core.decision.steps import DISCARD, KEEP, check_rules, check_steps

STAND_IN = "stand-in"
"""Behind the name of an action by a rule that took the place of a language model, which nobody could ask."""


class WebQuery(StrEnum):
    """What is sent to the web: the question as it is, or what the language model makes of it.

    `rewritten`: a query of about `WebRules.words` words (description 004). `phrases`: at most `WebRules.phrases` key
    phrases with commas between (arXiv 2401.15884, 4.5). Without a language model the question is sent as it is.
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
    answers is the answer of the run, if the chunks are used as they are.
    """

    AUTORATER = "autorater"
    ANSWER = "answer"


class StripOrder(StrEnum):
    """Sentences by place in the documents, by score, or by the rank of their chunks, each from its start."""

    DOCUMENT = "document"
    RELEVANCE = "relevance"
    RANK = "rank"


PAPER_CUTOFF = 0.25  # the paper keeps strips above -0.5 on its scale of -1 to 1
SCORES = (*WEIGHTS, *OF_ALL)
CLASS_RULES = ("no_retrieval", "one_retrieval")
WITHOUT_MODEL: dict[str, tuple[str | None, str]] = {
    "no_retrieval": (
        "no_retrieval",
        "a rule sorts the question: one retrieval, or several where it asks more than one thing",
    ),
    "whole_context": ("best", "the best chunk decides in place of all chunks together"),
    "documents": ("keep", "no document is read whole"),
    "consolidate": (None, "nothing is consolidated"),
}
"""What a score or step that needs a language model becomes where there is none, and how that is said."""


@dataclass(frozen=True)
class Refinement:
    """Which sentences reach the answer: those above the cut-off, until `budget` tokens (words x 1.3) are full.

    `cutoff` holds for the scores of `scorer`, the evaluator that it was chosen for; None: whoever scores the sentences
    brings its own. `budget` None: nothing but the context of the language model bounds the evidence. `top`: at most so
    many from the corpus, and as many from the web; the best ones.
    """

    cutoff: float | None = None
    order: StripOrder = StripOrder.DOCUMENT
    budget: int | None = None
    top: int | None = None
    scorer: str = "cross-encoder"

    def __post_init__(self) -> None:
        _take_choice(self, "refinement.order", StripOrder)
        _check_share("refinement.cutoff", self.cutoff)
        _check_least({"refinement.budget": self.budget, "refinement.top": self.top}, 1)


@dataclass(frozen=True)
class WebRules:
    """How the web is searched. `query` is what is sent, `limit` how many results are asked for.

    `pages`: the pages of so many results are read, and their chunks used in place of their snippets. `refine`: web
    text goes through the same filter of sentences as chunks. `on_subject`: results whose topical score (or only one)
    is below `lower` are left out. `seconds` is the longest wait, `cooldown` the seconds that must lie between two
    searches of one user; None: no such limit.
    """

    query: WebQuery = WebQuery.REWRITTEN
    words: int = 10
    phrases: int = 3
    limit: int = 5
    pages: int = 0
    refine: bool = False
    on_subject: bool = False
    seconds: float | None = None
    cooldown: float | None = None

    def __post_init__(self) -> None:
        _take_choice(self, "web.query", WebQuery)
        _check_least({"web.words": self.words, "web.phrases": self.phrases, "web.limit": self.limit}, 1)
        _check_least({"web.pages": self.pages}, 0)
        for name, seconds in (("web.seconds", self.seconds), ("web.cooldown", self.cooldown)):
            if seconds is not None and seconds <= 0:
                raise ValueError(f"{name} must be more than 0 seconds, found {seconds}")


@dataclass(frozen=True)
class Expansion:
    synonyms_per_term: int = 2
    vocabulary: int = 4
    max_chunks: int = 20

    def __post_init__(self) -> None:
        _check_least({"expansion.max_chunks": self.max_chunks}, 1)
        own = {"expansion.synonyms_per_term": self.synonyms_per_term, "expansion.vocabulary": self.vocabulary}
        _check_least(own, 0)


@dataclass(frozen=True)
class Preset:
    name: str
    lower: float
    upper: float
    note: str = ""
    cutoff: float | None = None


@dataclass(frozen=True, kw_only=True)
class Policy(Routing):
    """One row of the policy table.

    `lower` must not exceed `upper`, unless the score is `two_signals`, whose thresholds each have a score of their own.
    `labels` are the display names of CORRECT, AMBIGUOUS and INCORRECT. `group` is a heading under which the policy is
    listed, behind those without one. `context_judge` is how a language model is asked with the score `whole_context`.
    """

    name: str
    title: str
    summary: str
    source: str
    evaluator: str
    group: str = ""
    labels: tuple[str, str, str] = ("Correct", "Ambiguous", "Incorrect")
    context_judge: ContextJudge = ContextJudge.AUTORATER
    refinement: Refinement = field(default_factory=Refinement)
    web: WebRules = field(default_factory=WebRules)
    expansion: Expansion = field(default_factory=Expansion)
    presets: tuple[Preset, ...] = ()

    def __post_init__(self) -> None:
        if self.score not in SCORES:
            raise ValueError(f"score: expected one of {', '.join(SCORES)}, found {self.score[:60]!r}")
        for name in ("lower", "upper", "ungraded"):
            _check_share(name, getattr(self, name))
        if not self.allows(self.lower, self.upper):
            raise ValueError(f"lower must not exceed upper, found lower {self.lower} and upper {self.upper}")
        _check_least({"top": self.top, "max_rounds": self.max_rounds}, 1)
        for name, choices in (("at_lower", Action), ("at_upper", Action), ("context_judge", ContextJudge)):
            _take_choice(self, name, choices)
        if self.at_lower is Action.CORRECT or self.at_upper is Action.INCORRECT:
            raise ValueError(
                "at_lower takes AMBIGUOUS or INCORRECT, at_upper CORRECT or AMBIGUOUS, found "
                f"{self.at_lower} and {self.at_upper}"
            )
        check_rules(self)
        for action in Action:
            check_steps(self, action)
        for name, weight in self.weights:
            if name not in signals.NAMES or weight < 0:
                known = ", ".join(signals.NAMES)
                raise ValueError(f"weights take {known} with numbers from 0, found {name} = {weight}")
        if self.score == "signals" and sum(weight for _, weight in self.weights) <= 0:
            raise ValueError("score 'signals' needs weights with a positive sum")
        names = [preset.name for preset in self.presets]
        if len(set(names)) < len(names):
            raise ValueError(f"each preset needs a name of its own, found {', '.join(names)}")
        for preset in self.presets:
            if not self.allows(preset.lower, preset.upper):
                found = f"{preset.lower} and {preset.upper}"
                needed = "lower and upper in 0..1" if self.compares_two_scores else "0 <= lower <= upper <= 1"
                raise ValueError(f"preset {preset.name!r} needs {needed}, found {found}")

    @property
    def routes(self) -> dict[Action, dict[str, Any]]:
        return {action: self.steps(action) for action in Action}

    def label(self, action: Action) -> str:
        return self.labels[list(Action).index(action)]

    def bare_label(self, action: Action) -> str:
        return self.label(action).removesuffix(f" {STAND_IN}")

    def has(self, *names: str) -> bool:
        return any(name in steps for steps in self.routes.values() for name in names)

    @property
    def cutoff(self) -> float:
        """Sentences that score above it are kept; without one of its own, the paper's, on our scale."""
        return PAPER_CUTOFF if self.refinement.cutoff is None else self.refinement.cutoff

    @property
    def thresholds(self) -> tuple[float, float, float]:
        return self.lower, self.upper, self.cutoff

    @property
    def compares_two_scores(self) -> bool:
        """Whether each threshold has a score of its own, so that neither bounds the other."""
        return self.score == "two_signals"

    def allows(self, lower: float, upper: float) -> bool:
        in_range = 0.0 <= lower <= 1.0 and 0.0 <= upper <= 1.0
        return in_range and (self.compares_two_scores or lower <= upper)

    @property
    def scores_the_set(self) -> bool:
        """Whether the score is one of the whole set, made from no chunk's own grade alone."""
        return self.score in OF_ALL

    @property
    def judges_together(self) -> bool:
        return self.score == "whole_context"

    @property
    def reads_grades(self) -> bool:
        """Whether the grades of chunks have any part in the score."""
        return not self.scores_the_set or any(name == signals.RERANK for name, _ in self.weights)

    @property
    def is_plain(self) -> bool:
        return "always" in dict(self.skip)

    @property
    def classifies(self) -> bool:
        """Whether the question is classified before anything is retrieved (arXiv 2403.14403)."""
        return any(name in CLASS_RULES for name, _ in self.skip)

    @property
    def doubtful(self) -> Doubtful:
        return Doubtful.ABSTAIN if "abstain" in self.steps(Action.AMBIGUOUS) else Doubtful.SHOW

    @property
    def retrieves_from_web(self) -> bool:
        return self.max_rounds > 1 and any("web" in (steps.get("again") or ()) for steps in self.routes.values())

    @property
    def needs_model(self) -> bool:
        return bool(self._needing_model)

    @property
    def _needing_model(self) -> list[str]:
        return [name for name in WITHOUT_MODEL if name == self.score or self.has(name) or name in dict(self.skip)]

    @property
    def without_model(self) -> str:
        """What the policy does where there is no language model; "": what it is described for."""
        said = "; ".join(WITHOUT_MODEL[name][1] for name in self._needing_model)
        return f"{said[:1].upper()}{said[1:]}." if said else ""

    def with_doubtful(self, doubtful: Doubtful) -> Policy:
        kept = tuple(step for step in self.ambiguous if step[0] != "abstain")
        return replace(self, ambiguous=(*kept, ("abstain", None)) if Doubtful(doubtful) is Doubtful.ABSTAIN else kept)

    def with_thresholds(
        self, lower: float | None = None, upper: float | None = None, cutoff: float | None = None
    ) -> Policy:
        lower, upper = (self.lower if lower is None else lower), (self.upper if upper is None else upper)
        refinement = self.refinement if cutoff is None else replace(self.refinement, cutoff=cutoff)
        return replace(self, lower=lower, upper=upper, refinement=refinement)

    def with_limit(self, top: int | None) -> Policy:
        return replace(self, refinement=replace(self.refinement, top=top))

    def preset(self, name: str) -> Policy:
        """This policy with the thresholds of one of its presets; `UnknownName` lists them."""
        for preset in self.presets:
            if preset.name == name:
                return self.with_thresholds(preset.lower, preset.upper, preset.cutoff)
        known = [preset.name for preset in self.presets]
        raise UnknownName.among("preset", name, known, of=f" of policy {self.name!r}")

    def without_retrieval(self) -> Policy:
        """This policy where only the given chunks are at hand: no second retrieval is asked for."""
        alone = self._becoming({"documents": KEEP, "expand": None}).once_classified()
        if not self.retrieves_from_web:
            return replace(alone, max_rounds=1)
        changed: dict[str, Any] = {action.lower(): _by_web_alone(steps) for action, steps in alone.routes.items()}
        return replace(alone, max_rounds=2, **changed)

    def once_classified(self) -> Policy:
        """This policy for a question that takes several rounds, which is the one that thresholds decide."""
        return replace(self, skip=tuple(rule for rule in self.skip if rule[0] not in CLASS_RULES))

    def without_language_model(self) -> Policy:
        if not self.needs_model:
            return self
        turns = {name: becomes for name, (becomes, _) in WITHOUT_MODEL.items()}
        score = turns.get(self.score) or self.score
        correct, ambiguous, incorrect = (f"{action.capitalize()} {STAND_IN}" for action in Action)
        return replace(self._becoming(turns), score=score, labels=(correct, ambiguous, incorrect))

    def _becoming(self, turns: dict[str, str | None]) -> Policy:
        changed: dict[str, Any] = {
            action.lower(): tuple(
                (name, value) if name not in turns else (turns[name], None)
                for name, value in steps.items()
                if turns.get(name, name)
            )
            for action, steps in self.routes.items()
        }
        return replace(self, **changed)

    def for_grading(self) -> Policy:
        """This policy where every retrieved chunk is graded once: no rule, no limit, no rounds."""
        return replace(self.without_retrieval(), skip=(), top=None, max_rounds=1)

    def with_thresholds_for(self, card: EvaluatorCard, strip_card: EvaluatorCard) -> Policy:
        """This policy with the thresholds to start from for `card`, and the strip cut-off for `strip_card`.

        A policy's own thresholds hold for the evaluator it was described with, and always when the score is made of
        signals; with any other evaluator that evaluator's defaults are the honest start. Of a whole context the
        judgement is 0 or 1 whatever `upper` is, so that one serves the best chunk where nobody can judge. In the same
        way its cut-off of sentences holds for the scorer it was chosen for.
        """
        is_own = self.evaluator in (card.name, card.name.partition("+")[0])  # the first of two keeps its scale
        if self.score == "signals" or is_own:
            lower, upper = self.lower, self.upper
        elif self.judges_together:
            lower, upper = min(self.lower, card.upper), card.upper
        else:
            lower, upper = card.lower, card.upper
        own = self.refinement.cutoff if self.refinement.scorer == strip_card.name else None
        return self.with_thresholds(lower, upper, strip_card.strip_cutoff if own is None else own)


def _by_web_alone(steps: dict[str, Any]) -> Steps:
    """With the web as the only way to retrieve again; what can retrieve again in no other way uses what there is."""
    ways = steps.get("again", ())
    if "again" not in steps or "web" in (ways or ()):
        return tuple((name, ("web",) if name == "again" else value) for name, value in steps.items())
    kept = tuple((name, value) for name, value in steps.items() if name not in ("again", DISCARD))
    return (*(((KEEP, None),) if DISCARD in steps else ()), *kept)


def _check_share(name: str, value: float | None) -> None:
    if value is not None and not 0.0 <= value <= 1.0:
        raise ValueError(f"{name} must lie in 0..1, found {value}")


def _take_choice(record: object, place: str, choices: type[StrEnum]) -> None:
    """Put the member in the place of its value, since members are compared by identity; ValueError for no value."""
    name = place.rpartition(".")[2]
    if (value := getattr(record, name)) not in list(choices):
        raise ValueError(f"{place}: expected one of {', '.join(choices)}, found {str(value)[:60]!r}")
    object.__setattr__(record, name, choices(value))


def _check_least(values: Mapping[str, int | None], least: int) -> None:
    for name, value in values.items():
        if value is not None and value < least:
            raise ValueError(f"{name} must be {least} or more, found {value}")
