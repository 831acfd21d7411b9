"""Ask: the question, the answer, the decision with its reason, and the evidence sentence by sentence."""

import streamlit as st

from crag_core.app.background_jobs import Job
from crag_core.trace.trace import Trace
from ui.ask import draw_conversation, draw_question, draw_recorded, draw_welcome
from ui.run.job_progress import draw_running, draw_warming
from ui.run.run_actions import draw_failure, draw_understanding
from ui.run.run_page import draw_evidence, draw_story
from ui.session import run_job
from ui.shell import page
from ui.shell.page import draw_report

page.enter("pages/ask.py")
run = run_job.current()  # its id stands in the address
with st.container(key="above_question"):  # so that the question has one place on the page, and is never drawn twice
    if run is None:
        draw_welcome()
    draw_conversation(run)
draw_question(busy=isinstance(run, Job))
draw_report()
match run:
    case None:
        draw_recorded()
    case Job():
        draw_running()
    case Trace() as record:
        draw_failure(record)
        draw_understanding(record)
        if record.passages is not None:
            draw_story()  # the answer, the verdict, the path and the scores
            draw_evidence()  # every chunk, the web, other evaluators, the record
draw_warming()  # last: what comes and goes by itself moves nothing
