"""How a run ended for whoever asked: answered, from the web, doubtful, with a question asked back, not at all."""

from __future__ import annotations

from enum import StrEnum

from crag_core.base.types import AnswerState, Origin
from crag_core.trace.grounding.quoted_answer import citations
from crag_core.view.run_view import RunView


class AnswerEnding(StrEnum):
    """What the answer card is headed by. `NOT_RUN`: the record holds no answer under these settings."""

    ANSWERED = "Answered"
    FROM_WEB = "From the web"
    DOUBTFUL = "Doubtful"
    FROM_MEMORY = "From the model's memory"
    UNANSWERED = "Cannot be answered"
    STOPPED = "Stopped"
    FAILED = "Broke off"
    ASKS_BACK = "Asks back"
    NOT_RUN = "No answer yet"


_UNFINISHED = {
    AnswerState.CANNOT_ANSWER: AnswerEnding.UNANSWERED,
    AnswerState.STOPPED: AnswerEnding.STOPPED,
    AnswerState.FAILED: AnswerEnding.FAILED,
}


def ending(view: RunView) -> AnswerEnding:
    """From the web: everything that the answer cites, or where it cites nothing all that it was given, is."""
    answer, excerpts = view.routed.answer, view.routed.knowledge.excerpts
    if view.trace.asks_back:
        return AnswerEnding.ASKS_BACK
    if answer is None:
        return AnswerEnding.NOT_RUN
    if answer.state in _UNFINISHED:
        return _UNFINISHED[answer.state]
    if view.routed.decision.is_from_memory:
        return AnswerEnding.FROM_MEMORY
    if view.routed.is_doubtful:
        return AnswerEnding.DOUBTFUL
    cited = citations(answer.text, len(excerpts))
    found = view.routed.knowledge.consolidation
    if found and not cited and any(piece.memory for piece in found.pieces):
        return AnswerEnding.FROM_MEMORY
    used = [excerpts[number - 1] for number in cited] or excerpts
    is_from_web = bool(used) and all(one.passage.origin is Origin.WEB for one in used)
    return AnswerEnding.FROM_WEB if is_from_web else AnswerEnding.ANSWERED
