"""Every form of records that was ever written, a folder each: appended to, never changed."""
