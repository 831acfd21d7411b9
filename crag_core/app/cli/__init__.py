"""The commands of `python -m crag_core`, a file each."""
