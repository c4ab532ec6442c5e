// One component: is it slow or are its callers waiting, does it fail, do sessions fall back because
// of it, and is what it takes part in any good? By version and by action.
import { ABSENT, count, percent } from "../figures";
import { Figure, known } from "../parts/figure";
import { JudgedFigures } from "../parts/judged";
import { AttemptCells, COMPONENT_COLUMNS, ErrorTable, Table } from "../parts/tables";
import { Trends } from "../parts/trends";
import { refreshMs, WindowChoice, windowOf } from "../parts/window";
import type { ComponentAnswer } from "../shapes";
import { useAnswer } from "../shell/answer";
import { href } from "../shell/location";
import type { PageProps } from "../shell/routes";
import { Answered } from "../shell/states";

export function ComponentPage({ names, query }: PageProps) {
  const name = names[0] ?? "";
  const windowMs = windowOf(query);
  const path = `/v1/dashboard/components/${encodeURIComponent(name)}?window_ms=${windowMs}`;
  const answer = useAnswer<ComponentAnswer>(path, { everyMs: refreshMs(windowMs) });
  return (
    <>
      <div class="lead">
        <WindowChoice path={["components", name]} query={query} />
        <a href={href(["sessions"], { component: name })}>Sessions it took part in</a>
      </div>
      <Answered answer={answer}>{(data) => <Seen data={data} />}</Answered>
    </>
  );
}

function Seen({ data }: { data: ComponentAnswer }) {
  const { name, blame } = data;
  return (
    <>
      <section class="figures" aria-label="Quality and operation">
        <JudgedFigures judged={data.judged} />
        <Figure name="Fell back because of it" value={known(blame?.fallback_rate, percent)}>
          {blame && `${count(blame.fallbacks ?? 0)} of ${count(blame.sessions ?? 0)} sessions`}
        </Figure>
      </section>
      <Trends from={data.from} to={data.to} stepMs={data.step_ms} points={data.series ?? []} />
      <div class="columns">
        <Versions data={data} />
        <Actions data={data} />
      </div>
      <ErrorTable
        rows={data.errors ?? []}
        of="Attempts"
        linkOf={(error) => href(["sessions"], { component: name, error, since: data.from })}
      />
    </>
  );
}

function Versions({ data }: { data: ComponentAnswer }) {
  const rows = data.versions ?? [];
  return (
    <Table
      title="Versions"
      columns={["Version", ...COMPONENT_COLUMNS]}
      empty={rows.length === 0 && "It was not called in this time. Choose a longer one above."}
    >
      {rows.map((row) => (
        <tr key={row.version}>
          <th scope="row">{row.version ?? ABSENT}</th>
          <AttemptCells row={row} />
        </tr>
      ))}
    </Table>
  );
}

function Actions({ data }: { data: ComponentAnswer }) {
  const rows = data.actions ?? [];
  return (
    <Table
      title="Actions"
      columns={["Action", ...COMPONENT_COLUMNS]}
      empty={rows.length === 0 && "No action of it was called in this time."}
    >
      {rows.map((row) => (
        <tr key={row.action}>
          <th scope="row">{row.action || "(its role)"}</th>
          <AttemptCells row={row} />
        </tr>
      ))}
    </Table>
  );
}
