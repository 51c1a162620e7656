"""What clients of the service see: its paths, bodies, tokens, answers, metrics and the page."""
