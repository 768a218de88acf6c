import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { promisify } from "node:util";
import { z } from "zod";
import { messageSchema, sessionInfoSchema } from "../../src/message/message.ts";
import { renderSessionPage } from "../../src/reports/view/page.ts";
import { findProgram } from "../../src/workspace/process/find-program.ts";
import { temporaryFolder } from "../support/temp.ts";

// Opens the page of a session with 2,000 messages, light and dark, with and without a narrow window. Checks
// in a browser that it shows without errors, and how long the layout takes.

const messageCount = 2_000;
/** For the whole browser: start, load, layout, picture. A page without content-visibility takes several times as long. */
const longest = 60_000;
/** Milliseconds between two frames of scrolling, for all but the slowest 5 %. A busy machine without a graphics card needs most of it. */
const slowestFrame = 250;

/** Runs in the page: scrolls by a screen per frame, then reports the milliseconds between frames. */
const scrollAndReport = `
  const times = [];
  let last = performance.now();
  const next = () => {
    const now = performance.now();
    times.push(now - last);
    last = now;
    const before = scrollY;
    scrollBy(0, innerHeight);
    if (scrollY !== before) requestAnimationFrame(next);
    else fetch("/report", { method: "POST", body: JSON.stringify(times) });
  };
  requestAnimationFrame(next);`;

const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const found = await Promise.all(names.map((name) => findProgram(name, process.env)));
const browser = process.env["CHROME"] ?? found.find((path) => path !== undefined);
if (browser === undefined) {
  console.error("Did not run: no Chromium or Chrome was found. Install one, or name it in CHROME.");
  process.exit(1);
}

await using place = await temporaryFolder();
const path = join(place.path, "page.html");
writeFileSync(path, await longPage());
const pictures = process.argv[2] ?? place.path;
const looks = [
  { name: "light", size: "1200,900", flags: [] },
  { name: "dark", size: "1200,900", flags: ["--blink-settings=preferredColorScheme=0"] },
  { name: "narrow", size: "500,900", flags: [] },
];
for (const { name, size, flags } of looks) {
  const start = performance.now();
  const picture = join(pictures, `${name}.png`);
  await open([...flags, `--window-size=${size}`, `--screenshot=${picture}`]);
  console.log(`${name}: ${((performance.now() - start) / 1_000).toFixed(1)} s, ${picture}`);
}
const { frames, median, slow } = await scrollToEnd();
console.log(`scrolled in ${frames} frames: ${median} ms each, 95 % in at most ${slow} ms`);
assert.ok(slow <= slowestFrame, "scrolling stays fluid");
const { stdout } = await open(["--dump-dom"]);
assert.equal(stdout.split("<article").length - 1, messageCount, "every message is in the document");
assert.equal(stdout.split("<figure").length - 1, 4, "all plots are in the document");
console.log(`${messageCount} messages are shown.`);

/** Scrolls through the page by a screen per frame. Returns the milliseconds between frames. */
async function scrollToEnd(): Promise<{ frames: number; median: number; slow: number }> {
  const measured = Promise.withResolvers<number[]>();
  const page = (await longPage()).replace(/<meta http-equiv="Content-Security-Policy"[^>]*>/, "");
  // The picture is requested after the measurement, so that the browser does not exit before it.
  const added = `<img src="/wait" alt=""><script>${scrollAndReport}</script></body>`;
  const server = createServer((request, response) => {
    if (request.url === "/wait") {
      const answer = () => response.writeHead(404).end();
      measured.promise.then(answer, answer);
      return;
    }
    if (request.url !== "/report") {
      response.setHeader("content-type", "text/html").end(page.replace("</body>", added));
      return;
    }
    let text = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    request.on("end", () => {
      response.end();
      measured.resolve(z.array(z.number()).parse(JSON.parse(text)));
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = z.object({ port: z.number() }).parse(server.address());
  const opened = open(["--window-size=1200,900", "--dump-dom"], `http://127.0.0.1:${port}/`);
  opened.catch(measured.reject);
  const times = (await measured.promise).toSorted((one, other) => one - other);
  await opened;
  server.close();
  const at = (share: number) => Math.round(times[Math.floor(times.length * share)] ?? 0);
  return { frames: times.length, median: at(0.5), slow: at(0.95) };
}

async function open(args: readonly string[], address = `file://${path}`) {
  const quiet = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
  ];
  const profile = `--user-data-dir=${join(place.path, "profile")}`;
  return promisify(execFile)(browser ?? "", [...quiet, profile, ...args, address], {
    timeout: longest,
    maxBuffer: 256 * 1024 * 1024,
  });
}

async function longPage(): Promise<string> {
  const time = { created: 1_750_000_000_000, updated: 1_750_000_600_000 };
  const info = sessionInfoSchema.parse({
    id: `ses_${"0".repeat(32)}`,
    projectId: "prj",
    cwd: "/work",
    title: "A long session",
    agent: "build",
    cost: 4.2,
    version: "0.1.0",
    time,
  });
  const messages = Array.from({ length: messageCount }, (_, at) => {
    const id = `msg_${String(at).padStart(32, "0")}`;
    const text = `Message ${at}.\n\n- one\n- two\n\n\`\`\`js\nconst a = ${at};\n\`\`\``;
    const parts = [{ id: `prt_${String(at).padStart(32, "0")}`, type: "text", text }];
    const base = { id, sessionId: info.id, agent: "build" };
    const created = time.created + at * 300;
    if (at % 2 === 0)
      return messageSchema.parse({ info: { ...base, role: "user", time: { created } }, parts });
    const tokens = { input: 100 + at, output: 50, reasoning: 0, cache: { read: at * 10, write: 0 } };
    const answer = {
      ...base,
      role: "assistant",
      parentId: id,
      time: { created, completed: created + 250 },
      model: { provider: "local", model: "coder" },
      cost: 0.002,
      tokens,
    };
    return messageSchema.parse({ info: answer, parts });
  });
  return renderSessionPage(info, messages, {
    load: () => Promise.resolve(undefined),
    messagesOf: () => Promise.resolve([]),
  });
}
