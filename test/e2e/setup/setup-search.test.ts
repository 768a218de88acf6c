import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { searchServices } from "../../../src/cli/setup/search-services.ts";
import { searchWeb } from "../../../src/tool/web/websearch.ts";
import { listen } from "../../support/listen.ts";
import { fairlead } from "../../support/program/cli.ts";
import { shownMode } from "../../support/platform/platform.ts";
import { temporaryFolder } from "../../support/temp.ts";

/** Answers of the services, as they document them. */
const found = { title: "Fairness", url: "https://example.com/fair" };
const answers = {
  brave: {
    type: "search",
    query: { original: "q" },
    mixed: { type: "mixed", main: [] },
    web: { type: "search", results: [{ ...found, description: "About fairness", age: "1 day" }] },
  },
  tavily: {
    query: "q",
    answer: null,
    images: [],
    results: [{ ...found, content: "About fairness", score: 0.9 }],
  },
  exa: { requestId: "r", results: [{ ...found, id: "i", publishedDate: null, text: "About fairness" }] },
  searxng: { query: "q", results: [{ ...found, content: "About fairness", engine: "x" }], answers: [] },
};
const requests = {
  brave: { method: "GET", path: "/res/v1/web/search?q=fair%20ness", "x-subscription-token": "the-key" },
  tavily: { method: "POST", path: "/search", authorization: "Bearer the-key" },
  exa: { method: "POST", path: "/search", "x-api-key": "the-key" },
  searxng: { method: "GET", path: "/search?q=fair%20ness&format=json" },
};

test.each(["brave", "tavily", "exa", "searxng"] as const)("the preset of %s finds results", async (id) => {
  const asked: object[] = [];
  await using server = await listen((request, response) => {
    const { method, url: path, headers } = request;
    asked.push({ ...headers, method, path });
    response.setHeader("content-type", "application/json").end(JSON.stringify(answers[id]));
  });
  const service = searchServices.find((one) => one.id === id);
  const endpoint = service?.createEndpoint({ key: "the-key", base: server.url });
  if (endpoint === undefined) throw new Error(`${id} has no preset`);
  const local = endpoint.url.replace(/^https?:\/\/[^/]+/, server.url);
  const output = await searchWeb({ ...endpoint, url: local }, "fair ness", 5, new AbortController().signal);
  expect(asked).toEqual([expect.objectContaining(requests[id])]);
  for (const part of ["Fairness", "https://example.com/fair", "About fairness"])
    expect(output).toContain(part);
});

test("setup search tries SearXNG and stores it, or stores nothing", async () => {
  await using home = await temporaryFolder({}, "fairlead-home-");
  let status = 403;
  await using server = await listen((_request, response) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answers.searxng));
  });
  const config = join(home.path, ".config/fairlead/fairlead.json");
  const args = ["setup", "search", "--provider", "searxng", "--base-url", `${server.url}/`];
  const refused = await fairlead(home.path, args);
  expect([refused.exitCode, refused.stdout]).toEqual([
    1,
    expect.stringContaining("needs json among search.formats"),
  ]);
  await expect(readFile(config)).rejects.toThrow("ENOENT");
  status = 200;
  expect(await fairlead(home.path, args)).toMatchObject({ exitCode: 0 });
  expect(JSON.parse(await readFile(config, "utf8"))).toEqual({
    search: { web: { url: `${server.url}/search?q={query}&format=json`, results: "results" } },
  });
});

test("setup search stores a typed key in its own file, not in the configuration", async () => {
  await using home = await temporaryFolder({}, "fairlead-home-");
  const args = ["setup", "search", "--no-test"];
  const lines = ["tavily", "type", 'export TAVILY_API_KEY="tvly-0123456789abcdef"'];
  const { exitCode, stdout } = await fairlead(home.path, args, {
    input: lines.map((line) => `${line}\n`).join(""),
  });
  expect([exitCode, stdout]).toEqual([0, expect.not.stringContaining("tvly-")]);
  const key = join(home.path, ".local/share/fairlead/search-key-tavily");
  expect(await readFile(key, "utf8")).toBe("tvly-0123456789abcdef\n");
  expect((await stat(key)).mode & 0o777).toBe(shownMode(0o600));
  const config = JSON.parse(await readFile(join(home.path, ".config/fairlead/fairlead.json"), "utf8"));
  expect(config.search.web.headers).toEqual({ authorization: `Bearer {file:${key}}` });
  const shown = await fairlead(home.path, ["config", "show", "search"]);
  expect(shown.stdout).not.toContain("tvly-");
  const wrong = await fairlead(home.path, ["setup", "search", "--provider", "askjeeves"]);
  expect([wrong.exitCode, wrong.stderr]).toEqual([2, expect.stringContaining("brave, tavily, exa, searxng")]);
});
