"""Files on their way into the index, and the re-indexing of all chunks, in the background; for administrators."""

from __future__ import annotations

from crag_core.app.background_jobs import Job
from crag_core.app.uploads import check_files
from crag_core.base.documents import Ingested, Progress, Rebuilt, Recipe
from ui.session import access, app_state, background
from ui.session.startup import IndexJob

RebuildJob = Job[Progress | None, Rebuilt | None]
_FILES, _REBUILD = "indexing", "rebuild"


def indexing() -> IndexJob | None:
    return background.job(_FILES)


def indexing_of_others() -> tuple[IndexJob, ...]:
    return background.jobs_of_others(_FILES)


def index(files: list[tuple[str, bytes]], collection: str) -> None:
    """Take files in; raises `NotAllowed` to all but administrators, as all here that changes something."""
    access.require_administrator()
    check_files(files)
    store = app_state.workbench().store

    def work(job: IndexJob) -> tuple[Ingested, ...]:
        return store.ingest(files, job.tell, collection=collection, cancel=job.cancel)

    background.start(_FILES, work, None, about=object())


def rebuilding() -> RebuildJob | None:
    """The last re-indexing, which every session sees: its progress, and how it ended."""
    return background.job(_REBUILD, _home())


def rebuild(recipe: Recipe) -> None:
    access.require_administrator()
    chosen = app_state.workbench()

    def work(job: RebuildJob) -> Rebuilt | None:
        return chosen.rebuild(recipe, job.tell, job.cancel)

    background.start(_REBUILD, work, None, _home())


def _home() -> str:
    return str(app_state.settings().home)
