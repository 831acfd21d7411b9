"""Evaluators that ask a language model: what each asks, and what its reply is read as."""
