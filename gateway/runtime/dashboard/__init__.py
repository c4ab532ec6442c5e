"""What the dashboard shows, put together from the records and from what is live."""
