"""Pictures and the interactive page."""
