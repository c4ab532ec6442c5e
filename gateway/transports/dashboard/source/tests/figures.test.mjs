// Figures as readers see them. Bundled by esbuild and run by `node --test` (see test_bundle.py).
import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, count, duration, percent, visible } from "../figures";

test("a share is short, and neither all nor nothing unless it is", () => {
  const shown = { 0: "0 %", 1: "100 %", 0.5: "50 %", 0.96823: "96.8 %", 0.00012: "0.012 %" };
  for (const [share, text] of Object.entries(shown)) assert.equal(percent(Number(share)), text);
  assert.equal(percent(0.999_99), "99.99 %");
  assert.equal(percent(0.999_999_9), "99.99 %");
  assert.equal(percent(undefined), "–");
});

test("a time has one unit, or two that lie beside each other", () => {
  const shown = {
    0: "0 ms",
    999: "999 ms",
    1_000: "1.0 s",
    9_949: "9.9 s",
    9_950: "10 s",
    59_400: "59 s",
    60_000: "1 min",
    125_000: "2 min 5 s",
    3_600_000: "1 h",
    7_800_000: "2 h 10 min",
    90_000_000: "1 d 1 h",
  };
  for (const [ms, text] of Object.entries(shown)) assert.equal(duration(Number(ms)), text);
  assert.equal(duration(undefined), "–");
});

test("counts have their thousands apart, and what is not known is no 0", () => {
  assert.equal(count(1_234_567), "1,234,567");
  assert.equal(count(undefined), "–");
  assert.equal(bytes(1_023), "1023 B");
  assert.equal(bytes(5_000_000), "4.77 MiB");
});

test("what nobody could see is made visible, and line ends and tabs stay", () => {
  assert.equal(visible("a\tb\nc\r\n"), "a\tb\nc\r\n");
  assert.equal(visible("\u0000\u001b[0m\u007f"), "␀␛[0m⟨U+007F⟩");
  for (const code of [0x061c, 0x180e, 0x200b, 0x200e, 0x202a, 0x202e, 0x2066, 0x2069, 0xfeff, 0x2028, 0xe0041]) {
    const shown = visible(`x${String.fromCodePoint(code)}y`);
    assert.match(shown, /^x⟨U\+[0-9A-F]{4,5}⟩y$/, `U+${code.toString(16)}`);
  }
  assert.equal(visible("\ud800x"), "⟨U+D800⟩x", "half a pair");
  assert.equal(visible("שלום, ça va? 👍"), "שלום, ça va? 👍");
});
