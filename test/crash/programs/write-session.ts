import { silentLog } from "../../../src/base/log.ts";
import { isSessionId } from "../../../src/message/ids.ts";
import { SessionStore } from "../../../src/storage/session-store.ts";
import { assistantInfo, openWriter, textPart, toolPart } from "../support/stored-session.ts";

/**
 * Streams a session until it is killed. Each message has a text of counted words and a finished tool part.
 * Prints as JSON, one line each, what was flushed and when each word was added.
 */
const [root = "", id] = process.argv.slice(2);
if (!isSessionId(id)) throw new Error("no session id");

const store = await SessionStore.open({ root, log: silentLog });
const writer = await openWriter(store, id);
const say = (line: object) => process.stdout.write(`${JSON.stringify(line)}\n`);
const pause = () => new Promise((resolve) => setTimeout(resolve, 1));

for (let n = 0; ; n++) {
  const info = assistantInfo(id);
  const text = textPart();
  const tool = toolPart(`output ${n}`);
  writer.putMessage(info);
  writer.putPart(info.id, text);
  for (let word = 0; word < 40; word++) {
    writer.append(info.id, text.id, `${word} `);
    say({ at: Date.now(), message: info.id, words: word + 1 });
    await pause();
  }
  writer.putPart(info.id, tool);
  await writer.flush();
  say({ at: Date.now(), message: info.id, part: tool.id });
  writer.seal(info.id);
  if (n % 3 === 0) await writer.flush();
}
