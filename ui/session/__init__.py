"""What one browser session holds, and its work in the background. Draws nothing but refusals."""
