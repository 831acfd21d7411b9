"""What an ending is called: action, handling and where the knowledge came from, in one table."""

from dataclasses import replace
from itertools import product

import pytest

from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.decisions import Action, Decision, Handling
from crag_core.base.types.grades import Grade
from crag_core.base.types.knowledge import Consolidated, Consolidation, Excerpt, Knowledge
from crag_core.decision.refine import decompose
from crag_core.trace.grounding.ending import AnswerEnding, ending_of
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace, context_key
from crag_core.view.run_view import view_run
from tests.builders import passage, policy, trace, web_page

DUES = passage("p1", "A yacht pays 14 pounds a night.", source="dues.pdf")


def answered(
    grade: float, text: str = "14 pounds [1].", state: AnswerState = AnswerState.COMPLETE, **fields: object
) -> Trace:
    strips = tuple(replace(strip, score=0.9) for strip in decompose(DUES))
    run = trace(policy("paper"), passages=(DUES,), grades=(Grade("p1", grade),), strips=strips, **fields)
    routed = reroute(run, run.settings.policy)
    key = context_key(run.question, routed.decision.action, routed.knowledge.excerpts)
    return replace(run, answer=Answer(text, state, "ollama/small", key))


IN, WEB = passage("p1"), web_page("w1", "Yachts pay 15 pounds.")
ACTIONS = {"C": Action.CORRECT, "A": Action.AMBIGUOUS, "I": Action.INCORRECT}
MEMORY, BOTH = Consolidated("At ten.", (), (1,)), Consolidated("At nine.", (1,), (1,))
CITED, WEB_CITED, UNCITED, SAID = "At nine [1].", "15 pounds [2].", "At nine.", "At ten (from the model's memory)."


def knowledge(known: str) -> Knowledge:
    """ "own": of the corpus, "web", "own web", "none"; "merged": consolidated with memory, "recalled": memory alone."""
    own = (Excerpt(IN, IN.text),) if known.split()[0] in ("own", "merged", "recalled") else ()
    web = (Excerpt(WEB, WEB.text),) if "web" in known else ()
    pieces = {"merged": (BOTH, MEMORY), "recalled": (MEMORY,)}.get(known)
    return Knowledge(own, web, (), consolidation=None if pieces is None else Consolidation(("p1",), 1, pieces=pieces))


@pytest.mark.parametrize(
    ("actions", "handlings", "known", "text", "expected"),
    [
        ("C", "keep refine extract documents", "own", CITED, AnswerEnding.ANSWERED),
        ("AI", "keep refine extract", "own", CITED, AnswerEnding.DOUBTFUL),
        ("AI", "keep refine extract", "own", UNCITED, AnswerEnding.DOUBTFUL),
        ("CAI", "documents", "own", CITED, AnswerEnding.ANSWERED),  # what was judged were the chunks
        ("CAI", "discard keep refine", "web", "15 pounds [1].", AnswerEnding.FROM_WEB),
        ("CAI", "discard refine", "web", "15 pounds.", AnswerEnding.FROM_WEB),  # all that it was given is
        ("CA", "refine", "own web", CITED, AnswerEnding.ANSWERED),
        ("CAI", "keep refine", "own web", WEB_CITED, AnswerEnding.FROM_WEB),
        ("CAI", "refine", "own web", "Nine or 15 [1, 2].", AnswerEnding.ANSWERED),
        ("I", "keep refine", "own web", CITED, AnswerEnding.DOUBTFUL),  # it cites what was judged irrelevant alone
        ("CA", "keep", "merged", CITED, AnswerEnding.ANSWERED),
        ("I", "keep", "merged", CITED, AnswerEnding.DOUBTFUL),
        ("CAI", "keep", "merged", UNCITED, AnswerEnding.FROM_MEMORY),
        ("CAI", "keep", "merged", SAID, AnswerEnding.FROM_MEMORY),
        ("CAI", "keep", "recalled", CITED, AnswerEnding.FROM_MEMORY),  # no piece stands in what it cites
    ],
)
def test_what_a_whole_answer_is_called(
    actions: str, handlings: str, known: str, text: str, expected: AnswerEnding
) -> None:
    for action, handling in product(actions, handlings.split()):
        decided = Decision(ACTIONS[action], "", 0.5, "as made up", (), handling=Handling(handling))
        written = Answer(text, AnswerState.COMPLETE, "small", "key")
        assert ending_of(decided, knowledge(known), written) is expected, (action, handling)


@pytest.mark.parametrize("action", list(Action))
@pytest.mark.parametrize("known", ["own", "web", "merged", "recalled", "none"])
def test_what_is_no_whole_answer_is_called_so_whatever_it_is_from(action: Action, known: str) -> None:
    decided = Decision(action, "", 0.5, "as made up", ())
    for state, expected in (
        (AnswerState.CANNOT_ANSWER, AnswerEnding.UNANSWERED),
        (AnswerState.CUT, AnswerEnding.CUT),
        (AnswerState.STOPPED, AnswerEnding.STOPPED),
        (AnswerState.FAILED, AnswerEnding.FAILED),
    ):
        assert ending_of(decided, knowledge(known), Answer(CITED, state, "small", "key")) is expected
    assert ending_of(decided, knowledge(known), None) is AnswerEnding.NOT_RUN
    assert ending_of(decided, knowledge(known), None, asks_back=True) is AnswerEnding.ASKS_BACK


def test_what_was_written_for_another_action_has_not_been_run() -> None:
    run = answered(0.95)
    stricter = run.settings.policy.with_thresholds(0.97, 0.99)
    assert view_run(run, stricter).routed.ending is AnswerEnding.NOT_RUN
