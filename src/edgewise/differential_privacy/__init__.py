"""Differential privacy: budgets, what a run spends of them, and what it refuses"""
