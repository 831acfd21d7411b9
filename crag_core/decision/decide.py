"""Decides the action: from recorded scores to CORRECT, AMBIGUOUS or INCORRECT, with reason and plan."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from crag_core.base.text.display import against, counted
from crag_core.base.types import ALWAYS, NO_RETRIEVAL, Action, Decision, Grade, Passage, Scores
from crag_core.decision.aggregation import Overall, aggregate, effective_scores, set_aside
from crag_core.decision.plan import Planner
from crag_core.decision.policy import Aggregation, FastPath, Policy
from crag_core.decision.signals import CLASSES, REPEATED, ROUNDS, UNSURE, variance

ONE_RETRIEVAL = "one_retrieval"
_OF_SINGLE_CHUNKS = (Aggregation.BEST, Aggregation.WORST, Aggregation.TWO_SIGNAL)
"""Here the thresholds are held against the score of one chunk, elsewhere against a mean or a weighted sum."""


def decide(
    policy: Policy,
    passages: tuple[Passage, ...],
    grades: tuple[Grade, ...] | None,
    signals: Scores = (),
    path: tuple[str, ...] = (),
    seen: Collection[str] = (),
    left: int | None = None,
    is_last: bool = False,
) -> Decision:
    """Route one question.

    `passages` in rank order; `grades` in any order, None when grading was never done; `signals` are the set-level
    measures of `decision.signals`; `path` names the rounds of retrieval after the first that led here, `seen` the
    passages that were looked at on the way: no rule approves those unread. `left`: of how many passages refinement
    leaves something, None: not known yet; `is_last`: nothing more is to be retrieved. The same arguments always give
    the same decision.
    """
    scores = effective_scores(policy, passages, grades)
    is_unsure = UNSURE in dict(signals)
    is_seen = any(passage.id in seen for passage in passages)
    rule = None if is_unsure or is_seen else match_rule(policy, passages, path, signals)
    if rule and rule[0] == NO_RETRIEVAL:
        passages = ()
    overall, aside = Overall(None), set_aside(policy, passages, grades)
    settled = settle(policy, passages, grades, rule, signals)
    if settled is None:
        overall = aggregate(policy, passages, grades, signals)
        action, reason = _compare(policy, overall)
        if action is Action.CORRECT and overall.topical is not None:  # the passage that answers settles it alone
            overall = replace(overall, deciding=overall.deciding[:1])
        if policy.reads_grades:
            reason = "; ".join((reason, *_cautions(grades or (), overall.deciding, aside)))
    else:
        action, reason = settled
        if rule:
            score = None if rule[0] == NO_RETRIEVAL else 1.0
            overall = Overall(score, "rule", deciding=tuple(passage.id for passage in passages))
            scores = dict.fromkeys(overall.deciding, 1.0)  # description 001: what a rule approves counts as 1.0
            aside = frozenset()
    if action is Action.CORRECT and passages and REPEATED in dict(signals) and not (rule and rule[0] == ALWAYS):
        action, reason = Action.AMBIGUOUS, f"{reason}, but the best sentence is about what was asked before"
        is_last = True  # every round was made before any sentence was scored
    is_plain = policy.fast_path.always and not passages  # no rule speaks of nothing, and nothing was judged either
    measured = not is_unsure and (bool(overall.name) or not passages or policy.web_when_ungraded)
    planner = Planner(policy, action, passages, scores, path if measured else None, left, is_last, aside)
    return Decision(
        action=action,
        label="No retrieval" if rule and rule[0] == NO_RETRIEVAL else policy.route(action).label,
        score=overall.score,
        reason=reason,
        plan=planner.plan(),
        deciding=overall.deciding,
        rule=rule[0] if rule else ALWAYS if is_plain else None,
        handling=planner.handling,
        next_round=planner.next_round,
        topical=overall.topical,
        web_below=planner.web_below,
    )


def _cautions(grades: tuple[Grade, ...], deciding: Collection[str], aside: Collection[str]) -> Iterator[str]:
    """What weakens the grades that decide, and what was kept out of the decision."""
    yield from dict.fromkeys(grade.caution for grade in grades if grade.caution and grade.passage_id in deciding)
    if aside:
        yield f"{counted(len(aside), 'chunk')} with a coarse grade set aside"


def chunk_action(policy: Policy, passage: Passage, grade: Grade | None, aside: Collection[str] = ()) -> Action | None:
    """The action that this chunk's own score stands for (description 004); None where none of its scores counts.

    None too where the policy compares no single chunk with its thresholds. `aside`: ids of `set_aside`.
    """
    compares = policy.aggregation in _OF_SINGLE_CHUNKS and not policy.fast_path.always
    if not compares or grade is None or passage.id in aside:
        return None
    score = policy.ungraded_score if grade.score is None else grade.score
    if score is None:
        return None
    alone = replace(policy, fast_path=FastPath(), low_variance_promotes=False, rounds_by_question=False)
    return decide(alone, (passage,), (replace(grade, score=score),)).action


def settle(
    policy: Policy,
    passages: tuple[Passage, ...],
    grades: tuple[Grade, ...] | None,
    rule: tuple[str, str] | None,
    signals: Scores = (),
) -> tuple[Action, str] | None:
    """The action with its reason where no threshold has a say in it; `rule` is what `match_rule` found."""
    if rule and rule[0] == NO_RETRIEVAL:
        return Action.CORRECT, f"rule {rule[0]}: {rule[1]}"
    if passages and UNSURE in dict(signals):
        return Action.AMBIGUOUS, "no rule makes one question of this and the one before, so nothing was graded"
    if passages and policy.rounds_by_question and ROUNDS not in dict(signals):
        return Action.AMBIGUOUS, "question not classified"
    if not passages:
        return Action.INCORRECT, "nothing was retrieved"
    if rule:
        graded = "nothing was graded" if grades is None else "no grade was looked at"
        return Action.CORRECT, f"rule {rule[0]}: {rule[1]}; {graded}"
    judged = {passage.id for passage in passages[: policy.grade_top]}
    own = [grade for grade in grades or () if grade.passage_id in judged]  # not those of another iteration
    if policy.scores_the_set or any(grade.score is not None for grade in own):
        return None
    return Action.AMBIGUOUS, "no chunk could be graded" if own else "no chunk was graded in this run"


def match_rule(
    policy: Policy, passages: tuple[Passage, ...], path: tuple[str, ...] = (), signals: Scores = ()
) -> tuple[str, str] | None:
    """The first fast-path rule that matches, as (name, reason); None when grading is needed.

    Few passages are approved only as the first retrieval: after one that failed, few are a reason to look at them.
    """
    rules = policy.fast_path
    rounds = dict(signals).get(ROUNDS) if policy.rounds_by_question else None
    if rounds == CLASSES["A"]:
        return NO_RETRIEVAL, "the question needs no document"
    if not passages:
        return None
    if rounds == CLASSES["B"]:
        return ONE_RETRIEVAL, "one retrieval finds what the question needs"
    if rules.always:
        return ALWAYS, "this policy uses what is retrieved as it is"
    if rules.read_file and all("read_file" in passage.found_by for passage in passages):
        return "read_file", "every chunk is a whole file that you pinned"
    if rules.few_context is not None and len(passages) <= rules.few_context and not path:
        return "few_context", f"{len(passages)} chunks, at most {rules.few_context} need no grading"
    if rules.high_vector_score is not None:
        cosines = [passage.score("cosine") for passage in passages if "dense" in passage.found_by]
        if len(cosines) == len(passages) and all((c or 0.0) >= rules.high_vector_score for c in cosines):
            return "high_vector_score", f"every chunk has a cosine of at least {rules.high_vector_score:.2f}"
    return None


def _compare(policy: Policy, overall: Overall) -> tuple[Action, str]:
    score, lower, upper = overall.score, policy.lower, policy.upper
    if score is None and overall.name:
        best, least = against(max(overall.counted), lower)
        return Action.INCORRECT, f"no chunk reaches lower {least}, the best scores {best}"
    if score is None:
        whole = "sufficiency not judged"
        return Action.AMBIGUOUS, whole if policy.judges_together else "no signal of this policy could be measured"
    topical = score if overall.topical is None else overall.topical
    is_good = score > upper or (score == upper and not policy.upper_is_exclusive)
    is_fair = topical > lower or (topical == lower and not policy.lower_is_inclusive)
    spread = variance(overall.counted)
    if policy.low_variance_promotes and is_fair and not is_good and score > 0.5 and spread <= 0.1:
        value, half = against(score, 0.5)
        message = f"{value} > {half} and the scores agree (variance {spread:.2f})"
        return Action.CORRECT, f"{overall.name} {message}"
    # An answering passage that looks off topic contradicts itself; the answer in it counts (docs/policies.md).
    action = Action.CORRECT if is_good else Action.AMBIGUOUS if is_fair else Action.INCORRECT
    if overall.topical is None:
        return action, f"{overall.name} {_against_both(policy, score, action)}"
    first = f"{overall.name} {_against_upper(policy, score, is_good)}"
    second = f"best topical {_against_lower(policy, topical, is_fair)}"
    joined = {(True, True): first, (True, False): f"{first}, although {second}"}
    return action, joined.get((is_good, is_fair), f"{first}, {second}")


def _against_both(policy: Policy, score: float, action: Action) -> str:
    value, low, high = against(score, policy.lower, policy.upper)
    if policy.lower > policy.upper:
        compared = _against_upper(policy, score, action is Action.CORRECT)
        return f"{compared}; with one score, lower {low} above upper decides nothing"
    if action is Action.AMBIGUOUS:
        return f"{value} between lower {low} and upper {high}"
    if action is Action.CORRECT:
        return _against_upper(policy, score, True)
    return _against_lower(policy, score, False)


def _against_upper(policy: Policy, score: float, passes: bool) -> str:
    value, limit = against(score, policy.upper)
    signs = (">", "≤") if policy.upper_is_exclusive else ("≥", "<")
    return f"{value} {signs[0] if passes else signs[1]} upper {limit}"


def _against_lower(policy: Policy, score: float, passes: bool) -> str:
    value, limit = against(score, policy.lower)
    signs = (">", "≤") if policy.lower_is_inclusive else ("≥", "<")
    return f"{value} {signs[0] if passes else signs[1]} lower {limit}"
