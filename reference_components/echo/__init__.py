"""The component that does nothing but answer: all four roles, and the well-known test actions."""
