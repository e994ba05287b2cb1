"""A peer's configuration: its TOML file, addresses, certificates."""
