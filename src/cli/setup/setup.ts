import { join } from "node:path";
import { codeOf, messageOf, UserError } from "../../base/errors.ts";
import type { App } from "../../app.ts";
import { isKnownToken } from "../../base/secrets/secret-forms.ts";
import { readRegularFile } from "../../base/files/regular-file.ts";
import { type Setting, setInFile } from "../../config/edit.ts";
import { mergeConfigs } from "../../config/merge.ts";
import type { Config } from "../../config/schema.ts";
import { substitute } from "../../config/substitution.ts";
import { newMessageId, newPartId, newSessionId } from "../../message/ids.ts";
import type { Message } from "../../message/message.ts";
import { loadCredentials, saveCredential } from "../../model/keys/credentials.ts";
import { KeyCommands } from "../../model/keys/key-command.ts";
import { Catalog } from "../../model/catalog/known-models.ts";
import { omitDefaultEffort } from "../../model/catalog/efforts.ts";
import { isApi } from "../../config/api.ts";
import { type ListedModels, listModels } from "../../model/catalog/list-models.ts";
import { openModels } from "../../model/providers/providers.ts";
import { usableProviders } from "../../model/catalog/usable-providers.ts";
import { lockFolderOf } from "../../storage/json/lock.ts";
import type { Call } from "../command-line/command.ts";
import { editors, startCommand } from "./editors.ts";
import { exitCodes } from "../terminal/help.ts";
import { openApp } from "../local-app.ts";
import { findUserConfigFile } from "../user-config-file.ts";
import { openQuestions } from "../terminal/open-questions.ts";
import { joinOrganization } from "./organization.ts";
import { writeNotice } from "../terminal/output.ts";
import { type Questions, QuestionsCancelledError } from "../terminal/questions.ts";
import { choosePermissionLevel, createPermissionSettings, type PermissionLevel } from "./setup-permission.ts";
import { chooseKey, createKeyOptions, type KeySource } from "./setup-key.ts";
import {
  describeModel,
  describeNoModels,
  describeStarts,
  findRunningServers,
  isLocalPreset,
  suggestModel,
} from "./local-servers.ts";
import { type ChosenProvider, chooseProvider } from "./setup-provider.ts";
import { UsageError } from "../command-line/usage.ts";

/** Asks for a provider, its key and a model, tests them, stores them, and shows the editor's configuration. */
export async function setup(call: Call): Promise<number> {
  if (call.has("editor")) checkEditor(call.text("editor"));
  const wrongName = checkModelName(call.text("model") ?? "");
  if (wrongName !== undefined) throw new UsageError(`--model: ${wrongName}`, "setup");
  const questions = await openQuestions();
  try {
    await run({ call, questions, app: openApp() });
    return exitCodes.done;
  } catch (error) {
    if (!(error instanceof QuestionsCancelledError)) throw error;
    writeNotice(`setup ended: ${error.message}`);
    return exitCodes.cancelled;
  } finally {
    questions.close();
  }
}

interface Setup {
  readonly call: Call;
  readonly questions: Questions;
  readonly app: App;
}

/** The choices to test and store. */
interface Choices {
  readonly provider: ChosenProvider;
  readonly key: KeySource;
  readonly model: string;
}

async function run(setup: Setup): Promise<void> {
  const organization = setup.call.text("organization");
  if (organization !== undefined) return joinOrganization(organization, setup.app, setup.questions);
  if (setup.call.operands[0] === "search") return (await import("./setup-search.ts")).setupSearch(setup);
  const choices = await choose(setup);
  const { loaded } = await setup.app.projects.readConfiguration(setup.app.home);
  const isBrief = isQuick(setup) && choices.provider.isLocal;
  const level =
    isBrief && !setup.call.has("ask-for") ? undefined : await choosePermissionLevel(setup, loaded.config);
  await store(setup, choices);
  if (level !== undefined) await storePermissionLevel(setup, level, loaded.config);
  const isReady = await check(setup, choices);
  if (!isBrief || setup.call.has("editor")) await showEditorConfig(setup);
  else
    setup.questions.say(`For your editor: fairlead setup ${choices.provider.id} --editor ${editorNames()}`);
  if (!isBrief) await (await import("./setup-languages.ts")).offerLanguageServers(setup);
  if (isReady) setup.questions.say('Ready. Try: fairlead run "explain this repository"');
}

/**
 * Whether one command is enough, as in `setup ollama`: then only questions without a sensible default are
 * asked.
 */
const isQuick = ({ call }: Setup): boolean => call.operands.length > 0;

/** Returns the provider that the operand or the flag names; for `local`, the program that runs. */
async function readProviderName({ call, questions }: Setup): Promise<string | undefined> {
  const [operand] = call.operands;
  const flag = call.text("provider");
  if (operand !== undefined && flag !== undefined && operand !== flag)
    throw new UsageError(`${operand} and --provider ${flag} name different providers`, "setup");
  if (operand !== "local") return operand ?? flag;
  const running = await questions.wait(
    "Looking for model servers on this machine",
    findRunningServers(process.env),
  );
  const [first] = running;
  if (first === undefined)
    throw new UserError(
      `No model server answers on this machine. Start one: ${describeStarts(process.env)}.`,
    );
  if (running.length === 1 || !process.stdin.isTTY) return first.preset.id;
  const choices = running.map(({ preset: { id, name }, provider: { baseURL } }) => ({
    value: id,
    label: name,
    hint: baseURL,
  }));
  return questions.choose("Several servers answer. Which one?", choices, { suggestion: first.preset.id });
}

/** Returns the source of a local server's key for {@link isQuick}: a variable that is set, else none is needed. */
function findQuickKey(setup: Setup, { isLocal, keyVariables }: ChosenProvider): string | undefined {
  if (!isQuick(setup) || !isLocal) return undefined;
  const known = keyVariables.find((name) => process.env[name]);
  return known === undefined ? "none" : `env:${known}`;
}

async function choose(setup: Setup): Promise<Choices> {
  const { call, questions } = setup;
  const given = { id: await readProviderName(setup), baseURL: call.text("base-url") };
  const api = call.text("api");
  const chosen = await chooseProvider(given, {
    questions,
    catalog: new Catalog(setup.app.log),
    env: process.env,
  });
  const provider = isApi(api) ? { ...chosen, api } : chosen;
  for (;;) {
    const key = await chooseKey(provider, call.text("key-from") ?? findQuickKey(setup, provider), {
      questions,
      env: process.env,
    });
    const model = call.text("model") ?? (await chooseModel(setup, provider, key));
    const choices = { provider, key, model: removeProviderPrefix(model, provider) };
    if (call.has("no-test")) return choices;
    const failure = await questions.wait("Asking the model for one word", sendTestRequest(setup, choices));
    if (failure === undefined) {
      questions.say("It answered.");
      return choices;
    }
    questions.say(`The test failed: ${failure}`);
    if (call.has("key-from")) throw new UserError("Nothing was stored; --no-test stores it without a test.");
    const next = await questions.choose(
      "What now?",
      [
        { value: "again", label: "Choose key and model again" },
        { value: "keep", label: "Store it anyway" },
        { value: "stop", label: "Stop" },
      ],
      { suggestion: "again" },
    );
    if (next === "keep") return choices;
    if (next === "stop") throw new QuestionsCancelledError("nothing was stored");
  }
}

/** Asks for a model of the catalog, or of the server's own list when the catalog has none. */
async function chooseModel(setup: Setup, provider: ChosenProvider, key: KeySource): Promise<string> {
  const { questions } = setup;
  if (isLocalPreset(provider.id)) return chooseLocalModel(setup, provider, key);
  const known = provider.models.map(({ id, name }) => ({ value: id, label: name, hint: id }));
  const other = { value: "another", label: "Another one" };
  const listed = known.length > 0 ? undefined : await fetchModels(setup, provider, key);
  if (listed?.outcome === "failed") questions.say(`Its models could not be listed: ${listed.message}`);
  const names = listed?.outcome === "listed" ? listed.models.map(({ id }) => id) : [];
  const choices = [...known, ...names.map((id) => ({ value: id, label: id }))];
  if (choices.length === 0) return askForModelName(questions);
  const first = provider.defaultModel ?? choices[0]?.value;
  const model = await questions.choose(
    "Which model?",
    [...choices, other],
    first === undefined ? {} : { suggestion: first },
  );
  return model === other.value ? askForModelName(questions) : model;
}

/** Asks for one of the models that a program on this machine has; asks what to do if it does not run or has none. */
async function chooseLocalModel(setup: Setup, provider: ChosenProvider, key: KeySource): Promise<string> {
  const { questions } = setup;
  for (;;) {
    const found = await fetchModels(setup, provider, key);
    const models = found.outcome === "listed" ? found.models : [];
    const suggested = suggestModel(models);
    if (suggested !== undefined) {
      if (isQuick(setup) && (models.length === 1 || !process.stdin.isTTY)) return suggested.id;
      const choices = models.map((model) => ({
        value: model.id,
        label: model.name,
        hint: describeModel(model),
      }));
      return questions.choose("Which model?", choices, { suggestion: suggested.id });
    }
    const problem = found.outcome === "failed" ? found.message : describeNoModels(provider);
    if (isQuick(setup) && !process.stdin.isTTY) throw new UserError(`${problem} Nothing was stored.`);
    questions.say(problem);
    const next = await questions.choose(
      "What now?",
      [
        { value: "again", label: "Try again" },
        { value: "name", label: "Type the model's name" },
        { value: "stop", label: "Stop" },
      ],
      { suggestion: "again" },
    );
    if (next === "stop") throw new QuestionsCancelledError("nothing was stored");
    if (next === "name") return askForModelName(questions);
  }
}

const askForModelName = (questions: Questions): Promise<string> =>
  questions.text("What does the provider call the model?", { check: checkModelName });

/** Asks the server for its models. */
async function fetchModels(setup: Setup, provider: ChosenProvider, key: KeySource): Promise<ListedModels> {
  const { questions } = setup;
  const config = await createConfig(setup, { provider, key, model: "" });
  const usable = usableProviders({ config, env: process.env, credentials: {} }).get(provider.id);
  if (usable === undefined) return { outcome: "listed", models: [], isCut: false };
  const apiKey = await resolveKey(setup, provider, key);
  const asking = listModels({ ...usable, apiKey }, AbortSignal.timeout(testTimeoutMs));
  return questions.wait(`Asking ${provider.baseURL} for its models`, asking);
}

/** Returns the key; undefined when its source has none. */
async function resolveKey(
  setup: Setup,
  provider: ChosenProvider,
  key: KeySource,
): Promise<string | undefined> {
  if (key.from === "input") return key.key;
  if (key.from === "variable") return process.env[key.name];
  if (key.from === "command") return runKeyCommand(setup, key.command);
  const filled = await createConfig(setup, { provider, key, model: "" });
  return filled.provider?.[provider.id]?.options?.apiKey;
}

async function runKeyCommand({ questions }: Setup, command: readonly string[]): Promise<string | undefined> {
  try {
    return await new KeyCommands(process.env, () => {}).keyOf(command);
  } catch (error) {
    questions.say(messageOf(error));
    return undefined;
  }
}

/** Creates the user's configuration with the choices applied, and with variables and files substituted. */
async function createConfig({ app }: Setup, { provider, key, model }: Choices): Promise<Config> {
  const { loaded } = await app.projects.readConfiguration(app.home);
  const { api } = provider;
  const options = {
    ...(provider.isCustom && { baseURL: provider.baseURL }),
    ...createKeyOptions(key, provider),
    ...(key.from === "input" && { apiKey: key.key }),
  };
  const context = { env: process.env, home: app.home, path: join(app.folders.config, "fairlead.json") };
  const apiKey = await substitute(options.apiKey ?? "", context);
  const filled = { ...options, apiKey: typeof apiKey.value === "string" ? apiKey.value : "" };
  return mergeConfigs(loaded.config, {
    model: `${provider.id}/${model}`,
    provider: { [provider.id]: { ...(api !== undefined && { api }), options: filled } },
  });
}

const testTimeoutMs = 60_000;
/** Maximum output tokens of the test request. */
const testOutputTokens = 64;

/** Sends one small request. Returns why it failed; undefined on success. */
async function sendTestRequest(setup: Setup, choices: Choices): Promise<string | undefined> {
  const missing = await findKeyProblem(choices.key);
  if (missing !== undefined) return missing;
  const config = await createConfig(setup, choices);
  const { log } = setup.app;
  const models = openModels({ config, env: process.env, credentials: {}, log });
  const model = models.find({ provider: choices.provider.id, model: choices.model });
  if (model === undefined) return "it has no key.";
  const signal = AbortSignal.timeout(testTimeoutMs);
  const request = {
    model: omitDefaultEffort(model),
    system: [],
    messages: [createTestMessage()],
    tools: [],
    maxOutputTokens: testOutputTokens,
    signal,
  };
  const end = await models.call(request, () => undefined);
  if (end.type === "finish") return undefined;
  return signal.aborted ? `no answer within ${testTimeoutMs / 1000} s` : end.error.message;
}

/** Returns why the source has no key; undefined when it has one. */
async function findKeyProblem(key: KeySource): Promise<string | undefined> {
  if (key.from === "variable" && !process.env[key.name]) return `the variable ${key.name} is not set.`;
  if (key.from !== "file") return undefined;
  try {
    return (await readRegularFile(key.path)).toString("utf8").trim() === ""
      ? `${key.path} is empty.`
      : undefined;
  } catch (error) {
    return `${key.path} cannot be read: ${codeOf(error) ?? messageOf(error)}.`;
  }
}

function createTestMessage(): Message {
  const time = { created: Date.now() };
  return {
    info: { id: newMessageId(), sessionId: newSessionId(), role: "user", time, agent: "build" },
    parts: [{ id: newPartId(), type: "text", text: "Answer with the one word: ready" }],
  };
}

async function store({ app, questions }: Setup, { provider, key, model }: Choices): Promise<void> {
  const file = findUserConfigFile(app.folders.config);
  const { loaded } = await app.projects.readConfiguration(app.home);
  if (key.from === "input") await saveCredential(app.folders.data, provider.id, key.key);
  const settings = createSettings({ provider, key, model }, loaded.config);
  await setInFile(file, settings, lockFolderOf(app.folders.data));
  const keyNote = key.from === "input" ? " and the key in credentials.json, readable by you only" : "";
  questions.say(`Stored: the model ${provider.id}/${model} in ${file}${keyNote}.`);
}

async function storePermissionLevel(
  { app, questions }: Setup,
  level: PermissionLevel,
  config: Config,
): Promise<void> {
  const file = findUserConfigFile(app.folders.config);
  const settings = createPermissionSettings(level, config);
  if (settings === undefined)
    return questions.say(`Your own rules for permissions stay as they are: see ${file}, permission.`);
  await setInFile(file, settings, lockFolderOf(app.folders.data));
  questions.say(`${level.note} fairlead permissions check "COMMAND" shows it for a command.`);
}

function createSettings({ provider, key, model }: Choices, config: Config): Setting[] {
  const { id, isCustom, isLocal, baseURL, api, models } = provider;
  const at = ["provider", id];
  const known = config.provider?.[id];
  const settings: Setting[] = [{ path: ["model"], value: `${id}/${model}` }];
  if (isCustom) settings.push({ path: [...at, "options", "baseURL"], value: baseURL });
  if (api !== undefined) settings.push({ path: [...at, "api"], value: api });
  const options = createKeyOptions(key, provider);
  // Remove earlier key options: they would take precedence over a stored key.
  for (const name of ["apiKey", "apiKeyCommand"] as const)
    settings.push({ path: [...at, "options", name], value: options[name] });
  const isUnlisted = !models.some((one) => one.id === model) && known?.models?.[model] === undefined;
  if (isUnlisted && (isCustom || isLocal)) settings.push({ path: [...at, "models", model], value: {} });
  else if (isLocal && known === undefined) settings.push({ path: at, value: {} });
  return settings;
}

/** Reports variables and files that override the stored choices. Returns whether a model is usable. */
async function check({ app, questions }: Setup, { provider, key, model }: Choices): Promise<boolean> {
  const { loaded } = await app.projects.readConfiguration(app.home);
  const credentials = await loadCredentials(app.folders.data);
  const models = openModels({ config: loaded.config, env: process.env, credentials, log: app.log });
  const chosen = models.defaultModel();
  const wanted = `${provider.id}/${model}`;
  const now =
    chosen.outcome === "found" ? `${chosen.model.ref.provider}/${chosen.model.ref.model}` : undefined;
  if (chosen.outcome === "none") questions.say(chosen.error.message);
  else if (now !== wanted)
    questions.say(
      `Another setting takes precedence and chooses ${now}: see fairlead config show model, and FAIRLEAD_MODEL.`,
    );
  const { keyFrom } = models.providers().find(({ id }) => id === provider.id) ?? {};
  if (key.from === "input" && keyFrom !== "credentials.json")
    questions.say(`The key from ${keyFrom} takes precedence over the stored one.`);
  if (key.from === "variable")
    questions.say("An editor that is not started from a shell may not know the variable.");
  return chosen.outcome === "found";
}

async function showEditorConfig({ call, questions, app }: Setup): Promise<void> {
  const choices = editors.map(({ id, name }) => ({ value: id, label: name }));
  const none = { value: "none", label: "None" };
  const id = call.text("editor") ?? (await questions.choose("Which editor do you use?", [...choices, none]));
  const editor = editors.find((one) => one.id === id);
  if (editor === undefined) return;
  const start = startCommand(process.env);
  questions.show(`For ${editor.where}:`, editor.snippet(start));
  if (editor.settings === undefined || call.has("editor")) return;
  const file = editor.settings.file({ home: app.home, env: process.env, platform: process.platform });
  if (!(await questions.confirm(`Write this into ${file}?`, false))) return;
  try {
    await setInFile(file, editor.settings.of(start), lockFolderOf(app.folders.data));
    questions.say(`Written. Fairlead is now one of the agents of ${editor.name}.`);
  } catch (error) {
    questions.say(messageOf(error));
  }
}

const editorNames = (): string => editors.map(({ id }) => id).join("|");

function checkModelName(name: string): string | undefined {
  if (isKnownToken(name)) return "That looks like a key, not a model.";
  return /\s/.test(name) ? "A model's name has no blanks." : undefined;
}

function checkEditor(id: string | undefined): void {
  const ids = [...editors.map((editor) => editor.id), "none"];
  if (id === undefined || !ids.includes(id))
    throw new UsageError(`--editor takes ${ids.join(", ")}, not "${id}"`, "setup");
}

/** Removes the provider's prefix, which the flag may contain. */
function removeProviderPrefix(model: string, { id }: ChosenProvider): string {
  return model.startsWith(`${id}/`) ? model.slice(id.length + 1) : model;
}
