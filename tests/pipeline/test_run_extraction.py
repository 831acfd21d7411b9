"""Worst-chunk, AMBIGUOUS: a model picks sentences, and only what stands in the passage word for word is taken."""

import json

from crag_core.base.errors import ModelUnavailable
from crag_core.base.protocols import Messages
from crag_core.base.types.decisions import Action
from crag_core.base.types.steps import StepState, Usage
from crag_core.trace.reroute import Reroute, reroute
from crag_core.trace.trace import Trace
from tests.fakes import QUESTION, USEFUL, USELESS, Bench, FakeModel, passage

INVENTED = "The ferry to Vennick leaves every hour."
TEXTS = (
    f"{USEFUL} {USELESS}",
    "Tickets are sold on board.\nThe crossing takes\n  forty minutes in calm weather.",
    "Dogs travel free of charge. Cats do too.",
)
FOUND = tuple(passage(number, text) for number, text in enumerate(TEXTS, start=1))


def extracting(*replies: str) -> FakeModel:
    """A model that replies to the first passage with the first reply, and so on."""

    def reply(messages: Messages) -> str:
        asked = messages[1][1]
        return next(reply for text, reply in zip(TEXTS, replies, strict=True) if text in asked)

    return FakeModel(extract=reply)


def run(*replies: str) -> tuple[Bench, Trace, Reroute]:
    bench = Bench("worst-chunk", best=0.5, found=FOUND, model=extracting(*replies))
    trace = bench.pipeline.run(QUESTION)
    assert trace.decision is not None and trace.decision.action is Action.AMBIGUOUS
    return bench, trace, reroute(trace, trace.settings.policy)


def sentences(*picked: str) -> str:
    return json.dumps({"sentences": picked})


def struck(routed: Reroute) -> dict[str, str]:
    return {verdict.strip.id: verdict.reason for verdict in routed.knowledge.verdicts if not verdict.kept}


def test_verbatim_sentences_are_kept_even_if_their_score_is_low() -> None:
    bench, trace, routed = run(sentences(USELESS), sentences("Tickets are sold on board."), sentences())
    assert [excerpt.text for excerpt in routed.knowledge.internal] == [USELESS, "Tickets are sold on board."]
    assert struck(routed)["p1#0"] == "not extracted by the language model"
    assert trace.extractions is not None
    assert [extraction.strip_indexes for extraction in trace.extractions] == [(1,), (0,), ()]
    assert bench.counts["extract"] == 3


def test_invented_sentences_are_refused_and_told() -> None:
    _, trace, routed = run(sentences(USEFUL, INVENTED), sentences("Tickets are sold in town."), sentences())
    assert trace.extractions is not None
    assert [extraction.refused for extraction in trace.extractions] == [(INVENTED,), ("Tickets are sold in town.",), ()]
    step = next(step for step in trace.steps if step.name == "extract")
    assert step.summary == "1 sentence extracted word for word; 2 sentences refused, not in the chunk"
    assert step.usage == Usage(3, 60, 15)
    assert [excerpt.text for excerpt in routed.knowledge.internal] == [USEFUL]


def test_unreadable_reply_is_kept_raw_and_told_at_every_strip() -> None:
    unreadable = '{"sentences": ["The ferry to Ven'
    _, trace, routed = run(unreadable, sentences("Tickets are sold on board."), sentences())
    assert trace.extractions is not None
    broken = trace.extractions[0]
    assert (broken.strip_indexes, broken.raw) == ((), unreadable)
    assert broken.cause == "the reply of the model could not be read"
    assert struck(routed)["p1#0"] == struck(routed)["p1#1"] == broken.cause
    assert trace.failure is None


AWAY = ModelUnavailable("Ollama went away.", hint="Start it.")


def away_at_the_second(messages: Messages) -> str | Exception:
    return AWAY if TEXTS[1] in messages[1][1] else sentences()


def test_replies_that_came_before_the_outage_are_kept_and_only_the_missing_are_asked_for() -> None:
    bench = Bench("worst-chunk", best=0.5, found=FOUND, model=(model := FakeModel(extract=away_at_the_second)))
    broken = bench.pipeline.run(QUESTION)
    assert broken.failure is not None and broken.extractions is not None
    assert [extraction.passage_id for extraction in broken.extractions] == ["p1", "p3"]
    assert broken.failure.usage == Usage(3, 40, 10)
    assert (broken.context, broken.answer) == (None, None)
    model.replies["extract"] = sentences(USEFUL)
    bench.forget_counts()
    done = bench.pipeline.resume(Trace.from_json(broken.to_json()))
    assert bench.counts["extract"] == 1
    assert [TEXTS[1] in messages[1][1] for kind, messages in model.asked if kind == "extract"] == [True]
    assert done.extractions is not None and {one.passage_id for one in done.extractions} == {"p1", "p2", "p3"}
    step = next(step for step in done.steps if step.name == "extract")
    assert (step.state, step.usage) == (StepState.DONE, Usage(4, 60, 15)), "the cost of both attempts"
