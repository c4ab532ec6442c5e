// What `/v1/dashboard/...` answers, as the operator API's document describes it. Times are whole
// milliseconds since the epoch; what is absent is unknown, never 0.
export interface Point {
  at: number;
  ended: number;
  succeeded: number;
  failed: number;
  p50_ms?: number;
  p95_ms?: number;
}

export interface WorkflowRow {
  name: string;
  ended: number;
  success_rate?: number;
  p95_ms?: number;
  fallback_rate?: number;
}

export interface ComponentRow {
  name: string;
  version: string;
  role: string;
  calls: number;
  failure_rate?: number;
  fallback_rate?: number;
  wait_p95_ms?: number;
  service_p95_ms?: number;
}

export interface OverviewAnswer {
  from: number;
  to: number;
  records: { state: string; lag_bytes?: number };
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
    worst_fallback?: { component: string; rate: number };
    contribution_variance?: { value?: number; reason?: string; computed_at?: number };
  };
  series: Point[];
  workflows: WorkflowRow[];
  components: ComponentRow[];
}
