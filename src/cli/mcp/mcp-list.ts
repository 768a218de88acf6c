import type { App } from "../../app.ts";
import { showInvisible } from "../../base/text/invisible.ts";
import type { Project } from "../../conversation/project.ts";
import { writeNotice } from "../terminal/output.ts";
import { connectServers, type ServerRow } from "./connect-servers.ts";
import { type Style, styleFor } from "../terminal/style.ts";

/** Connects to every configured server, prints their states, and stops them. */
export async function listServers(app: App, project: Project, isJson: boolean): Promise<void> {
  const { rows, problems } = await connectServers(app, project);
  await app.close();
  for (const problem of problems) writeNotice(showInvisible(problem));
  if (isJson) return print(JSON.stringify(rows, undefined, 2));
  if (rows.length === 0) print("No MCP servers are configured. To add one: fairlead mcp add --help");
  for (const line of toTable(rows, styleFor(process.stdout, process.env))) print(line);
}

/** Connects to one server, prints its state and tools, and stops it. Returns undefined if there is none of this name. */
export async function testServer(
  app: App,
  project: Project,
  name: string,
  isJson: boolean,
): Promise<boolean | undefined> {
  const {
    rows: [row],
  } = await connectServers(app, project, name);
  await app.close();
  if (row === undefined) return undefined;
  if (isJson) print(JSON.stringify(row, undefined, 2));
  else {
    for (const line of toTable([row], styleFor(process.stdout, process.env))) print(line);
    for (const tool of row.tools) print(`  ${tool}`);
  }
  return row.state === "connected";
}

function toTable(rows: readonly ServerRow[], style: Style): string[] {
  const nameWidth = Math.max(0, ...rows.map(({ name }) => name.length));
  const stateWidth = Math.max(0, ...rows.map((row) => formatState(row).length));
  return rows.flatMap((row) => {
    const state = paintState(row, formatState(row).padEnd(stateWidth), style);
    const first = `${row.name.padEnd(nameWidth)}  ${state}  ${style.dim(row.where)}`;
    const below = [...(row.reason === undefined ? [] : [row.reason]), ...row.notes];
    return [first, ...below.map((text) => `${" ".repeat(nameWidth)}  ${style.yellow(text)}`)];
  });
}

function formatState({ state, tools }: ServerRow): string {
  if (state !== "connected") return state;
  return `connected, ${tools.length} ${tools.length === 1 ? "tool" : "tools"}`;
}

function paintState({ state }: ServerRow, text: string, style: Style): string {
  switch (state) {
    case "connected":
      return style.green(text);
    case "failed":
      return style.red(text);
    case "needs authorization":
      return style.yellow(text);
    case "disabled":
      return style.dim(text);
  }
}

function print(text: string): void {
  process.stdout.write(`${showInvisible(text)}\n`);
}
