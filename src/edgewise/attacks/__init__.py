"""Attacks on the messages of a run: what neighbours, coalitions and others would learn of data"""
