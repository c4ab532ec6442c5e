-- The version of a session's state that its row tells of: whoever asks for a later one is told so.
ALTER TABLE sessions ADD COLUMN IF NOT EXISTS state_version String AFTER trace_id;
CREATE OR REPLACE VIEW v_sessions AS SELECT * FROM sessions FINAL
