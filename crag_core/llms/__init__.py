"""Language models: a LlamaIndex LLM behind the project's protocol, with each server's errors in plain words."""
