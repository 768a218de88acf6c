import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { parseArguments } from "../../../src/mcp/tools/prompts.ts";
import { listSecrets, createServerList } from "../../../src/mcp/server-settings.ts";
import { answeredId, messageLimitBytes, MessageLines } from "../../../src/mcp/connection/message-lines.ts";
import { ToolNames } from "../../../src/mcp/tools/tool-names.ts";

describe("names of servers' tools", () => {
  test("consist of the server's and the tool's names in characters that providers accept", () => {
    const names = new ToolNames([]);
    expect(names.nameFor("my server", "read/all")).toBe("my_server_read_all");
  });

  test("never equal those of other tools or of permissions", () => {
    const names = new ToolNames(["todo_list"]);
    for (const [server, tool, plain] of [
      ["todo", "list", "todo_list"],
      ["apply", "patch", "apply_patch"],
      ["external", "directory", "external_directory"],
      ["plan", "exit", "plan_exit"],
    ] as const) {
      expect(names.nameFor(server, tool)).toMatch(new RegExp(`^${plain}_[0-9a-f]{6}$`));
    }
  });

  test("differ in a conflict or if they are too long, and are always the same", () => {
    const pairs = [
      ["a", "b_c"],
      ["a_b", "c"],
      ["a", "b c"],
      ["long", `${"x".repeat(80)}1`],
      ["long", `${"x".repeat(80)}2`],
    ] as const;
    const build = () => {
      const names = new ToolNames([]);
      return pairs.map(([server, tool]) => names.nameFor(server, tool));
    };
    const built = build();
    expect(new Set(built).size).toBe(pairs.length);
    expect(Math.max(...built.map(({ length }) => length))).toBeLessThanOrEqual(64);
    expect(build()).toEqual(built);
  });
});

describe("arguments of a server's prompt", () => {
  test.each([
    ["", {}],
    ["Paris", { city: "Paris" }],
    ["Paris very much north", { city: "Paris", state: "very much north" }],
    ['"New York" NY', { city: "New York", state: "NY" }],
    ["state=Texas Paris", { city: "Paris", state: "Texas" }],
    ["city='San Juan' PR", { city: "San Juan", state: "PR" }],
    ["other=1", { city: "other=1" }],
  ])("are parsed from %j", (typed, values) => {
    expect(parseArguments(typed, ["city", "state"])).toEqual(values);
  });
});

describe("lines of messages", () => {
  test("are joined from chunks and split at line ends", () => {
    const lines = new MessageLines();
    const pushed = ["on", "e\ntw", "o\n\nthr", "ee"].map((piece) => lines.push(Buffer.from(piece)));
    const text = (value: string) => ({ kind: "text", text: value });
    expect(pushed).toEqual([[], [text("one")], [text("two"), text("")], []]);
  });

  test("keep a character that arrives in two chunks", () => {
    const lines = new MessageLines();
    const bytes = Buffer.from("ä\n");
    expect([...lines.push(bytes.subarray(0, 1)), ...lines.push(bytes.subarray(1))]).toEqual([
      { kind: "text", text: "ä" },
    ]);
  });

  test("that are too long are dropped, with the id of their request", () => {
    const lines = new MessageLines();
    const filler = "x".repeat(messageLimitBytes);
    for (const [before, after] of [
      ['{"jsonrpc":"2.0","id":7,"result":"', '"}\n'],
      ['{"result":"', '","jsonrpc":"2.0","id":7}\n'],
    ]) {
      const [line] = [
        ...lines.push(Buffer.from(`${before}${filler}`)),
        ...lines.push(Buffer.from(`${after}`)),
      ];
      expect(line?.kind === "too-long" && answeredId(line)).toBe(7);
    }
    expect(lines.push(Buffer.from("next\n"))).toEqual([{ kind: "text", text: "next" }]);
  });
});

describe("the list of servers", () => {
  test("is the configuration's, with the editor's servers added", () => {
    const config = {
      mcp: {
        one: { type: "local" as const, command: ["a", "b"], cwd: "sub", timeout: 5 },
        two: { type: "remote" as const, url: "https://example.com" },
        off: { enabled: false },
        odd: { enabled: true },
        far: { type: "remote" as const, url: "https://example.org", sandbox: true },
      },
      experimental: { mcp_timeout: 9 },
    };
    const two = { type: "local" as const, name: "two", command: "c", args: [], environment: {} };
    expect(createServerList(config, { servers: [two], problems: [] }, "/work")).toEqual({
      servers: [
        {
          type: "local",
          name: "one",
          command: "a",
          args: ["b"],
          environment: {},
          cwd: resolve("/work/sub"),
          timeoutMs: 5,
        },
        two,
      ],
      disabled: ["off"],
      problems: [
        "mcp.odd: it is enabled, but no file defines it",
        `mcp.far: not used: a remote server does not run in this computer's sandbox; remove "sandbox" from its entry`,
        "mcp.two: the editor gives a server of this name, which is used instead",
      ],
    });
  });

  test("separates its keys from public values", () => {
    const local = {
      type: "local" as const,
      name: "one",
      command: "a",
      args: [],
      environment: { GITHUB_TOKEN: "token-of-one", LOG_LEVEL: "debug" },
    };
    const remote = {
      type: "remote" as const,
      name: "two",
      url: "https://example.com",
      headers: { Authorization: "Bearer token-of-two", "x-team": "blue" },
      oauth: { clientSecret: "secret-of-two" },
    };
    expect(listSecrets([local, remote])).toEqual(["token-of-one", "token-of-two", "secret-of-two"]);
  });
});
