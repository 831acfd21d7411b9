"""Any server that speaks OpenAI's protocol: vLLM, llama.cpp, LM Studio and the like, by URL."""

from __future__ import annotations

from crag_core.base.errors import CragError, ModelMissing, ModelUnavailable
from crag_core.base.llamaindex_import import import_llama_index
from crag_core.base.network.addresses import without_login
from crag_core.llms.client import LlamaIndexClient, note_response, timeouts_of
from crag_core.llms.context_window import ANSWER_TOKENS, CONTEXT_WINDOW, capacity_of, describe_length, least
from crag_core.llms.first_token import TOP
from crag_core.llms.model import CallLimit, ServerModel
from crag_core.llms.model_list import ask_json, list_entries
from crag_core.llms.reply_errors import explain_call
from crag_core.llms.servers import MOST_MODELS, ServerState, shown, too_many

_CHECK = "Check OPENAI_BASE_URL; it usually ends in /v1."
_START = "Start it, or check the URL."
_KEY = "Set OPENAI_API_KEY; it is sent to the server of OPENAI_BASE_URL only."


def list_models(url: str, key: str = "") -> ServerState:
    """Ask the server for its models; never raises for a server that is away."""
    try:
        listed = list_entries(_list_of(url), key, where=("data", "id"), check=_CHECK, start=_START, refused=_KEY)
    except ModelUnavailable as error:
        return ServerState(False, (), error.message, error.hint)
    return ServerState(True, tuple(listed)[:MOST_MODELS], too_many(shown(url), len(listed)))


def _list_of(url: str) -> str:
    return f"{url.rstrip('/')}/models"


def model(url: str, name: str, key: str, timeout: float, limit: CallLimit) -> ServerModel:
    """A chat model of the server at `url` (usually ending in /v1); `timeout` in seconds of silence in a reply."""
    import_llama_index()
    import httpx
    from llama_index.llms.openai_like import OpenAILike
    from openai import AsyncOpenAI

    from crag_core.base.network import http_guard

    bare, login = without_login(url)
    waits = timeouts_of(timeout)
    bounds = http_guard.hooks(http_guard.LARGEST_REPLY, waits.total)
    bounds["event_hooks"]["response"].append(note_response)
    http = httpx.AsyncClient(timeout=timeout, auth=login, **bounds)
    llm = OpenAILike(
        model=name,
        api_base=bare,
        api_key=key or "none",
        is_chat_model=True,
        context_window=CONTEXT_WINDOW,
        max_tokens=ANSWER_TOKENS,
        temperature=0.0,
        timeout=waits.total,  # how long a reply may be silent is watched where its pieces are read
        max_retries=0,  # the pipeline decides what is worth asking again
        async_http_client=http,  # type: ignore[call-arg]  # its base takes it
    )
    server = AsyncOpenAI(api_key=key or "none", base_url=bare, timeout=waits.total, max_retries=0, http_client=http)

    async def first(messages: list[dict[str, str]]) -> object:
        """By OpenAI's own client: LlamaIndex's has one limit of tokens for all calls."""
        return await server.chat.completions.create(
            model=name,
            messages=messages,  # type: ignore[arg-type]  # plain records
            max_tokens=1,
            temperature=0.0,
            logprobs=True,
            top_logprobs=TOP,
        )

    made = LlamaIndexClient(
        llm,
        name,
        explain=lambda error: explain(error, url, name),
        structured=lambda schema: {
            "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
        },
        streaming={"stream_options": {"include_usage": True}},  # without it a stream never tells its tokens
        timeouts=waits,
        first=first,
        no_probabilities=(
            f"The server at {shown(url)} sends no log probabilities with replies of {name!r}.",
            "Allow them there, or choose another evaluator.",
        ),
    )

    async def context_length() -> int | None:
        return least(reads_at_once(await ask_json(_list_of(url), key), name), CONTEXT_WINDOW)

    return ServerModel(made, limit, capacity_of(url, name), context_length)


def reads_at_once(listed: object, name: str) -> int | None:
    """The tokens that the model reads at once as vLLM, llama.cpp, LM Studio or OpenRouter list them; None: not said."""
    data = listed.get("data") if isinstance(listed, dict) else None
    of = next((one for one in data or () if isinstance(one, dict) and one.get("id") == name), {})
    meta = of.get("meta")
    names = ("max_model_len", "loaded_context_length", "context_length", "max_context_length")
    own = [meta.get(field) for field in ("n_ctx", "n_ctx_train")] if isinstance(meta, dict) else []
    return least(*(of.get(field) for field in names), *own)


def explain(error: Exception, url: str, name: str) -> CragError | None:
    import openai

    called = f"The server at {shown(url)}"
    if isinstance(error, openai.APIStatusError) and (too_long := describe_length(error, shown(url), name)):
        return too_long
    if isinstance(error, openai.NotFoundError):
        return ModelMissing(f"{called} does not have the model {name!r}.", hint=f"Choose one that it lists. {_CHECK}")
    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
        return ModelUnavailable(f"{called} refused the key.", hint=_KEY)
    if isinstance(error, openai.APIStatusError):
        return ModelUnavailable(f"{called} failed with status {error.status_code}.", hint=f"See its log. {_CHECK}")
    expected = "OpenAI's protocol: expected choices with a message"
    away = (openai.APIError,)
    return explain_call(error, called, url, name, expected=expected, check=_CHECK, start=_START, away=away)
