"""One recorded run on the page, wherever it is shown: verdict, path, scores, chunks, answer."""
