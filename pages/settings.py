"""Settings of this session: servers, web providers, who checks answers, time-out, chunks a question."""

import streamlit as st

from crag_core.app.config import Config
from crag_core.app.model_servers import Models
from crag_core.base.errors import CragError
from crag_core.base.text.display import counted
from crag_core.llms.servers import DEFAULT_HOST, masked, unmasked
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE
from crag_core.websearch import PROVIDERS
from ui.session import access, app_state
from ui.shell import page, sign_in
from ui.shell.page import is_allowed
from ui.shell.text import plain


def judge_name(choice: str) -> str:
    return app_state.called(choice) if choice != WORDS else "Word overlap, 0 LLM calls"


def judges(now: Config, models: Models) -> list[str]:
    """Who may check the sentences of answers here: words, the models that are there now, and the one that is set."""
    there = [choice for choice in models.choices if choice != EXTRACTIVE]
    return list(dict.fromkeys((WORDS, *there, now.support)))


def draw_servers(now: Config) -> dict[str, str]:
    """The addresses as somebody has written them."""
    host = st.text_input("Ollama address", masked(now.ollama_host), placeholder=DEFAULT_HOST, max_chars=1000)
    url = st.text_input(
        "OpenAI-compatible server", masked(now.openai_url), placeholder="http://127.0.0.1:8000/v1", max_chars=1000,
        help="vLLM, llama.cpp, LM Studio, or a proxy. The key is that of OPENAI_API_KEY, and is sent only to the "
        "server of OPENAI_BASE_URL.",
    )  # fmt: skip
    providers = st.text_input(
        "Web search providers, in order", now.web_providers, max_chars=100,
        help=f"{', '.join(PROVIDERS)}. The next is asked when one fails. tavily needs TAVILY_API_KEY, snapshot "
        "CRAG_WEB_SNAPSHOT.",
    )  # fmt: skip
    searxng = st.text_input(
        "SearXNG address", masked(now.searxng_url), placeholder="http://127.0.0.1:8080", max_chars=200
    )
    return {
        "ollama_host": unmasked(host, now.ollama_host),
        "openai_url": unmasked(url, now.openai_url),
        "web_providers": providers,
        "searxng_url": unmasked(searxng, now.searxng_url),
    }


page.enter("pages/settings.py")
st.title("Settings", anchor=False)
sign_in.draw_who()
to_keep = " To keep them, set environment variables: `docs/settings.md`." if access.is_administrator() else ""
st.markdown(f"For this browser session only.{to_keep}")
now = app_state.settings()
models = app_state.look_for_models(now)
with st.form("settings_form"):
    servers = draw_servers(now) if is_allowed("see and change the servers") else {}
    support = st.selectbox(
        "Answer checked by", checkers := judges(now, models), checkers.index(now.support), format_func=judge_name,
        help="Is each sentence of the answer supported by its evidence? A language model takes one call a sentence.",
    )  # fmt: skip
    if away := app_state.unavailable_reason(support, models) if support != WORDS else "":
        st.caption(f":orange[:material/warning: {plain(judge_name(support))} ({away})]")
    left, right = st.columns(2)
    timeout = left.number_input(
        "LLM time-out, seconds", 1, 3600, int(now.model_timeout),
        help="Longest silence within a reply. Five times as long before its first word, while the model loads; ten "
        "times for the whole reply.",
    )  # fmt: skip
    top_k = right.number_input("Chunks retrieved per question", 1, 20, now.top_k)
    if st.form_submit_button("Apply", type="primary", icon=":material/check:"):
        try:
            app_state.change_settings(
                **servers,
                support=support,
                model_timeout=float(timeout),
                top_k=top_k,
            )
            st.rerun()
        except CragError as error:
            st.error(plain(str(error)), icon=":material/error:")

if not access.is_administrator():
    st.stop()  # where servers answer is not for everybody

for name, server in (("Ollama", models.ollama), ("OpenAI-compatible server", models.openai)):
    if server is None:
        continue
    if server.models:
        st.success(
            f"{name}, {counted(len(server.models), 'model')}: {plain(', '.join(server.models))}",
            icon=":material/check_circle:",
        )
    if server.message:
        st.warning(f"{plain(server.message)} {plain(server.hint)}", icon=":material/warning:")
