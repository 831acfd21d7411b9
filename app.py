"""CRAG Explorer: the router and the sidebar that all pages share. Start it with `make run`."""

from pathlib import Path

import streamlit as st

from ui.shell import shutdown

if not shutdown.take_signals():  # before the other imports: what they load must not be taken down in the middle
    st.stop()

from crag_core.base.errors import CragError
from ui.run import share
from ui.session import app_state, current_run, fragments, startup
from ui.shell import page, sidebar, sign_in
from ui.shell.text import plain

# A picture of our own: the browser of each visitor would fetch an icon by name from a server of Google.
icon = Path(__file__).parent / "ui" / "parts" / "icon.png"
st.set_page_config(page_title="CRAG Explorer", page_icon=icon, layout="wide")
navigation = st.navigation(
    [
        st.Page("pages/ask.py", title="Ask", icon=":material/forum:", default=True),
        st.Page("pages/demo.py", title="Demo", icon=":material/slideshow:"),
        st.Page("pages/compare.py", title="Compare", icon=":material/difference:"),
        st.Page("pages/tune.py", title="Tune", icon=":material/ssid_chart:"),
        st.Page("pages/logs.py", title="Logs", icon=":material/rule:"),
        st.Page("pages/policies.py", title="Policies", icon=":material/compare_arrows:"),
        st.Page("pages/documents.py", title="Documents", icon=":material/folder_open:"),
        st.Page("pages/history.py", title="History", icon=":material/history:"),
        st.Page("pages/metrics.py", title="Metrics", icon=":material/monitoring:"),
        st.Page("pages/settings.py", title="Settings", icon=":material/tune:"),
    ],
    position="top" if sign_in.is_passed() else "hidden",
)
st.html(Path(__file__).parent / "ui" / "parts" / "page.css")
try:
    sign_in.check()
    sign_in.gate()
    startup.shared_workbench()
except CragError as error:
    st.error(plain(error.message), title="The application cannot start with these settings", icon=":material/error:")
    st.code(error.hint or "Correct the setting and start again.", language=None)
    st.stop()
has_sidebar = navigation.title in ("Ask", "Compare", "Tune", "Logs", "Policies")
st.set_page_config(initial_sidebar_state="auto" if has_sidebar else "collapsed")
page.draw_frame(has_sidebar)
page.mark_routed()
fragments.begin()
app_state.begin_page()
current_run.open_waiting()
if navigation.url_path != "demo":  # there a run is told, and leaves the sidebar as it is
    share.follow()
sidebar.draw(has_who=navigation.title != "Settings")  # which has it on the page, since it shows no sidebar
try:
    navigation.run()
finally:  # beneath an error too
    fragments.start_ticks()
startup.warm_up().start()
