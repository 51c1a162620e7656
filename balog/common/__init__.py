"""The ground floor: errors, configs, HTTP, storage, redaction, signals, backoff, plug-ins. It knows no event."""
