"""What another policy, threshold or edit would change, and running it."""
