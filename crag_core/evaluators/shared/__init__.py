"""What several evaluators use: asking a model, model files, the pair encoder. No evaluator itself."""
