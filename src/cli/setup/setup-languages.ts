import type { App } from "../../app.ts";
import type { Call } from "../command-line/command.ts";
import type { Questions } from "../terminal/questions.ts";

interface LanguageSetup {
  readonly call: Call;
  readonly questions: Questions;
  readonly app: App;
}

/** Flags of an unattended setup, or of one for an editor only. */
const otherPurposes = ["editor", "ask-for", "key-from"];

/** Asks whether installed language servers may run in the project of the working directory, if it has any. */
export async function offerLanguageServers({ call, questions, app }: LanguageSetup): Promise<void> {
  const cwd = process.cwd();
  if (cwd === app.home || otherPurposes.some((flag) => call.has(flag))) return;
  const { languages } = await app.projects.open({ cwd, additionalDirectories: [] });
  const offered = await languages?.offered();
  if (offered === undefined) return;
  const names = offered.servers.map(({ name }) => name).join(", ");
  questions.say(
    `Language servers show the model the errors of its edits, and find definitions. Installed for ${offered.folder}: ${names}. Some run code of the project.`,
  );
  const answer = await questions.choose("Use them in this project?", [
    { value: "later", label: "Ask me in a session" },
    { value: "yes", label: "Yes" },
    { value: "no", label: "No" },
  ]);
  if (answer !== "later") await offered.answer(answer === "yes");
}
