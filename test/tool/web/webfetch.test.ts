import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { systemLookup } from "../../../src/tool/web/web-request.ts";
import { webfetchTool } from "../../../src/tool/web/webfetch.ts";
import { createPng } from "../../support/png.ts";
import { call, description, prepare, run, toolPlace } from "../tool-place.ts";
import { body, redirect, webServer } from "./web-server.ts";

const tool = webfetchTool({ lookup: systemLookup });
const html = (content: string | Uint8Array, more: Record<string, string> = {}) =>
  body(content, { "content-type": "text/html; charset=utf-8", ...more });

/** Returns the text that the model receives from a successful fetch. */
async function output(url: string, more: Record<string, unknown> = {}): Promise<string> {
  await using place = await toolPlace();
  return (await call(tool, { url, ...more }, place)).output;
}

/** Returns the text that the model receives from a failed fetch, in preparation or later. */
async function failure(url: string, more: Record<string, unknown> = {}, fetching = tool): Promise<string> {
  await using place = await toolPlace();
  try {
    const result = await run(await prepare(fetching, { url, ...more }, place), place);
    return result.status === "failed" ? result.error : "it did not fail";
  } catch (error) {
    return String(error);
  }
}

const page =
  '<html><head><title>Title</title><script>evil()</script></head><body><h1>Big &amp; bold</h1><p>See <a href="/x">this</a> or <a href="y">that</a>.</p><pre><code>a &lt; b</code></pre><table><tr><td>1</td><td>2</td></tr></table></body></html>';

describe("a page", () => {
  test("is returned as Markdown with whole links, as plain text, or unchanged", async () => {
    await using server = await webServer({ "/docs/a": html(page) });
    const url = `${server.url}/docs/a`;
    const head = `${url} (text/html; charset=utf-8, ${page.length} bytes)`;
    const markdown = await output(url);
    expect(markdown.startsWith(`${head}\n\n`)).toBe(true);
    expect(markdown).toContain("# Big & bold");
    expect(markdown).toContain(`See [this](${server.url}/x) or [that](${server.url}/docs/y).`);
    expect(markdown).not.toContain("evil");
    expect(await output(url, { format: "text" })).toBe(
      `${head}\n\nTitle\n\nBig & bold\n\nSee this or that.\n\na < b\n\n1\t2`,
    );
    expect(await output(url, { format: "html" })).toBe(`${head}\n\n${page}`);
  });

  test("that is large is read without blocking, and given up at a time limit", async () => {
    const paragraph = "<p>One &amp; <b>two</b>.</p>";
    const amps = "&amp;".repeat(900_000);
    await using server = await webServer({
      "/large": html(paragraph.repeat(20_000)),
      "/slow": html(`<p>${amps}</p>`),
      "/text": body("a<b>".repeat(100_000), { "content-type": "text/plain" }),
    });
    const [, ...paragraphs] = (await output(`${server.url}/large`)).split("\n\n");
    expect(paragraphs).toEqual(Array.from({ length: 20_000 }, () => "One & **two**."));
    expect((await output(`${server.url}/text`)).endsWith("\n\n" + "a<b>".repeat(100_000))).toBe(true);
    expect(await failure(`${server.url}/slow`, { timeout: 0.2 })).toContain("within 0.2 seconds");
  });

  test("is read in its own character set", async () => {
    const latin = Buffer.from("<p>caf\u00E9</p>", "latin1");
    await using server = await webServer({
      "/header": body(latin, { "content-type": "text/html; charset=ISO-8859-1" }),
      "/meta": body(Buffer.concat([Buffer.from("<meta charset='iso-8859-1'>"), latin]), {
        "content-type": "text/html",
      }),
      "/mark": body(Buffer.from("\uFEFFcaf\u00E9", "utf16le"), { "content-type": "text/plain" }),
      "/unknown": body("caf\u00E9", { "content-type": "text/plain; charset=nonsense" }),
    });
    for (const path of ["header", "meta", "mark", "unknown"])
      expect(await output(`${server.url}/${path}`)).toMatch(/\n\ncaf\u00E9$/);
  });

  test("that is JSON or other text is returned unchanged, whatever its type", async () => {
    await using server = await webServer({
      "/json": body('{"a": "<b>"}', { "content-type": "application/problem+json" }),
      "/raw": body("plain <b>", { "content-type": "application/octet-stream" }),
      "/untold": body("<!doctype html><p>hello</p>", {}),
      "/empty": body(""),
    });
    expect(await output(`${server.url}/json`)).toMatch(/\n\n\{"a": "<b>"\}$/);
    expect(await output(`${server.url}/raw`)).toMatch(/\n\nplain <b>$/);
    expect(await output(`${server.url}/untold`)).toMatch(/\(no type given, 27 bytes\)\n\nhello$/);
    expect(await output(`${server.url}/empty`)).toMatch(/\n\(no text\)$/);
  });

  test("that is an image becomes an attachment, other binary content is refused", async () => {
    const png = createPng(2, 2);
    await using server = await webServer({
      "/png": body(png, { "content-type": "image/png" }),
      "/zip": body(png, { "content-type": "application/zip" }),
      "/bytes": body(png, { "content-type": "application/octet-stream" }),
    });
    await using place = await toolPlace();
    const { attachments } = await call(tool, { url: `${server.url}/png` }, place);
    expect(attachments).toEqual([
      { mime: "image/png", url: `data:image/png;base64,${png.toString("base64")}` },
    ]);
    for (const path of ["zip", "bytes"])
      expect(await failure(`${server.url}/${path}`)).toContain("neither text nor an image");
  });

  test("that is an error fails with its status and the beginning of its text", async () => {
    await using server = await webServer({});
    expect(await failure(`${server.url}/nothing`)).toBe(
      `${server.url}/nothing answered with status 404.\nnot here`,
    );
  });
});

describe("compressed and large answers", () => {
  test.each([
    ["gzip", gzipSync],
    ["deflate", deflateSync],
    ["br", brotliCompressSync],
  ] as const)("%s is read", async (encoding, compress) => {
    await using server = await webServer({
      "/a": html(compress("<p>packed</p>"), { "content-encoding": encoding }),
    });
    expect(await output(`${server.url}/a`)).toMatch(/\n\npacked$/);
  });

  test("are rejected above 5 MB, announced, streamed or packed", async () => {
    const large = Buffer.alloc(6 * 1024 * 1024, "x");
    await using server = await webServer({
      "/announced": body(large, { "content-type": "text/plain", "content-length": String(large.length) }),
      "/streamed": (_, response) => {
        response.writeHead(200, { "content-type": "text/plain" }).write(large);
        response.end();
      },
      "/bomb": body(gzipSync(Buffer.alloc(60 * 1024 * 1024)), {
        "content-type": "text/plain",
        "content-encoding": "gzip",
      }),
    });
    for (const path of ["announced", "streamed", "bomb"])
      expect(await failure(`${server.url}/${path}`)).toContain("The answer is larger than 5242880 bytes.");
  });

  test("that are damaged, truncated or oddly compressed fail with an explanation", async () => {
    await using server = await webServer({
      "/damaged": body("no gzip", { "content-encoding": "gzip" }),
      "/cut": (_, response) => {
        response.writeHead(200, { "content-length": "100" }).write("half", () => response.destroy());
      },
      "/strange": body("x", { "content-encoding": "zip" }),
      "/other": (_, { socket }) =>
        void socket?.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n"),
    });
    expect(await failure(`${server.url}/damaged`)).toContain("not compressed as it says");
    expect(await failure(`${server.url}/cut`)).toContain("ended before the answer was complete");
    expect(await failure(`${server.url}/strange`)).toContain("compressed as zip");
    expect(await failure(`${server.url}/other`)).toContain("without an answer");
  });

  test("that do not arrive in time are given up, and so is a cancelled fetch", async () => {
    await using server = await webServer({
      "/never": () => {},
      "/half": (_, response) => void response.writeHead(200).write("half"),
    });
    for (const path of ["never", "half"])
      expect(await failure(`${server.url}/${path}`, { timeout: 0.2 })).toContain("within 0.2 seconds");
    await using place = await toolPlace();
    const prepared = await prepare(tool, { url: `${server.url}/never` }, place);
    const cancel = new AbortController();
    const fetching = prepared.run({
      callId: "call",
      signal: cancel.signal,
      isAllowed: () => true,
      output: () => {},
      waitUntilReady: async () => {},
      limits: { folder: place.outside },
    });
    cancel.abort();
    await expect(fetching).rejects.toThrow(/abort/i);
  });
});

describe("permission", () => {
  test("is asked for the address, and can be remembered for its host", async () => {
    const away = webfetchTool({ lookup: async () => ["93.184.215.14"] });
    await using place = await toolPlace();
    expect(await description(away, { url: "https://example.org/a?b#c" }, place)).toEqual({
      title: "Fetch https://example.org/a?b",
      kind: "fetch",
      locations: [],
      permissions: [
        {
          permission: "webfetch",
          subjects: [{ text: "https://example.org/a?b", reason: "fetches https://example.org/a?b" }],
          always: ["https://example.org/*"],
        },
      ],
    });
  });

  test.each([
    "http://localhost:1/",
    "http://[::1]/",
    "http://2130706433/",
    "http://[::ffff:7f00:1]/",
    "http://169.254.169.254/latest",
  ])("must be confirmed each time for %s", async (url) => {
    await using place = await toolPlace();
    const [request] = (await prepare(tool, { url }, place)).permissions;
    expect(request?.always).toEqual([]);
    expect(request?.subjects.at(-1)?.confirm).toContain("an address of this computer or of a network");
  });

  test("must be confirmed for a name if one of its addresses is not public", async () => {
    const mixed = webfetchTool({ lookup: async () => ["93.184.215.14", "10.0.0.7"] });
    await using place = await toolPlace();
    const [request] = (await prepare(mixed, { url: "https://wiki.example/" }, place)).permissions;
    expect(request?.subjects.map(({ text }) => text)).toEqual(["https://wiki.example/", "10.0.0.7"]);
  });

  test("does not apply to another address that the name has when the request is sent", async () => {
    const found = [["93.184.215.14"], ["127.0.0.1"]];
    const rebinding = webfetchTool({ lookup: async () => found.shift() ?? [] });
    expect(await failure("http://rebind.example/", {}, rebinding)).toContain(
      "http://rebind.example/ (127.0.0.1) is an address of this computer",
    );
  });

  test.each([
    ["file:///etc/passwd", "Only http and https"],
    ["ftp://host/x", "Only http and https"],
    ["https://user:word@host/", "user name or password"],
    ["example.org", "is not an address"],
  ])("is not even asked for %s", async (url, problem) => {
    expect(await failure(url)).toContain(problem);
  });

  test("needs a name that resolves to an address", async () => {
    const nowhere = webfetchTool({ lookup: async () => [] });
    expect(await failure("https://nowhere.example/", {}, nowhere)).toContain("no address was found");
  });
});

describe("a redirect", () => {
  test("on the same site is followed and shown", async () => {
    await using server = await webServer({ "/old": redirect("/new"), "/new": body("found") });
    const text = await output(`${server.url}/old`);
    expect(text).toBe(`${server.url}/old → ${server.url}/new (text/plain, 5 bytes)\n\nfound`);
  });

  test("to an address of this computer that was not asked for fails", async () => {
    await using inner = await webServer({ "/secret": body("secret") });
    await using server = await webServer({
      "/port": redirect(`${inner.url}/secret`),
      "/name": redirect(`http://localhost:${inner.port}/secret`),
      "/metadata": redirect("http://169.254.169.254/latest"),
    });
    for (const path of ["port", "name", "metadata"])
      expect(await failure(`${server.url}/${path}`)).toContain("Not followed: ");
    expect(inner.requests).toEqual([]);
  });

  test("to another site is named and not followed", async () => {
    const lookup = async (host: string) => (host === "other.example" ? ["93.184.215.14"] : ["127.0.0.1"]);
    await using server = await webServer({ "/a": redirect("https://other.example/b") });
    await using place = await toolPlace();
    const { output: text } = await call(webfetchTool({ lookup }), { url: `${server.url}/a` }, place);
    expect(text).toContain(`${server.url}/a redirects to https://other.example/b\nThat is another site`);
  });

  test("without a target, to a file, or without end fails", async () => {
    await using server = await webServer({
      "/bad": redirect("http://"),
      "/file": redirect("file:///etc/passwd"),
      "/round": redirect("/round"),
    });
    expect(await failure(`${server.url}/bad`)).toContain("which is not an address");
    expect(await failure(`${server.url}/file`)).toContain("Only http and https");
    expect(await failure(`${server.url}/round`)).toContain("redirects more than 10 times");
    expect(server.requests.filter((request) => request === "GET /round")).toHaveLength(11);
  });
});

test("the connection uses the resolved address, under the name", async () => {
  await using server = await webServer({
    "/": (request, response) => void response.end(request.headers.host),
  });
  const lookup = async () => ["127.0.0.1"];
  await using place = await toolPlace();
  const url = `http://named.example:${server.port}/`;
  const { output: text } = await call(webfetchTool({ lookup }), { url }, place);
  expect(text).toMatch(new RegExp(`named\\.example:${server.port}$`));
});
