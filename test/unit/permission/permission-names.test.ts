import { expect, test } from "vitest";
import tools from "../../../schema/tools.json" with { type: "json" };
import { parseConfigFile, checkConfig } from "../../../src/config/files/config-file.ts";
import { parseAgentConfig } from "../../../src/agent/agent-config.ts";
import { describeNearMiss, permissionNames } from "../../../src/permission/permission-names.ts";

test("the names of all built-in tools are known", () => {
  expect(Object.keys(tools).filter((name) => !permissionNames.includes(name))).toEqual([]);
});

test("near misses are named, names of other tools are not", () => {
  const text =
    '{\n  "permission": {\n    "edits": "deny",\n    "bash": "ask",\n    "notes_*": "allow"\n  },\n  "tools": { "wirte": false, "deploy": true }\n}';
  const file = parseConfigFile("fairlead.json", text);
  expect(checkConfig(file, file.value).problems.map((problem) => problem.text)).toEqual([
    'fairlead.json:3:14: permission.edits: "edits" is not a permission; did you mean "edit"?',
    'fairlead.json:7:23: tools.wirte: "wirte" is not a permission; did you mean "write"?',
  ]);
  const agent = parseAgentConfig({ permission: { bsh: "deny", websearch: "allow" }, promt: "Go" });
  expect(agent.problems).toEqual([
    'permission: "bsh" is not a permission; did you mean "bash"?',
    "promt: unknown setting; did you mean prompt?",
  ]);
  for (const name of ["shout", "deploy", "github_search", "ls", "*", "todo", "notes_list"])
    expect(describeNearMiss(name)).toBeUndefined();
});
