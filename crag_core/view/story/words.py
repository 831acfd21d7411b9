"""The captions of a story: everyday words around the numbers of the record."""

from __future__ import annotations

from crag_core.base.text.display import against, clean, sentence, shortened
from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.decisions import HANDLING_WORDS, Action, CorrectionKind, Decision, Handling
from crag_core.base.types.passages import ANSWERING, TOPICAL, Origin
from crag_core.base.types.web import WebOutcome
from crag_core.decision.policy import Policy
from crag_core.decision.reasons import SCORE_WORDS
from crag_core.trace.grounding.ending import AnswerEnding
from crag_core.trace.grounding.quoted_answer import CITATION, EXTRACTIVE, citations
from crag_core.trace.reroute import NO_MODEL, Missing
from crag_core.view.path.stages import describe_web, kept
from crag_core.view.run_view import RunView, model_name
from crag_core.view.story.steps import Outcome, Verdict

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
ASKS = {ANSWERING: "Does it hold the answer?", TOPICAL: "Is it on the subject?", "": "Does it fit the question?"}
_QUOTED = 90  # characters
_JUDGED = {
    Action.CORRECT: "Good evidence",
    Action.AMBIGUOUS: "Doubtful evidence",
    Action.INCORRECT: "Poor evidence",
}


def many(number: int, noun: str) -> str:
    """ "six chunks", "1,240 chunks"."""
    said = _WORDS[number] if number < len(_WORDS) else f"{number:,}"
    return f"{said} {noun}" if number == 1 else f"{said} {noun}s"


def capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def question_caption(view: RunView) -> str:
    first = "RAG answers questions from documents: it searches them, and writes an answer from what it finds."
    if view.routed.decision.is_from_memory:
        return f"{first} Here a language model said beforehand that this question needs no document."
    if view.routed.decision.verdict is None and view.trace.passages is not None:
        return f"{first} Plain RAG, as here, does not check what it found."
    return f"{first} Corrective RAG (CRAG) first checks whether what it found is good enough. Follow one question."


def found_caption(view: RunView) -> str:
    found = view.routed.decision_path.looked_at
    if view.routed.decision.is_from_memory:
        return "The documents are not searched."
    if not found:
        return "The search of the documents finds nothing."
    sources = len({passage.stems_from for passage in found})
    close = "They come closest to the question, which" if len(found) > 1 else "It comes closest to the question, which"
    return (
        f"The search returns {many(len(found), 'chunk')}: short pieces of {many(sources, 'document')}. "
        f"{close} does not mean that the answer is in there."
    )


def graded_caption(view: RunView, best: tuple[float, ...], graded: int, ungraded: int) -> str:
    """`best` are the best answering and topical scores, or the best score of the only scale."""
    if not best:
        return (
            f"An evaluator was to read each chunk and score it. It could grade none of the {many(ungraded, 'chunk')}."
        )
    lost = f" {capital(many(ungraded, 'chunk'))} could not be graded." if ungraded else ""
    if len(best) == 2:
        (first, _), (then, _) = against(best[0], view.policy.upper), against(best[1], view.policy.lower)
        return (
            "Before anything is answered, an evaluator reads each chunk and gives it two scores from 0 to 1: does it "
            f"hold the answer, and is it on the subject? The best of {many(graded, 'chunk')}: {first} and {then}.{lost}"
        )
    value, *_ = against(best[0], view.policy.lower, view.policy.upper)
    return (
        "Before anything is answered, an evaluator reads each chunk and scores from 0 to 1 how well it fits the "
        f"question. The best of {many(graded, 'chunk')} scores {value}.{lost}"
    )


def decision_caption(view: RunView, graded: int) -> str:
    """`graded` is the number of chunks with a score."""
    decision, policy = view.routed.decision, view.policy
    if decision.is_from_memory:
        return "No document was read, so there is no evidence to check."
    if decision.verdict is None:
        return "Plain RAG has no check: what the search found is used as it is."
    if decision.rule or decision.score is None:
        return f"{sentence(clean(decision.reason))} So no score was compared with a bar."
    told = _by_one if decision.topical is None else _by_two
    notes = [note.removeprefix(NO_MODEL) for note in view.routed.knowledge.notes if note.startswith(NO_MODEL)]
    stand_in = f" A stand-in, since there was no language model: {notes[0]}" if notes else ""
    return told(decision, policy, graded) + stand_in


def _by_two(decision: Decision, policy: Policy, graded: int) -> str:
    score, topical = decision.score or 0.0, decision.topical or 0.0
    value, upper = against(score, policy.upper)
    subject, lower = against(topical, policy.lower)
    best = f"The best of {many(graded, 'chunk')} scores {value}"
    if decision.action is Action.CORRECT:
        return f"{best}: it counts as an answer, for the bar is at {upper}."
    relation = "But they are" if decision.action is Action.AMBIGUOUS else "Nor are they"
    return (
        f"{best}: not an answer, for the bar is at {upper}. {relation} on the subject: {subject}, where the bar is at "
        f"{lower}."
    )


def _by_one(decision: Decision, policy: Policy, graded: int) -> str:
    score = decision.score or 0.0
    value, lower, upper = against(score, policy.lower, policy.upper)
    how = capital(SCORE_WORDS[policy.score].sentence.format(many(graded, "chunk")))
    if decision.action is Action.CORRECT:
        return f"{how} {value}, and the upper bar is at {upper}. That counts as enough to answer from."
    if decision.action is Action.INCORRECT:
        return f"{how} {value}, and the lower bar is at {lower}. That counts as too little to answer from."
    return f"{how} {value}. That lies between the lower bar, {lower}, and the upper bar, {upper}: doubtful."


def verdict_of(decision: Decision) -> Verdict:
    if decision.is_from_memory:
        return Verdict(clean(decision.label), "The language model answers from memory.", "plain")
    if decision.verdict is None:
        return Verdict(clean(decision.label), "Nothing is checked: use the chunks as they are.", "plain")
    done = HANDLING_WORDS[decision.handling][1]
    if decision.next_round and decision.handling is not Handling.DOCUMENTS:
        done = "search again"
    elif decision.wants(CorrectionKind.WEB_SEARCH):
        done += " and ask the web"
    elif decision.web_below is not None:
        done += " and ask the web if little is left"
    return Verdict(str(decision.action), f"{_JUDGED[decision.action]}: {done}.", decision.action.lower())


def outcome_of(view: RunView) -> Outcome:
    return Outcome(
        verdict_of(view.routed.decision),
        (("Documents", _documents(view)), ("Web", _web(view)), ("Answer", _answer(view))),
    )


def _documents(view: RunView) -> str:
    decision, knowledge = view.routed.decision, view.routed.knowledge
    found = len(view.routed.decision_path.evidence)
    if not found:
        return "nothing found"
    if not knowledge.internal:
        return f"{many(found, 'chunk')} set aside"
    if decision.handling is Handling.KEEP or not any(excerpt.strip_ids for excerpt in knowledge.internal):
        noun = "document" if decision.handling is Handling.DOCUMENTS else "chunk"
        return f"{many(len(knowledge.internal), noun)} used whole"
    return f"{kept(knowledge.verdicts, view.routed.decision_path.evidence)} kept"


def _web(view: RunView) -> str:
    decision, web = view.routed.decision, view.trace.web
    if not decision.may_search:
        return "not asked"
    if view.trace.settings.web_mode == "off" or (web and web.outcome is WebOutcome.OFF):
        return "would be asked, but is switched off"
    if web is None:
        return "would be asked (not in this recording)"
    if web.outcome is WebOutcome.USED:
        return f"asked, {many(len(web.results), 'snippet')} found"
    return f"asked, nothing came of it ({web.outcome})" if web.outcome.was_asked else f"not asked ({web.outcome})"


def _answer(view: RunView) -> str:
    answer, taken = view.routed.answer, view.trace.answer
    if answer is None:
        return "the one before no longer counts" if taken and taken.text else "not written yet"
    if answer.state is AnswerState.CANNOT_ANSWER:
        return "none: not certain enough"
    if not answer.text:
        return "none: it broke off"
    if view.routed.ending is AnswerEnding.DOUBTFUL:
        return "doubtful, the nearest sentences"
    if view.routed.ending is AnswerEnding.FROM_MEMORY:
        return "from the model's memory"
    if taken and CITATION.sub("", taken.text) == CITATION.sub("", answer.text):  # other excerpts, other numbers
        return f"as shown before{_cited_from(view, answer)}"
    first = next(filter(None, (CITATION.sub("", line).strip() for line in answer.text.splitlines())), "")
    another = "another than before" if taken and taken.text else "quoted"
    said = shortened(clean(first).strip("“” "), _QUOTED)
    return f"{another}{_cited_from(view, answer)}: “{said}”"


def _cited_from(view: RunView, answer: Answer) -> str:
    excerpts = view.routed.knowledge.excerpts
    are_web = {excerpts[number - 1].passage.origin is Origin.WEB for number in citations(answer.text, len(excerpts))}
    places = [name for name, is_web in (("the documents", False), ("the web", True)) if is_web in are_web]
    return f", from {' and '.join(places)}" if places else ""


def documents_caption(view: RunView) -> str:
    decision, knowledge = view.routed.decision, view.routed.knowledge
    found = len(view.routed.decision_path.evidence)
    whole = sum(not excerpt.strip_ids for excerpt in knowledge.internal)
    if Missing.STRIPS in view.routed.missing:
        return "The sentences of the chunks were to be scored, which this run did not come to."
    if not knowledge.internal:
        if decision.handling is Handling.DISCARD:
            them = f"All {many(found, 'chunk')} are" if found > 1 else "The chunk is"
            return f"{them} set aside. Nothing of {'them' if found > 1 else 'it'} reaches the answer."
        return "No sentence of the chunks scores enough to be kept."
    if Missing.DOCUMENTS in view.routed.missing:
        return "The documents of the chunks were to be read whole, which this run did not come to."
    if whole and decision.handling is Handling.DOCUMENTS:
        them = f"{capital(many(whole, 'document'))} of the chunks"
        return f"{them} {'are' if whole > 1 else 'is'} read whole, as far as there is room."
    if whole:
        return f"{capital(many(whole, 'chunk'))} {'go' if whole > 1 else 'goes'} to the answer whole."
    ids = {passage.id for passage in view.routed.decision_path.evidence}
    verdicts = [one.kept for one in knowledge.verdicts if one.strip.passage_id in ids]
    return (
        f"The sentences of the chunks are scored as well. {capital(many(sum(verdicts), 'sentence'))} of "
        f"{len(verdicts)} {'are' if sum(verdicts) > 1 else 'is'} kept; the others are struck out and do not reach the "
        "answer."
    )


def web_caption(view: RunView, best: float | None, used: int) -> str:
    web = view.trace.web
    if web is None or web.outcome is not WebOutcome.USED:
        return describe_web(view.trace, view.routed)
    found = many(len(web.results), "snippet")
    limits = (view.policy.lower, view.policy.upper)
    graded = f" Graded like the chunks, the best scores {against(best, *limits)[0]}." if best is not None else ""
    unused = "" if used else " None of them is used."
    return f"A web search for the question returns {found}.{graded}{unused}"


def answer_caption(view: RunView, cited: list[bool]) -> str:
    """`cited` tells of each source that the answer cites whether it is a web page."""
    answer, trace = view.routed.answer, view.trace
    if answer is None:
        if trace.failure:
            return f"No answer was written. {clean(trace.failure.summary)}"
        return "No answer was written in this run."
    if answer.state is AnswerState.CANNOT_ANSWER:
        return "The evidence does not hold the answer, so none is made up. That is an answer too."
    if view.routed.ending is AnswerEnding.FROM_MEMORY:
        read = "No document was read" if view.routed.decision.is_from_memory else "The documents do not say so"
        return f"This is what the language model says from memory. {read}, and nothing stands behind it."
    if view.routed.ending is AnswerEnding.DOUBTFUL:
        return "Nothing found is certain enough to be called an answer. These sentences come nearest."
    if answer.state is not AnswerState.COMPLETE:
        why = clean(answer.message) if answer.state is AnswerState.CUT else "The answer broke off."
        return f"{why} {'This is what' if answer.text else 'Nothing'} was written until then."
    place = "the web" if cited and all(cited) else "the documents"
    if answer.writer == EXTRACTIVE:
        return f"The answer is quoted from {place}, word for word. No language model wrote it."
    by = clean(model_name(answer.writer))
    return f"{by} wrote the answer from {place}." if cited else f"{by} wrote the answer. It names no source."
