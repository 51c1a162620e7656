"""Singer messages in the pipe: recognized, edited, counted, quarantined."""
