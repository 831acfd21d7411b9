"""Policy files: what is read, what is refused with what to do, and files and records of the form before."""

import os
import tomllib
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import from_plain
from crag_core.base.types.decisions import Action
from crag_core.decision.crag import Routing
from crag_core.decision.policy import Expansion, Policy, Refinement, WebRules
from crag_core.decision.policy_file import parse_policy, present_form, upgrade
from crag_core.evaluators import policies
from crag_core.evaluators.policies import load_policies, read_policy
from tests.builders import POLICIES, POLICY_FILES, policy_file

TOML = """
title = "Mine"
summary = "A policy of my own."
source = "Me"
evaluator = "llm"
score = "best"
lower = 0.3
upper = 0.7
correct = ["keep"]
ambiguous = ["refine", "web"]
incorrect = ["discard", "web"]
refinement = { cutoff = 0.30 }
"""


def with_lines(lines: str) -> str:
    """`TOML` with other lines in place of those of the same keys."""
    keys = [key_of(line) for line in lines.splitlines()]
    return "\n".join([*(line for line in TOML.splitlines() if key_of(line) not in keys), lines])


def key_of(line: str) -> str:
    return line.split("=")[0].split(".")[0].strip()


def refusal(text: str) -> str:
    with pytest.raises(BadRecord) as refused:
        parse_policy(text, "mine")
    return f"{refused.value}"


def test_what_a_file_leaves_out_takes_its_default() -> None:
    of = parse_policy(TOML, "mine")
    assert (of.name, of.lower, of.upper, of.cutoff) == ("mine", 0.3, 0.7, 0.3)
    assert of == Policy(
        name="mine",
        title="Mine",
        summary="A policy of my own.",
        source="Me",
        evaluator="llm",
        score="best",
        lower=0.3,
        upper=0.7,
        correct=(("keep", None),),
        ambiguous=(("refine", None), ("web", None)),
        incorrect=(("discard", None), ("web", None)),
        refinement=Refinement(cutoff=0.3),
    )
    assert (of.web, of.expansion, of.max_rounds, of.skip) == (WebRules(), Expansion(2, 4, 20), 3, ())


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("uper = 0.6", "policy mine.uper: unknown key. Did you mean 'upper'?"),
        ("refinement.cutof = 0.6", "policy mine.refinement.cutof: unknown key. Did you mean 'cutoff'?"),
        ("lower = 0.9\nupper = 0.2", "lower must not exceed upper, found lower 0.9 and upper 0.2"),
        ("lower = -0.1", "lower must lie in 0..1, found -0.1"),
        ("upper = 1.1", "upper must lie in 0..1, found 1.1"),
        ("ungraded = 5", "ungraded must lie in 0..1, found 5"),
        ("lower = nan", "policy mine.lower: expected a finite number"),
        ('lower = "0.3"', "policy mine.lower: expected a valid number, found str '0.3'"),
        ('score = "median"', "score: expected one of best, two_signals, worst, rank_weighted"),
        ("top = 2.5", "policy mine.top: expected a valid integer, found float 2.5"),
        ("top = 0", "top must be 1 or more, found 0"),
        ('at_lower = "CORRECT"', "at_lower takes AMBIGUOUS or INCORRECT, at_upper CORRECT or AMBIGUOUS, found CORRECT"),
        ('"l\\u001b[31mow" = 1', "policy mine.l[31mow: unknown key."),
        ("lower =", "Policy 'mine' is not valid TOML"),
        ("lower = " + "[" * 5000, "Policy 'mine' is not valid TOML"),
        ("lower = " + "9" * 5000, "Policy 'mine' is not valid TOML"),
        ("web.pages = -1", "web.pages must be 0 or more, found -1"),
        ("web.limit = 0", "web.limit must be 1 or more, found 0"),
        ("web.words = -3", "web.words must be 1 or more, found -3"),
        ('web.words = "x"', "policy mine.web.words: expected a valid integer, found str 'x'"),
        ("web.seconds = 0", "web.seconds must be more than 0 seconds, found 0"),
        ("web.cooldown = -1.5", "web.cooldown must be more than 0 seconds, found -1.5"),
        ("refinement.cutoff = 30", "refinement.cutoff must lie in 0..1, found 30"),
        ("refinement.top = 0", "refinement.top must be 1 or more, found 0"),
        ('ambiguous = ["keep", "again"]\nmax_rounds = 0', "max_rounds must be 1 or more, found 0"),
        ('ambiguous = ["keep", "expand"]\nexpansion.max_chunks = 0', "expansion.max_chunks must be 1 or more, found 0"),
        ('presets = [{name = "odd", lower = 0.9, upper = 0.1}]', "preset 'odd' needs 0 <= lower <= upper <= 1"),
        (
            'score = "two_signals"\npresets = [{name = "odd", lower = 1.2, upper = 0.1}]',
            "preset 'odd' needs lower and upper in 0..1",
        ),
        ('presets = [{name = "odd", lower = 0.1}]', "policy mine.presets[0].upper: missing"),
        (
            'presets = [{name = "x", lower = 0.1, upper = 0.2}, {name = "x", lower = 0, upper = 1}]',
            "each preset needs a name of its own, found x, x",
        ),
        ('score = "signals"', "score 'signals' needs weights with a positive sum"),
        ('score = "signals"\nweights = { rerank_top_3 = 0.4 }', "weights take keyword_overlap, coherence"),
        ('score = "signals"\nweights = { agreement = -0.3 }', "found agreement = -0.3"),
        ('name = "paper"', "policy mine.name: unknown key. A policy has the name of its file."),
    ],
)
def test_a_wrong_line_is_refused_by_name(lines: str, message: str) -> None:
    assert message in refusal(with_lines(lines))


# --- steps ----------------------------------------------------------------------------------------------------------

CHUNKS = "begins with one of keep, refine, extract, discard, documents"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('correct = ["keap"]', "correct: 'keap' is no step. Did you mean 'keep'? Known: keep, refine, extract"),
        ('ambiguous = ["refine", "wbe"]', "ambiguous: 'wbe' is no step. Did you mean 'web'?"),
        ('skip = ["few_chunks"]', "skip: 'few_chunks' is no step."),
        ("skip = [{ few_contxt = 2 }]", "skip: 'few_contxt' is no step. Did you mean 'few_context'?"),
        ("correct = []", f"correct {CHUNKS}, found no step"),
        ('correct = ["web"]', f"correct {CHUNKS}, found web"),
        ('correct = ["web", "keep"]', f"correct {CHUNKS}, found web, keep"),
        ('correct = ["keep", "refine"]', f"correct {CHUNKS}, found keep, refine"),
        ('correct = ["keep", "web", "web"]', "correct: web stands there 2 times; once is enough"),
        ('correct = "keep"', "policy mine.correct: expected a valid array, found str 'keep'"),
        ("correct = [1]", "policy mine.correct[0]: expected a valid array, found int 1"),
        # arguments
        ('correct = ["keep", "drop"]', "correct: expected {drop = a number in 0..1}, found drop = None"),
        ('correct = ["keep", { drop = 30 }]', "correct: expected {drop = a number in 0..1}, found drop = 30"),
        ('correct = ["refine", { web_if_fewer = 0 }]', "expected {web_if_fewer = a whole number from 1}"),
        ('correct = ["keep", { consolidate = -1 }]', "expected {consolidate = a whole number from 0}"),
        ('correct = ["keep", { web = true }]', "correct: expected 'web' without an argument, found web = True"),
        ("skip = [{ high_vector_score = 2 }]", "skip: expected {high_vector_score = a number in 0..1}"),
        ('skip = ["few_context"]', "skip: expected {few_context = a whole number from 1}, found few_context = None"),
        ('correct = ["keep", { again = [] }]', "correct: expected {again = a list of ways}, found again = ()"),
        (
            'correct = ["keep", { again = ["keywords"] }]',
            "correct: 'keywords' is no way to retrieve again. Did you mean 'keyword'? Known: keyword, rewritten",
        ),
        # what has no effect together
        ('correct = ["discard", { drop = 0.3 }]', "correct: drop has no effect: discard drops every chunk"),
        (
            'score = "mean_of_kept"\ncorrect = ["keep", { drop = 0.3 }]',
            "correct: drop has no effect: lower drops chunks",
        ),
        ('correct = ["refine", "web", { web_if_fewer = 3 }]', "correct: web_if_fewer has no effect beside web"),
        ('correct = ["discard", { web_if_fewer = 3 }]', "web_if_fewer has no effect beside discard: write web"),
        ('correct = ["keep", "expand", "again"]', "expand and again are two ways to retrieve again: keep one"),
        ('correct = ["keep", "keep_if_nothing"]', "keep_if_nothing needs discard and a web search"),
        ('incorrect = ["discard", "keep_if_nothing"]', "keep_if_nothing needs discard and a web search"),
        ('correct = ["keep", "abstain"]', "correct: abstain belongs to ambiguous, found keep, abstain"),
        (
            'score = "whole_context"\nambiguous = ["keep", "again"]',
            "ambiguous: again needs the score of single chunks; whole_context measures one retrieval",
        ),
        (
            'score = "signals"\nweights = { agreement = 1 }\nambiguous = ["documents"]',
            "ambiguous: documents needs the score whole_context or best",
        ),
    ],
)
def test_a_step_that_cannot_be_is_refused_with_what_to_do(lines: str, message: str) -> None:
    assert message in refusal(with_lines(lines))


def test_an_action_without_steps_is_refused() -> None:
    text = "\n".join(line for line in TOML.splitlines() if not line.startswith("incorrect"))
    assert "policy mine.incorrect: missing" in refusal(text)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('ambiguous = ["keep"]', "refinement.cutoff: no effect, since no step refines"),
        ('ambiguous = ["keep"]', "It counts with the step refine or extract, or refine = true in [web]: set that"),
        ('ambiguous = ["keep"]\nrefinement = { top = 5 }', "refinement.top: no effect, since no step refines"),
        (
            'ambiguous = ["keep"]\nrefinement = {}\npresets = [{name = "x", lower = 0.1, upper = 0.2, cutoff = 0.3}]',
            "presets.cutoff: no effect, since no step refines",
        ),
        ('refinement = { scorer = "embedding" }', "refinement.scorer: no effect, since there is no cut-off"),
        (
            'ambiguous = ["refine"]\nincorrect = ["discard"]\nweb.limit = 3',
            "web.limit: no effect, since no step searches the web",
        ),
        (
            'ambiguous = ["keep"]\nincorrect = ["discard"]\nrefinement = { top = 5 }\nweb.refine = true',
            "refinement.top",
        ),
        ("expansion.vocabulary = 4", "expansion.vocabulary: no effect, since no step expands"),
        ("max_rounds = 5", "max_rounds: no effect, since no step retrieves again"),
        ("weights = { agreement = 1 }", "weights: no effect, since no signals are weighed. It counts with score"),
        ('context_judge = "answer"', "context_judge: no effect, since the chunks are not judged together"),
        ('web = { query = "question", words = 5 }', "web.words: no effect, since no query is rewritten"),
        ("web.phrases = 2", "web.phrases: no effect, since the web is not asked for key phrases"),
    ],
)
def test_a_key_without_effect_is_refused_with_what_would_make_it_count(lines: str, message: str) -> None:
    said = refusal(with_lines(lines))
    assert message in said and said.endswith(": set that, or leave the key out.")


def test_what_is_off_may_be_said_where_it_changes_nothing() -> None:
    text = with_lines('ambiguous = ["refine"]\nincorrect = ["discard"]\nweb.refine = false\nweb.on_subject = false')
    assert parse_policy(text, "mine").web == WebRules()


@pytest.mark.parametrize(
    "lines",
    [
        'ambiguous = ["keep"]\nrefinement = { budget = 100 }',  # whole chunks have a budget too
        'ambiguous = ["keep", "web"]\nweb.refine = true',  # sentences of the web
        'ambiguous = ["refine", "again"]\nmax_rounds = 5\nweb = { query = "question", words = 5 }',  # refined keywords
        'ambiguous = ["keep", "expand"]\nexpansion.vocabulary = 4\nrefinement = {}',
        'ambiguous = ["keep", "web"]\nincorrect = ["discard", { again = ["web"] }]\nrefinement = {}\nweb.limit = 3',
    ],
)
def test_a_key_that_a_step_reads_is_taken(lines: str) -> None:
    assert parse_policy(with_lines(lines), "mine").name == "mine"


# --- what is no file -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (os.mkfifo, "is no file but a folder, a device or a pipe"),
        (lambda path: path.symlink_to("/dev/zero"), "is no file but a folder, a device or a pipe"),
        (Path.mkdir, "is no file but a folder, a device or a pipe"),
        (lambda path: path.write_text(TOML + "#" * 40_000), "is too large: expected at most 32 KB"),
        (lambda path: path.symlink_to(path), "cannot be read"),
        (lambda path: path.symlink_to("nowhere.toml"), "cannot be read"),
        (lambda path: path.write_bytes(b"\xff"), "cannot be read"),
    ],
)
def test_what_is_no_file_of_text_is_refused_and_the_others_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], object], message: str
) -> None:
    (tmp_path / "good.toml").write_text(TOML, "utf-8-sig")
    make(tmp_path / "mine.toml")
    with pytest.raises(BadRecord, match=message):
        read_policy(tmp_path / "mine.toml")
    monkeypatch.setattr(policies, "FOLDER", tmp_path)
    found, problems = load_policies()
    assert list(found) == ["good"] == [read_policy(tmp_path / "good.toml").name]
    assert len(problems) == 1 and message in problems[0]


# --- the form before ------------------------------------------------------------------------------------------------

LIKE_PAPER = """
correct = { label = "Correct", passages = "refine" }
ambiguous = { label = "Ambiguous", passages = "refine", web = "always" }
incorrect = { label = "Incorrect", passages = "discard", web = "always" }
"""
OLD: dict[str, str] = {
    "paper": """
aggregation = "best"
refine_web = true
web_pages = 3
web_query = "phrases"
web_query_phrases = 3
strips = { order = "document", top = 5 }
"""
    + LIKE_PAPER,
    "agentic": """
aggregation = "mean-of-kept"
ungraded_score = 0.5
web_query = "rewritten"
web_query_words = 10
fast_path = { read_file = true, few_context = 2, high_vector_score = 0.8 }
loop = { max_iterations = 3, strategies = ["keyword", "rewritten", "expanded", "web"] }
correct = { label = "Generate", passages = "whole" }
ambiguous = { label = "Refine", passages = "whole", re_retrieve = "refine" }

[incorrect]
label = "Re-retrieve"
passages = "discard"
re_retrieve = "next-strategy"
keep_original_without_web = true
""",
}


def old(name: str) -> str:
    of = policy_file(name)
    head = "\n".join(f'{key} = "{getattr(of, key)}"' for key in ("title", "group", "summary", "source", "evaluator"))
    return f"{head}\nlower = {of.lower}\nupper = {of.upper}\n{OLD[name]}"


@pytest.mark.parametrize("name", OLD)
def test_a_file_of_the_form_before_means_what_it_meant(name: str) -> None:
    now, then = policy_file(name), parse_policy(old(name), name)
    for field in fields(Routing):
        assert getattr(then, field.name) == getattr(now, field.name), field.name
    assert then.labels == now.labels
    printed = parse_policy(present_form(old(name)), name)
    assert replace(printed, presets=now.presets) == now


@pytest.mark.parametrize("name", POLICIES)
def test_the_present_form_is_printed_as_it_is_read(name: str) -> None:
    text = (POLICY_FILES / f"{name}.toml").read_text("utf-8")
    assert parse_policy(present_form(text), name) == policy_file(name)
    assert present_form(present_form(text)) == present_form(text)


def test_dates_as_titles_are_printed_and_ways_of_the_form_before_are_a_list() -> None:
    assert parse_policy(present_form(with_lines("title = 2020-01-01")), "mine").title == "2020-01-01"
    said = refusal('aggregation = "best"\nincorrect = { re_retrieve = "next-strategy" }\nloop.strategies = 7')
    assert "policy: not of the form that earlier versions wrote (TypeError" in said


def test_what_is_printed_of_an_old_file() -> None:
    text = present_form(old("agentic"))
    assert 'skip = ["read_file", { few_context = 2 }, { high_vector_score = 0.8 }]' in text
    assert 'incorrect = ["discard", { again = ["keyword", "rewritten", "expanded", "web"] }, "keep_if_nothing"]' in text
    assert text.endswith('\n[web]\nquery = "rewritten"\nwords = 10\n') and "fast_path" not in text


@pytest.mark.parametrize(
    ("action", "old_table", "steps"),
    [
        ("correct", {"passages": "whole"}, (("keep", None),)),
        ("correct", {"passages": "refine", "web": "when-few"}, (("refine", None), ("web_if_fewer", 3))),
        ("incorrect", {"passages": "discard", "web": "when-few"}, (("discard", None), ("web", None))),
        ("incorrect", {"passages": "discard", "drop_below": 0.3}, (("discard", None),)),
        ("correct", {"passages": "whole", "drop_below": 0.0}, (("keep", None), ("drop", 0.0))),  # the ungraded
        ("incorrect", {"passages": "discard", "keep_original_without_web": True}, (("discard", None),)),
        # true or false in the first schema of records
        ("ambiguous", {"passages": "whole", "re_retrieve": True}, (("keep", None), ("again", None))),
        ("incorrect", {"passages": "whole", "re_retrieve": True}, (("keep", None), ("again", ("keyword", "web")))),
        ("incorrect", {"passages": "whole", "re_retrieve": False}, (("keep", None),)),
    ],
)
def test_what_an_action_did_becomes_its_steps(action: str, old_table: dict[str, Any], steps: Any) -> None:
    data = tomllib.loads(old("paper")) | {action: old_table, "loop": {"strategies": ["keyword", "web"]}}
    assert dict(vars(read(data)))[action] == steps


def read(data: dict[str, Any]) -> Policy:
    return from_plain(Policy, upgrade(data) | {"name": "paper"}, "policy")


def test_a_second_opinion_and_a_search_without_grades_are_left_out() -> None:
    data = tomllib.loads(old("paper"))
    gone = {"second_opinion": {"evaluator": "llm", "band": [0.3, 0.7]}, "web_when_ungraded": True}
    assert upgrade(data | gone) == upgrade(data)
    assert read(data | {"fast_path": {"read_file": False, "few_context": None, "always": True}}).is_plain
    assert read(data | {"fast_path": {"read_file": False, "few_context": None, "always": False}}).skip == ()
    assert read(data | {"upper_is_exclusive": False}).at_upper is Action.CORRECT


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('"best"', '"median"'), "score: expected one of best, two_signals, worst"),
        (("refine_web", "refine_wbe"), "policy mine.refine_wbe: unknown key."),
        (('passages = "discard"', 'passages = "burn"'), "incorrect: 'burn' is no step."),
        (("top = 5", "tops = 5"), "policy mine.refinement.tops: unknown key. Did you mean 'top'?"),
        (("strips = {", "strips = 3  # {"), "policy: not of the form that earlier versions wrote"),
        (('passages = "discard"', 'pasages = "discard"'), "incorrect: unknown key 'pasages'"),
        (('web = "always"', 'web = "allways"'), "unknown word 'allways' for web"),
        (('web = "always"', 're_retrieve = "again"'), "unknown word 'again' for re_retrieve"),
    ],
)
def test_a_mistake_in_the_form_before_is_refused_too(change: tuple[str, str], message: str) -> None:
    assert message in refusal(old("paper").replace(*change))
