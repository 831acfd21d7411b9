"""What all sessions of the process share from its start: the workbench, the first documents, the embedding model."""

from __future__ import annotations

import gc
from contextlib import suppress
from threading import Event, Thread

from crag_core.app.background_jobs import Job
from crag_core.app.workbench import Workbench
from crag_core.base.concurrency.shared import shared
from crag_core.base.data_files import DATA
from crag_core.base.documents import Ingested, Progress
from crag_core.base.errors import BadRecord, CragError
from crag_core.base.llamaindex_import import import_llama_index
from crag_core.base.types.passages import Passage
from crag_core.evaluators.shipped import strip_evaluator
from crag_core.observability.logs import show_logs
from crag_core.observability.metrics import serve
from crag_core.storage import backup

_FIRST_S = 3.0

IndexJob = Job[Progress | None, tuple[Ingested, ...]]


@shared
def shared_workbench() -> Workbench:
    """It serves metrics once it is made, if a port is set. Raises `CragError` for settings of no use."""
    workbench = Workbench()
    workbench.searcher  # noqa: B018  a bad address is refused at the start, where it can be corrected
    if not workbench.policies:
        raise BadRecord("No policy can be used.", hint="\n".join(workbench.problems) or "Put one into data/policies.")
    show_logs(workbench.config.log)
    if workbench.config.metrics_port:
        try:
            serve(workbench.metrics.registry, workbench.config.metrics_port, workbench.config.metrics_address)
        except CragError as error:  # shown in the sidebar; no reason not to start
            workbench.metrics.problem = str(error)
    return workbench


@shared
def warm_up() -> IndexJob:
    """Reads the documents of an index of an earlier release once more, and indexes the samples at the very first start,
    where no other documents are; then `model_loading` starts, and what a kill interrupted is indexed.

    The caller starts this, once the server is up. The result: the sample documents.
    """
    workbench, loading = shared_workbench(), model_loading()
    marker = workbench.config.home / backup.MARKER

    def work(job: IndexJob) -> tuple[Ingested, ...]:
        if workbench.own_engine is not None:
            job.can_be_left = True
            workbench.own_engine.open()
            return ()
        done: tuple[Ingested, ...] = ()
        files = [(path.name, path) for path in sorted((DATA / "sample").iterdir())]
        workbench.store.take_over(job.tell, job.cancel)
        is_ours = not workbench.config.vector_store  # nobody asked for the samples in theirs
        # Somebody may have put in documents of their own by the command line, before the application was started.
        others = {one.name for one in workbench.store.listing()} - {name for name, _ in files}
        if is_ours and not marker.exists() and not others:
            done = workbench.store.ingest(files, job.tell, cancel=job.cancel)
            # At the end of the program the parsing processes may be gone before `cancel` is set: what came tells.
            if len(done) == len(files) and all(one.document_id for one in done):
                marker.touch()
        loading.start()
        workbench.store.finish_interrupted(job.tell, job.cancel)
        return done

    Thread(target=_load_evaluator, daemon=True).start()  # not in the job, which gives way to pages
    return Job(work, None)


def _load_evaluator() -> None:
    """What a first question needs besides the index: LlamaIndex, and the trained evaluator, which reads something."""
    import_llama_index()
    with suppress(CragError):  # which the run tells
        strip_evaluator().grade("Is it read?", (Passage("0", "It is.", "none"),), Event())


@shared
def model_loading() -> Job[None, None]:
    """Loads the embedding model. The first page and a question that was asked before go first: importing PyTorch would
    slow them down, and a question about the samples needs no model.
    """
    workbench = shared_workbench()

    def work(job: Job[None, None]) -> None:
        job.cancel.wait(_FIRST_S)
        while workbench.run_queue.active and not job.cancel.wait(0.1):
            pass
        job.can_be_left = True
        workbench.find_embedder(workbench.embedder.name).load()
        gc.freeze()  # a collection that walks all that PyTorch brings holds everybody up for half a second

    return Job(work, None)
