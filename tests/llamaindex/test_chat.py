"""Follow-up questions for users of LlamaIndex: its own chat engine over ours, and `run(..., after=)`."""

from __future__ import annotations

from typing import Any

from llama_index.core.chat_engine import CondenseQuestionChatEngine
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata

from crag_core.pipeline.run import WebMode
from crag_core.trace.trace import Trace
from tests.fakes import QUESTION, Bench

WHOLE = "When does the ferry to Vennick leave in winter?"


class Rewriter(CustomLLM):
    """Says one thing, whatever it is asked."""

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="rewriter", context_window=4096)

    def complete(self, prompt: str, formatted: bool = False, **more: Any) -> CompletionResponse:
        return CompletionResponse(text=WHOLE)

    def stream_complete(self, prompt: str, formatted: bool = False, **more: Any) -> Any:
        yield self.complete(prompt)


def test_the_chat_engine_of_llamaindex_stands_on_ours() -> None:
    bench = Bench(web=WebMode.OFF)
    chat = CondenseQuestionChatEngine.from_defaults(bench.pipeline, llm=Rewriter())
    chat.chat(QUESTION)
    reply = chat.chat("And in winter?")
    assert bench.retriever.asked[-1][0] == WHOLE
    record = Trace.from_dict(reply.sources[0].raw_output.metadata["crag"])
    assert record.question == WHOLE and record.follow_up is None and str(reply) == record.answer.text  # type: ignore[union-attr]
