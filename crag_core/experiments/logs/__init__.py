"""Logs of other RAG systems: read from their exports, made into sets, and the stage at which a question went wrong."""
