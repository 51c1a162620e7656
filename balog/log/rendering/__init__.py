"""The bytes of an event: header, context, call site, payload."""
