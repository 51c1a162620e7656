"""From an accepted event to a durable one: which topic, with which others together, and where while topics fail."""
