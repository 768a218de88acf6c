import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

/** Runs the agent under a limit on the number of its open files. */
const [limit = "128"] = process.argv.slice(2);
const program = fileURLToPath(new URL("../../../bin/fairlead.js", import.meta.url));
const command = `ulimit -n ${Number(limit)}; exec "$0" "$@"`;
const child = spawn("sh", ["-c", command, process.execPath, program, "acp"], { stdio: "inherit" });
child.on("exit", (code) => process.exit(code ?? 1));
