"""Wires everything up: settings, the real clock, logs, the server. The only place that knows every room."""
