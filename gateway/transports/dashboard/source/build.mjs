// Builds the dashboard into ../static (or the folder given): one script, one style sheet, and the
// files that are copied. Same sources, same bytes: a test builds again and compares.
import { build } from "esbuild";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "..", "static");
const COPIED = ["index.html", "icon.svg"];

const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: { app: "main.tsx" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: ["es2022"],
  charset: "utf8",
  legalComments: "none", // whole licences stand in licenses.txt
  lineLimit: 200, // so that a change of the bundle can be looked at
  metafile: true,
  logLevel: "warning",
});

await mkdir(out, { recursive: true });
for (const name of COPIED) await cp(join(here, name), join(out, name));
await writeFile(join(out, "licenses.txt"), await licenses(Object.keys(metafile.inputs)));

async function licenses(inputs) {
  const packages = inputs
    .filter((path) => path.startsWith("node_modules/"))
    .map((path) => path.split("/").slice(1, path.startsWith("node_modules/@") ? 3 : 2).join("/"));
  const texts = [...new Set(packages)].sort().map(async (name) => {
    const folder = join(here, "node_modules", name);
    const { version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    return `${name} ${version}\n\n${await licenseText(folder)}\n`;
  });
  return (await Promise.all(texts)).join(`\n${"-".repeat(78)}\n\n`);
}

async function licenseText(folder) {
  for (const name of ["LICENSE", "LICENSE.md", "LICENSE.txt"]) {
    const text = await readFile(join(folder, name), "utf8").catch(() => null);
    if (text !== null) return text.replaceAll("\r\n", "\n").trim();
  }
  throw new Error(`${folder} has no licence file: it cannot be bundled`);
}
