"""A relay: it passes on what two peers say to each other, and cannot read it."""
