import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Runs the agent under a file size limit, which makes writes fail in the middle like a full disk. */
const [blocks = "64"] = process.argv.slice(2);
const program = fileURLToPath(new URL("../../../bin/fairlead.js", import.meta.url));
const command = `ulimit -f ${Number(blocks)}; exec "$0" "$@"`;
const child = spawn("sh", ["-c", command, process.execPath, program, "acp"], { stdio: "inherit" });
child.on("exit", (code) => process.exit(code ?? 1));
