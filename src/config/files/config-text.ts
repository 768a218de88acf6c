import { isUtf8 } from "node:buffer";
import { isMissing, messageOf } from "../../base/errors.ts";
import { statOrUndefined } from "../../base/files/file-stat.ts";
import { readRegularFile } from "../../base/files/regular-file.ts";

/** Largest configuration file that is read, in bytes. */
const fileLimitBytes = 2_000_000;

/** A file's text, or why it has none that counts. */
export type ConfigText =
  | { outcome: "read"; text: string }
  | { outcome: "missing" }
  /** It is there, and is not read. */
  | { outcome: "refused"; problem: string };

/** Reads a configuration file, if it is one; never rejects. */
export async function readConfigText(path: string): Promise<ConfigText> {
  try {
    const found = statOrUndefined(path);
    if (found === undefined) return { outcome: "missing" };
    // A pipe would wait for its writer, a device never end.
    if (!found.isFile()) return refused("it is not a file; it is not read");
    if (found.size > fileLimitBytes) return refused(`larger than ${fileLimitBytes} bytes; it is not read`);
    const bytes = await readRegularFile(path);
    return isUtf8(bytes) && !bytes.includes(0)
      ? { outcome: "read", text: bytes.toString("utf8") }
      : refused(notText);
  } catch (thrown) {
    return isMissing(thrown) ? { outcome: "missing" } : refused(messageOf(thrown));
  }
}

const notText =
  "it is not written in UTF-8; save it so (PowerShell: Set-Content -Encoding utf8); it is not read";

function refused(problem: string): ConfigText {
  return { outcome: "refused", problem };
}
