"""Files on their way into the index, in the background; for administrators."""

from __future__ import annotations

from crag_core.app.uploads import check_files
from crag_core.base.documents import Ingested
from ui.session import access, app_state, background
from ui.session.startup import IndexJob

_FILES = "indexing"


def indexing() -> IndexJob | None:
    return background.job(_FILES)


def indexing_of_others() -> tuple[IndexJob, ...]:
    return background.jobs_of_others(_FILES)


def index(files: list[tuple[str, bytes]], collection: str) -> None:
    """Take files in; raises `NotAllowed` to all but administrators."""
    access.require_administrator()
    check_files(files)
    store = app_state.workbench().store

    def work(job: IndexJob) -> tuple[Ingested, ...]:
        return store.ingest(files, job.tell, collection=collection, cancel=job.cancel)

    background.start(_FILES, work, None, about=object())
