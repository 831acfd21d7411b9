"""How a run ended for whoever asked. Pure; page, report, command line, service and LlamaIndex all say what stands here.

Nothing that was judged AMBIGUOUS or INCORRECT is an answer by itself, and nothing from memory is one of the documents.
"""

from enum import StrEnum

from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.decisions import Action, Decision, Handling
from crag_core.base.types.knowledge import Consolidation, Excerpt, Knowledge
from crag_core.base.types.passages import Origin
from crag_core.trace.grounding.claims import is_from_memory, sentences
from crag_core.trace.grounding.quoted_answer import citations

FROM_MEMORY = "No document was read: this is what the language model says from memory, and nothing stands behind it."
NOT_IN_EVIDENCE = "No excerpt says this: it is from the language model's memory, and nothing stands behind it."


class AnswerEnding(StrEnum):
    """What the answer card is headed by. `NOT_RUN`: the record holds no answer under these settings."""

    ANSWERED = "Answered"
    FROM_WEB = "From the web"
    DOUBTFUL = "Doubtful"
    FROM_MEMORY = "From the model's memory"
    UNANSWERED = "Cannot be answered"
    CUT = "Cut short"
    STOPPED = "Stopped"
    FAILED = "Broke off"
    ASKS_BACK = "Asks back"
    NOT_RUN = "No answer yet"

    @property
    def is_answer(self) -> bool:
        return self in (AnswerEnding.ANSWERED, AnswerEnding.FROM_WEB)


_UNFINISHED = {
    AnswerState.CANNOT_ANSWER: AnswerEnding.UNANSWERED,
    AnswerState.CUT: AnswerEnding.CUT,
    AnswerState.STOPPED: AnswerEnding.STOPPED,
    AnswerState.FAILED: AnswerEnding.FAILED,
}


def ending_of(decision: Decision, knowledge: Knowledge, answer: Answer | None, asks_back: bool = False) -> AnswerEnding:
    if asks_back:
        return AnswerEnding.ASKS_BACK
    if answer is None:
        return AnswerEnding.NOT_RUN
    return _UNFINISHED.get(answer.state) or standing(decision, knowledge, answer.text)


def standing(decision: Decision, knowledge: Knowledge, text: str = "") -> AnswerEnding:
    """What a whole answer from this knowledge is called. `text` "": none is written yet, and all excerpts count.

    From the web or from memory: everything that it cites is; where it cites nothing, all that it was given.
    """
    excerpts, found = knowledge.excerpts, knowledge.consolidation
    cited = citations(text, len(excerpts))
    if decision.is_from_memory:
        return AnswerEnding.FROM_MEMORY
    if found and _is_memory(found, text, is_cited=bool(cited)):
        return AnswerEnding.FROM_MEMORY
    used = [excerpts[number - 1] for number in cited] or list(excerpts)
    if _is_doubtful(decision, knowledge, used):
        return AnswerEnding.DOUBTFUL
    is_from_web = bool(used) and all(one.passage.origin is Origin.WEB for one in used)
    return AnswerEnding.FROM_WEB if is_from_web else AnswerEnding.ANSWERED


def _is_memory(found: Consolidation, text: str, is_cited: bool) -> bool:
    if found.pieces and found.pieces == found.from_memory_alone:
        return True
    said = sentences(text)
    may_be = bool(text) and not is_cited and any(piece.memory for piece in found.pieces)
    return may_be or (bool(said) and all(is_from_memory(text[start:end]) for start, end in said))


def _is_doubtful(decision: Decision, knowledge: Knowledge, used: list[Excerpt]) -> bool:
    """Whether chunks that were not judged to hold the answer are used, and nothing better is.

    Documents that were read whole are evidence that nobody judged. A consolidation, or evidence of the web, settles
    what was AMBIGUOUS; what was INCORRECT stays so, wherever it is used.
    """
    if not knowledge.internal or decision.handling is Handling.DOCUMENTS:
        return False
    if decision.verdict is Action.INCORRECT:
        return not any(one.passage.origin is Origin.WEB for one in used)
    is_settled = bool(knowledge.external) or knowledge.consolidation is not None
    return decision.verdict is Action.AMBIGUOUS and not is_settled
