-- What the dashboard asks of calls, without a join; and whose fault a fallback was, as the metric says.
-- The arrays of calls are of one length with `call_actions`.
ALTER TABLE sessions
    ADD COLUMN IF NOT EXISTS call_roles Array(LowCardinality(String)) AFTER call_ms,
    ADD COLUMN IF NOT EXISTS call_waits_ms Array(Int64) AFTER call_roles,
    ADD COLUMN IF NOT EXISTS call_reused Array(Bool) AFTER call_waits_ms,
    ADD COLUMN IF NOT EXISTS took_part Array(LowCardinality(String)) AFTER call_reused,
    ADD COLUMN IF NOT EXISTS blamed Array(LowCardinality(String)) AFTER took_part;
CREATE OR REPLACE VIEW v_sessions AS SELECT * FROM sessions FINAL
