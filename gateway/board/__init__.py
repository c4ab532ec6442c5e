"""Who may change what, and who did: proposals with their approvals, and the audit log."""
