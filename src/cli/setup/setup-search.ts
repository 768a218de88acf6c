import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { App } from "../../app.ts";
import { messageOf, UserError } from "../../base/errors.ts";
import { readRegularFile } from "../../base/files/regular-file.ts";
import { setInFile } from "../../config/edit.ts";
import { lockFolderOf } from "../../storage/json/lock.ts";
import { searchWeb } from "../../tool/web/websearch.ts";
import type { Call } from "../command-line/command.ts";
import { UsageError } from "../command-line/usage.ts";
import { type Questions, QuestionsCancelledError } from "../terminal/questions.ts";
import { findUserConfigFile } from "../user-config-file.ts";
import { type SearchService, searchServices } from "./search-services.ts";
import { chooseKey, type KeySource } from "./setup-key.ts";
import { readAddress } from "./typed-address.ts";

/** Time limit of the search that tests the service. */
const testLimitMs = 15_000;
const testQuery = "Model Context Protocol";

interface SearchSetup {
  readonly call: Call;
  readonly questions: Questions;
  readonly app: App;
}

/** Asks for a web search service and its key, tries one search, and stores it. */
export async function setupSearch(setup: SearchSetup): Promise<void> {
  const { call, questions, app } = setup;
  const service = await chooseService(setup);
  const base = service.keyVariable === undefined ? await chooseBase(setup) : "";
  const key = service.keyVariable === undefined ? undefined : await chooseServiceKey(setup, service);
  if (!call.has("no-test")) await test(setup, service, { key: await readKeyValue(key), base });
  const endpoint = service.createEndpoint({ key: await storeKey(app, service, key), base });
  const file = findUserConfigFile(app.folders.config);
  await setInFile(file, [{ path: ["search", "web"], value: endpoint }], lockFolderOf(app.folders.data));
  questions.say(`Stored: ${service.name} under search.web in ${file}. Models have the tool websearch now.`);
}

async function chooseService({ call, questions }: SearchSetup): Promise<SearchService> {
  const id =
    call.text("provider") ??
    (await questions.choose(
      "Which web search do you want to use?",
      searchServices.map((service) => ({
        value: service.id,
        label: service.name,
        hint: service.keyVariable === undefined ? "your own server, no key" : "needs a key",
      })),
    ));
  const service = searchServices.find((one) => one.id === id);
  if (service !== undefined) return service;
  const ids = searchServices.map((one) => one.id).join(", ");
  throw new UsageError(`setup search --provider takes ${ids}, not "${id}"`, "setup");
}

async function chooseBase({ call, questions }: SearchSetup): Promise<string> {
  const check = (text: string) => {
    const address = readAddress(text);
    return address.outcome === "address" ? undefined : "Write an address such as http://localhost:8888.";
  };
  const given = call.text("base-url");
  const problem = given === undefined ? undefined : check(given);
  if (problem !== undefined) throw new UsageError(`--base-url: ${problem}`, "setup");
  const address = readAddress(
    given ??
      (await questions.text("The address of your SearXNG:", { suggestion: "http://localhost:8888", check })),
  );
  return address.outcome === "none" ? "" : address.url.replace(/\/search$/, "");
}

async function chooseServiceKey(
  { call, questions }: SearchSetup,
  { id, name, keyVariable = "" }: SearchService,
): Promise<KeySource> {
  const provider = {
    id,
    name,
    baseURL: "",
    isCustom: false,
    isLocal: false,
    models: [],
    defaultModel: undefined,
  };
  const key = await chooseKey({ ...provider, keyVariables: [keyVariable] }, call.text("key-from"), {
    questions,
    env: process.env,
  });
  if (key.from === "command" || key.from === "nowhere")
    throw new UserError(`The key of ${name} can be typed, or come from a variable or a file.`);
  return key;
}

async function readKeyValue(key: KeySource | undefined): Promise<string> {
  if (key?.from === "input") return key.key;
  if (key?.from === "variable") return process.env[key.name] ?? "";
  if (key?.from === "file") return (await readRegularFile(key.path)).toString("utf8").trim();
  return "";
}

/** Returns the reference to the key for the configuration. A typed key gets its own file. */
async function storeKey(app: App, { id }: SearchService, key: KeySource | undefined): Promise<string> {
  if (key?.from === "variable") return `{env:${key.name}}`;
  if (key?.from === "file") return `{file:${key.path}}`;
  if (key?.from !== "input") return "";
  const path = join(app.folders.data, `search-key-${id}`);
  await mkdir(app.folders.data, { recursive: true, mode: 0o700 });
  await writeFile(path, `${key.key}\n`, { mode: 0o600 });
  return `{file:${path}}`;
}

async function test(
  { call, questions }: SearchSetup,
  service: SearchService,
  access: { key: string; base: string },
): Promise<void> {
  const endpoint = service.createEndpoint(access);
  const signal = AbortSignal.timeout(testLimitMs);
  try {
    await questions.wait("Trying one search", searchWeb(endpoint, testQuery, 1, signal));
    questions.say("It answered.");
  } catch (error) {
    const hint =
      service.id === "searxng" ? " SearXNG needs json among search.formats in its settings.yml." : "";
    questions.say(`The test failed: ${messageOf(error)}${hint}`);
    if (call.has("key-from") || call.has("provider"))
      throw new UserError("Nothing was stored; --no-test stores it without a test.");
    if (!(await questions.confirm("Store it anyway?", false)))
      throw new QuestionsCancelledError("nothing was stored");
  }
}
