"""Evaluators by name: models that somebody else trained, of four interfaces, read from safetensors and without their
code. Imports transformers and the hub only when one is used; knows no home and no labelled set."""
