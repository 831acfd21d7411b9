"""A server that answers as Tavily's search API does."""

from __future__ import annotations

from collections.abc import Sequence

from .duckduckgo_server import WebResult
from .json_server import Heard, JsonServer, Said

KEY = "tvly-dev-0123456789abcdefABCDEF"
_WORDS = {
    400: "Invalid topic. Must be 'general' or 'news'.",
    401: "Unauthorized: missing or invalid API key.",
    403: "This API key is not allowed to use this endpoint.",
    429: "Your request has been blocked due to excessive requests. Please reduce rate of requests.",
    432: "This request exceeds your plan's set usage limit. Please upgrade your plan or contact support@tavily.com",
    433: "This request exceeds the pay-as-you-go limit. You can increase your limit on the Tavily dashboard.",
    500: "Internal Server Error",
}
_LONGEST_QUERY = 400


class TavilyServer(JsonServer):
    """`POST /search` for whoever has the `key`; `status` other than 200 is a refusal in Tavily's words.

    `repeats_key` makes it write the key it was sent into every text, as careless servers do.
    """

    def __init__(self, results: Sequence[WebResult] = ()) -> None:
        super().__init__("POST", "/search")
        self.results = list(results)
        self.key = KEY
        self.status = 200
        self.repeats_key = False

    @property
    def address(self) -> str:
        return f"{self.url}/search"

    def answer(self, heard: Heard) -> Said:
        sent = heard.headers.get("authorization", "").removeprefix("Bearer ")
        echo = f" (key {sent})" if self.repeats_key else ""
        if self.status != 200 or sent != self.key:
            status = self.status if self.status != 200 else 401
            return Said({"detail": {"error": f"{_WORDS[status]}{echo}"}}, status)
        if len(heard.body["query"]) > _LONGEST_QUERY:
            return Said({"detail": {"error": "Query is too long. Max query length is 400 characters."}}, 400)
        return Said(
            {
                "query": heard.body["query"],
                "follow_up_questions": None,
                "answer": None,
                "images": [],
                "results": [
                    {
                        "url": f"{result.url}{sent if self.repeats_key else ''}",
                        "title": f"{result.title}{echo}",
                        "content": f"{result.body}{echo}",
                        "score": 0.9,
                        "raw_content": None,
                    }
                    for result in self.results[: heard.body["max_results"]]
                ],
                "response_time": 0.98,
                "request_id": "123e4567-e89b-12d3-a456-426614174111",
            }
        )
