"""Monitors over history: backtest, its page, suggestions."""
