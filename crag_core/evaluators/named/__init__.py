"""Evaluators by name: rerankers that somebody else trained, read by sentence-transformers from safetensors and without
their code. Imports transformers and the hub only when one is used; knows no home and no labelled set."""
