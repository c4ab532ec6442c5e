-- Whose token brought a judgement, where its author has another name.
ALTER TABLE feedback ADD COLUMN IF NOT EXISTS recorded_by String AFTER author;
CREATE OR REPLACE VIEW v_feedback AS SELECT * FROM feedback
