import { isUtf8 } from "node:buffer";
import { isMissing, messageOf } from "../../base/errors.ts";
import { statOrUndefined } from "../../base/files/file-stat.ts";
import { readRegularFile } from "../../base/files/regular-file.ts";

const fileLimitBytes = 2_000_000;

/** Text of a configuration file, or why there is none. */
export type ConfigText =
  | { outcome: "read"; text: string }
  | { outcome: "missing" }
  /** The file exists but is not used. */
  | { outcome: "refused"; problem: string };

/** Reads a configuration file. Never rejects. */
export async function readConfigText(path: string): Promise<ConfigText> {
  try {
    const found = statOrUndefined(path);
    if (found === undefined) return { outcome: "missing" };
    // Reading a pipe or a device would block.
    if (!found.isFile()) return refused("not a regular file; ignored");
    if (found.size > fileLimitBytes) return refused(`larger than ${fileLimitBytes} bytes; ignored`);
    const bytes = await readRegularFile(path);
    return isUtf8(bytes) && !bytes.includes(0)
      ? { outcome: "read", text: bytes.toString("utf8") }
      : refused(notText);
  } catch (thrown) {
    return isMissing(thrown) ? { outcome: "missing" } : refused(messageOf(thrown));
  }
}

const notText = "not UTF-8; save it as UTF-8 (PowerShell: Set-Content -Encoding utf8); ignored";

function refused(problem: string): ConfigText {
  return { outcome: "refused", problem };
}
