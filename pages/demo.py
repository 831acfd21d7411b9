"""Demo: a run told step by step to people who never heard of CRAG; recorded ones, and one's own."""

from ui import demo
from ui.shell import page

page.enter("pages/demo.py")
demo.draw()
