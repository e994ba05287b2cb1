"""Methods: the contract that all keep, step rules, and one method a file."""
