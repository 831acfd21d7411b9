"""What runs over a labelled set are measured by: retrieval, routing, answers, correction and cost. Pure, with numpy."""
