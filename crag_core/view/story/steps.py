"""What a step of a story shows: a title, one caption, and a picture as plain data."""

from __future__ import annotations

from dataclasses import dataclass

Tone = str
"""A name of a colour: "correct", "ambiguous", "incorrect" or "plain"."""


@dataclass(frozen=True)
class Verdict:
    action: str
    meaning: str
    tone: Tone


@dataclass(frozen=True)
class Chunk:
    """`cells` are (head, cell) of a row of a table, () for other text."""

    number: str
    source: str
    text: str
    state: str = ""
    cells: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Bar:
    """A threshold on a scale: "lower" or "upper", and what it is called on the screen."""

    id: str
    name: str
    value: float
    text: str


@dataclass(frozen=True)
class Band:
    """What a score between two edges means; an edge is "zero", "one", or the id of a bar."""

    tone: Tone
    low: str
    high: str


@dataclass(frozen=True)
class Score:
    """One chunk on a scale; `value` None: not graded. `decides`: it is the one that was compared with the bar."""

    number: str
    source: str
    value: float | None
    text: str
    decides: bool


@dataclass(frozen=True)
class Scale:
    """All chunks on one scale from 0 to 1. `asks` is the question that the score answers.

    `overall` is the number that was compared, where it is no single chunk's. `bars` and `bands` are empty before the
    decision. `more` chunks are not shown.
    """

    asks: str
    scores: tuple[Score, ...]
    bars: tuple[Bar, ...] = ()
    bands: tuple[Band, ...] = ()
    overall: float | None = None
    overall_text: str = ""
    more: int = 0


@dataclass(frozen=True)
class Line:
    """A sentence of a chunk, kept or struck out. `score` is "" where it has none; `cells` as of a chunk."""

    text: str
    kept: bool
    score: str
    cells: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Source:
    number: int
    name: str
    text: str
    is_web: bool


@dataclass(frozen=True)
class Outcome:
    """What follows from the scores under one position of the bars, in short lines (name, words)."""

    verdict: Verdict
    lines: tuple[tuple[str, str], ...]


# --- pictures ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class QuestionPicture:
    question: str
    about: str
    kind: str = "question"


@dataclass(frozen=True)
class ChunksPicture:
    chunks: tuple[Chunk, ...]
    more: int = 0
    kind: str = "chunks"


@dataclass(frozen=True)
class ScoresPicture:
    """`verdict` None: nothing is decided yet."""

    scales: tuple[Scale, ...]
    verdict: Verdict | None = None
    kind: str = "scores"


@dataclass(frozen=True)
class SentencesPicture:
    """The sentences of one chunk around those that are kept; `more` says what is not shown."""

    chunk: Chunk
    sentences: tuple[Line, ...]
    more: str = ""
    kind: str = "sentences"


@dataclass(frozen=True)
class WebPicture:
    """`query` is what left the machine, "" where nothing did. `note` says what is to be known of these pages."""

    query: str
    snippets: tuple[Chunk, ...]
    scores: tuple[str, ...]
    note: str = ""
    kind: str = "web"


@dataclass(frozen=True)
class AnswerPicture:
    """`text` is "" where there is no answer, and `why` says why. `nearest` came closest, and was not given as one.

    `cells` as of a chunk, where the answer is one row of a table.
    """

    text: str
    why: str
    sources: tuple[Source, ...]
    tone: Tone
    nearest: Source | None = None
    cells: tuple[tuple[str, str], ...] = ()
    kind: str = "answer"


@dataclass(frozen=True)
class Stretch:
    """Positions of the bar from `first` to `last`, in hundredths, that all have the `outcome` of this index."""

    first: int
    last: int
    outcome: int


@dataclass(frozen=True)
class BarPicture:
    """The bar with this `id` to move over the scores of a scale.

    `start` is where the run had it and `goal` where the presenter is to move it, in hundredths; `text` is the recorded
    threshold. `outcomes` has that of the run first. Every position of `stretches` was decided from the record.
    """

    id: str
    name: str
    scale: Scale
    start: int
    text: str
    goal: int
    stretches: tuple[Stretch, ...]
    outcomes: tuple[Outcome, ...]
    kind: str = "bar"


@dataclass(frozen=True)
class Reading:
    policy: str
    how: str
    scale: Scale
    outcome: Outcome


@dataclass(frozen=True)
class PoliciesPicture:
    readings: tuple[Reading, ...]
    kind: str = "policies"


Picture = (
    QuestionPicture
    | ChunksPicture
    | ScoresPicture
    | SentencesPicture
    | WebPicture
    | AnswerPicture
    | BarPicture
    | PoliciesPicture
)


@dataclass(frozen=True)
class Place:
    """A station of the way: "done", "now", "ahead", or "off" where the question does not come by."""

    name: str
    state: str


@dataclass(frozen=True)
class StoryStep:
    """`note` is a sentence in small print, "" for none. `way` tells how far the question has come."""

    id: str
    title: str
    caption: str
    picture: Picture
    way: tuple[Place, ...]
    note: str = ""


@dataclass(frozen=True)
class Story:
    """`tells_ending`: the title gives the ending away, and is shown with it."""

    id: str
    title: str
    question: str
    steps: tuple[StoryStep, ...]
    tells_ending: bool = False
