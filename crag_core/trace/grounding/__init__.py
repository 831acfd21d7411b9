"""What of the evidence stands behind an answer: its claims, quotations, numbers and citations. Pure."""
