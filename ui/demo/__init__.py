"""The Demo page: a run told step by step to people who never heard of CRAG, and the way in for runs of one's own."""
