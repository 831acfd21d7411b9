"""The path of a run through the stages of CRAG: what each did, cost and led to."""
