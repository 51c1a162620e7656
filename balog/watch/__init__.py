"""Monitors over events: is a pipeline late, thin, slow, failing or silent? One evaluation for stream and history."""
