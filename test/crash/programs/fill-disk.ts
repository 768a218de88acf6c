import { UserError } from "../../../src/base/errors.ts";
import { silentLog } from "../../../src/base/log.ts";
import { SessionStore } from "../../../src/storage/session-store.ts";
import { all, openWriter, putSealed, sessionInfo, textPart } from "../support/stored-session.ts";

/** Writes more than the file size limit of its process, and prints the outcome. */
const [root = ""] = process.argv.slice(2);
const store = await SessionStore.open({ root, log: silentLog });
const info = sessionInfo();
await store.create(info);
const writer = await openWriter(store, info.id);
putSealed(writer, [textPart("small")]);
await writer.flush();
putSealed(writer, [textPart("large ".repeat(100_000))]);
const failure: unknown = await writer.flush().then(
  () => undefined,
  (thrown: unknown) => thrown,
);
const messages = await all(store.messages(info.id));
process.stdout.write(
  JSON.stringify({
    isUserError: failure instanceof UserError,
    message:
      failure instanceof Error ? failure.message.replace(root, "<root>").replaceAll(info.id, "<id>") : "",
    texts: messages.map(({ parts }) => parts.map((part) => ("text" in part ? part.text : ""))),
  }),
);
