// Who is there: instances by component and version with their breakers and signals, how they stand
// under their contracts, and the workflows with their versions. Refreshes itself.
import { ABSENT, count, duration, moment, percent, visible } from "../figures";
import type {
  BreachRow,
  Instance,
  StandingRow,
  TargetRow,
  WorkflowVersion,
} from "../operate_shapes";
import { Table } from "../parts/tables";
import { useAnswer } from "../shell/answer";
import { href } from "../shell/location";
import type { PageProps } from "../shell/routes";
import { Answered } from "../shell/states";

const EVERY_MS = 5_000;

export function Registry(_: PageProps) {
  const instances = useAnswer<{ components?: Instance[] }>("/v1/components", { everyMs: EVERY_MS });
  const targets = useAnswer<{ targets: TargetRow[] }>("/v1/governance/targets", {
    everyMs: EVERY_MS,
  });
  const standings = useAnswer<{ components: StandingRow[] }>("/v1/contracts/standings", {
    everyMs: EVERY_MS,
  });
  const breaches = useAnswer<{ breaches: BreachRow[] }>("/v1/contracts/breaches", {
    everyMs: EVERY_MS,
  });
  const workflows = useAnswer<{ workflows?: WorkflowVersion[] }>("/v1/workflows");
  return (
    <>
      <Answered answer={instances}>
        {(data) => (
          <Instances rows={data.components ?? []} targets={targets.data?.targets ?? []} />
        )}
      </Answered>
      <Answered answer={workflows}>{(data) => <Workflows rows={data.workflows ?? []} />}</Answered>
      <Answered answer={standings}>{(data) => <Standings rows={data.components} />}</Answered>
      <Answered answer={breaches}>{(data) => <Breaches rows={data.breaches} />}</Answered>
    </>
  );
}

const STATES: Record<string, string> = {
  ACTIVE: "good",
  DRAINING: "warn",
  UNREACHABLE: "bad",
  EXPIRED: "bad",
};
const BREAKERS: Record<string, string> = { closed: "good plain", open: "bad", half_open: "warn" };

function Instances({ rows, targets }: { rows: Instance[]; targets: TargetRow[] }) {
  const byId = new Map(targets.map((one) => [one.component_id, one]));
  const sorted = [...rows].sort((one, two) => nameOf(one).localeCompare(nameOf(two)));
  return (
    <Table
      title="Instances"
      columns={["Component", "Roles", "State", "Breaker", "Address", "Running", "Waiting", "Retries left", "Own queue", "Own service", "Lease until"]}
      words={5}
      empty={rows.length === 0 && "No component is registered: acp components register URL."}
    >
      {sorted.map((one) => (
        <InstanceRow key={one.component_id} one={one} target={byId.get(one.component_id)} />
      ))}
    </Table>
  );
}

function InstanceRow({ one, target }: { one: Instance; target: TargetRow | undefined }) {
  const state = one.state ?? "ACTIVE";
  const breaker = target ? (target.breaker ?? "closed") : undefined;
  return (
    <tr>
      <th scope="row">
        <a href={href(["components", one.card.name])}>{visible(nameOf(one))}</a>
      </th>
      <td>{(one.card.roles ?? []).join(", ").toLowerCase()}</td>
      <td>
        <span class={`mark ${STATES[state] ?? "muted"}`}>{state.toLowerCase()}</span>
      </td>
      <td>
        {breaker ? (
          <span class={`mark ${BREAKERS[breaker] ?? "warn"}`}>
            {breaker.replace("_", " ")}
            {target?.open_left_ms ? `, ${duration(target.open_left_ms)} left` : ""}
          </span>
        ) : (
          ABSENT
        )}
      </td>
      <td class="mono" title={one.component_id}>
        {visible(one.url || (one.transport ?? "").toLowerCase())}
      </td>
      <td class="number">{target ? count(target.in_flight ?? 0) : ABSENT}</td>
      <td class="number">{target ? count(target.waiting ?? 0) : ABSENT}</td>
      <td class="number">{target ? percent(target.retry_tokens ?? 1) : ABSENT}</td>
      <td class="number">{count(one.signals?.queue_length)}</td>
      <td class="number">{duration(one.signals?.service_ms)}</td>
      <td class="number">{moment(Date.parse(one.lease.expires_at))}</td>
    </tr>
  );
}

function nameOf({ card }: Instance): string {
  return `${card.name}@${card.version}`;
}

function Workflows({ rows }: { rows: WorkflowVersion[] }) {
  return (
    <Table
      title="Workflows"
      columns={["Workflow", "Version", "State", "SHA-256", "Stored"]}
      words={4}
      empty={rows.length === 0 && "No workflow is stored: acp workflows put FILE."}
    >
      {rows.map((one) => (
        <tr key={`${one.name}@${one.version}`}>
          <th scope="row">
            <a href={href(["workflows", one.name])}>{one.name}</a>
          </th>
          <td>{one.version}</td>
          <td>
            <span class={`mark ${one.active ? "good" : "muted plain"}`}>
              {one.active ? "active" : "stored"}
            </span>
          </td>
          <td class="mono" title={one.sha256}>
            {(one.sha256 ?? "").slice(0, 16)}
          </td>
          <td class="number">{one.stored_at ? moment(Date.parse(one.stored_at)) : ABSENT}</td>
        </tr>
      ))}
    </Table>
  );
}

function Standings({ rows }: { rows: StandingRow[] }) {
  return (
    <Table
      title="Standing under contracts"
      columns={["Workflow", "Component", "In breach", "On a breach", "Counted", "Window"]}
      words={5}
      empty={rows.length === 0 && "No component was called under a contract's SLA lately."}
    >
      {rows.map((one) => (
        <tr key={`${one.workflow} ${one.component}@${one.version}`}>
          <th scope="row">{one.workflow}</th>
          <td>{`${one.component}@${one.version}`}</td>
          <td>
            {one.breach ? (
              <span class="mark bad">{visible(one.breach)}</span>
            ) : (
              <span class="mark good plain">no</span>
            )}
          </td>
          <td>{one.on_breach.toLowerCase()}</td>
          <td>
            {Object.entries(one.counts)
              .map(([name, value]) => `${count(value)} ${name.replaceAll("_", " ")}`)
              .join(", ")}
          </td>
          <td class="number">{duration(one.window_ms)}</td>
        </tr>
      ))}
    </Table>
  );
}

function Breaches({ rows }: { rows: BreachRow[] }) {
  return (
    <Table
      title="Breaches"
      columns={["Component", "Workflow", "What is broken", "Since", "Until"]}
      words={3}
      empty={rows.length === 0 && "No breach stands, and none has ended lately."}
      wraps
    >
      {rows.map((one) => (
        <tr key={`${one.workflow} ${one.component}@${one.version} ${one.since}`}>
          <th scope="row">{`${one.component}@${one.version}`}</th>
          <td>{one.workflow}</td>
          <td>{visible(one.message)}</td>
          <td class="number">{moment(Date.parse(one.since))}</td>
          <td class="number">{one.until ? moment(Date.parse(one.until)) : "stands"}</td>
        </tr>
      ))}
    </Table>
  );
}
