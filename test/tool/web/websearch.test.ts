import { text as readText } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import type { Config } from "../../../src/config/schema.ts";
import { searchTools } from "../../../src/tool/web/websearch.ts";
import type { Tool } from "../../../src/tool/tool.ts";
import { call, description, prepare, run, toolPlace } from "../tool-place.ts";
import { body, redirect, webServer } from "./web-server.ts";

type Endpoint = NonNullable<NonNullable<Config["search"]>["web"]>;

function webSearch(endpoint: Endpoint): Tool {
  const [tool] = searchTools({ web: endpoint });
  if (tool === undefined) throw new Error("no tool for a configured endpoint");
  return tool;
}

const json = (value: unknown) => body(JSON.stringify(value), { "content-type": "application/json" });

async function output(endpoint: Endpoint, more: Record<string, unknown> = {}): Promise<string> {
  await using place = await toolPlace();
  return (await call(webSearch(endpoint), { query: "a & b", ...more }, place)).output;
}

async function failure(endpoint: Endpoint): Promise<string> {
  await using place = await toolPlace();
  const prepared = await prepare(webSearch(endpoint), { query: "q" }, place);
  return await run(prepared, place).then(
    () => "it did not fail",
    (error: unknown) => String(error),
  );
}

test("only the configured search is offered", () => {
  const names = (search: Config["search"]) => searchTools(search).map(({ name }) => name);
  expect(names(undefined)).toEqual([]);
  expect(names({})).toEqual([]);
  expect(names({ code: { url: "https://a" } })).toEqual(["codesearch"]);
  expect(names({ web: { url: "https://a" }, code: { url: "https://a" } })).toEqual([
    "websearch",
    "codesearch",
  ]);
});

test("the question names the query", async () => {
  await using place = await toolPlace();
  expect(await description(webSearch({ url: "https://a/" }), { query: "cats" }, place)).toEqual({
    title: 'Search the web for "cats"',
    kind: "fetch",
    locations: [],
    permissions: [{ permission: "websearch", subjects: [{ text: "cats" }], always: ["*"] }],
  });
});

describe("a search", () => {
  test("puts the query into the address and shows titles, addresses and texts", async () => {
    await using server = await webServer({
      "/search": json({
        results: [
          { title: "One", url: "https://one/", snippet: "first" },
          { name: "Two", link: "https://two/", content: ["second", "part"] },
          { url: "https://three/" },
        ],
      }),
    });
    expect(await output({ url: `${server.url}/search?q={query}` })).toBe(
      "1. One\nhttps://one/\nfirst\n\n2. Two\nhttps://two/\nsecond\npart\n\n3. (no title)\nhttps://three/",
    );
    expect(server.requests).toEqual(["GET /search?q=a%20%26%20b"]);
  });

  test("posts the configured body and headers, and finds results at the configured path", async () => {
    const posted: unknown[] = [];
    await using server = await webServer({
      "/search": (request, response) => {
        void readText(request).then((sent) => {
          posted.push({ key: request.headers["x-key"], sent: JSON.parse(sent) });
          response.end(
            JSON.stringify({ deep: { list: [{ a: { t: "Title" }, b: "https://u/", c: "text" }] } }),
          );
        });
      },
    });
    const endpoint: Endpoint = {
      url: `${server.url}/search`,
      headers: { "x-key": "secret" },
      body: { question: "find {query}", top: 5, tags: ["{query}"] },
      results: "deep.list",
      fields: { title: "a.t", url: "b", text: "c" },
    };
    expect(await output(endpoint)).toBe("1. Title\nhttps://u/\ntext");
    expect(posted).toEqual([{ key: "secret", sent: { question: "find a & b", top: 5, tags: ["a & b"] } }]);
  });

  test("shows the requested number of results, each truncated if it is long", async () => {
    const item = { title: "T", url: "https://u/", text: "x".repeat(3_000) };
    await using server = await webServer({ "/": json(Array.from({ length: 30 }, () => item)) });
    const numbers = (text: string) => text.match(/^\d+\. /gm)?.length;
    expect(numbers(await output({ url: server.url }))).toBe(8);
    const two = await output({ url: server.url }, { numResults: 2 });
    expect(numbers(two)).toBe(2);
    expect(two).toContain(`${"x".repeat(2_000)}… (cut)`);
  });

  test("uses the texts of a list, and ignores other values", async () => {
    const deep = `${"[".repeat(100_000)}"x"${"]".repeat(100_000)}`;
    const results = `[{"title":${deep},"url":"u","text":["a",null,"b"]},null,7]`;
    await using server = await webServer({ "/": body(`{"results":${results}}`) });
    expect(await output({ url: server.url })).toBe(
      "1. (no title)\nu\na\nb\n\n2. (no title)\n\n3. (no title)",
    );
  });

  test("reports that it found nothing", async () => {
    await using server = await webServer({ "/": json({ results: [] }) });
    expect(await output({ url: server.url })).toBe("Nothing was found. Try other words.");
  });

  test("explains why the service failed", async () => {
    await using server = await webServer({
      "/text": body("no json"),
      "/other": json({ answer: 1 }),
      "/busy": (_, response) => void response.writeHead(429).end("slow down"),
    });
    expect(await failure({ url: `${server.url}/text` })).toContain("not JSON");
    expect(await failure({ url: `${server.url}/other` })).toContain("no list of results at results, items");
    expect(await failure({ url: `${server.url}/busy` })).toContain(
      "status 429. Tell the user if it stays so. slow down",
    );
    expect(await failure({ url: "file:///etc/passwd" })).toContain("Tell the user to correct it");
  });

  test("does not send its key to a redirect target", async () => {
    await using other = await webServer({ "/": json([]) });
    await using server = await webServer({ "/": redirect(other.url) });
    expect(await failure({ url: server.url, headers: { "x-key": "secret" } })).toContain("status 302");
    expect(other.requests).toEqual([]);
  });
});
