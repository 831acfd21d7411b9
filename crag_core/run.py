"""What a run is made of: its parts, who listens, what stops it, and what a stage reports back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from threading import Event
from typing import Any

from crag_core.protocols import Cancel, Evaluator, LanguageModel, Retriever, WebSearcher
from crag_core.signals import SignalMeter
from crag_core.trace import Trace
from crag_core.types import Step, StepState, Usage


class WebMode(StrEnum):
    AUTO = "auto"
    ASK = "ask"
    OFF = "off"


class Listener:
    """Hears of a run while it happens; called from the thread that runs it. Override what you need."""

    def started(self, name: str) -> None: ...

    def progressed(self, name: str, done: int, total: int) -> None: ...

    def finished(self, step: Step, trace: Trace) -> None: ...

    def wrote(self, piece: str) -> None: ...


@dataclass(frozen=True)
class Parts:
    """What a pipeline is made of. `model` None: no language model, answers are quotations."""

    evaluator: Evaluator
    strip_evaluator: Evaluator
    meter: SignalMeter
    retriever: Retriever | None = None
    model: LanguageModel | None = None
    searcher: WebSearcher | None = None


@dataclass(frozen=True)
class Result:
    """What a stage found: the trace's new fields, a summary for people, the cost, and whether it succeeded."""

    changes: Mapping[str, Any]
    summary: str
    usage: Usage = field(default_factory=Usage)
    state: StepState = StepState.DONE
    hint: str = ""


@dataclass(frozen=True)
class Run:
    """One go: who listens, and the flag that stops it."""

    listener: Listener = field(default_factory=Listener)
    cancel: Cancel = field(default_factory=Event)
