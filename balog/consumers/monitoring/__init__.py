"""What an engine reports: failures, metrics, health, lag."""
