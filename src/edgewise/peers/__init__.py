"""Peers on hosts of their own, over mutual TLS, with nobody in the middle."""
