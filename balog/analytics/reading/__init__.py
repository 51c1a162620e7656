"""From files and topics to Arrow batches of events."""
