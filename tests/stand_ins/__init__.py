"""Servers that stand in for Ollama, an OpenAI-style server and DuckDuckGo, so that the real clients run offline."""
