import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type AgentSources, loadAgents } from "../../../src/agent/agents.ts";
import { defaultRules, outputRules, readingCommandRules } from "../../../src/permission/default-rules.ts";
import { evaluate, judge } from "../../../src/permission/judge.ts";
import type { PermissionConfig } from "../../../src/permission/permission-config.ts";
import type { Action, Rule, Ruleset } from "../../../src/permission/rule.ts";

const outputFolder = "/data/output";
const skillFolders = ["/data/skills"];
const defaults = defaultRules({ outputFolder, skillFolders });

let base: string;

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "fairlead-agents-"));
});

afterEach(() => rm(base, { recursive: true }));

describe("built-in agents", () => {
  test("are build, plan, general, explore and three hidden ones", async () => {
    const { agents, default: first, problems } = await load({});
    const shown = [...agents.values()].map(({ name, mode, hidden, native }) => ({
      name,
      mode,
      hidden,
      native,
    }));
    expect(shown).toEqual([
      { name: "build", mode: "primary", hidden: false, native: true },
      { name: "plan", mode: "primary", hidden: false, native: true },
      { name: "general", mode: "subagent", hidden: false, native: true },
      { name: "explore", mode: "subagent", hidden: false, native: true },
      { name: "compaction", mode: "primary", hidden: true, native: true },
      { name: "title", mode: "primary", hidden: true, native: true },
      { name: "summary", mode: "primary", hidden: true, native: true },
    ]);
    expect(first).toBe("build");
    expect(problems).toEqual([]);
  });

  test("have exactly these rules after the defaults", async () => {
    const { agents } = await load({});
    const own = (name: string) => rulesOf(agents, name).slice(defaults.length);
    const keptByExplore = defaults.filter(({ permission }) =>
      ["read", "external_directory", "doom_loop"].includes(permission),
    );
    expect([...agents.values()].map(({ rules }) => rules.slice(0, defaults.length))).toEqual(
      Array.from({ length: 7 }, () => defaults),
    );
    expect(own("build")).toEqual([rule("question", "*", "allow"), rule("plan_enter", "*", "allow")]);
    expect(own("plan")).toEqual([
      rule("question", "*", "allow"),
      rule("plan_exit", "*", "allow"),
      rule("task", "general", "deny"),
      rule("edit", "*", "deny"),
      rule("edit", ".opencode/plans/*.md", "allow"),
      rule("edit", ".fairlead/plans/*.md", "allow"),
      rule("bash", "*", "ask"),
      ...readingCommandRules(),
    ]);
    expect(own("general")).toEqual([rule("todowrite", "*", "deny"), rule("todoread", "*", "deny")]);
    expect(own("explore")).toEqual([
      rule("*", "*", "deny"),
      ...["grep", "glob", "list", "read", "lsp", "webfetch", "websearch", "codesearch"].map((name) =>
        rule(name, "*", "allow"),
      ),
      rule("bash", "*", "ask"),
      ...readingCommandRules(),
      ...keptByExplore,
    ]);
    for (const name of ["compaction", "title", "summary"])
      expect(own(name)).toEqual([rule("*", "*", "deny")]);
  });

  test("decide as their names say", async () => {
    const { agents } = await load({});
    const decisions = {
      "build edits": decide(agents, "build", "edit", "src/a.ts"),
      "build asks a question": decide(agents, "build", "question", "*"),
      "plan edits": decide(agents, "plan", "edit", "src/a.ts"),
      "plan writes a plan": decide(agents, "plan", "edit", ".fairlead/plans/cart.md"),
      "plan reads with a command": decide(agents, "plan", "bash", "git log --oneline"),
      "plan removes with a command": decide(agents, "plan", "bash", "rm -rf src"),
      "plan starts explore": decide(agents, "plan", "task", "explore"),
      "plan starts general": decide(agents, "plan", "task", "general"),
      "general writes todos": decide(agents, "general", "todowrite", "*"),
      "explore reads": decide(agents, "explore", "read", "src/a.ts"),
      "explore reads a secret": decide(agents, "explore", "read", ".env"),
      "explore leaves the folder": decide(agents, "explore", "external_directory", "/etc"),
      "explore edits": decide(agents, "explore", "edit", "src/a.ts"),
      "explore starts a task": decide(agents, "explore", "task", "general"),
      "title reads": decide(agents, "title", "read", "src/a.ts"),
    };
    expect(decisions).toEqual({
      "build edits": "allow",
      "build asks a question": "allow",
      "plan edits": "deny",
      "plan writes a plan": "allow",
      "plan reads with a command": "allow",
      "plan removes with a command": "ask",
      "plan starts explore": "allow",
      "plan starts general": "deny",
      "general writes todos": "deny",
      "explore reads": "allow",
      "explore reads a secret": "ask",
      "explore leaves the folder": "ask",
      "explore edits": "deny",
      "explore starts a task": "deny",
      "title reads": "deny",
    });
  });
});

describe("agents of the configuration", () => {
  test("take every field, and known parameters of providers as options", async () => {
    const { agents, problems } = await load({
      agent: {
        review: {
          name: "Reviewer",
          description: "Reviews code.",
          mode: "subagent",
          hidden: true,
          prompt: "You review.",
          model: "local/qwen/coder:30b",
          variant: "high",
          temperature: 0.2,
          top_p: 0.9,
          steps: 12,
          color: "#ff8800",
          options: { reasoningEffort: "low" },
          textVerbosity: "low",
          permission: { edit: "deny", bash: { "git *": "allow" } },
        },
      },
    });
    expect(problems).toEqual([]);
    expect(agents.get("review")).toEqual({
      name: "review",
      label: "Reviewer",
      description: "Reviews code.",
      mode: "subagent",
      hidden: true,
      prompt: "You review.",
      model: { provider: "local", model: "qwen/coder:30b", variant: "high" },
      temperature: 0.2,
      topP: 0.9,
      steps: 12,
      color: "#ff8800",
      options: { reasoningEffort: "low", textVerbosity: "low" },
      native: false,
      named: new Set(["edit", "bash"]),
      rules: [...defaults, rule("edit", "*", "deny"), rule("bash", "git *", "allow")],
    });
  });

  test("report unknown keys and send none of them to the provider", async () => {
    const { agents, problems } = await load({
      agent: { helper: { welcome_message: "Hello", promt: "Help.", topP: 0.5, topK: 20 } },
    });
    expect(problems.map(({ message }) => message)).toEqual([
      "agent.helper: welcome_message: unknown setting, ignored; put it under options to send it to the provider",
      "agent.helper: promt: unknown setting; did you mean prompt?",
    ]);
    expect(agents.get("helper")).toMatchObject({ topP: 0.5, options: { top_k: 20 } });
  });

  test("are available for tasks and to the user by default", async () => {
    const { agents } = await load({ agent: { helper: {} } });
    expect(agents.get("helper")).toEqual({
      name: "helper",
      description: "Has no description: only for use when the user names it.",
      mode: "all",
      hidden: false,
      options: {},
      native: false,
      named: new Set<string>(),
      rules: defaults,
    });
  });

  test("change a built-in one of the same name and leave the rest of it", async () => {
    const { agents } = await load({
      agent: { plan: { model: "local/small", variant: null }, build: { variant: "low" } },
    });
    const untouched = await load({});
    expect(agents.get("plan")).toEqual({
      ...untouched.agents.get("plan"),
      model: { provider: "local", model: "small" },
    });
    expect(agents.get("build")).toEqual({ ...untouched.agents.get("build"), variant: "low" });
  });

  test("are removed by disable", async () => {
    const { agents } = await load({ agent: { general: { disable: true }, helper: { disable: true } } });
    expect([...agents.keys()]).toEqual(["build", "plan", "explore", "compaction", "title", "summary"]);
  });

  test("order rules: defaults, built-in, user, agent; old switches before new rules", async () => {
    const { agents } = await load({
      permission: { bash: "ask" },
      tools: { webfetch: false, write: true },
      agent: { build: { tools: { bash: true }, permission: { bash: { "npm *": "deny" } } } },
    });
    expect(agents.get("build")?.rules).toEqual([
      ...defaults,
      rule("question", "*", "allow"),
      rule("plan_enter", "*", "allow"),
      rule("webfetch", "*", "deny"),
      rule("edit", "*", "allow"),
      rule("bash", "*", "ask"),
      ...outputRules("bash", outputFolder),
      rule("bash", "*", "allow"),
      rule("bash", "npm *", "deny"),
    ]);
  });

  test("the old key mode makes primary agents", async () => {
    const { agents } = await load({ mode: { docs: { description: "Writes documentation." } } });
    expect(agents.get("docs")).toEqual({
      name: "docs",
      description: "Writes documentation.",
      mode: "primary",
      hidden: false,
      options: {},
      native: false,
      named: new Set<string>(),
      rules: defaults,
    });
  });

  test("report wrong fields and use the valid ones", async () => {
    const { agents, problems } = await load({
      agent: { helper: { description: "Helps.", mode: "boss", model: "gpt", steps: 0 }, odd: "text" },
    });
    expect(problems.map(({ message }) => message.split(":", 2).join(":"))).toEqual([
      "agent.helper: model",
      "agent.helper: mode",
      "agent.helper: steps",
      "agent.odd: must be an object with the agent's settings",
    ]);
    expect(agents.get("helper")).toEqual({
      name: "helper",
      description: "Helps.",
      mode: "all",
      hidden: false,
      options: {},
      native: false,
      named: new Set<string>(),
      rules: defaults,
    });
  });

  test("a permission that cannot be parsed asks, and such a switch is off", async () => {
    const { agents, problems } = await load({
      agent: {
        one: { permission: { edit: "deny", bash: { "rm *": "dney" }, read: 3 } },
        two: { permission: ["bash"] },
        three: { tools: "Read, Grep" },
      },
    });
    expect(problems).toEqual([
      { message: "agent.one: permission.bash.rm *: must be allow, ask or deny; until then it is ask" },
      { message: "agent.one: permission.read: must be allow, ask or deny; until then it is ask" },
      { message: "agent.two: permission: must be allow, ask or deny; until then it is ask" },
      {
        message: "agent.three: tools: must be an object of true and false; until then all tools are denied",
      },
    ]);
    expect(ownRules(agents, "one")).toEqual([
      rule("edit", "*", "deny"),
      rule("bash", "rm *", "ask"),
      rule("read", "*", "ask"),
      ...outputRules("read", outputFolder),
    ]);
    expect(ownRules(agents, "two")[0]).toEqual(rule("*", "*", "ask"));
    expect(ownRules(agents, "three")).toEqual([rule("*", "*", "deny")]);
  });

  test("keep their other rules when a pattern is too long", async () => {
    const long = "rm ".repeat(400);
    const permission = { bash: { "ls *": "allow", [long]: "deny", [`git ${long}`]: "allow" } } as const;
    const { agents, problems } = await load({ agent: { one: { permission } } });
    expect(rulesOf(agents, "one").slice(-3)).toEqual([
      rule("bash", "ls *", "allow"),
      rule("bash", `${long.slice(0, 999)}*`, "deny"),
      rule("bash", `${`git ${long}`.slice(0, 999)}*`, "ask"),
    ]);
    expect(problems.map(({ message }) => message.slice(0, 40))).toEqual([
      "agent.one: permission.bash.rm rm rm rm r",
      "agent.one: permission.bash.git rm rm rm ",
    ]);
    expect(problems[0]?.message).toContain("the pattern is longer than 1000 characters");
  });

  test("plan cannot give a task to an agent that edits", async () => {
    const { agents } = await load({
      agent: {
        writer: { mode: "subagent" },
        asker: { permission: { edit: { "*": "deny", "docs/*": "ask" } } },
        reader: { mode: "subagent", permission: { edit: "deny" } },
        chosen: { mode: "primary" },
      },
    });
    const reached = ["writer", "asker", "reader", "explore", "general"].map((name) => [
      name,
      decide(agents, "plan", "task", name),
    ]);
    expect(Object.fromEntries(reached)).toEqual({
      writer: "deny",
      asker: "deny",
      reader: "allow",
      explore: "allow",
      general: "deny",
    });
  });
});

describe("the default agent", () => {
  test("is the configured one", async () => {
    const loaded = await load({ default_agent: "plan" });
    expect([loaded.default, loaded.problems]).toEqual(["plan", []]);
  });

  test("must exist, be visible and primary; otherwise build is used and the reason shown", async () => {
    const wanted = ["nobody", "explore", "title"];
    const loaded = await Promise.all(wanted.map((name) => load({ default_agent: name })));
    expect(loaded.map((result) => [result.default, result.problems])).toEqual([
      ["build", [{ message: 'default_agent: agent not found: "nobody"; build is used' }]],
      ["build", [{ message: 'default_agent: "explore" is a subagent; build is used' }]],
      ["build", [{ message: 'default_agent: "title" is hidden; build is used' }]],
    ]);
  });

  test("is the next primary one if build is disabled", async () => {
    const loaded = await load({ agent: { build: { disable: true } } });
    expect(loaded.default).toBe("plan");
  });

  test("remains build if every primary one is disabled", async () => {
    const loaded = await load({ agent: { build: { disable: true }, plan: { disable: true } } });
    expect(loaded.default).toBe("build");
    expect(loaded.agents.get("build")?.native).toBe(true);
    expect(loaded.problems).toEqual([
      { message: "every primary agent is disabled or hidden; build is used" },
    ]);
  });
});

describe("agents in files", () => {
  test("are named by their path, with the body as prompt", async () => {
    await write(
      "agents/frontend/react.md",
      "---\ndescription: Knows React.\ntemperature: 0.3\n---\n\nYou know React.\n",
    );
    await write("agent/plain.md", "Only a prompt.");
    await write("agents/notes.txt", "no agent");
    const { agents, problems } = await load({}, { folders: [base, join(base, "absent")] });
    expect(problems).toEqual([]);
    expect([agents.get("frontend/react"), agents.get("plain")]).toEqual([
      {
        name: "frontend/react",
        description: "Knows React.",
        mode: "all",
        hidden: false,
        prompt: "You know React.",
        temperature: 0.3,
        options: {},
        native: false,
        named: new Set<string>(),
        rules: defaults,
      },
      {
        name: "plain",
        description: "Has no description: only for use when the user names it.",
        mode: "all",
        hidden: false,
        prompt: "Only a prompt.",
        options: {},
        native: false,
        named: new Set<string>(),
        rules: defaults,
      },
    ]);
    expect([...agents.keys()].slice(7).sort()).toEqual(["frontend/react", "plain"]);
  });

  test("in the old mode folders are primary, nested ones too", async () => {
    await write("modes/docs.md", "---\ndescription: Docs.\n---\nWrite docs.");
    await write("mode/sub/deep.md", "Deep.");
    const { agents } = await load({}, { folders: [base] });
    expect([...agents.keys()].slice(7)).toEqual(["sub/deep", "docs"]);
    expect(agents.get("docs")?.mode).toBe("primary");
    expect(agents.get("sub/deep")?.mode).toBe("primary");
  });

  test("later folders and files override earlier ones and the configuration", async () => {
    await write(
      "outer/agent/review.md",
      "---\ndescription: Outer.\nsteps: 3\npermission:\n  bash: ask\n---\nOuter.",
    );
    await write("inner/agent/review.md", "---\ndescription: Inner.\npermission:\n  bash: deny\n---\n");
    const { agents } = await load(
      { agent: { review: { description: "Configured.", color: "red" } } },
      { folders: [join(base, "outer"), join(base, "inner")] },
    );
    expect(agents.get("review")).toEqual({
      name: "review",
      description: "Inner.",
      mode: "all",
      hidden: false,
      prompt: "Outer.",
      steps: 3,
      color: "red",
      options: {},
      native: false,
      named: new Set(["bash"]),
      rules: [
        ...defaults,
        rule("bash", "*", "ask"),
        ...outputRules("bash", outputFolder),
        rule("bash", "*", "deny"),
      ],
    });
  });

  test("that are invalid are reported and do not affect the others", async () => {
    const broken = await write("agent/broken.md", "---\n: [\n---\nText.");
    const wrong = await write("agent/wrong.md", "---\nmode: boss\n---\nText.");
    await write("agent/right.md", "Text.");
    await mkdir(join(base, "agent/folder.md"));
    const { agents, problems } = await load({}, { folders: [base] });
    expect([...agents.keys()].slice(7)).toEqual(["right", "wrong"]);
    expect(problems.map(({ path }) => path)).toEqual([broken, join(base, "agent/folder.md"), wrong]);
  });

  test("that a user has remain available, with no more steps, whatever a project says", async () => {
    await write("agent/plan.md", "---\nhidden: true\nsteps: 900\n---\n");
    await write("agent/theirs.md", "---\ndescription: Theirs.\nmode: subagent\n---\n");
    const own = { default_agent: "mine", agent: { mine: { mode: "primary", steps: 9 }, plan: { steps: 5 } } };
    const config = { ...own, agent: { ...own.agent, mine: { mode: "subagent", steps: 9 } } };
    const personal = { config: own, folders: [] };
    const sources = { folders: [base], untrusted: [base], personal };
    const { agents, waiting, default: first } = await load(config, sources);
    const shown = ["mine", "plan", "theirs"].map((name) => {
      const { mode, hidden, steps } = agents.get(name) ?? {};
      return { mode, hidden, steps };
    });
    expect(shown).toEqual([
      { mode: "primary", hidden: false, steps: 9 },
      { mode: "primary", hidden: false, steps: 5 },
      { mode: "subagent", hidden: false, steps: undefined },
    ]);
    expect(first).toBe("mine");
    expect(waiting.map(({ message }) => message).toSorted()).toEqual([
      "mine cannot be made unselectable (mode, hidden)",
      "more steps of plan",
      "plan cannot be made unselectable (mode, hidden)",
    ]);
  });

  test("of an untrusted project may describe and tighten, not loosen or set options", async () => {
    const path = await write(
      "agent/plan.md",
      "---\ndescription: Ours.\nreasoningEffort: high\npermission:\n  edit: ask\n  bash: allow\n  webfetch: ask\n  read: deny\n---\n",
    );
    const sources = { folders: [base], untrusted: [base] };
    const { agents, problems, waiting } = await load({}, sources);
    const before = (await load({})).agents;
    expect(agents.get("plan")).toEqual({
      ...before.get("plan"),
      description: "Ours.",
      named: new Set(["webfetch", "read"]),
      rules: [...rulesOf(before, "plan"), rule("webfetch", "*", "ask"), rule("read", "*", "deny")],
      limits: before
        .get("plan")
        ?.limits?.map((limit) => [...limit, rule("webfetch", "*", "ask"), rule("read", "*", "deny")]),
    });
    expect(problems).toEqual([]);
    expect(waiting).toEqual([
      { path, message: "permission rules that could loosen others, option reasoningEffort" },
    ]);
  });
});

describe("agents that may not change anything", () => {
  const judged = async (name: string, permission: string, text: string, config: AgentSources["config"]) => {
    const agent = (await load(config)).agents.get(name);
    const request = { permission, subjects: [{ text }], always: [] };
    return judge(request, { rules: agent?.rules ?? [], limits: agent?.limits }).action;
  };

  test.each<[string, string, string, Action]>([
    ["plan", "edit", "a.ts", "deny"],
    ["plan", "edit", ".fairlead/plans/a.md", "allow"],
    ["plan", "bash", "touch a", "ask"],
    ["plan", "bash", "git status", "allow"],
    ["plan", "server_tool", "*", "ask"],
    ["plan", "task", "general", "deny"],
    ["explore", "edit", "a.ts", "deny"],
    ["explore", "bash", "touch a", "ask"],
    ["explore", "server_tool", "*", "deny"],
    ["explore", "read", "a.ts", "allow"],
    ["compaction", "read", "a.ts", "deny"],
    ["build", "edit", "a.ts", "allow"],
  ])("%s: %s of %s is %s though the user allows everything", async (name, permission, text, action) => {
    for (const config of [
      { permission: "allow" as const },
      { permission: { [permission]: "allow" as const } },
    ])
      expect(await judged(name, permission, text, config)).toBe(action);
  });

  test("keep what the user denies or asks for", async () => {
    const config = { permission: { bash: { "*": "ask", "git status *": "deny" }, read: "ask" } } as const;
    expect(await judged("plan", "bash", "git status", config)).toBe("deny");
    expect(await judged("plan", "bash", "npm test", config)).toBe("ask");
    expect(await judged("explore", "read", "a.ts", config)).toBe("ask");
    const specific = { permission: { bash: { "git log *": "ask", "*": "ask", "ls *": "ask" } } } as const;
    for (const name of ["plan", "explore"])
      for (const command of ["git log -3", "ls src"])
        expect(await judged(name, "bash", command, specific)).toBe("ask");
    expect(await judged("plan", "bash", "ls", { permission: { bash: "deny" } })).toBe("deny");
  });

  test("use their commands and write plans where the user asks for all commands or edits", async () => {
    const asking: PermissionConfig[] = [{ bash: "ask", edit: "ask" }, { "*": "ask" }, "ask"];
    for (const permission of asking) {
      for (const name of ["plan", "explore"])
        expect(await judged(name, "bash", "git log --oneline -3", { permission })).toBe("allow");
      expect(await judged("plan", "edit", ".fairlead/plans/x.md", { permission })).toBe("allow");
      expect(await judged("plan", "edit", "a.ts", { permission })).toBe("deny");
      expect(await judged("build", "bash", "git log --oneline -3", { permission })).toBe("ask");
    }
  });

  test("may do what the rules for their name allow", async () => {
    const config = { agent: { plan: { permission: { edit: { "docs/*": "allow" } } } } } as const;
    expect(await judged("plan", "edit", "docs/a.md", config)).toBe("allow");
    expect(await judged("plan", "edit", "a.ts", config)).toBe("deny");
  });
});

test("a project's agent file does not link out of the project or to a secret file", async () => {
  const outside = await write("secret.txt", "s3cret");
  const secrets = await write("project/.env", "KEY=1");
  const shared = await write("project/shared.md", "shared");
  const folder = join(base, "project", ".fairlead");
  await mkdir(join(folder, "agents"), { recursive: true });
  await symlink(outside, join(folder, "agents", "a.md"));
  await symlink(secrets, join(folder, "agents", "b.md"));
  await symlink(shared, join(folder, "agents", "c.md"));
  const confined = { folders: [folder], root: await realpath(join(base, "project")) };
  const { agents, problems } = await load({}, { folders: [folder], confined });
  expect(["a", "b", "c"].map((name) => agents.get(name)?.prompt)).toEqual([undefined, undefined, "shared"]);
  expect(problems.map(({ message }) => message)).toEqual([
    `links to a file outside of ${confined.root} and is ignored`,
    "links to a secret file and is ignored",
  ]);
});

type Agents = Awaited<ReturnType<typeof loadAgents>>["agents"];

function load(
  config: AgentSources["config"],
  more: Partial<Pick<AgentSources, "folders" | "untrusted" | "confined" | "personal">> = {},
) {
  return loadAgents({ config, folders: [], outputFolder, skillFolders, home: "/home/person", ...more });
}

function rulesOf(agents: Agents, name: string): Ruleset {
  return agents.get(name)?.rules ?? [];
}

function ownRules(agents: Agents, name: string): Rule[] {
  return rulesOf(agents, name).slice(defaults.length);
}

function decide(agents: Agents, name: string, permission: string, text: string): Action {
  return evaluate({ permission, subjects: [{ text }], always: [] }, rulesOf(agents, name)).action;
}

function rule(permission: string, pattern: string, action: Action): Rule {
  return { permission, pattern, action };
}

async function write(path: string, text: string): Promise<string> {
  const absolute = join(base, path);
  await mkdir(dirname(absolute), { recursive: true });
  await writeFile(absolute, text);
  return absolute;
}
