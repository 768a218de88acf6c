import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

// Loaded before the program: moves its clock by the milliseconds in a file of its home.
const path = join(process.env["HOME"] ?? "", "clock");
const offsetMs = existsSync(path) ? Number(readFileSync(path, "utf8")) : 0;
const now = Date.now;
Date.now = () => now() + offsetMs;
