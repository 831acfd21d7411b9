"""Text as words, sentences, tokens and numbers. Pure."""
