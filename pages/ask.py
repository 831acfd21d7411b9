"""Ask: the question, the decision with its reasons, the evidence sentence by sentence, and the answer."""

import streamlit as st

from ui.ask import draw_question, draw_welcome
from ui.run.job_progress import draw_running, draw_warming
from ui.run.run_page import draw_run
from ui.session import current_run, run_job
from ui.shell import page
from ui.shell.page import draw_report

page.enter("pages/ask.py")
job = run_job.job()
view = current_run.view() if job is None else None
is_welcome = view is None and job is None
if is_welcome:
    st.title("What does the evidence say?", anchor=False)
draw_question(busy=job is not None, has_examples=not is_welcome)
draw_warming()
draw_report()
if job is not None:
    draw_running()
elif view is not None:
    draw_run(view)
else:
    draw_welcome()
