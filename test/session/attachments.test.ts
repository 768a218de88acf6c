import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect, test } from "vitest";
import { parseFileLink, toParts } from "../../src/user-input/attachments.ts";
import type { PromptBlock } from "../../src/conversation/prompt-input.ts";
import { toolPlace, type ToolPlace } from "../tool/tool-place.ts";

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

const link = (uri: string, name = "a name"): PromptBlock => ({ type: "link", uri, name });
const href = (place: ToolPlace, name: string) => pathToFileURL(place.path(name)).href;

/** The parts, without their ids. */
async function parts(place: ToolPlace, ...blocks: PromptBlock[]) {
  return (await toParts(blocks, place.context)).map((part) => ({ ...part, id: undefined }));
}

/** `file:///`, on Windows with the drive. */
const root = pathToFileURL(resolve("/")).href;
const file = resolve("/a/b.ts");

describe("a link to a file", () => {
  test.each([
    [`${root}a/b.ts`, { path: file }],
    [`${root}a%20b/%C3%B6.ts`, { path: resolve("/a b/ö.ts") }],
    [`${root}a/b.ts#L10`, { path: file, lines: { first: 10, last: 10 } }],
    [`${root}a/b.ts#L10:20`, { path: file, lines: { first: 10, last: 20 } }],
    [`${root}a/b.ts#L10-L20`, { path: file, lines: { first: 10, last: 20 } }],
    [`${root}a/b.ts#L20:10`, { path: file, lines: { first: 20, last: 20 } }],
    [`${root}a/b.ts#L0`, { path: file, lines: { first: 1, last: 1 } }],
    [`${root}a/b.ts#section`, { path: file }],
    [`${root}a/b.ts?x=1`, { path: file }],
    ["zed:///agent/file?path=%2Fa%2Fb.ts", { path: "/a/b.ts" }],
    ["zed:///agent/symbol/f?path=/a/b.ts#L3:9", { path: "/a/b.ts", lines: { first: 3, last: 9 } }],
    ["zed:///agent/thread/1", undefined],
    ["https://example.com/a.ts", undefined],
    [`${root}a%2Fb.ts`, undefined],
    ["/a/b.ts", undefined],
    ["", undefined],
  ])("%s is parsed as %j", (uri, expected) => {
    expect(parseFileLink(uri)).toEqual(expected);
  });

  test("is shown to the user, and its text is sent to the model", async () => {
    await using place = await toolPlace({ "a.ts": "one\ntwo\n" });
    const uri = href(place, "a.ts");
    expect(await parts(place, link(uri))).toEqual([
      { type: "file", mime: "text/plain", url: uri, filename: "a name" },
      {
        type: "text",
        synthetic: true,
        text: expect.stringMatching(/^<attached path=".*a\.ts">\n1: one\n2: two\n[^]*<\/attached>$/),
      },
    ]);
  });

  test("may be an image, which is sent as one", async () => {
    await using place = await toolPlace({ "dot.png": png });
    const [, , image] = await parts(place, link(href(place, "dot.png")));
    expect(image).toMatchObject({
      type: "file",
      mime: "image/png",
      url: `data:image/png;base64,${png.toString("base64")}`,
    });
  });

  test("counts as read and may be edited if its text was read", async () => {
    await using place = await toolPlace({ "a.ts": "one\n" });
    await parts(place, link(href(place, "a.ts")));
    expect(place.context.seen.get(place.path("a.ts"))).toMatch(/^[0-9a-f]{64}$/);
  });

  test.each(["none.txt", "blob.bin"])("that cannot be read is reported: %s", async (name) => {
    await using place = await toolPlace({ "blob.bin": Buffer.from([0, 1, 2, 0, 255, 254]) });
    const [, notice] = await parts(place, link(href(place, name)));
    expect(notice).toMatchObject({
      synthetic: true,
      text: expect.stringMatching(new RegExp(`attached file:.*${name}, but it could not be read: .+`)),
    });
  });
});

describe("other blocks", () => {
  test("text from a model attaches nothing and starts no agent, whatever it names", async () => {
    await using place = await toolPlace({ ".env": "KEY=1\n" });
    const text = "Look at @.env and ask @general";
    expect(await parts(place, { type: "text", text, audience: "both", by: "model" })).toEqual([
      { type: "text", text },
    ]);
    expect(await parts(place, { type: "text", text, audience: "both" })).not.toHaveLength(1);
  });

  test("texts go only to their intended audience", async () => {
    await using place = await toolPlace();
    const text = (audience: "both" | "model" | "person"): PromptBlock => ({
      type: "text",
      text: "Hi",
      audience,
    });
    expect(await parts(place, text("both"), text("model"), text("person"))).toEqual([
      { type: "text", text: "Hi" },
      { type: "text", text: "Hi", synthetic: true },
      { type: "text", text: "Hi", ignored: true },
    ]);
  });

  test("a text embedded in the message is used unchanged", async () => {
    await using place = await toolPlace({ "a.ts": "old\n" });
    const uri = href(place, "a.ts");
    expect(await parts(place, { type: "embedded", uri, text: "unsaved\n" })).toEqual([
      { type: "file", mime: "text/plain", url: uri, filename: uri },
      { type: "text", synthetic: true, text: `<attached uri="${uri}">\nunsaved\n\n</attached>` },
    ]);
  });

  test("a long text is truncated, and the model learns where the rest is", async () => {
    await using place = await toolPlace();
    const text = "0123456789\n".repeat(20_000);
    const [, notice] = await parts(place, { type: "embedded", uri: "zed:///agent/untitled-buffer", text });
    if (notice?.type !== "text") throw new Error("no text");
    expect(notice.text.length).toBeLessThan(50_000);
    const path = /(?:[A-Z]:)?[\\/]\S+tool_\w+/.exec(notice.text)?.[0] ?? "";
    expect(await readFile(path, "utf8")).toBe(text);
  });

  test("text that arrives as bytes is treated as text", async () => {
    await using place = await toolPlace();
    const data = Buffer.from('{ "a": 1 }').toString("base64");
    expect(
      await parts(place, { type: "media", mime: "application/json", data, name: "file:///a.json" }),
    ).toEqual([
      { type: "file", mime: "text/plain", url: "file:///a.json", filename: "file:///a.json" },
      { type: "text", synthetic: true, text: '<attached uri="file:///a.json">\n{ "a": 1 }\n</attached>' },
    ]);
  });

  test("media become files", async () => {
    await using place = await toolPlace();
    expect(await parts(place, { type: "media", mime: "image/png", data: "AAAA", name: "dot" })).toEqual([
      { type: "file", mime: "image/png", url: "data:image/png;base64,AAAA", filename: "dot" },
    ]);
  });

  test("an empty image is omitted with an explanation", async () => {
    await using place = await toolPlace();
    for (const data of ["", "!!!"]) {
      const [, notice] = await parts(place, { type: "media", mime: "image/png", data });
      expect(notice).toMatchObject({ text: expect.stringContaining("but it is left out: it is damaged") });
    }
  });

  test("a link elsewhere is sent by name", async () => {
    await using place = await toolPlace();
    const [, notice] = await parts(place, link("https://example.com/x", "X"));
    expect(notice).toMatchObject({ text: "The user linked https://example.com/x (X)." });
  });
});
