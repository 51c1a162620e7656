"""Metrics in sinks: measurements of events, series, and the forms of statsd, Prometheus and Datadog."""
