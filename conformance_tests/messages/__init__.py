"""Messages as trees of plain values: what a case changes, drops and compares, on both bindings."""
