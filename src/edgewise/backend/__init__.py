"""JAX: small frozen classes, random bits, compiled programs and where they are kept."""
