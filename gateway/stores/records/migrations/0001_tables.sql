-- Sessions and rewards are replaced by version (`sequence`); all other tables are append-only, one row once.
-- The last 128 MiB of a disk are left to the journal beside it: then inserts wait, and nothing is written in part.
-- ORDER BY session_id: ids begin with their time, so what happened together lies together.
CREATE TABLE sessions
(
    session_id String, opened_at DateTime64(3, 'UTC'), tenant LowCardinality(String), workflow LowCardinality(String),
    lineage_id String, status LowCardinality(String), ended_at Nullable(DateTime64(3, 'UTC')), duration_ms Int64,
    succeeded Bool, fell_back Bool, fallback_rule LowCardinality(String), attempts UInt32, calls UInt32,
    error_code LowCardinality(String), error_reason LowCardinality(String),
    labels Map(String, String), intended Map(String, String), policies Map(String, String),
    input_sha256 String, workflow_sha256 LowCardinality(String), deviations Array(LowCardinality(String)),
    rollouts Array(LowCardinality(String)), arms Array(LowCardinality(String)), twin_of String,
    call_actions Array(LowCardinality(String)), call_components Array(LowCardinality(String)),
    call_versions Array(LowCardinality(String)), call_steps Array(LowCardinality(String)),
    call_errors Array(LowCardinality(String)), call_ms Array(Nullable(Int64)),
    comment_tags Array(LowCardinality(String)), feedback_count UInt32,
    score_kinds Array(LowCardinality(String)), scores Array(Float64),
    reward_names Array(LowCardinality(String)), reward_values Array(Nullable(Float64)),
    decision_options Array(LowCardinality(String)), gap_count UInt32,
    review LowCardinality(String), grounding_penalties UInt32, grounding_risk Nullable(Float64),
    input String CODEC(ZSTD(3)), output String CODEC(ZSTD(3)),
    sequence UInt64, row_key UInt64, row_hash UInt64
)
ENGINE = ReplacingMergeTree(sequence) PARTITION BY toYYYYMM(opened_at) ORDER BY session_id
SETTINGS non_replicated_deduplication_window = 10000, min_free_disk_bytes_to_perform_insert = 134217728;

CREATE TABLE rewards
(
    session_id String, opened_at DateTime64(3, 'UTC'), tenant LowCardinality(String), workflow LowCardinality(String),
    channel LowCardinality(String), name LowCardinality(String), call_id String, source LowCardinality(String),
    value Nullable(Float64), validity LowCardinality(String) DEFAULT 'VALID', reason LowCardinality(String),
    weight Nullable(Float64), operational Nullable(Float64), shaped Nullable(Float64),
    is_gone UInt8 DEFAULT 0, sequence UInt64, row_key UInt64, row_hash UInt64
)
ENGINE = ReplacingMergeTree(sequence, is_gone) PARTITION BY toYYYYMM(opened_at) ORDER BY (session_id, row_key)
SETTINGS non_replicated_deduplication_window = 10000, min_free_disk_bytes_to_perform_insert = 134217728;

CREATE TABLE calls
(
    session_id String, opened_at DateTime64(3, 'UTC'), tenant LowCardinality(String), workflow LowCardinality(String),
    call_id String, attempt UInt32, loop UInt32, step LowCardinality(String), sub_goal String,
    role LowCardinality(String), component LowCardinality(String), component_version LowCardinality(String),
    instance LowCardinality(String), action LowCardinality(String), effect LowCardinality(String),
    error_code LowCardinality(String), error_reason LowCardinality(String), error_message String,
    error_boundary LowCardinality(String), side_effect LowCardinality(String),
    reused Bool, reused_from String, retry_of String,
    queued_at Nullable(DateTime64(3, 'UTC')), sent_at Nullable(DateTime64(3, 'UTC')),
    ended_at Nullable(DateTime64(3, 'UTC')), wait_ms Int64, service_ms Nullable(Int64), timeout_ms Int64,
    breaker LowCardinality(String), parameter_version Int64, hedge Bool, budget_left Int64, retries_spent Int64,
    late Bool, arguments String CODEC(ZSTD(3)), arguments_bytes UInt64, arguments_hash UInt64,
    output String CODEC(ZSTD(3)), output_bytes UInt64,
    sequence UInt64, row_key UInt64, row_hash UInt64
)
ENGINE = MergeTree PARTITION BY toYYYYMM(opened_at) ORDER BY (session_id, call_id, attempt)
SETTINGS non_replicated_deduplication_window = 10000, min_free_disk_bytes_to_perform_insert = 134217728;

CREATE TABLE decisions
(
    session_id String, opened_at DateTime64(3, 'UTC'), tenant LowCardinality(String), workflow LowCardinality(String),
    decision_id String, position UInt32, call_id String, after_attempt UInt32, caused_attempt Nullable(UInt32),
    trigger LowCardinality(String), decided_at Nullable(DateTime64(3, 'UTC')),
    features Map(LowCardinality(String), String), feature_schema LowCardinality(String),
    options Array(LowCardinality(String)), option_waits_ms Array(Int64), probabilities Array(Float64),
    masked_by Array(LowCardinality(String)), chosen LowCardinality(String), draw Float64,
    policy LowCardinality(String), policy_version LowCardinality(String), guardrails_digest LowCardinality(String),
    overridden_by LowCardinality(String), ended_as LowCardinality(String),
    sequence UInt64, row_key UInt64, row_hash UInt64
)
ENGINE = MergeTree PARTITION BY toYYYYMM(opened_at) ORDER BY (session_id, row_key)
SETTINGS non_replicated_deduplication_window = 10000, min_free_disk_bytes_to_perform_insert = 134217728;

CREATE TABLE llm_calls
(
    session_id String, opened_at DateTime64(3, 'UTC'), tenant LowCardinality(String), workflow LowCardinality(String),
    call_id String, attempt UInt32, llm_call_id String, model LowCardinality(String),
    prompt String CODEC(ZSTD(3)), response String CODEC(ZSTD(3)),
    prompt_tokens UInt32, response_tokens UInt32, tokens Int64, latency_ms Float64,
    sequence UInt64, row_key UInt64, row_hash UInt64
)
ENGINE = MergeTree PARTITION BY toYYYYMM(opened_at) ORDER BY (session_id, row_key)
SETTINGS non_replicated_deduplication_window = 10000, min_free_disk_bytes_to_perform_insert = 134217728;

CREATE TABLE observations
(
    session_id String, opened_at DateTime64(3, 'UTC'), tenant LowCardinality(String), workflow LowCardinality(String),
    step LowCardinality(String), call_id String, stored Int64, memory String CODEC(ZSTD(3)),
    sequence UInt64, row_key UInt64, row_hash UInt64
)
ENGINE = MergeTree PARTITION BY toYYYYMM(opened_at) ORDER BY (session_id, row_key)
SETTINGS non_replicated_deduplication_window = 10000, min_free_disk_bytes_to_perform_insert = 134217728;

CREATE TABLE reflections
(
    session_id String, opened_at DateTime64(3, 'UTC'), tenant LowCardinality(String), workflow LowCardinality(String),
    step LowCardinality(String), call_id String, loop UInt32, verdict LowCardinality(String), critique String,
    refused_retries Array(String),
    sequence UInt64, row_key UInt64, row_hash UInt64
)
ENGINE = MergeTree PARTITION BY toYYYYMM(opened_at) ORDER BY (session_id, row_key)
SETTINGS non_replicated_deduplication_window = 10000, min_free_disk_bytes_to_perform_insert = 134217728;

CREATE TABLE feedback
(
    session_id String, opened_at DateTime64(3, 'UTC'), tenant LowCardinality(String), workflow LowCardinality(String),
    feedback_id String, kind LowCardinality(String), score Nullable(Float64), comment String,
    tags Array(LowCardinality(String)), corrections Map(String, String), target_call_id String, target_step LowCardinality(String),
    target_loop UInt32, author String, sampling_probability Nullable(Float64), given_at Nullable(DateTime64(3, 'UTC')),
    received_at Nullable(DateTime64(3, 'UTC')), state_version String,
    sequence UInt64, row_key UInt64, row_hash UInt64
)
ENGINE = MergeTree PARTITION BY toYYYYMM(opened_at) ORDER BY (session_id, row_key)
SETTINGS non_replicated_deduplication_window = 10000, min_free_disk_bytes_to_perform_insert = 134217728;

CREATE TABLE claims
(
    session_id String, opened_at DateTime64(3, 'UTC'), tenant LowCardinality(String), workflow LowCardinality(String),
    verdict LowCardinality(String), verdict_reason LowCardinality(String), missing_sources Array(String),
    text String, value String, unit LowCardinality(String), derivation String, sources Array(String),
    sequence UInt64, row_key UInt64, row_hash UInt64
)
ENGINE = MergeTree PARTITION BY toYYYYMM(opened_at) ORDER BY (session_id, row_key)
SETTINGS non_replicated_deduplication_window = 10000, min_free_disk_bytes_to_perform_insert = 134217728;

CREATE TABLE gaps
(
    session_id String, opened_at DateTime64(3, 'UTC'), tenant LowCardinality(String), workflow LowCardinality(String),
    what LowCardinality(String), why String,
    sequence UInt64, row_key UInt64, row_hash UInt64
)
ENGINE = MergeTree PARTITION BY toYYYYMM(opened_at) ORDER BY (session_id, row_key)
SETTINGS non_replicated_deduplication_window = 10000, min_free_disk_bytes_to_perform_insert = 134217728;

-- Which sessions were erased, so that an old line of theirs brings nothing back.
CREATE TABLE erased (session_id String, erased_at DateTime64(3, 'UTC') DEFAULT now64(3))
ENGINE = ReplacingMergeTree ORDER BY session_id
