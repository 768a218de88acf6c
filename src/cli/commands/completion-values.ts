import { excerpt } from "../../base/text/excerpt.ts";
import { presets } from "../../model/catalog/catalog.ts";
import type { ValueKind } from "../command-line/command.ts";
import { UsageError } from "../command-line/usage.ts";
import { existingFolder, openApp, openLocalApp } from "../local-app.ts";
import { editors } from "../setup/editors.ts";
import { print, toCell } from "../terminal/output.ts";

/** A value and its description. */
type Row = readonly [value: string, about: string];

/** Sessions offered, newest first. */
const sessionLimit = 50;
/** Characters of a description. */
const aboutLength = 60;

const lists: Readonly<Record<ValueKind, () => Promise<Row[]>>> = {
  agents: () => listAgents(() => true),
  "choosable-agents": () => listAgents((mode) => mode !== "subagent"),
  models: async () =>
    (await openLocalApp()).project.models
      .list()
      .map(({ ref, name }) => [`${ref.provider}/${ref.model}`, name] as const),
  sessions: listSessions,
  servers: async () => {
    const servers = Object.keys((await openLocalApp()).project.config.mcp ?? {});
    return servers.map((name) => [name, "MCP server"] as const);
  },
  providers: async () => {
    const configured = (await openLocalApp()).project.models.providers();
    const known = presets.map(({ id, name }) => [id, name] as const);
    const own = configured.filter(({ id }) => !presets.some((preset) => preset.id === id));
    return [...own.map(({ id }) => [id, "configured"] as const), ...known];
  },
  editors: async () => [
    ...editors.map(({ id, name }) => [id, name] as const),
    ["none", "no editor"] as const,
  ],
};

/** Prints the values of a kind for shells: one per line, with a tab before the description. */
export async function printValues(kind: string): Promise<number> {
  if (!isKind(kind))
    throw new UsageError(`completion values takes ${Object.keys(lists).join(", ")}`, "completion");
  const rows = await lists[kind]();
  // A value with spaces cannot be completed by all shells.
  for (const [value, about] of rows)
    if (!/\s/.test(value)) await print(`${toCell(value)}\t${excerpt(toCell(about), aboutLength)}`);
  return 0;
}

const isKind = (kind: string): kind is ValueKind => Object.hasOwn(lists, kind);

async function listAgents(isListed: (mode: string) => boolean): Promise<Row[]> {
  const { project } = await openLocalApp();
  return [...project.agents.values()]
    .filter(({ hidden, mode }) => !hidden && isListed(mode))
    .map(({ name, description }) => [name, description] as const);
}

async function listSessions(): Promise<Row[]> {
  const store = await openApp().store();
  const { sessions } = await store.list({ cwd: await existingFolder("."), limit: sessionLimit });
  const rows = sessions.map(({ id, title = "" }) => [id, title] as const);
  return rows.length === 0 ? [] : [["last", "the newest session of the folder"], ...rows];
}
