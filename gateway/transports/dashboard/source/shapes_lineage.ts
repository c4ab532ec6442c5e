// What `/v1/lineage...` answers, as the operator API's document describes it. Times are RFC 3339.
export interface LineageMatch {
  session_id: string;
  lineage_id: string;
  workflow: string;
  status: string;
  error?: string;
  fell_back?: boolean;
  opened_at: string;
  ended_at?: string;
  input_sha256?: string;
  intended?: Record<string, string>;
  served?: string[];
  trace_id?: string;
}

export interface LineageMatches {
  sessions: LineageMatch[];
  next?: string;
  only_memory?: string;
  open_unseen?: number;
}

export interface LineageHead {
  session_id: string;
  lineage_id: string;
  workflow: string;
  workflow_sha256?: string;
  input_sha256?: string;
  status: string;
  error?: string;
  fell_back?: boolean;
  opened_at: string;
  ended_at?: string;
  duration_ms?: number;
}

export interface LineageAttempt {
  attempt: number;
  component?: string;
  instance?: string;
  wait_ms?: number;
  service_ms?: number;
  error?: string;
  parameter_version?: number;
  span_id?: string;
}

export interface LineageCall {
  call_id: string;
  step: string;
  loop?: number;
  sub_goal?: string;
  role: string;
  action?: string;
  reused_from?: string;
  attempts?: LineageAttempt[];
}

export interface LineageRun {
  head: LineageHead;
  work?: { work: string; intended?: string; served?: string[] }[];
  policies?: Record<string, string>;
  deviations?: { step: string; role: string; intended: string; served: string }[];
  rollouts?: { rollout: string; stage: string; arm: string }[];
  calls?: LineageCall[];
  trace?: { trace_id?: string; is_recorded?: boolean; url?: string };
  logs: { filter: string; file?: string; url?: string };
  feedback?: LineageFeedback[];
  rewards?: { quality?: LineageReward[] };
}

export interface LineageFeedback {
  feedback: {
    kind: string;
    score?: number;
    comment?: string;
    author?: string;
    feedback_id?: string;
    target?: { call_id?: string; step?: string };
  };
  received_at: string;
}

export interface LineageReward {
  name: string;
  value?: number;
  validity?: string;
  reason?: string;
  source?: string;
  call_id?: string;
}

export interface LineageDiff {
  left: LineageHead;
  right: LineageHead;
  differences?: { subject: string; call?: string; at?: string; left: string | null; right: string | null }[];
  parting?: { left?: string; right?: string; subjects?: string[] };
}
