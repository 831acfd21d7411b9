"""The commands `ingest` and `reindex`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from threading import Event
from typing import Any

from crag_core.app.workbench import Workbench
from crag_core.base.data_files import DATA
from crag_core.base.documents import MAIN, Ingested, Progress, Recipe
from crag_core.base.errors import WrongUse, as_typed
from crag_core.base.text.display import counted
from crag_core.retrieval.index.store import PassageStore


def add_commands(commands: Any) -> None:
    add = commands.add_parser("ingest", help="index files and folders")
    add.add_argument("paths", nargs="+", type=Path, metavar="PATH", help=f"for example {DATA.name}/sample")
    add.add_argument("--collection", default="", metavar="NAME", help="put them into this collection; default: main")
    add.set_defaults(command=ingest)
    again = commands.add_parser("reindex", help="index all documents again: other chunk lengths or embedding model")
    again.add_argument("--embedding", metavar="MODEL", help="default: the model of the present index")
    again.add_argument("--tokens", type=int, metavar="N", help="tokens in a chunk, at most; default: as now")
    again.add_argument(
        "--overlap", type=int, metavar="N", help="tokens repeated from the chunk before; default: as now"
    )
    again.set_defaults(command=reindex)


def ingest(options: argparse.Namespace) -> int:
    if absent := [str(path)[:200] for path in options.paths if not os.path.lexists(path)]:
        raise WrongUse(f"There is no file or folder {', '.join(absent)}.", hint="Nothing was indexed.")
    store = Workbench().store
    try:
        take_over(store)
        if interrupted := store.finish_interrupted():
            print("Finished what was interrupted before:")
            _print_outcomes(interrupted)
        outcomes = store.ingest(((path.name, path) for path in options.paths), collection=options.collection or MAIN)
    except KeyboardInterrupt:
        print("\nstopped; what is indexed is kept, and the next start continues from there", file=sys.stderr)
        return 130
    if not outcomes:
        print("error: no file found there.", file=sys.stderr)
        return 1
    _print_outcomes(outcomes)
    return int(any(outcome.outcome == "refused" for outcome in outcomes))


def reindex(options: argparse.Namespace) -> int:
    workbench = Workbench()
    take_over(workbench.store)
    now = workbench.store.index_version
    recipe = Recipe(
        options.embedding or now.embedding,
        now.tokens if options.tokens is None else options.tokens,
        now.overlap if options.overlap is None else options.overlap,
    )
    try:
        with as_typed():
            done = workbench.rebuild(recipe, _print_progress, Event())
    except KeyboardInterrupt:
        print("\nstopped; the present index stays in use", file=sys.stderr)
        return 130
    made = f"{counted(done.passages, 'chunk')} of {counted(done.documents, 'document')}"
    print(f"{made} indexed again: at most {recipe.tokens} tokens, ", end="")
    print(f"{recipe.overlap} of them repeated, by {recipe.embedding}")
    if done.kept_text:
        print(f"{done.kept_text} of them from the text of their old chunks, since the file cannot be read any more")
    return 0


def take_over(store: PassageStore) -> None:
    """Read the documents of an index of an earlier release once more, where there is one."""
    if outcomes := store.take_over(_print_progress):
        print("Read again from the index of an earlier version:", file=sys.stderr)
        for outcome in outcomes:
            print(f"  {outcome.message} {outcome.hint}".rstrip(), file=sys.stderr)


def _print_progress(progress: Progress) -> None:
    if not progress.passages:
        print(f"  {progress.position} of {progress.total}  {progress.name}", file=sys.stderr)


def _print_outcomes(outcomes: tuple[Ingested, ...]) -> None:
    for outcome in outcomes:
        if outcome.outcome == "refused":
            print(f"{outcome.name}: refused\n  {outcome.message} {outcome.hint}")
            continue
        print(outcome.message)
        if outcome.left_out:
            print(f"  {outcome.left_out}")
