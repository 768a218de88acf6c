import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

// Loaded before the program: sets its clock by the milliseconds that a file in its home names.
const path = join(process.env["HOME"] ?? "", "clock");
const offsetMs = existsSync(path) ? Number(readFileSync(path, "utf8")) : 0;
const now = Date.now;
Date.now = () => now() + offsetMs;
