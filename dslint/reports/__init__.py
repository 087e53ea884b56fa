"""Reporting: findings for people and for programs."""
