"""The stages on the documents: retrieve, route, score sentences, extract, assemble.

A stage takes the trace so far and gives a `Result`, or None when there is nothing to do.
"""

import json
import re
from dataclasses import replace
from functools import partial

from crag_core.base.errors import CragError, Stopped
from crag_core.base.prompts import replies
from crag_core.base.prompts.replies import EXTRACTION_SCHEMA
from crag_core.base.protocols import RetrievalResult
from crag_core.base.reply_parsing import parse_verdict, without_thoughts
from crag_core.base.text.display import counted
from crag_core.base.text.words import estimate_tokens
from crag_core.base.types.decisions import Handling
from crag_core.base.types.grades import QuestionClass
from crag_core.base.types.knowledge import Extraction, Strip
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import StepState, Usage
from crag_core.decision.refine import decompose
from crag_core.decision.signals import CLASSES, class_by_rule
from crag_core.pipeline.grading import strips_as_asked
from crag_core.pipeline.run import Parts, Result, Run, ask_twice
from crag_core.trace.edits import edited
from crag_core.trace.reroute import carried_out, decision_path_of, reroute
from crag_core.trace.trace import Trace, context_ids


def classify(trace: Trace, parts: Parts, run: Run) -> Result | None:
    """Ask the language model how much has to be looked up (arXiv 2403.14403); again where its reply is unreadable."""
    if not trace.settings.policy.classifies or trace.question_class is not None:
        return None
    if trace.settings.pinned:
        return Result({"question_class": QuestionClass("B")}, "B: files are pinned", state=StepState.SKIPPED)
    if parts.model is None:
        label = next(letter for letter, value in CLASSES.items() if value == class_by_rule(trace.question))
        return Result({}, f"{label}, by a rule: no language model to ask", state=StepState.SKIPPED)
    asked, read = parts.prompts.classify(trace.question), partial(parse_verdict, verdicts=replies.CLASSES_SAID)
    found, said, usage = ask_twice(parts.model, parts.prompts, asked, read, run.cancel, replies.CLASS_SCHEMA)
    label = (found.verdict or "").upper()
    meanings = {"A": "no document is needed", "B": "one retrieval", "C": "several rounds"}
    cause = "" if label else f"{found.cause} (asked twice)"
    summary = f"{label}: {meanings[label]}" if label else f"not sorted: {cause}"
    return Result({"question_class": QuestionClass(label, "\n".join(said), cause)}, summary, usage)


def retrieve(trace: Trace, parts: Parts, run: Run) -> Result | None:
    if trace.passages is None and decision_path_of(trace, trace.settings.policy).decision.is_from_memory:
        return Result({"passages": ()}, "not needed: the question needs no document", state=StepState.SKIPPED)
    if trace.passages is not None or parts.retriever is None:
        return None
    settings = trace.settings
    pinned = parts.retriever.read_files(settings.pinned) if settings.pinned else ()
    found = RetrievalResult(())
    if not pinned or settings.search_too:
        found = parts.retriever.retrieve(trace.question, settings.top_k)
    # A pinned file is there whole; its pieces would only say the same again.
    passages = pinned + tuple(one for one in found.passages if one.document_id not in settings.pinned)
    signals = parts.meter.measure(trace.question, passages, found.agreement)
    sources = len({passage.stems_from for passage in passages})
    summary = f"{counted(len(passages), 'chunk')} from {counted(sources, 'document')}" if passages else "nothing found"
    summary += f", {found.by}" if found.by else ""
    summary += ", as recorded in the log" if trace.logged else ""
    summary += f", {len(pinned)} of them whole files that you pinned" if pinned else ""
    return Result({"passages": passages, "signals": signals}, summary)


def route(trace: Trace, parts: Parts, run: Run) -> Result | None:
    decision_path = decision_path_of(trace, trace.settings.policy)
    earlier = tuple(iteration.decision for iteration in decision_path.iterations[:-1])
    if (decision_path.decision, earlier) == (trace.decision, trace.earlier):
        return None
    summary = f"{decision_path.decision.label}: {decision_path.decision.reason}"
    return Result({"decision": decision_path.decision, "earlier": earlier}, summary)


def score_strips(trace: Trace, parts: Parts, run: Run) -> Result | None:
    """Score the strips of what was looked at; what an expansion adds only where strips decide what is kept of it."""
    decision_path = decision_path_of(trace, trace.settings.policy)
    by_strips = decision_path.decision.handling in (Handling.REFINE, Handling.EXTRACT)
    evidence = (
        decision_path.evidence
        if by_strips
        else tuple(one for one in decision_path.evidence if one.id in trace.edits.pinned)
    )
    result = score_strips_of(trace, parts, run, replace(decision_path, evidence=evidence).looked_at)
    return result and _settling(trace, result)


def score_strips_of(trace: Trace, parts: Parts, run: Run, passages: tuple[Passage, ...]) -> Result | None:
    scored = {strip.passage_id for strip in trace.strips or ()}
    todo = tuple(passage for passage in passages if passage.id not in scored and passage.text.strip())
    if trace.strips is not None and not todo:
        return None
    strips, summary = scored_strips(trace.question, todo, parts, run)
    return Result({"strips": (trace.strips or ()) + strips}, summary)


def extract(trace: Trace, parts: Parts, run: Run) -> Result | None:
    """Sentences picked by the language model, where the route asks for that; checked word for word."""
    decision_path = decision_path_of(trace, trace.settings.policy)
    read = {*trace.edits.pinned, *(extraction.passage_id for extraction in trace.extractions or ())}
    todo = [passage for passage in decision_path.kept if passage.id not in read and passage.text.strip()]
    if decision_path.decision.handling is not Handling.EXTRACT or not todo:
        return None
    if parts.model is None:
        return Result({}, "no language model to extract sentences; kept by score instead", state=StepState.SKIPPED)
    chats = [parts.prompts.extract(trace.question, passage.text) for passage in todo]
    replies = parts.model.complete_all(chats, run.cancel, EXTRACTION_SCHEMA)
    extractions, broken = list(trace.extractions or ()), None
    for passage, reply in zip(todo, replies, strict=True):
        if isinstance(reply, CragError) and not isinstance(reply, Stopped):
            broken = reply  # the replies that did come are kept
        elif isinstance(reply, Exception):
            raise reply
        else:
            extractions.append(_checked(passage, reply.text, reply.usage, trace.strips or ()))
    new = extractions[len(trace.extractions or ()) :]
    usage = sum((extraction.usage for extraction in new), Usage(calls=len(todo) - len(new)))
    changes = {"extractions": tuple(extractions)} if extractions else {}
    if broken:
        return Result(changes, broken.message, usage, StepState.FAILED, broken.hint, type(broken).__name__)
    kept = sum(len(extraction.strip_indexes) for extraction in new)
    refused = sum(len(extraction.refused) for extraction in new)
    summary = f"{counted(kept, 'sentence')} extracted word for word"
    summary += f"; {counted(refused, 'sentence')} refused, not in the chunk" if refused else ""
    return _settling(trace, Result(changes, summary, usage))


def _settling(trace: Trace, result: Result) -> Result:
    """With the decision too, where refinement settles whether the web is asked."""
    if not trace.refines_first:
        return result
    decision = decision_path_of(replace(trace, **result.changes), trace.settings.policy).decision
    return result if decision == trace.decision else replace(result, changes={**result.changes, "decision": decision})


def assemble(trace: Trace, parts: Parts, run: Run) -> Result | None:
    routed = reroute(trace, trace.settings.policy)
    excerpts = routed.knowledge.excerpts
    changes = {"context": context_ids(excerpts), "corrections": carried_out(edited(trace), routed)}
    if (trace.context, trace.corrections) == tuple(changes.values()):
        return None
    tokens = sum(estimate_tokens(excerpt.text) for excerpt in excerpts)
    internal, external = len(routed.knowledge.internal), len(routed.knowledge.external)
    summary = f"{counted(internal, 'excerpt')} from the corpus, {external} from the web, {tokens} tokens"
    return Result(changes, ". ".join((summary, *routed.knowledge.notes)))


def scored_strips(
    question: str, passages: tuple[Passage, ...], parts: Parts, run: Run
) -> tuple[tuple[Strip, ...], str]:
    chunks = [(passage, decompose(passage)) for passage in passages]
    scored, why = parts.strip_evaluator.score(question, chunks, run.cancel)
    strips = strips_as_asked(question, passages, scored)
    summary = f"{counted(len(strips), 'sentence')} scored by {parts.strip_evaluator.card.title.lower()}"
    unscored = sum(strip.score is None for strip in strips)
    if not unscored:
        return strips, summary
    return strips, f"{len(strips) - unscored} of {summary}, {unscored} not graded: {why}"


def _checked(passage: Passage, reply: str, usage: Usage, strips: tuple[Strip, ...]) -> Extraction:
    sentences = parse_sentences(reply)
    if sentences is None:
        return Extraction(passage.id, (), raw=reply, cause="the reply of the model could not be read", usage=usage)
    own = tuple(strip for strip in strips if strip.passage_id == passage.id)
    indexes, refused = locate(sentences, passage.text, own)
    return Extraction(passage.id, indexes, refused, reply, usage=usage)


_SHORTEST = 3  # characters; less than this is found in any passage and proves nothing


def parse_sentences(reply: str) -> tuple[str, ...] | None:
    """The sentences in a reply: the JSON that was asked for, or plain lines; None when it is unreadable."""
    text = without_thoughts(reply)
    match = re.search(r'\{(?=\s*["}]).*\}|\[(?=\s*["\]]).*\]', text, re.DOTALL)  # "[1]" in a line of prose is no list
    if match:
        try:
            data = json.loads(match.group())
        except (ValueError, RecursionError):
            return None
        found = data.get("sentences") if isinstance(data, dict) else data
        if not isinstance(found, list):
            return None
        sentences = tuple(item.strip() for item in found if isinstance(item, str))
        return tuple(filter(None, sentences)) if sentences or not found else None
    if not text or text.startswith(("{", "[")):
        return None
    if re.search(r"\bno (?:relevant )?sentences?\b|^none\b", text, re.IGNORECASE):
        return ()
    return tuple(line for raw in text.splitlines() if (line := raw.strip().lstrip("-*• ").strip('"“”')))


def locate(sentences: tuple[str, ...], text: str, strips: tuple[Strip, ...]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """(indexes of the strips in which the sentences stand, sentences that do not stand in `text`).

    Only white space may differ. `strips` are those of the passage `text`.
    """
    indexes: set[int] = set()
    refused = []
    for sentence in sentences:
        words = sentence.split()
        pattern = r"\s+".join(re.escape(word) for word in words)
        match = re.search(pattern, text) if len(" ".join(words)) >= _SHORTEST else None
        if match is None:
            refused.append(sentence)
            continue
        indexes |= {strip.index for strip in strips if strip.start < match.end() and match.start() < strip.end}
    return tuple(sorted(indexes)), tuple(refused)
