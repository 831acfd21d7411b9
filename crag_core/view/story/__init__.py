"""A recorded run as a story of a few steps, for people who know neither RAG nor CRAG. Pure.

Every number, name and sentence on a step is the record's; what a moved threshold changes was decided again from it.
"""
