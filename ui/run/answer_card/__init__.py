"""The card of the answer: its ending and sources, what is missing and its cost, and a second one beside the first."""
