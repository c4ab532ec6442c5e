// What `/v1/dashboard/...` answers about many sessions, as the operator API's document describes it.
// Times are whole milliseconds since the epoch. Fields that have their default are left out of the
// JSON: a count that is absent is 0 and a list is empty, a figure that is absent is not known.
export interface Point {
  at: number;
  ended?: number;
  succeeded?: number;
  failed?: number;
  p50_ms?: number;
  p95_ms?: number;
}

export interface WorkflowRow {
  name: string;
  version?: string;
  ended?: number;
  succeeded?: number;
  failed?: number;
  cancelled?: number;
  fell_back?: number;
  in_review?: number;
  success_rate?: number;
  fallback_rate?: number;
  p50_ms?: number;
  p95_ms?: number;
}

export interface ComponentRow {
  name: string;
  version?: string;
  role?: string;
  /** Attempts: a retry is another. */
  calls?: number;
  failed?: number;
  failure_rate?: number;
  wait_p95_ms?: number;
  service_p95_ms?: number;
  sessions?: number;
  fallbacks?: number;
  fallback_rate?: number;
}

export interface ErrorReason {
  reason: string;
  count: number;
  share: number;
}

export interface Judged {
  ended?: number;
  judged?: number;
  quality?: number;
  missing_share?: number;
  operational?: number;
}

export interface RecordsStanding {
  state: string;
  lag_bytes?: number;
  problem?: string;
}

export interface Standing {
  name: string;
  version: string;
  roles?: string[];
  instances?: number;
  active?: number;
  draining?: number;
  expired?: number;
  unreachable?: number;
  breakers_open?: number;
  in_flight?: number;
  waiting?: number;
}

export interface LiveAnswer {
  at: number;
  open: { running: number; waiting: number; is_all: boolean };
  components?: Standing[];
  records: RecordsStanding;
}

interface Windowed {
  from: number;
  to: number;
  step_ms: number;
  series?: Point[];
}

export interface OverviewAnswer extends Windowed {
  records: RecordsStanding;
  totals: {
    opened: number;
    succeeded: number;
    failed: number;
    cancelled: number;
    fell_back: number;
    in_review: number;
  };
  signals: {
    success_rate?: number;
    p95_ms?: number;
    worst_fallback?: { component: string; rate: number; sessions: number; fallbacks: number };
    contribution_variance?: {
      workflow: string;
      value?: number;
      reason?: string;
      computed_at?: number;
    };
  };
  workflows?: WorkflowRow[];
  components?: ComponentRow[];
}

export interface WorkflowAnswer extends Windowed {
  name: string;
  judged: Judged;
  versions?: WorkflowRow[];
  components?: ComponentRow[];
  errors?: ErrorReason[];
}

export interface ComponentAnswer extends Windowed {
  name: string;
  judged: Judged;
  blame?: { sessions?: number; fallbacks?: number; fallback_rate?: number };
  versions?: ComponentRow[];
  actions?: (Omit<ComponentRow, "name"> & { action?: string })[];
  errors?: ErrorReason[];
}

export interface SessionItem {
  session_id: string;
  lineage_id?: string;
  workflow: string;
  version?: string;
  status: string;
  error?: string;
  fell_back?: boolean;
  opened_at: number;
  ended_at?: number;
  duration_ms?: number;
  attempts?: number;
  quality?: number;
  review?: string;
}

export interface SessionsAnswer {
  items: SessionItem[];
  after?: string;
}
