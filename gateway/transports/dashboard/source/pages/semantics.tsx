// What was said and no domain knew, of one workflow: a person says what each value means, or that
// it means nothing here. What was chosen is sent together, since it makes one new version.
import { useState } from "preact/hooks";
import { count, moment, percent, visible } from "../figures";
import type { ReviewedWorkflow, UnknownValue } from "../operate_shapes";
import { clamp, KeyList, useKeys, type Key } from "../parts/keys";
import { Table } from "../parts/tables";
import { asRefusal, useAnswer } from "../shell/answer";
import { ask, type Refusal } from "../shell/ask";
import { goTo, href } from "../shell/location";
import type { PageProps } from "../shell/routes";
import { Answered, Nothing, Refused } from "../shell/states";

interface Listed {
  workflows: { workflow: string; unknown: number }[];
}

export function Semantics({ query }: PageProps) {
  const listed = useAnswer<Listed>("/v1/semantics");
  return (
    <Answered answer={listed}>
      {({ workflows }) => {
        const wanted = query.get("workflow") ?? workflows[0]?.workflow ?? "";
        if (!wanted) return <AllKnown />;
        return (
          <>
            <form class="filters">
              <label>
                Workflow
                <select
                  value={wanted}
                  onChange={(event) =>
                    goTo(href(["semantics"], { workflow: event.currentTarget.value }))
                  }
                >
                  {named(workflows, wanted).map((one) => (
                    <option key={one.workflow} value={one.workflow}>
                      {one.workflow} ({one.unknown})
                    </option>
                  ))}
                </select>
              </label>
            </form>
            <Review key={wanted} workflow={wanted} changed={listed.again} />
          </>
        );
      }}
    </Answered>
  );
}

function AllKnown() {
  return (
    <Nothing title="Every value is known">
      Values that no domain of a workflow knows are collected here as sessions say them.
    </Nothing>
  );
}

/** The listed ones, and the wanted one also once it has nothing left. */
function named(workflows: Listed["workflows"], wanted: string): Listed["workflows"] {
  const isListed = workflows.some((one) => one.workflow === wanted);
  return isListed ? workflows : [...workflows, { workflow: wanted, unknown: 0 }];
}

function Review({ workflow, changed }: { workflow: string; changed: () => void }) {
  const answer = useAnswer<ReviewedWorkflow>(`/v1/semantics/${encodeURIComponent(workflow)}`);
  const [said, setSaid] = useState("");
  const done = (what: string): void => {
    setSaid(what);
    answer.again();
    changed();
  };
  return (
    <>
      <p role="status" class={said ? "good" : "hidden"}>
        {said}
      </p>
      <Answered answer={answer}>
        {(data) =>
          data.values.length === 0 ? <AllKnown /> : <Values data={data} done={done} key={said} />
        }
      </Answered>
    </>
  );
}

/** By field, domain and value: what it means, or null for nothing here. */
type Choices = Record<string, string | null>;

function Values({ data, done }: { data: ReviewedWorkflow; done: (said: string) => void }) {
  const { workflow, active, values } = data;
  const [at, setAt] = useState(0);
  const [chosen, setChosen] = useState<Choices>({});
  const [refusal, setRefusal] = useState<Refusal | null>(null);
  const [isBusy, setBusy] = useState(false);
  const row = values[at];
  const choose = (one: UnknownValue | undefined, means: string | null | undefined): void => {
    if (!one) return;
    setChosen((now) => {
      const { [keyOf(one)]: _, ...others } = now;
      return means === undefined || means === "" ? others : { ...others, [keyOf(one)]: means };
    });
  };
  const move = (by: number): void => setAt((now) => clamp(now + by, values.length));
  const send = async (): Promise<void> => {
    if (isBusy || Object.keys(chosen).length === 0) return;
    setBusy(true);
    setRefusal(null);
    try {
      done(await sent(workflow, values, chosen));
    } catch (problem) {
      setRefusal(asRefusal(problem));
      setBusy(false);
    }
  };
  const table: Key[] = [
    { keys: ["j", "ArrowDown"], says: "next value", act: () => move(1) },
    { keys: ["k", "ArrowUp"], says: "previous value", act: () => move(-1) },
    {
      keys: ["1", "2", "3"],
      says: "it means the first, second, third that comes near",
      act: () => undefined,
    },
    { keys: ["m"], says: "write what it means", act: () => document.getElementById(`means-${at}`)?.focus() },
    { keys: ["d"], says: "it means nothing here", act: () => choose(row, null) },
    { keys: ["u"], says: "undecided again", act: () => choose(row, undefined) },
    { keys: ["Escape"], says: "leave the field", act: blurred },
    { keys: ["Enter"], ctrl: true, says: "send what was decided", act: () => void send() },
  ];
  const numbered = ["1", "2", "3"].map((key, place) => ({
    keys: [key],
    says: "",
    act: () => choose(row, row?.nearest[place]?.value),
  }));
  useKeys([...numbered, ...table]);
  const decided = Object.keys(chosen).length;
  return (
    <>
      {refusal && <Refused refusal={refusal} again={() => void send()} stale />}
      <Table
        title={`Unknown values of ${workflow}@${active}`}
        columns={["Value", "Where", "Domain", "Comes near", "Means", "Seen", "Last"]}
        words={5}
        beside={
          <span class="row">
            <span class="small muted">{decided} decided</span>
            <button type="submit" disabled={decided === 0 || isBusy} onClick={() => void send()}>
              Send
            </button>
          </span>
        }
      >
        {values.map((one, place) => (
          <ValueRow
            key={keyOf(one)}
            one={one}
            place={place}
            isPresent={place === at}
            chosen={chosen[keyOf(one)]}
            choose={(means) => choose(one, means)}
            pick={() => setAt(place)}
          />
        ))}
      </Table>
      <section class="panel" aria-label="Keys">
        <h2>Keys</h2>
        <KeyList table={table} />
      </section>
    </>
  );
}

interface ValueRowProps {
  one: UnknownValue;
  place: number;
  isPresent: boolean;
  chosen: string | null | undefined;
  choose: (means: string | null | undefined) => void;
  pick: () => void;
}

function ValueRow({ one, place, isPresent, chosen, choose, pick }: ValueRowProps) {
  const { unknown, nearest, means } = one;
  return (
    <tr aria-current={isPresent ? "true" : undefined} onClick={pick}>
      <th scope="row" class="isolated">
        {visible(unknown.value)}
      </th>
      <td>{visible(unknown.field)}</td>
      <td>{unknown.domain}</td>
      <td>
        <span class="row">
          {nearest.slice(0, 3).map((near, at) => (
            <button
              key={near.value}
              type="button"
              class="small"
              aria-pressed={chosen === near.value}
              onClick={() => choose(near.value)}
            >
              {isPresent && <kbd>{at + 1}</kbd>} {visible(near.value)} {percent(near.confidence)}
            </button>
          ))}
          {nearest.length === 0 && <span class="muted">nothing</span>}
        </span>
      </td>
      <td>
        <span class="row">
          <input
            id={`means-${place}`}
            aria-label={`What ${visible(unknown.value)} means`}
            value={chosen ?? ""}
            placeholder={means ? `${means} (known now)` : chosen === null ? "nothing here" : ""}
            onFocus={pick}
            onInput={(event) => choose(event.currentTarget.value)}
          />
          <button type="button" class="small" aria-pressed={chosen === null} onClick={() => choose(null)}>
            Nothing here
          </button>
        </span>
      </td>
      <td class="number">{count(unknown.count)}</td>
      <td class="number">{moment(Date.parse(unknown.last_at))}</td>
    </tr>
  );
}

function keyOf({ unknown }: UnknownValue): string {
  return JSON.stringify([unknown.field, unknown.domain, unknown.value]);
}

function blurred(): void {
  if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
}

/** What became of it, in words. Synonyms make one version; dismissals are told beside. */
async function sent(workflow: string, values: UnknownValue[], chosen: Choices): Promise<string> {
  const path = `/v1/semantics/${encodeURIComponent(workflow)}`;
  const decided = values.filter((one) => keyOf(one) in chosen);
  const synonyms = decided.flatMap(({ unknown, ...rest }) => {
    const means = chosen[keyOf({ unknown, ...rest })];
    return means ? [{ domain: unknown.domain, value: unknown.value, means }] : [];
  });
  const dismissed = decided
    .filter((one) => chosen[keyOf(one)] === null)
    .map(({ unknown }) => ({ domain: unknown.domain, value: unknown.value }));
  const told: string[] = [];
  if (synonyms.length > 0) {
    const { version } = await ask<{ version: string }>(`${path}/synonyms`, {
      method: "POST",
      body: { synonyms },
    });
    told.push(`${workflow}@${version} is stored and knows ${synonyms.length}; activate it, or roll it out.`);
  }
  if (dismissed.length > 0) {
    await ask<unknown>(`${path}/dismiss`, { method: "POST", body: { values: dismissed } });
    told.push(`${dismissed.length} dismissed.`);
  }
  return told.join(" ");
}
