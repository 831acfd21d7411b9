"""What evaluators say of passages, one by one and together, and of the question."""

from dataclasses import dataclass, field

from crag_core.base.types.passages import ANSWERING, TOPICAL, Scores, _check_score
from crag_core.base.types.steps import Usage


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
    None where that could not be read; then `cause` says why, as where its reply was cut. `raw` is the reply as it
    came. `shown`: so many of the passages had room in the request, the first ones.
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

    @property
    def identity(self) -> tuple[str, str]:
        return self.name, self.version


@dataclass(frozen=True)
class Opinion:
    """What an evaluator says of the passages of a run, of corpus and web.

    `writer` is the language model that the evaluator asked, and `writer_version` which of its versions, as a run's
    settings name them; of one that asks none, those of the run that it was first asked in.
    """

    evaluator: EvaluatorCard
    writer: str
    grades: tuple[Grade, ...]
    writer_version: str = ""
