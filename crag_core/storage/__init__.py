"""What is kept between runs: the history, the grade cache, backups."""
