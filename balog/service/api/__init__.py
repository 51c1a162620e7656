"""The HTTP API of the service: paths, bodies, tokens, answers, metrics and the page."""
