"""Ask: the question, the answer, the decision with its reason, and the evidence sentence by sentence."""

from ui.ask import draw_conversation, draw_question, draw_recorded, draw_welcome
from ui.run.job_progress import draw_running, draw_warming
from ui.run.run_page import draw_run
from ui.session import current_run, run_job
from ui.shell import page
from ui.shell.page import draw_report

page.enter("pages/ask.py")
job = run_job.job()
view = current_run.view() if job is None else None
if view is None and job is None:
    draw_welcome()
draw_conversation()
draw_question(busy=job is not None)
draw_report()
if job is not None:
    draw_running()
elif view is not None:
    draw_run(view)
else:
    draw_recorded()
draw_warming()  # last: what comes and goes by itself moves nothing
