"""The commands `backup` and `restore`."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from crag_core.app import config
from crag_core.app.config import Config
from crag_core.app.workbench import Workbench
from crag_core.base.errors import BackupFailed, CragError, WrongUse
from crag_core.base.text.display import counted
from crag_core.storage.backup import Sink, copied, new_file, pack, restored, unpack

STREAM = "-"


def add_commands(commands: Any) -> None:
    keep = commands.add_parser("backup", help="write the home folder into one file; the application may run meanwhile")
    keep.add_argument("file", metavar="FILE.zip", help=f"a new file; {STREAM}: standard output")
    keep.set_defaults(command=backup)
    back = commands.add_parser("restore", help="make an empty home folder from a backup, whole or not at all")
    back.add_argument("file", metavar="FILE.zip", help=f"what backup wrote; {STREAM}: standard input")
    back.set_defaults(command=restore)


def backup(options: argparse.Namespace) -> int:
    settings = config.load()
    copy_file = Workbench(replace(settings, retriever="")).store.copy_to
    with _target(options.file) as sink, copied(settings.home, copy_file) as folder:
        held = count(folder, settings)
        size = pack(folder, sink)
    print(f"{options.file}: {held}; {size / 1e6:.1f} MB", file=sys.stderr)
    for line in _not_in_it(settings):
        print(f"not in it: {line}", file=sys.stderr)
    return 0


def restore(options: argparse.Namespace) -> int:
    if options.file != STREAM and not Path(options.file).is_file():
        raise WrongUse(f"{options.file} is not a file.", hint="Check the name of the backup.")
    settings = config.load()
    home = settings.home.absolute()
    with restored(home) as folder, _source(options.file) as file:
        made_at = unpack(file, folder)
        try:
            held = count(folder, settings)
        except (CragError, OSError):
            raise
        except Exception as error:  # of libraries, whose files these are said to be
            message = f"What the backup holds cannot be read ({type(error).__name__}: {str(error)[:200]})."
            raise BackupFailed(message, hint="It was changed before it was made. Take another one.") from error
    print(f"{home}: {held}, as they were at {made_at}")
    if settings.retriever:
        print("note: CRAG_RETRIEVER is set; the documents restored here are searched once it is unset")
    if settings.vector_store:
        print("note: CRAG_VECTOR_STORE is set; it should name an empty one, which is filled at the next start")
    if not _is_here(settings.history):
        print("note: CRAG_HISTORY says that runs are kept elsewhere; those restored here are not looked at")
    return 0


def count(home: Path, settings: Config) -> str:
    """What a home holds, which is read as the application does; nothing is deleted for its age."""
    own = replace(settings, home=home, retriever="", vector_store="", history="disk", history_days=0.0, cache="off")
    held = Workbench(replace(own, audit="off", metrics_port=0))
    documents = held.store.documents()
    numbers = {
        "document": len(documents),
        "chunk": sum(document.passages for document in documents),
        "run": held.history.count(),
        "label": len(held.history.all_labels()),
        "set": len(held.experiments.set_names()),
        "preset": len(held.experiments.preset_names()),
    }
    return ", ".join(counted(number, noun) for noun, number in numbers.items())


def _is_here(setting: str) -> bool:
    return setting in ("", "disk")


def _not_in_it(settings: Config) -> list[str]:
    lines = [".env, .streamlit/secrets.toml and other files of yours: keep them elsewhere"]
    if settings.history.startswith("postgres"):
        lines.append("runs and labels, which are in PostgreSQL (CRAG_HISTORY): back it up with pg_dump")
    elif settings.history != "off" and not _is_here(settings.history):
        lines.append("runs and labels, which are in a database of their own (CRAG_HISTORY): back that up too")
    if settings.retriever:
        lines.append(f"the index of your own engine ({settings.retriever}, CRAG_RETRIEVER): back that up too")
    if settings.vector_store:
        lines.append(f"the vector store ({settings.vector_store}, CRAG_VECTOR_STORE), which is filled from the backup")
    return lines


@contextmanager
def _target(name: str) -> Iterator[Sink]:
    if name == STREAM:
        try:
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except OSError as error:
            raise BackupFailed(
                f"The backup was cut short ({error.strerror}).", hint="Delete what was written."
            ) from error
        return
    with new_file(Path(name)) as file:
        yield file


@contextmanager
def _source(name: str) -> Iterator[BinaryIO]:
    """One that can be sought in."""
    if name == STREAM:
        with tempfile.TemporaryFile() as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
            file.seek(0)
            yield file
        return
    with Path(name).open("rb") as file:
        yield file
