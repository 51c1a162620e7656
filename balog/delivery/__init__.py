"""The event service: takes typed events over HTTP, keeps them, routes, filters and calls back."""
