import { describe, expect, test } from "vitest";
import { zedLike } from "../../support/editor/clients.ts";
import { normalize } from "../../support/wire/golden.ts";
import { BackgroundWatch } from "../../support/wire/background-rules.ts";
import type { JsonObject } from "../../support/json.ts";
import { wireViolations } from "../../support/wire/wire-checks.ts";
import { WireLog, type Direction } from "../../support/wire/wire-log.ts";

describe("the wire log", () => {
  type Line = [Direction, JsonObject | string];
  const call = (id: number, method: string, params: JsonObject = {}): Line => [
    "toAgent",
    { jsonrpc: "2.0", id, method, params },
  ];
  const answer = (id: number, result: unknown = {}): Line => ["fromAgent", { jsonrpc: "2.0", id, result }];
  const request = (id: number, method: string, params: JsonObject = {}): Line => [
    "fromAgent",
    { jsonrpc: "2.0", id, method, params },
  ];
  const update = (sessionUpdate: string, more: JsonObject = {}): Line => [
    "fromAgent",
    {
      jsonrpc: "2.0",
      method: "session/update",
      params: { sessionId: "s", update: { sessionUpdate, ...more } },
    },
  ];
  const chunk = update("agent_message_chunk", { content: { type: "text", text: "x" } });
  const tool = (status?: string) =>
    update("tool_call", { toolCallId: "t", title: "T", ...(status && { status }) });
  const toolUpdate = (status: string) => update("tool_call_update", { toolCallId: "t", status });
  const initialize = (capabilities: JsonObject = {}, result: JsonObject = {}): Line[] => [
    call(0, "initialize", { protocolVersion: 1, clientCapabilities: capabilities }),
    answer(0, { protocolVersion: 1, ...result }),
  ];
  const opened = (capabilities: JsonObject = {}, result: JsonObject = {}): Line[] => [
    ...initialize(capabilities),
    call(1, "session/new", { cwd: "/", mcpServers: [] }),
    answer(1, { sessionId: "s", ...result }),
  ];
  const prompt = (id = 2) => call(id, "session/prompt", { sessionId: "s", prompt: [] });
  const ended = (id = 2, stopReason = "end_turn") => answer(id, { stopReason });
  const permission = request(0, "session/request_permission", {
    sessionId: "s",
    toolCall: { toolCallId: "t" },
    options: [],
  });
  const text = { type: "content", content: { type: "text", text: "Asked because" } };
  const question = request(0, "session/request_permission", {
    sessionId: "s",
    toolCall: { toolCallId: "t", content: [text] },
    options: [],
  });
  const load = call(2, "session/load", { sessionId: "s", cwd: "/", mcpServers: [] });
  const modes = (currentModeId: string) => ({
    modes: { currentModeId, availableModes: [{ id: "build", name: "Build" }] },
  });
  const option = (more: JsonObject) => ({ configOptions: [{ id: "o", name: "O", ...more }] });
  const select = {
    type: "select",
    options: [{ group: "g", name: "G", options: [{ value: "a", name: "A" }] }],
  };

  function logOf(lines: Line[]): WireLog {
    const log = new WireLog();
    for (const [direction, line] of lines) {
      log.receive(direction, Buffer.from(`${typeof line === "string" ? line : JSON.stringify(line)}\n`));
    }
    return log;
  }

  const rulesBroken = (lines: Line[]) => wireViolations(logOf(lines)).map(({ rule, order }) => [rule, order]);

  test.each<[string, Line[]]>([
    [
      "a whole turn",
      [...opened(), prompt(), chunk, tool("pending"), permission, toolUpdate("completed"), ended()],
    ],
    [
      "a call whose content is sent again after a question",
      [
        ...opened(),
        prompt(),
        tool("pending"),
        question,
        update("tool_call_update", { toolCallId: "t", status: "completed", content: [] }),
        ended(),
      ],
    ],
    ["a call that is announced in its final state", [...opened(), prompt(), tool("completed"), ended()]],
    [
      "a replay",
      [...initialize(), load, chunk, tool("failed"), update("usage_update", { used: 1, size: 2 }), answer(2)],
    ],
    [
      "a replay of a live session",
      [...opened(), prompt(), tool("completed"), ended(), load, tool("completed"), answer(2)],
    ],
    ["news between turns", [...opened(), update("session_info_update", { title: "T" })]],
    [
      "an answer to a line that could not be read",
      [
        ["toAgent", "{"],
        ["fromAgent", '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'],
      ],
    ],
    [
      "a mode and an option that are offered",
      [...opened({}, { ...modes("build"), ...option({ ...select, currentValue: "a" }) })],
    ],
    [
      "extensions",
      [...initialize(), request(0, "_vendor/ask"), call(1, "_vendor/get"), answer(1, { any: 1 })],
    ],
    [
      "what the client advertised",
      [
        ...opened({ ...zedLike().capabilities }, option({ type: "boolean", currentValue: true })),
        request(0, "fs/read_text_file", { sessionId: "s", path: "/a" }),
      ],
    ],
  ])("finds no fault in %s", (_name, lines) => {
    expect(wireViolations(logOf(lines))).toEqual([]);
  });

  test.each<[string, Line[], [string, number][]]>([
    ["text on stdout", [["fromAgent", "hello"]], [["line", 0]]],
    ["an empty line", [["fromAgent", ""]], [["line", 0]]],
    ["a batch", [["fromAgent", "[]"]], [["line", 0]]],
    ["another JSON-RPC", [["fromAgent", '{"id":1,"result":{}}']], [["line", 0]]],
    [
      "a response with result and error",
      [...initialize(), ["fromAgent", '{"jsonrpc":"2.0","id":1,"result":1,"error":{}}']],
      [["line", 2]],
    ],
    [
      "a line of 2 MB",
      [
        ...opened(),
        prompt(),
        update("agent_message_chunk", { content: { type: "text", text: "x".repeat(2e6) } }),
        ended(),
      ],
      [["size", 5]],
    ],
    ["an answer to nothing", [...initialize(), answer(9)], [["answer", 2]]],
    ["a second answer", [...initialize(), answer(0, { protocolVersion: 1 })], [["answer", 2]]],
    ["no answer", [...opened(), prompt()], [["answer", 4]]],
    [
      "a result that breaks the schema",
      [call(0, "initialize"), answer(0, { protocolVersion: "one" })],
      [["schema", 1]],
    ],
    ["a result with an unknown key", [...opened({}, { models: {} })], [["schema", 3]]],
    ["an unknown update", [...opened(), update("rumour")], [["schema", 4]]],
    ["an unknown method", [...opened(), request(0, "session/gossip", { sessionId: "s" })], [["schema", 4]]],
    [
      "an error without a message",
      [call(0, "initialize"), ["fromAgent", '{"jsonrpc":"2.0","id":0,"error":{"code":1}}']],
      [["schema", 1]],
    ],
    [
      "a file read that was not advertised",
      [...opened(), request(0, "fs/read_text_file", { sessionId: "s", path: "/a" })],
      [["capability", 4]],
    ],
    [
      "a terminal that was not advertised",
      [...opened(), request(0, "terminal/create", { sessionId: "s", command: "ls" })],
      [["capability", 4]],
    ],
    [
      "a form that was not advertised",
      [
        ...opened(),
        request(0, "elicitation/create", {
          sessionId: "s",
          mode: "form",
          message: "?",
          requestedSchema: { type: "object", properties: {} },
        }),
      ],
      [["capability", 4]],
    ],
    [
      "a notice that was not advertised",
      [...opened(), update("notice", { severity: "info", title: "N" })],
      [["capability", 4]],
    ],
    [
      "a boolean option that was not advertised",
      [...opened({}, option({ type: "boolean", currentValue: true }))],
      [["capability", 3]],
    ],
    [
      "a terminal login that was not advertised",
      [...initialize({}, { authMethods: [{ type: "terminal", id: "t", name: "T" }] })],
      [["capability", 1]],
    ],
    [
      "terminal output that was not advertised",
      [
        ...opened(),
        prompt(),
        update("tool_call", {
          toolCallId: "t",
          title: "T",
          status: "completed",
          _meta: { terminal_info: {} },
        }),
        ended(),
      ],
      [["capability", 5]],
    ],
    ["a mode that is not offered", [...opened({}, modes("plan"))], [["selection", 3]]],
    [
      "a change to a mode that is not offered",
      [...opened({}, modes("build")), update("current_mode_update", { currentModeId: "plan" })],
      [["selection", 4]],
    ],
    [
      "an option's value that is not offered",
      [...opened({}, option({ ...select, currentValue: "b" }))],
      [["selection", 3]],
    ],
    [
      "an update before session/new was answered",
      [
        ...initialize(),
        call(1, "session/new"),
        update("session_info_update", {}),
        answer(1, { sessionId: "s" }),
      ],
      [["session", 3]],
    ],
    [
      "an update after session/close was answered",
      [
        ...opened(),
        call(2, "session/close", { sessionId: "s" }),
        answer(2),
        update("session_info_update", {}),
      ],
      [["session", 6]],
    ],
    ["text before any turn", [...opened(), chunk], [["turn", 4]]],
    ["text after the turn", [...opened(), prompt(), ended(), chunk], [["turn", 6]]],
    [
      "history on resume",
      [...initialize(), call(2, "session/resume", { sessionId: "s" }), chunk, answer(2)],
      [
        ["session", 3],
        ["turn", 3],
      ],
    ],
    [
      "news after a cancelled turn",
      [...opened(), prompt(), ended(2, "cancelled"), update("session_info_update", {})],
      [["silence", 6]],
    ],
    [
      "news after a load",
      [...initialize(), load, answer(2), update("available_commands_update", { availableCommands: [] })],
      [["silence", 4]],
    ],
    [
      "an update of an unknown call",
      [...opened(), prompt(), toolUpdate("completed"), ended()],
      [["tool", 5]],
    ],
    [
      "a field deep within an update that the schema does not have",
      [
        ...opened(),
        prompt(),
        update("tool_call", {
          toolCallId: "t",
          title: "T",
          status: "completed",
          locations: [{ path: "/a", row: 1 }],
        }),
        ended(),
      ],
      [["schema", 5]],
    ],
    ["a call announced twice", [...opened(), prompt(), tool(), tool("completed"), ended()], [["tool", 6]]],
    [
      "a change after the terminal status",
      [...opened(), prompt(), tool(), toolUpdate("failed"), toolUpdate("completed"), ended()],
      [["tool", 7]],
    ],
    ["a call that is still open at the end", [...opened(), prompt(), tool(), ended()], [["tool", 6]]],
    [
      "a call that ends with what a question about it showed",
      [...opened(), prompt(), tool(), question, toolUpdate("completed"), ended()],
      [["tool", 7]],
    ],
    ["a question about an unknown call", [...opened(), prompt(), permission, ended()], [["tool", 5]]],
    [
      "a question outside of a turn",
      [...opened(), prompt(), tool("completed"), ended(), permission],
      [["turn", 7]],
    ],
  ])("finds %s", (_name, lines, expected) => {
    expect(rulesBroken(lines)).toEqual(expected);
  });

  test("finds background work that is not announced, not ended, or listed twice", () => {
    const watch = new BackgroundWatch();
    const state = (...background: JsonObject[]) => watch.see("state_update", { background });
    const terminal = { type: "terminal", terminalId: "t" };
    const call = { type: "tool_call", toolCallId: "c" };
    expect(watch.see("state_update", {})).toEqual(["A state does not list the background work"]);
    expect(state(terminal)).toEqual(["The background work terminal t was not announced"]);
    watch.see("terminal_update", { terminalId: "t" });
    watch.see("tool_call_update", { toolCallId: "c", content: [{ type: "terminal", terminalId: "t" }] });
    expect(state(terminal)).toEqual([]);
    expect(state(terminal, call)).toEqual(["The background work tool_call c is listed twice"]);
    expect(state(terminal)).toEqual([
      "The background work tool_call c is no longer listed, and its end was not reported",
    ]);
    watch.see("terminal_update", { terminalId: "t", exitStatus: { exitCode: 0 } });
    expect(state()).toEqual([]);
  });

  test("finds bytes that are not UTF-8 and a last line without a line end", () => {
    const log = new WireLog();
    log.receive("fromAgent", Buffer.from([0x22, 0xff, 0x22, 0x0a, 0x7b]));
    expect(wireViolations(log).map(({ text }) => text)).toEqual([
      'A line is not UTF-8: "\ufffd"',
      "The last line has no end: {",
    ]);
  });

  test("joins lines from chunks split anywhere", () => {
    const log = new WireLog();
    const bytes = Buffer.from('{"jsonrpc":"2.0","method":"größe"}\n{"jsonrpc":"2.0","method":"next"}\n');
    for (const byte of bytes) log.receive("fromAgent", Buffer.of(byte));
    expect(log.entries.map(({ message }) => message?.kind === "notification" && message.method)).toEqual([
      "größe",
      "next",
    ]);
  });

  test("does not require responses from a killed process", () => {
    const log = logOf([...opened(), prompt()]);
    log.cut = true;
    expect(wireViolations(log)).toEqual([]);
  });

  test("is comparable with a golden file: ids and paths get names, chunks are joined", () => {
    const log = logOf([
      ["toAgent", { jsonrpc: "2.0", id: 1, method: "session/new", params: { cwd: "/tmp/home-1/repo" } }],
      ["fromAgent", { jsonrpc: "2.0", id: 1, result: { sessionId: "ses_123" } }],
      chunk,
      chunk,
      update("tool_call", { toolCallId: "c9", title: "ls ses_123 took 12 ms", rawInput: { elapsedMs: 4 } }),
      update("session_info_update", { updatedAt: "2026-01-01T00:00:00.000Z" }),
    ]);
    const update_ = (update: JsonObject) => ({
      jsonrpc: "2.0",
      method: "session/update",
      params: { sessionId: "<session-2>", update },
    });
    expect(normalize(log, { cwd: "/tmp/home-1/repo", home: "/tmp/home-1" })).toEqual({
      toAgent: [{ jsonrpc: "2.0", id: 0, method: "session/new", params: { cwd: "<cwd>" } }],
      fromAgent: [
        { jsonrpc: "2.0", id: 0, result: { sessionId: "<session-1>" } },
        update_({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "xx" } }),
        update_({
          sessionUpdate: "tool_call",
          toolCallId: "<call-1>",
          title: "ls <session-1> took <duration>",
          rawInput: { elapsedMs: "<duration>" },
        }),
        update_({ sessionUpdate: "session_info_update", updatedAt: "<time>" }),
      ],
    });
  });

  test("is comparable with a golden file from POSIX when its paths are from Windows", () => {
    const cwd = String.raw`C:\Users\me\Temp\home-1\my repo`;
    const input = { filePath: String.raw`${cwd}\src\a.ts` };
    const log = logOf([
      ["toAgent", { jsonrpc: "2.0", id: 1, method: "session/new", params: { cwd } }],
      update("tool_call", {
        toolCallId: "c",
        title: String.raw`Read ${cwd}\src\a.ts, not \d and not ${cwd}-2\b`,
        content: [{ type: "content", content: { type: "text", text: "C:/Users/me/Temp/home-1/my repo/\n" } }],
        rawInput: { json: JSON.stringify(input), uri: "file:///C:/Users/me/Temp/home-1/my%20repo/src/a.ts" },
      }),
    ]);
    const { toAgent, fromAgent } = normalize(log, { cwd, home: String.raw`C:\Users\me\Temp\home-1` });
    expect(toAgent).toMatchObject([{ params: { cwd: "<cwd>" } }]);
    const toolCall = {
      title: String.raw`Read <cwd>/src/a.ts, not \d and not <home>/my repo-2\b`,
      content: [{ content: { text: "<cwd>/\n" } }],
      rawInput: { json: '{"filePath":"<cwd>/src/a.ts"}', uri: "file://<cwd>/src/a.ts" },
    };
    expect(fromAgent).toMatchObject([{ params: { update: toolCall } }]);
  });
});
