import { estimateTokenCount } from "tokenx";
import { lacksPipesAndDevices } from "../support/platform/platform.ts";

/** Maximum tokens of a refusal or a failure, so that a mistake costs little. */
export const failureBudget = 120;

/** Words that introduce the next step. */
const nextStep =
  /\b(?:ask|begin|call|check|choose|continue|copy|correct|did you mean|end your turn|find|fix|give|go on|join|leave|look|make|name|narrow|put|read|say|search|send|set|tell|try|use|wait|write)\b/i;

/** Describes a problem of the text of a failure; undefined if there is none. */
export function findFault(text: string): string | undefined {
  const tokens = estimateTokenCount(text);
  if (tokens > failureBudget) return `${tokens} tokens, at most ${failureBudget}: ${text}`;
  return nextStep.test(text) ? undefined : `names no next step: ${text}`;
}

/** A call that fails, and a part of its error text. */
interface FailingCall {
  readonly tool: string;
  readonly input: unknown;
  readonly says: string | RegExp;
}

const call = (tool: string, input: unknown, says: string | RegExp): FailingCall => ({ tool, input, says });

export const files = {
  "a.txt": "one\ntwo\ntwo\n",
  "unread.txt": "unread\n",
  "stale.txt": "old\n",
  "blob.bin": new Uint8Array([0, 1, 2, 255, 0, 3]),
  "broken.png": new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0]),
  "long.txt": `${"x".repeat(60)}\n`.repeat(400),
  "shop/b.txt": "b\n",
};

export const homeFiles = {
  ".config/fairlead/tools/broken.ts": `export default { description: "Fails.", args: {}, execute() { throw new Error("no luck"); } };\n`,
};

const patch = (...lines: string[]) => ({
  patchText: ["*** Begin Patch", ...lines, "*** End Patch"].join("\n"),
});
const update = (name: string, ...lines: string[]) => patch(`*** Update File: ${name}`, ...lines);

/** Failures of each tool, in order. `a.txt` and `stale.txt` were read before. */
export const failingCalls: readonly FailingCall[] = [
  call("read", { filePath: "missing.txt" }, "does not exist"),
  call("read", { filePath: "a.txt", offset: 99 }, "There is no line 99"),
  call("read", { filePath: "shop", offset: 99 }, "There is no entry 99"),
  call("read", { filePath: "blob.bin" }, "binary"),
  call("read", { filePath: "broken.png" }, "cannot be shown"),
  ...(lacksPipesAndDevices ? [] : [call("read", { filePath: "/dev/zero" }, "is a device")]),
  call("read", {}, "filePath is missing"),
  call("read", { filePath: "a.txt", limit: "many" }, "limit"),
  call("read", { filePath: "a\0b" }, /NUL|zero/i),
  call("list", { path: "missing" }, "does not exist"),
  call("list", { path: "a.txt" }, "is a file"),
  call("glob", { pattern: "*", path: "missing" }, "does not exist"),
  call("glob", { pattern: "" }, "pattern"),
  call("grep", { pattern: "(" }, "not valid"),
  call("grep", { pattern: "x", path: "missing" }, "does not exist"),
  call("edit", { filePath: "missing.txt", oldString: "a", newString: "b" }, "does not exist"),
  call("edit", { filePath: "shop", oldString: "a", newString: "b" }, "is a folder"),
  call("edit", { filePath: "a.txt", oldString: "one", newString: "one" }, "are the same"),
  call("edit", { filePath: "a.txt", oldString: "", newString: "b" }, "oldString is empty"),
  call("edit", { filePath: "a.txt", oldString: "three four five", newString: "b" }, "oldString"),
  call("edit", { filePath: "a.txt", oldString: "two", newString: "b" }, "oldString"),
  call("edit", { filePath: "blob.bin", oldString: "a", newString: "b" }, "is binary"),
  call("edit", { filePath: "stale.txt", oldString: "old", newString: "b", replaceAll: true }, "stale.txt"),
  call("multiedit", { filePath: "a.txt", edits: [] }, "edits"),
  call(
    "multiedit",
    {
      filePath: "a.txt",
      edits: [
        { oldString: "one", newString: "x" },
        { oldString: "gone", newString: "y" },
      ],
    },
    "oldString",
  ),
  call(
    "multiedit",
    {
      filePath: "a.txt",
      edits: [
        { oldString: "one", newString: "x" },
        { oldString: "x", newString: "one" },
      ],
    },
    "leave the file as it is",
  ),
  call("write", { filePath: "shop", content: "x" }, "is a folder"),
  call("write", { filePath: "unread.txt", content: "x" }, "was not read"),
  call("write", { filePath: "a.txt/b.txt", content: "x" }, "a.txt"),
  call("write", { filePath: `${"n".repeat(300)}.txt`, content: "x" }, "too long for the file system"),
  call("apply_patch", { patchText: "--- a.txt" }, "has no line"),
  call("apply_patch", patch(), "names no file"),
  call("apply_patch", patch("a.txt: one"), "Line 2 of the patch"),
  call("apply_patch", update("missing.txt", "@@", "-one", "+two"), "does not exist"),
  call("apply_patch", update("shop", "@@", "-one", "+two"), "is a folder"),
  call("apply_patch", update("a.txt", "@@", "-three four five", "+x"), "fits nowhere"),
  call("apply_patch", update("a.txt", "@@ class Gone", "-one", "+x"), "fits nowhere"),
  call("apply_patch", update("a.txt", "@@", "-two", "+x"), "a.txt"),
  call("apply_patch", update("a.txt", "@@", "+new"), "only new lines"),
  call("apply_patch", update("a.txt", "@@", " one"), "changes nothing"),
  call("apply_patch", update("unread.txt", "@@", "-u", "+x"), "unread.txt"),
  call("apply_patch", update("blob.bin", "@@", "-a", "+b"), "is binary"),
  call("apply_patch", patch("*** Delete File: missing.txt"), "does not exist"),
  call("apply_patch", patch("*** Add File: new.txt", "no plus"), "begins with"),
  call("bash", { command: "" }, "command"),
  call("bash", { command: "ls", workdir: "missing" }, "does not exist"),
  call("bash", { command: "ls", workdir: "a.txt" }, "is a file"),
  call("bash", { command: "ls", timeout: -1 }, "timeout"),
  call("task", { description: "Dig", prompt: "Dig.", subagent_type: "digger" }, "There is no agent"),
  call("task", { description: "Dig", subagent_type: "general" }, "prompt is missing"),
  call("task", { description: "Dig", prompt: "Dig.", subagent_type: "general", task_id: "ses_1" }, "ses_1"),
  call("skill", { name: "juggling" }, "There is no skill"),
  call("todowrite", { todos: [{ content: "x", status: "wild" }] }, "status"),
  call("question", { questions: [] }, "questions"),
  call("webfetch", { url: "example" }, "is not an address"),
  call("webfetch", { url: "ftp://example.com/" }, "http and https"),
  call("webfetch", { url: "http://me:secret@example.com/" }, "user name or password"),
  call("webfetch", { url: "http://nowhere.invalid/" }, "nowhere.invalid"),
  call("webfetch", { url: "http://127.0.0.1:9/" }, "127.0.0.1"),
  call("websearch", { query: "x" }, "127.0.0.1:9"),
  call("plan_exit", {}, "Plan mode is not on"),
  call("broken", {}, "no luck"),
  call("everything_echo", {}, "message"),
  call("everything_echo", { message: { deep: 1 } }, "message"),
  call("read_mcp_resource", { server: "nobody", uri: "x://y" }, "There is no MCP server"),
  call("read_mcp_resource", { server: "everything", uri: "demo://resource/static/no" }, "refused"),
  call("fly", {}, "There is no tool"),
  call("", {}, "names no tool"),
  call("read", '{"filePath": "a.txt', /arguments|JSON/i),
  call("edit", '{"filePath": a.txt" oldString}', /arguments|JSON/i),
  call("read", { filePath: "forbidden/key.txt" }, "A rule forbids"),
];
