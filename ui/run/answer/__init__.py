"""The answer, what supports it, and what people say of it."""
