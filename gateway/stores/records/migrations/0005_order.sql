-- What an attempt's place was among all of its session's, and the order of the sub-goals: with these
-- the rows give the same samples as the trajectory that they were made of.
ALTER TABLE calls ADD COLUMN IF NOT EXISTS position UInt32 AFTER attempt;
ALTER TABLE sessions ADD COLUMN IF NOT EXISTS sub_goals Array(String) AFTER trace_id;
CREATE OR REPLACE VIEW v_calls AS SELECT * FROM calls;
CREATE OR REPLACE VIEW v_sessions AS SELECT * FROM sessions FINAL
