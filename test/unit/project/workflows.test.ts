import { existsSync, globSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import matter from "gray-matter";
import { expect, test } from "vitest";
import { z } from "zod";
import { notOnWindows } from "../../../vitest.config.ts";

// The workflows run on other machines: this checks as much as possible here.

const root = join(import.meta.dirname, "../../..");
const folder = join(root, ".github/workflows");

const stepSchema = z.looseObject({
  uses: z.string().optional(),
  run: z.string().optional(),
  with: z.record(z.string(), z.union([z.string(), z.number()])).optional(),
});
const jobSchema = z.looseObject({
  "runs-on": z.string(),
  "timeout-minutes": z.union([z.number(), z.string()]),
  strategy: z
    .object({ matrix: z.record(z.string(), z.array(z.union([z.string(), z.number()]))) })
    .loose()
    .optional(),
  steps: z.array(stepSchema).min(1),
});
const workflowSchema = z.looseObject({
  permissions: z.record(z.string(), z.string()),
  jobs: z.record(z.string(), jobSchema),
});
const packageSchema = z.object({
  scripts: z.record(z.string(), z.string()),
  devDependencies: z.record(z.string(), z.string()),
  engines: z.object({ node: z.string() }),
});

const read = (path: string) => readFileSync(join(root, path), "utf8");
const names = readdirSync(folder);
const workflows = new Map(
  names.map((name) => [
    name,
    workflowSchema.parse(matter(`---\n${read(`.github/workflows/${name}`)}\n---\n`).data),
  ]),
);
const jobs = [...workflows].flatMap(([name, { jobs: all }]) =>
  Object.entries(all).map(([job, content]) => ({ name: `${name}: ${job}`, ...content })),
);
const steps = jobs.flatMap((job) => job.steps);
const { scripts, engines } = packageSchema.parse(JSON.parse(read("package.json")));
const programs = [...steps.flatMap(({ run }) => run ?? []), read("scripts/ci.sh"), read(".ci/run")].join(
  "\n",
);

test("there is a workflow for changes, for each night and for releases", () => {
  expect(names.toSorted()).toEqual(["ci.yml", "nightly.yml", "release.yml"]);
});

test("each action has a version, the same in all workflows", () => {
  const used = new Set(steps.flatMap(({ uses }) => uses ?? []));
  for (const one of used) expect(one).toMatch(/^[\w.-]+\/[\w.-]+@(?:v\d+|[0-9a-f]{40})$/);
  const actions = [...used].map((one) => one.split("@")[0]);
  expect(actions).toHaveLength(new Set(actions).size);
});

test("every script that the workflows run exists", () => {
  const run = [...programs.matchAll(/npm run (?:--silent )?([\w:-]+)/g)].map(([, script = ""]) => script);
  expect(run.length).toBeGreaterThan(5);
  expect(run.filter((script) => scripts[script] === undefined)).toEqual([]);
  const paths = [...programs.matchAll(/(?<![\w$./-])(?:scripts|test|bin|docs|registry)\/[\w./-]+/g)].map(
    ([path]) => path,
  );
  expect(paths.length).toBeGreaterThan(5);
  expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  const shell = [...paths.filter((path) => path.endsWith(".sh")), ".ci/run"];
  // Windows has no such mode; git keeps it.
  if (process.platform !== "win32")
    expect(shell.filter((path) => (statSync(join(root, path)).mode & 0o111) === 0)).toEqual([]);
});

test("the files that steps name exist", () => {
  const files = steps.flatMap((step) => step.with?.["node-version-file"] ?? []);
  expect(files.length).toBeGreaterThan(0);
  expect(files.filter((file) => !existsSync(join(root, String(file))))).toEqual([]);
});

test("the whole suite runs on three systems, each with three versions of Node", () => {
  const matrix = workflows.get("ci.yml")?.jobs["verify"]?.strategy?.matrix;
  expect(matrix).toEqual({
    os: ["ubuntu-latest", "macos-latest", "windows-latest"],
    node: [22, 24, "latest"],
  });
  expect(engines.node).toMatch(/^>=22\./);
  expect(read(".nvmrc")).toMatch(/^24\./);
  const cases = read("scripts/ci.sh").split(/^case /m)[1] ?? "";
  const systems = cases.split(/^ {2}(?=\S+\)$)/m).slice(1);
  expect(systems).toHaveLength(3);
  for (const system of systems) expect(system).toContain("npm run verify");
});

test("each job has a time limit", () => {
  for (const { name, "timeout-minutes": limit } of jobs) expect(Number(limit) || limit, name).toBeTruthy();
});

test("only the release may write, and it publishes nothing without a tag", () => {
  for (const [name, { permissions }] of workflows)
    if (name !== "release.yml") expect(permissions, name).toEqual({ contents: "read" });
  const publishing = workflows
    .get("release.yml")
    ?.jobs["release"]?.steps.filter(({ run = "", uses = "" }) =>
      /npm publish|gh release|attest/.test(run + uses),
    );
  expect(publishing).toHaveLength(3);
  for (const step of publishing ?? []) expect(step["if"]).toBe("github.ref_type == 'tag'");
});

test("each test file that Windows skips exists, is listed once, and has a reason", () => {
  const files = notOnWindows.flatMap((group) =>
    group.files.map((pattern) => globSync(pattern, { cwd: root })),
  );
  expect(files.filter((found) => found.length === 0)).toEqual([]);
  const paths = files.flat();
  expect(paths).toHaveLength(new Set(paths).size);
  for (const { reason } of notOnWindows) expect(reason).toMatch(/^[a-z].{10,}[^.]$/);
  // The other files are most of the suite.
  const all = globSync("test/{unit,tool,session,property,streams,e2e,crash,eval}/**/*.test.ts", {
    cwd: root,
  });
  expect(paths.length * 2).toBeLessThan(all.length);
});
