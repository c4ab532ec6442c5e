-- What people ask: every session and every row exactly once. The tables behind them are the store's own business.
CREATE VIEW v_sessions AS SELECT * FROM sessions FINAL;
CREATE VIEW v_rewards AS SELECT * EXCEPT (is_gone) FROM rewards FINAL;
CREATE VIEW v_calls AS SELECT * FROM calls;
CREATE VIEW v_decisions AS SELECT * FROM decisions;
CREATE VIEW v_llm_calls AS SELECT * FROM llm_calls;
CREATE VIEW v_observations AS SELECT * FROM observations;
CREATE VIEW v_reflections AS SELECT * FROM reflections;
CREATE VIEW v_feedback AS SELECT * FROM feedback;
CREATE VIEW v_claims AS SELECT * FROM claims;
CREATE VIEW v_gaps AS SELECT * FROM gaps
