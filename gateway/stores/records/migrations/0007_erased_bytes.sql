-- What is deleted is gone from disk within seconds: parts that were replaced stay for 8 minutes
-- otherwise. They are kept against a power cut; here the log heals what that takes.
ALTER TABLE calls MODIFY SETTING old_parts_lifetime = 10, cleanup_delay_period = 5, max_cleanup_delay_period = 10, cleanup_delay_period_random_add = 1;
ALTER TABLE decisions MODIFY SETTING old_parts_lifetime = 10, cleanup_delay_period = 5, max_cleanup_delay_period = 10, cleanup_delay_period_random_add = 1;
ALTER TABLE llm_calls MODIFY SETTING old_parts_lifetime = 10, cleanup_delay_period = 5, max_cleanup_delay_period = 10, cleanup_delay_period_random_add = 1;
ALTER TABLE observations MODIFY SETTING old_parts_lifetime = 10, cleanup_delay_period = 5, max_cleanup_delay_period = 10, cleanup_delay_period_random_add = 1;
ALTER TABLE reflections MODIFY SETTING old_parts_lifetime = 10, cleanup_delay_period = 5, max_cleanup_delay_period = 10, cleanup_delay_period_random_add = 1;
ALTER TABLE feedback MODIFY SETTING old_parts_lifetime = 10, cleanup_delay_period = 5, max_cleanup_delay_period = 10, cleanup_delay_period_random_add = 1;
ALTER TABLE gaps MODIFY SETTING old_parts_lifetime = 10, cleanup_delay_period = 5, max_cleanup_delay_period = 10, cleanup_delay_period_random_add = 1;
ALTER TABLE claims MODIFY SETTING old_parts_lifetime = 10, cleanup_delay_period = 5, max_cleanup_delay_period = 10, cleanup_delay_period_random_add = 1;
ALTER TABLE sessions MODIFY SETTING old_parts_lifetime = 10, cleanup_delay_period = 5, max_cleanup_delay_period = 10, cleanup_delay_period_random_add = 1;
ALTER TABLE rewards MODIFY SETTING old_parts_lifetime = 10, cleanup_delay_period = 5, max_cleanup_delay_period = 10, cleanup_delay_period_random_add = 1;
