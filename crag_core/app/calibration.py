"""Calibrates an evaluator by name: finds its files, has a labelled set graded, and keeps what came of it."""

from __future__ import annotations

import time
from dataclasses import replace
from threading import Event

from crag_core.app.workbench import Choice, Workbench
from crag_core.base.data_files import DATA
from crag_core.base.errors import CragError
from crag_core.base.protocols import Cancel
from crag_core.evaluators.named.evaluator import NamedEvaluator
from crag_core.evaluators.named.files import OnStatus, no_status
from crag_core.evaluators.named.names import parse_name
from crag_core.evaluators.policies import DEFAULT
from crag_core.experiments.batch import OnSetProgress, score
from crag_core.experiments.evaluators import KeptEvaluator
from crag_core.experiments.evaluators import calibrate as fitted
from crag_core.experiments.labelled.graded import cases
from crag_core.experiments.labelled.questions import LabelledSet
from crag_core.experiments.labelled.read import read_questions

SAMPLE = "sample"
"""The labelled questions that ship with the project, about the sample documents."""
CORPORA = "corpora"
"""Folder of the laboratory for documents that are apart from the user's own."""


def sample_questions() -> LabelledSet:
    return LabelledSet(SAMPLE, read_questions(SAMPLE, (DATA / "questions" / "sample.jsonl").read_bytes()).questions)


def apart(workbench: Workbench, name: str) -> Workbench:
    """For the documents of a set: their own index, and all else as `workbench` has it."""
    home = workbench.config.home / "laboratory" / CORPORA / name
    own = Workbench(replace(workbench.config, home=home, retriever="", vector_store=""))
    own.experiments, own.cache = workbench.experiments, workbench.cache
    return own


def sample_bench(workbench: Workbench, tell: OnStatus, cancel: Cancel) -> Workbench:
    """With the sample documents alone, indexed at the first time; the user's documents have no part in it."""
    own = apart(workbench, SAMPLE)
    there = {document.name for document in own.store.documents()}
    missing = [(path.name, path) for path in sorted((DATA / "sample").iterdir()) if path.name not in there]
    if missing:
        tell(f"Indexing {len(missing)} sample documents, apart from yours")
        own.store.ingest(missing, cancel=cancel)
    return own


def calibrate(
    workbench: Workbench,
    name: str,
    labelled: LabelledSet | None = None,
    *,
    cancel: Event | None = None,
    on_progress: OnSetProgress = lambda progress: None,
    tell: OnStatus = no_status,
) -> KeptEvaluator:
    """Grade `labelled` over the documents of `workbench` (None: the sample's questions, over its own documents), and
    keep the calibration in its home. What was graded is kept too, so that a stopped one goes on.

    The newest files of the hub count, and stay those that are used until the next calibration. Raises `CragError`.
    """
    cancel = cancel or Event()
    judge = NamedEvaluator(parse_name(name), tell=tell)
    bench = workbench if labelled else sample_bench(workbench, tell, cancel)
    labelled = labelled or sample_questions()
    policy = workbench.policy(DEFAULT)
    choice = Choice(policy, judge.card.name, top_k=bench.config.top_k, collection=labelled.collection)
    engine = bench.engine(choice, observed=False, evaluator=judge)
    log = workbench.experiments.scores(bench.conditions(engine, labelled.questions))
    done = score(
        labelled.questions, engine, log, time.monotonic, workers=1, cancel=cancel,
        on_progress=on_progress, recorded=bench.recorded(labelled.questions),
    )  # fmt: skip
    if done.failed or done.done < done.total:
        missing = done.total - done.done
        raise CragError(
            f"{name} is not calibrated: {missing} of {done.total} questions were not graded.",
            hint="What was graded is kept: start it again to continue.",
        )
    graded = cases(labelled.questions, log.load())
    kept = fitted(graded, policy, judge.card, judge.files.revision, labelled.name)
    workbench.experiments.save_evaluator(kept)
    return kept
