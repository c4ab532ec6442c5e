-- The trace that a session is part of: a trace's id leads to its sessions.
ALTER TABLE sessions ADD COLUMN IF NOT EXISTS trace_id String AFTER twin_of;
CREATE OR REPLACE VIEW v_sessions AS SELECT * FROM sessions FINAL
