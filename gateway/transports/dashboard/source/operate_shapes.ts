// What `/v1/components`, `/v1/workflows`, `/v1/governance`, `/v1/contracts`, `/v1/rollouts` and
// `/v1/semantics` answer, as far as the pages show it.
export interface Instance {
  component_id: string;
  card: { name: string; version: string; roles?: string[]; actions?: { name: string }[] };
  lease: { expires_at: string };
  url?: string;
  transport?: string;
  state?: string;
  signals?: { queue_length?: number; queue_ms?: number; service_ms?: number; inflight?: number };
}

export interface TargetRow {
  component_id: string;
  component: string;
  breaker?: string;
  open_left_ms?: number;
  in_flight?: number;
  waiting?: number;
  retry_tokens?: number;
  signals_age_ms?: number;
}

export interface StandingRow {
  workflow: string;
  component: string;
  version: string;
  on_breach: string;
  window_ms: number;
  counts: Record<string, number>;
  breach?: string;
}

export interface BreachRow {
  workflow: string;
  component: string;
  version: string;
  on_breach: string;
  message: string;
  since: string;
  until?: string;
}

export interface WorkflowVersion {
  name: string;
  version: string;
  active?: boolean;
  sha256?: string;
  stored_at?: string;
}

interface Interval {
  low: number;
  high: number;
}

export interface Verdict {
  metric: string;
  outcome: "WORSE" | "FINE" | "OPEN";
  test: string;
  baseline_samples: number;
  candidate_samples: number;
  baseline: number;
  candidate: number;
  baseline_interval: Interval;
  candidate_interval: Interval;
  limit: number;
  strained?: boolean;
  prove?: boolean;
}

export interface StageReport {
  stage: string;
  entered_at_ms: number;
  left_at_ms: number;
  observed_ms: number;
  candidates: number;
  baselines: number;
  verdicts: Verdict[];
  why?: string;
  by?: string;
}

export interface RolloutView {
  rollout_id: string;
  subject: { kind?: string; name: string; candidate: string; baseline?: string };
  status: "RUNNING" | "PAUSED" | "ROLLED_BACK" | "COMPLETED";
  stage: string;
  share: number;
  reason: string;
  by?: string;
  started_at: string;
  stage_entered_at: string;
  changed_at: string;
  observed_ms: number;
  candidates: number;
  baselines: number;
  uncovered?: number;
  dropped?: number;
  deviated?: number;
  examples?: { primary: string; twin: string; what: string }[];
  verdicts?: Verdict[];
  waits_for?: string[];
  history?: StageReport[];
}

export interface UnknownValue {
  unknown: {
    field: string;
    domain: string;
    value: string;
    count: number;
    last_at: string;
    version: string;
    sessions?: string[];
  };
  nearest: { value: string; confidence: number }[];
  means: string;
}

export interface ReviewedWorkflow {
  workflow: string;
  active: string;
  values: UnknownValue[];
}
