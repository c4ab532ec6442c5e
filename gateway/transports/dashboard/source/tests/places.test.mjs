// Addresses and back, the steps of a series, and the lines of a timeline.
import assert from "node:assert/strict";
import { test } from "node:test";
import { everyStep } from "../parts/steps";
import { linesOf, scaleOf } from "../parts/timeline_rows";
import { href, placeOf } from "../shell/places";

test("an address reads back as it was written, whatever a name holds", () => {
  for (const name of ["a/b", "100%", "ä?#&=", "..", "name@1.0.0", "<script>"]) {
    const place = placeOf(href(["workflows", name], { window: 5, error: name, none: undefined }));
    assert.deepEqual(place.path, ["workflows", name]);
    assert.equal(place.query.get("error"), name);
    assert.equal(place.query.get("none"), null);
  }
  assert.deepEqual(placeOf("").path, []);
  assert.deepEqual(placeOf("#/a%zz").path, ["a%zz"], "a stray per cent sign names itself");
});

test("steps in which nothing ended are there, without a duration", () => {
  const points = everyStep({ from: 1_500, to: 4_200, stepMs: 1_000, points: [{ at: 3_000, ended: 2 }] });
  assert.deepEqual(points, [{ at: 1_000 }, { at: 2_000 }, { at: 3_000, ended: 2 }, { at: 4_000 }]);
});

test("a wait joins its own attempt and no other, and what is not over goes to the edge", () => {
  const call = { call_id: "c", depth: 2, name: "" };
  const entries = [
    { ...call, kind: "WAIT", attempt: 1, from_ms: 100, to_ms: 200 },
    { ...call, kind: "ATTEMPT", attempt: 1, from_ms: 200, to_ms: 300 },
    { ...call, kind: "DECISION", attempt: 1, from_ms: 300, to_ms: 300 },
    { ...call, kind: "WAIT", attempt: 2, from_ms: 300, to_ms: 400 },
    { ...call, kind: "ATTEMPT", attempt: 3, from_ms: 400 },
    { ...call, kind: "ATTEMPT", attempt: 4 },
  ];
  const scale = scaleOf(entries, 100, 500);
  assert.deepEqual(scale, { from: 100, to: 500 });
  const lines = linesOf(entries, scale);
  const bars = lines.map((line) => line.bars.map((bar) => [bar.what, bar.from, bar.length, bar.isOpen]));
  assert.deepEqual(bars, [
    [["wait", 0, 25, false], ["service", 25, 25, false]],
    [["moment", 50, 0, false]],
    [["wait", 50, 25, false]],
    [["service", 75, 25, true]],
    [],
  ]);
  assert.deepEqual(scaleOf([], undefined, 7), { from: 7, to: 8 }, "no time at all is no division");
});
