// What `/v1/dashboard/sessions/{id}` answers: one session, open or ended.
export interface Failure {
  code: string;
  reason: string;
  message: string;
  retryable?: boolean;
  boundary?: string;
}

/** `json`: all of it; or `text`: its beginning, where it has more bytes than are shown. */
export interface ShownPayload {
  bytes: number;
  json?: unknown;
  text?: string;
  is_cut?: boolean;
}

export interface ShownOption {
  option: string;
  probability: number;
  wait_ms?: number;
  masked_by?: string;
}

export interface ShownDecision {
  decision_id: string;
  trigger: string;
  options: ShownOption[];
  chosen: string;
  draw: number;
  policy: string;
  policy_version?: string;
  override?: string;
  ended_as?: string;
}

export interface TimelineEntry {
  kind: "STEP" | "CALL" | "WAIT" | "ATTEMPT" | "DECISION";
  depth: number;
  name: string;
  step?: string;
  loop?: number;
  call_id?: string;
  sub_goal?: string;
  role?: string;
  component?: string;
  version?: string;
  instance?: string;
  attempt?: number;
  from_ms?: number;
  to_ms?: number;
  wait_ms?: number;
  service_ms?: number;
  timeout_ms?: number;
  status?: string;
  error?: Failure;
  side_effect?: string;
  is_hedge?: boolean;
  is_late?: boolean;
  is_reused?: boolean;
  reused_from?: string;
  retry_of?: string;
  breaker?: string;
  arguments?: ShownPayload;
  output?: ShownPayload;
  decision?: ShownDecision;
}

export interface ShownClaim {
  text: string;
  value?: ShownPayload;
  unit?: string;
  derivation?: string;
  sources?: string[];
  verdict?: string;
  reason?: string;
  missing?: string[];
}

export interface ShownFeedback {
  feedback_id: string;
  kind: string;
  author?: string;
  recorded_by?: string;
  score?: number;
  comment?: string;
  call_id?: string;
  step?: string;
  loop?: number;
  given_at?: number;
  received_at?: number;
}

export interface Quality {
  name?: string;
  value?: number | null;
  validity?: string;
  reason?: string;
  call_id?: string;
  source?: string;
  weight?: number;
}

export interface StepReward {
  call_id: string;
  step: string;
  loop?: number;
  component?: string;
  component_version?: string;
  quality: Quality;
  operational?: number;
  shaped?: number;
}

export interface Rewards {
  quality?: Quality[];
  operational?: { attempts?: number; calls?: number; duration_ms?: number };
  vector?: {
    rules: { name: string; version: string };
    as_of: string;
    step?: StepReward[];
    session: { quality: Quality; operational?: number };
    long_term: { quality: Quality; operational?: number };
    problems?: string[];
  };
}

export interface SessionAnswer {
  session_id: string;
  lineage_id?: string;
  workflow?: string;
  version?: string;
  status?: string;
  is_open?: boolean;
  error?: Failure;
  fell_back?: boolean;
  fallback_rule?: string;
  opened_at?: number;
  ended_at?: number;
  duration_ms?: number;
  attempts?: number;
  quality?: number;
  review?: string;
  labels?: Record<string, string>;
  input?: ShownPayload;
  output?: ShownPayload;
  intended?: Record<string, string>;
  deviations?: { step: string; role: string; intended: string; served: string; reason?: string }[];
  rollouts?: string[];
  plans?: {
    generation: number;
    step: string;
    call_id: string;
    rationale?: string;
    confidence?: number;
    plan?: ShownPayload;
  }[];
  claims?: ShownClaim[];
  feedback?: ShownFeedback[];
  rewards?: Rewards;
  gaps?: { what: string; why: string }[];
  timeline?: TimelineEntry[];
}
